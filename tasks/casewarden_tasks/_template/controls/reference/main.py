"""A correct program for this task."""

import json
import sys

for line in sys.stdin:
    numbers = json.loads(line)["numbers"]
    total = sum(numbers)
    print(json.dumps({"sum": total}), flush=True)
