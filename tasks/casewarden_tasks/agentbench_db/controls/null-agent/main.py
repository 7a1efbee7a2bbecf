"""Says nothing that is an action."""

import json
import sys

for line in sys.stdin:
    print(json.dumps({"role": "assistant", "content": ""}), flush=True)
