"""Which command starts the candidate: the run's, else its workspace's ``evalarc.toml``, else the pack's default."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from casewarden_sdk.errors import CandidateError

from .settings import CandidateSettings, Places

__all__ = ["MANIFEST", "candidate_environment", "manifest_argv", "resolve_argv"]

MANIFEST = "evalarc.toml"
_MANIFEST_BYTES = 64 << 10
_WORDS = 64
_CHARACTERS = 8192


def resolve_argv(candidate: CandidateSettings, places: Places, default: Sequence[str] | None) -> list[str]:
    """Return the command with its placeholders filled in; ``CandidateError`` for a manifest that is none.

    ``default`` is what the driver asked for; None means the pack's ``default_argv``.
    """
    own = candidate.argv
    if own is None:
        own = manifest_argv(Path(places.own_workspace, MANIFEST))
    if own is None:
        own = tuple(default) if default is not None else candidate.default_argv
    return fill(own, places)


def manifest_argv(path: Path) -> tuple[str, ...] | None:
    """Read the command of an ``evalarc.toml``; None where there is no such file.

    The file has one key, ``command``: 1 to 64 non-empty words without a zero byte, at most 8192 characters together.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MANIFEST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _refused(f"cannot be read: {error.strerror}") from None
    try:
        document = tomllib.loads(data.decode("utf-8")) if len(data) <= _MANIFEST_BYTES else {}
    except (ValueError, RecursionError) as error:
        raise _refused(f"is no TOML: {error}") from None
    return _command(document)


def fill(words: Sequence[str], places: Places) -> list[str]:
    """Put real paths in the place of ``{python}``, ``{workspace}`` and ``{state}``."""
    values: Mapping[str, str] = {
        "{python}": places.python,
        "{workspace}": places.workspace,
        "{state}": places.state,
    }
    filled = list(words)
    for placeholder, value in values.items():
        filled = [word.replace(placeholder, value) for word in filled]
    return filled


def candidate_environment(candidate: CandidateSettings, places: Places) -> dict[str, str]:
    """Return the candidate's whole environment: the run's ``env`` over ``PATH``, ``LANG`` and ``HOME``."""
    return {"PATH": places.path, "LANG": "C.UTF-8", "HOME": places.home} | dict(candidate.env)


def _command(document: Mapping[str, object]) -> tuple[str, ...]:
    if set(document) != {"command"}:
        raise _refused("must have one key, command, and be at most 64 KiB")
    words = document["command"]
    if not isinstance(words, list) or not 1 <= len(words) <= _WORDS:
        raise _refused(f"command must be a list of 1 to {_WORDS} words")
    if not all(isinstance(word, str) and word and "\0" not in word for word in words):
        raise _refused("each word of command must be a non-empty text without a zero byte")
    if sum(len(word) for word in words) > _CHARACTERS:
        raise _refused(f"command must have at most {_CHARACTERS} characters together")
    return tuple(words)


def _refused(why: str) -> CandidateError:
    return CandidateError("CannotStartProgram", f"{MANIFEST} {why}")
