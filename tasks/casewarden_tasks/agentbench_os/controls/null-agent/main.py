"""Finishes at once, whatever the problem is."""

import json
import sys

for _ in sys.stdin:
    print(json.dumps({"role": "assistant", "content": "Think: Nothing needs doing.\n\nAct: finish"}), flush=True)
