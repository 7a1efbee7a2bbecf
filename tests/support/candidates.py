"""Small candidate programs that tests apply as ConfigMaps; what each does is its name."""

from __future__ import annotations

FINISHES_AFTER = """\
import json, sys, time
for line in sys.stdin:
    time.sleep({seconds})
    print(json.dumps({{"finish": True}}), flush=True)
"""

FINISHES_AT_ONCE = FINISHES_AFTER.format(seconds=0)
EXITS_127 = "import sys\nsys.exit(127)\n"
CRASHES = "raise SystemExit('no agent here')\n"
