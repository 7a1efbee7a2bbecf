"""The hostile programs and the table that says what each tries and what must come of it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from importlib.resources import files
from typing import Any, Final, Literal

from casewarden.api.names import API_VERSION

__all__ = ["Program", "load", "manifests", "run_name"]

_SEED: Final = 17
_FAMILY: Final = "route-open-ticket"
# What doing nothing scores in that one case: its ticket must stay open, and the other one as it is.
_FLOOR: Final = "0.45"


@dataclass(frozen=True, slots=True)
class Program:
    """One row: what a program tries and what must come of it.

    ``score`` is the most that it may score. No case may pass a dimension in ``zero``. ``needs`` maps what the kernel
    must have (``landlock``) to the version from which the fence holds. ``seconds`` is the time of a case, None for the
    task's own.
    """

    name: str
    tries: str
    source: str
    status: tuple[str, ...]
    reasons: tuple[str, ...] = ()
    kind: Literal["hostile", "facts"] = "hostile"
    score: Decimal = Decimal(_FLOOR)
    task: str = "support-routing"
    families: tuple[str, ...] = (_FAMILY,)
    zero: tuple[str, ...] = ()
    needs: Mapping[str, int] = field(default_factory=dict)
    seconds: int | None = None


def load() -> list[Program]:
    """Return every row, in the table's order, each with the whole source of its program."""
    here = files("casewarden.selftest")
    rows = tomllib.loads((here / "table.toml").read_text("utf-8"))["program"]
    prelude = (here / "programs" / "_prelude.py").read_text("utf-8")
    return [
        _program(row, prelude + (here / "programs" / f"{row['name']}.py").read_text("utf-8")) for row in rows
    ]  # fmt: skip


def _program(row: Mapping[str, Any], source: str) -> Program:
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    if "score" in values:
        values["score"] = Decimal(values["score"])
    return Program(source=source, **values)


def run_name(prefix: str, program: Program) -> str:
    """Return the name of the run, and of its ConfigMap."""
    return f"{prefix}-{program.name}"


def manifests(prefix: str, program: Program, namespace: str, labels: Mapping[str, str]) -> Sequence[dict[str, Any]]:
    """Return the ConfigMap with the program and the EvalRun that plays it."""
    name = run_name(prefix, program)
    metadata = {"name": name, "namespace": namespace, "labels": dict(labels)}
    spec: dict[str, Any] = {
        "task": {"name": program.task},
        "seeds": {"values": [_SEED]},
        "select": {"families": list(program.families)},
        "candidate": {"program": {"workspace": {"configMap": name}}},
        "ttlSecondsAfterFinished": 3600,
    }
    if program.seconds is not None:
        spec["limits"] = {"caseSeconds": program.seconds}
    return (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"main.py": program.source}},
        {"apiVersion": API_VERSION, "kind": "EvalRun", "metadata": metadata, "spec": spec},
    )
