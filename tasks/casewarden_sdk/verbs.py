"""The verbs ``plan``, ``grade`` and ``aggregate``: lines on standard input and output, nothing else."""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
from typing import IO, Any, Dict, Iterable, Mapping, Optional

from .aggregate import aggregate_lines, read_outputs
from .canonical import canonical, sha256_bytes
from .contract import Case, Pack
from .errors import ContractError
from .judging import judge
from .plan import LINE_PREFIX, build_plan, pack_lines
from .regrading import GRADE_PREFIX, regrade_file

__all__ = ["EXIT_REFUSED", "aggregate", "grade", "plan", "refuse"]

EXIT_REFUSED = 2
_FIELD = re.compile(r"(spec\.[A-Za-z0-9_.\[\]-]+): ")
_ERROR_BYTES = 600


def plan(pack: Pack, out: IO[str], variables: Mapping[str, str]) -> int:
    """Write the plan for ``CASEWARDEN_PLAN`` to ``out``; the termination message has its digest or the refusal."""
    try:
        asked = json.loads(variables.get("CASEWARDEN_PLAN", "{}"))
        document = build_plan(pack, asked.get("seeds", []), asked.get("params", {}), asked.get("families", []))
    except Exception as error:
        if not isinstance(error, ContractError):
            traceback.print_exc()
        return refuse(error, variables)
    return _answer(document, LINE_PREFIX, variables, out)


def grade(pack: Pack, source: Iterable[str], out: IO[str], variables: Optional[Mapping[str, str]] = None) -> int:
    """Grade records again: those of a file where ``CASEWARDEN_GRADE`` names one, else those of ``source``.

    The file's are answered as a plan is: packed into ``out``, with the digest, or what went wrong, in the termination
    message. A line of input is ``{"case": <content>, "dimensions": [...], "record": ...}``, and ``kind`` where it is
    not ``default``; the line of output is the verdict, or ``{"error": ...}`` where grading failed (exit code 1 then).
    """
    if variables and "CASEWARDEN_GRADE" in variables:
        return _grade_file(pack, json.loads(variables["CASEWARDEN_GRADE"]), out, variables)
    code = 0
    for line in source:
        try:
            row = json.loads(line)
            case = Case(row["case"]["id"], tuple(row["dimensions"]), row["case"], row.get("kind", "default"))
            answer: Dict[str, Any] = judge(pack, case, row["record"]).to_json()
        except Exception as error:
            traceback.print_exc()
            answer, code = {"error": f"{type(error).__name__}: {error}"}, 1
        out.write(canonical(answer) + "\n")
    out.flush()
    return code


def _grade_file(pack: Pack, asked: Mapping[str, Any], out: IO[str], variables: Mapping[str, str]) -> int:
    try:
        document = regrade_file(pack, asked["records"], mutants=bool(asked.get("mutants")))
    except Exception as error:
        if not isinstance(error, ContractError):
            traceback.print_exc()
        return refuse(error, variables)
    return _answer(document, GRADE_PREFIX, variables, out)


def _answer(document: Mapping[str, Any], prefix: str, variables: Mapping[str, str], out: IO[str]) -> int:
    text = canonical(dict(document))
    for line in pack_lines(prefix, text):
        out.write(line + "\n")
    out.flush()
    _tell({"v": 1, "sha256": sha256_bytes(text.encode("ascii")), "bytes": len(text)}, variables)
    return 0


def aggregate(pack: Pack, source: Iterable[str], out: IO[str], variables: Optional[Mapping[str, str]] = None) -> int:
    """Apply the pack's own rule (``pack.aggregate``) to what cases came to; exit code 2 for a pack without one.

    With ``CASEWARDEN_OUTPUTS``, a folder, the lines are there and not in ``source``, the answer is written as lines of
    a log, and its digest, or what went wrong, as the termination message.
    """
    rule = getattr(pack, "aggregate", None)
    if rule is None:
        sys.stderr.write(f"casewarden-task: {pack.id} has no rule of its own; {pack.aggregation} is the evaluator's\n")
        return EXIT_REFUSED
    variables = variables or {}
    folder = variables.get("CASEWARDEN_OUTPUTS")
    if folder is None:
        out.write(canonical(rule([json.loads(line) for line in source])) + "\n")
        out.flush()
        return 0
    try:
        text = canonical(rule([json.loads(line) for line in read_outputs(folder)]))
    except Exception as error:
        if not isinstance(error, ContractError):
            traceback.print_exc()
        return refuse(error, variables)
    for line in aggregate_lines(text):
        out.write(line + "\n")
    out.flush()
    _tell({"v": 1, "sha256": sha256_bytes(text.encode("ascii")), "bytes": len(text)}, variables)
    return 0


def refuse(error: Exception, variables: Mapping[str, str]) -> int:
    """Write why there is no answer to standard error and, where there is one, the termination log; exit code 2."""
    message = str(error) if isinstance(error, ContractError) else f"{type(error).__name__}: {error}"
    found = _FIELD.match(message)
    field = getattr(error, "field", None) or (found.group(1) if found else None)
    sys.stderr.write(f"casewarden-task: {message}\n")
    cut = message.encode("utf-8", "replace")[:_ERROR_BYTES].decode("utf-8", "ignore")
    _tell({"v": 1, "error": cut, "field": field}, variables)
    return EXIT_REFUSED


def _tell(document: Mapping[str, Any], variables: Mapping[str, str]) -> None:
    path = variables.get("CASEWARDEN_TERMINATION_LOG", "/dev/termination-log")
    if path == "/dev/termination-log" and not os.path.exists(path):
        # Run by hand, outside a container: the lines on standard output are all there is to say.
        return
    with open(path, "w", encoding="utf-8") as message:
        message.write(json.dumps(dict(document), ensure_ascii=False))
