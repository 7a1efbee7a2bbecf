"""The checks of a grader by name, so that an audit can take one away and see whether any control notices.

A grader asks ``holds`` wherever it decides, by a name that its pack lists in ``grader_checks``. Only an audit of the
grader itself ever puts a mutation in force: then one check is *dropped* (it always holds) or *inverted*, and the same
records are graded again. A mutated grader is another grader, so it has a fingerprint of its own.
"""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import Iterator, Optional, Sequence, Tuple

from .canonical import sha256_json
from .errors import ContractError

__all__ = ["MUTATIONS", "holds", "mutants_of", "mutated", "mutated_fingerprint"]

MUTATIONS = ("dropped", "inverted")
_MUTATION: ContextVar[Optional[Tuple[str, str]]] = ContextVar("casewarden_mutation", default=None)


def holds(check: str, right: bool) -> bool:
    """Return whether a check holds: ``right``, but for the check of the mutation in force, if there is one."""
    mutation = _MUTATION.get()
    if mutation is None or mutation[0] != check:
        return right
    return True if mutation[1] == "dropped" else not right


@contextlib.contextmanager
def mutated(check: str, how: str) -> Iterator[None]:
    """Put a mutation in force for the gradings inside."""
    if how not in MUTATIONS:
        raise ContractError(f"mutation {how!r} is none of {', '.join(MUTATIONS)}")
    token = _MUTATION.set((check, how))
    try:
        yield
    finally:
        _MUTATION.reset(token)


def mutants_of(checks: Sequence[str]) -> Sequence[Tuple[str, str]]:
    """Return every mutation of a pack's checks, one check and one way at a time."""
    return [(check, how) for check in checks for how in MUTATIONS]


def mutated_fingerprint(grader: str, check: str, how: str) -> str:
    """Return the fingerprint of a grader under a mutation; ``grader`` is its own."""
    return sha256_json({"grader": grader, "check": check, "mutation": how})
