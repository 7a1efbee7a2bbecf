"""Recorded runs, graded again in one go: by the pack's grader, and by each mutant of it.

The records lie in a file of gzipped lines, one for each verdict that has a bundle: ``run``, ``seed``, ``case_id``,
``repeat``, ``digest`` (of the bundle), ``dimensions``, ``kind``, ``case`` (its content) and ``record``.
"""

from __future__ import annotations

import gzip
import json
from typing import Any, Dict, Iterator, List, Mapping, Tuple

from .checks import mutants_of, mutated, mutated_fingerprint
from .contract import JSON, Case, Pack, check_bits
from .errors import ContractError
from .fingerprint import grader_fingerprint
from .judging import judge

__all__ = ["GRADE_PREFIX", "changes_under", "regrade_file"]

GRADE_PREFIX = "casewarden-grade "
_WHO = ("run", "seed", "case_id", "repeat")


def regrade_file(pack: Pack, path: str, *, mutants: bool = False) -> Dict[str, JSON]:
    """Return every verdict and, if asked for, for each mutant of the grader what it judges otherwise.

    ``ContractError`` names the record that the grader cannot grade, which no record must bring about.
    """
    grader, checks = grader_fingerprint(pack.sources), list(getattr(pack, "grader_checks", {}))
    if mutants and not checks:
        raise ContractError(f"spec.graderMutants: {pack.id} lists no checks that could be mutated; leave it out")
    verdicts = [{**_who(row), "digest": row["digest"], **_verdict(pack, row)} for row in _rows(path)]
    document: Dict[str, JSON] = {
        "v": 1,
        "task": {"id": pack.id, "version": pack.version},
        "grader": grader,
        "verdicts": verdicts,
    }
    if mutants:
        document["mutants"] = _mutants(pack, path, grader, checks, verdicts)
    return document


def _mutants(
    pack: Pack, path: str, grader: str, checks: List[str], verdicts: List[Dict[str, JSON]]
) -> List[Dict[str, JSON]]:
    mutants = mutants_of(checks)
    changes: Dict[Tuple[str, str], List[JSON]] = {mutant: [] for mutant in mutants}
    # Records may be large and mutants many: every record is read once.
    for row, verdict in zip(_rows(path), verdicts):  # noqa: B905 - Python 3.9
        for check, how in mutants:
            change = changes_under(pack, _case(row), row["record"], check, how, verdict)
            if change is not None:
                changes[check, how].append({**_who(row), **change})
    return [
        {
            "check": check,
            "mutation": how,
            "grader": mutated_fingerprint(grader, check, how),
            "changes": changes[check, how],
        }
        for check, how in mutants
    ]


def changes_under(pack: Pack, case: Case, record: JSON, check: str, how: str, verdict: Mapping[str, JSON]) -> Any:
    """Return ``status`` and ``checks`` (bits) of a record under a mutation, or None where they are the verdict's.

    A mutant that cannot grade the record leaves it unassessed: status ``environment_error``.
    """
    try:
        with mutated(check, how):
            again = judge(pack, case, record)
    except Exception:  # a mutated grader may do anything; whatever it raises, it has no verdict
        return {"status": "environment_error", "checks": "-" * len(case.dimensions)}
    found = {"status": again.status, "checks": check_bits(again.checks)}
    before = {"status": verdict["status"], "checks": check_bits(verdict["checks"])}
    return None if found == before else found


def _rows(path: str) -> Iterator[Mapping[str, Any]]:
    with gzip.open(path, "rt", encoding="ascii") as lines:
        for line in lines:
            yield json.loads(line)


def _who(row: Mapping[str, Any]) -> Dict[str, JSON]:
    return {name: row[name] for name in _WHO}


def _case(row: Mapping[str, Any]) -> Case:
    return Case(row["case"]["id"], tuple(row["dimensions"]), row["case"], row.get("kind", "default"))


def _verdict(pack: Pack, row: Mapping[str, Any]) -> Dict[str, JSON]:
    try:
        return judge(pack, _case(row), row["record"]).to_json()
    except Exception as error:
        who = "/".join(str(row[name]) for name in _WHO)
        raise ContractError(f"the record of {who} cannot be graded: {type(error).__name__}: {error}") from error
