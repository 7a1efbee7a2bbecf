"""Does nothing: finishes at the first observation."""

import json
import sys

for _ in sys.stdin:
    print(json.dumps({"finish": True}), flush=True)
