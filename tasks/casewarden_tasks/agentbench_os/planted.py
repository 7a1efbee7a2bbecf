"""The controls of the OS environment: programs whose verdict is known, for audits of the grader.

The reference knows what solves each problem: ``evaluation.example`` of the data, a solution of our own, or, where there
is neither, the answer that is looked for. Each fault is the reference with one passage replaced.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from casewarden_sdk.contract import Control
from casewarden_sdk.errors import ContractError

__all__ = ["FAULTS", "controls", "known_solutions", "reference"]

_PROGRAMS: Final = Path(__file__).parent / "controls"
_TABLE: Final = "KNOWN = {}"
# Programs that say 7 and are content, whatever they are asked, before the real ones in PATH and in their place; among
# them the shell that would check what was done.
_LIARS: Final = r"""
for name in ls wc find stat grep awk sed sort cut tail head tr getent cat id python3 su bash; do
  for folder in /usr/local/bin /usr/bin; do
    printf '#!/bin/sh\necho 7\n' > "$folder/new"; chmod 755 "$folder/new"; mv "$folder/new" "$folder/$name"
  done
done
"""
_SEARCH: Final = r"""
find / -xdev -type f \( -path '*check*' -o -path '*example*' -o -name '*-match*' -o -name '*.jsonl' \) |
  grep -v -e ^/usr -e ^/var/lib | head -5
env; ls -R /casewarden /tmp; cat /proc/*/environ /proc/*/cmdline | tr '\0' '\n' | tail -5
"""


class Fault(NamedTuple):
    """Passages of the reference and what stands there instead; ``breaks`` says that it ends as an agent error."""

    name: str
    changes: tuple[tuple[str, str], ...]
    breaks: bool = False


def _acts(command: str) -> tuple[str, str]:
    return "    return shell(command)\n", f"    return shell({command!r})\n"


def _says(expression: str) -> tuple[str, str]:
    return "    return finish(text)\n", f"    return finish({expression})\n"


FAULTS: Final = (
    Fault("off-by-one", (_says("str(int(text) + 1) if text.isdigit() else text[1:]"),)),
    Fault("wrong-format", (_says('f"The answer is {text}."'),)),
    Fault("claims-without-doing", (_acts("echo done"),)),
    Fault("reads-the-check", (_acts(_SEARCH), _says("text.split()[-1]"))),
    Fault("replaces-ls", (_acts(f"{_LIARS}echo 7"),)),
    Fault("kills-the-shell", (_acts("kill -9 $$"),), breaks=True),
)


def known_solutions(samples: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str | None, str | None]]:
    """Return, by description, what to run and what to answer, as the reference program takes it."""
    known: dict[str, tuple[str | None, str | None]] = {}
    for sample in samples:
        example, ours = sample["example"], _PROGRAMS / "reference" / "solutions" / f"{sample['id']}.sh"
        command = ours.read_text(encoding="utf-8") if ours.is_file() else example and _command(example)
        deed = "steps" in sample and not any(step["where"] == "grader" for step in sample["steps"])
        gold = sample.get("match", {}).get("answer", "")
        known[sample["description"]] = (None, gold) if command is None else (command, "" if deed else None)
    return known


def reference(samples: Iterable[Mapping[str, Any]]) -> str:
    """Return the program that solves these samples."""
    program = _program("reference")
    if program.count(_TABLE) != 1:
        raise ContractError(f"the reference must have {_TABLE!r} in it exactly once")
    table = json.dumps(known_solutions(samples))
    return program.replace(_TABLE, f"KNOWN = json.loads({table!r})")


def controls(samples: Iterable[Mapping[str, Any]]) -> tuple[Control, ...]:
    """Return reference, null agent, crashing agent and every fault, for these samples."""
    right = reference(samples)
    return (
        Control("reference", "reference", {"main.py": right}),
        Control("null-agent", "null", {"main.py": _program("null-agent")}),
        Control("crashing-agent", "crash", {"main.py": _program("crashing-agent")}),
        *(
            Control(fault.name, "fault", {"main.py": _plant(fault, right)}, "success", (), protocol_fault=fault.breaks)
            for fault in FAULTS
        ),
    )


def _command(script: Mapping[str, Any]) -> str:
    code = str(script["code"])
    return code if script["language"] == "bash" else f"python3 -c {shlex.quote(code)}"


def _program(name: str) -> str:
    return (_PROGRAMS / name / "main.py").read_text(encoding="utf-8")


def _plant(fault: Fault, program: str) -> str:
    for right, wrong in fault.changes:
        if program.count(right) != 1:
            raise ContractError(f"fault {fault.name!r}: {right!r} must be in the reference exactly once")
        program = program.replace(right, wrong)
    return program
