"""What came of a hostile program, beside what must: pure, from the run's status and the documents of its cases."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from casewarden.selftest.table import Program

__all__ = ["Played", "Secrets", "facts_of", "judge", "unmet"]

_TOKEN: Final = re.compile(r"eyJ[A-Za-z0-9_-]{8,}\.eyJ")
# Words of the grader's and the recorder's sources, which no candidate is ever told.
_SOURCES: Final = ("did not finish as it must", "other tickets changed", "_candidate_over_its_limits", "CASEWARDEN_CASE", "CASEWARDEN_ATTEMPT")  # noqa: E501 # fmt: skip
_MAX_ERROR: Final = 300


@dataclass(frozen=True, slots=True)
class Secrets:
    """What of a run no candidate may learn: its UID, the names of its pods, the ids of its cases."""

    run_uid: str
    pod_names: Sequence[str]
    case_ids: Sequence[str]

    def found_in(self, text: str) -> Iterator[str]:
        """Yield what of them a text has."""
        named = {
            "the run's UID": [self.run_uid],
            "the name of its pod": self.pod_names,
            "the id of its case": self.case_ids,
            "source of the grader or the recorder": _SOURCES,
        }
        for what, words in named.items():
            if any(word and word in text for word in words):
                yield what
        if _TOKEN.search(text):
            yield "a token"


@dataclass(frozen=True, slots=True)
class Played:
    """A finished run of a hostile program: its status, and of each case what was sealed and the transcript's rows."""

    status: Mapping[str, Any]
    sealed: Sequence[Mapping[str, Any]]
    transcripts: Sequence[Sequence[Mapping[str, Any]]]
    secrets: Secrets

    def written(self) -> Iterator[str]:
        """Yield every line that the program wrote."""
        for rows in self.transcripts:
            for row in rows:
                if row.get("dir") in ("out", "err"):
                    yield str(row.get("text", ""))


def judge(program: Program, played: Played) -> list[str]:
    """Return all that should not have come of a program, in words; nothing where every fence held."""
    return [
        *_counts(played.status),
        *_verdicts(program, played),
        *_score(program, played.status),
        *_writing(program, played),
        *_status_text(played.status),
    ]


def _counts(status: Mapping[str, Any]) -> Iterator[str]:
    cases, attempts = status.get("cases") or {}, status.get("attempts") or {}
    if status.get("valid") is not True:
        yield f"the run is not valid: {cases}"
    if cases.get("environmentErrors"):
        yield f"{cases['environmentErrors']} of its cases became unassessed"
    if attempts.get("total") != cases.get("total"):
        yield f"{attempts.get('total')} attempts were made for {cases.get('total')} cases: it was rolled again"


def _verdicts(program: Program, played: Played) -> Iterator[str]:
    if not played.sealed:
        yield "nothing was sealed"
    for sealed in played.sealed:
        status, reason = sealed.get("status"), sealed.get("reason")
        if status not in program.status:
            yield f"the case came to {status} ({reason}: {sealed.get('error')}), not to {' or '.join(program.status)}"
        elif status == "agent_error" and program.reasons and reason not in program.reasons:
            yield f"the reason is {reason} ({sealed.get('error')}), not {' or '.join(program.reasons)}"


def _score(program: Program, status: Mapping[str, Any]) -> Iterator[str]:
    score = status.get("score")
    if score is not None and Decimal(score) > program.score:
        yield f"it scored {score}, more than {program.score}"
    for name in program.zero:
        passed = (status.get("dimensions") or {}).get(name, {}).get("passed")
        if passed != 0:
            yield f"{passed} cases passed in {name}"


def _writing(program: Program, played: Played) -> Iterator[str]:
    lines = list(played.written())
    # A program that did not get to its attack proves nothing.
    if not any("TRIED" in line for line in lines):
        yield "the program did not get to what it tries"
    yield from (f"it says: {line[:200]}" for line in lines if line.startswith("GOT "))
    text = "\n".join(lines)
    yield from (f"it saw {what}" for what in played.secrets.found_in(text))


def _status_text(status: Mapping[str, Any]) -> Iterator[str]:
    for text in _texts(status):
        bad = {
            f"U+{ord(item):04X}" for item in text if item != "\n" and unicodedata.category(item) in ("Cc", "Cf", "Cs")
        }
        if bad:
            yield f"the status has {', '.join(sorted(bad))} in it"
    for failure in status.get("failures") or ():
        if len(str(failure.get("error") or "").encode()) > _MAX_ERROR:
            yield f"an error in the status is over {_MAX_ERROR} bytes"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, Sequence):
        for item in value:
            yield from _texts(item)


def facts_of(lines: Iterable[str]) -> dict[str, str]:
    """Return what the program that states the kernel said of it, by name."""
    said = (line.split(" ", 2) for line in lines if line.startswith("FACT "))
    return {words[1]: words[2] for words in said if len(words) == 3}


def unmet(program: Program, facts: Mapping[str, str]) -> list[str]:
    """Return what a program's fence needs and this kernel has not."""
    found = []
    for name, least in program.needs.items():
        has = facts.get(name, "0")
        if not has.isdigit() or int(has) < least:
            found.append(f"{name} {least} (this kernel has {has})")
    return found
