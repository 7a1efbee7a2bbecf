"""What a grading pod answers: a verdict for each record, and what each mutant of the grader judges otherwise. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from casewarden.core.bundle_check import strict_json
from casewarden.core.model import CaseKey
from casewarden_sdk.contract import Verdict
from casewarden_sdk.errors import ContractError

__all__ = ["Grades", "MutantGrades", "Of", "read_grades"]

Of = tuple[str, CaseKey]
"""A recorded case: the UID of its run, and which of its cases."""


@dataclass(frozen=True, slots=True)
class MutantGrades:
    """A mutant of the grader: ``changes`` are status and checks (bits) of the records that it judges otherwise."""

    check: str
    mutation: str
    grader: str
    changes: Mapping[Of, tuple[str, str]]

    @property
    def name(self) -> str:
        """What people call it: ``exit-code:dropped``."""
        return f"{self.check}:{self.mutation}"


@dataclass(frozen=True, slots=True)
class Grades:
    """``verdicts`` have the digest of the bundle that they are of; ``grader`` is the fingerprint of what graded."""

    grader: str
    verdicts: Mapping[Of, tuple[str, Verdict]]
    mutants: tuple[MutantGrades, ...] = ()


def read_grades(text: str) -> Grades:
    """Read an answer; ``ValueError`` for what is none."""
    try:
        document = strict_json(text.encode())
        if document["v"] != 1:
            raise ValueError(f"it is of version {document['v']!r}")
        return Grades(
            grader=str(document["grader"]),
            verdicts={_of(row): (str(row["digest"]), Verdict.from_json(row)) for row in document["verdicts"]},
            mutants=tuple(_mutant(item) for item in document.get("mutants", ())),
        )
    except (KeyError, TypeError, ContractError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None


def _of(row: Mapping[str, Any]) -> Of:
    return str(row["run"]), CaseKey(int(row["seed"]), str(row["case_id"]), int(row["repeat"]))


def _mutant(item: Mapping[str, Any]) -> MutantGrades:
    changes = {_of(row): (str(row["status"]), str(row["checks"])) for row in item["changes"]}
    return MutantGrades(str(item["check"]), str(item["mutation"]), str(item["grader"]), changes)
