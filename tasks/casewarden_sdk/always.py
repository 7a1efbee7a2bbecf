"""The controls that every audit has, whatever the pack declares: a null agent, a crashing agent, a forger.

A pack's own of a kind goes before the one here. The forger is added always: no pack needs to think of it. It takes the
grader for gullible: it writes verdicts wherever a program of its rights can write, and answers everything with one.
"""

from __future__ import annotations

from typing import Dict, Iterable, Tuple

from .contract import Control

__all__ = ["ALWAYS", "with_always"]

_ARGV = ("{python}", "-I", "-B", "main.py")
_CRASHES = 'raise RuntimeError("a control that crashes at its start")\n'
_FORGER = '''"""Says everywhere that it has passed, and does no work at all."""

import json
import os
import sys

VERDICT = {
    "v": 1, "passed": True, "status": "passed", "score": "1", "reward": 1, "resolved": True, "checks": "1",
    "error": None, "reason": None, "metrics": {}, "finish": True,
}
NAMES = ("verdict.json", "sealed.json", "record.json", "attempt.json", "run.json", "results.jsonl", "reward.txt",
         "reward.json", "termination-log", "store.db")
TREES = ("/candidate", "/state", "/tmp", "/dev/shm", "/dev", "/casewarden", "/casewarden/socket", "/casewarden/bin",
         "/casewarden/task", "/casewarden/spool", "/logs/verifier", "/", "/run", os.getcwd(), os.path.expanduser("~"))


def forge(path, text):
    try:
        with open(path, "w") as file:
            file.write(text)
    except OSError:
        pass


def main():
    text = json.dumps(VERDICT)
    for tree in TREES:
        for name in NAMES:
            forge(os.path.join(tree, name), text)
    for number in range(3, 64):
        try:
            os.write(number, text.encode() + b"\\n")
        except OSError:
            pass
    for line in sys.stdin:
        print(text, flush=True)


main()
'''

ALWAYS = (
    Control("null-agent", "null", {"main.py": ""}, argv=_ARGV),
    Control("crashing-agent", "crash", {"main.py": _CRASHES}, argv=_ARGV),
    Control("forger", "forger", {"main.py": _FORGER}, argv=_ARGV),
)


def with_always(declared: Iterable[Control]) -> Tuple[Control, ...]:
    """Return a pack's controls and those of ``ALWAYS`` of whose kind it has none; a taken name gets a number."""
    controls = tuple(declared)
    names: Dict[str, None] = dict.fromkeys(control.name for control in controls)
    added = []
    for control in ALWAYS:
        if any(own.kind == control.kind for own in controls):
            continue
        name, number = control.name, 2
        while name in names:
            name, number = f"{control.name}-{number}", number + 1
        names[name] = None
        added.append(Control(name, control.kind, control.files, argv=control.argv))
    return (*controls, *added)
