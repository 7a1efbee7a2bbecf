"""The grader's fingerprint: the bytes of everything that decides a verdict."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Sequence

from .canonical import digest_files

__all__ = ["OWN_SOURCES", "grader_fingerprint"]

OWN_SOURCES = ("canonical.py", "checks.py", "contract.py", "errors.py", "jsonlines.py", "judging.py")
"""What of the SDK itself decides verdicts: files of this folder."""


def grader_fingerprint(sources: Sequence[str]) -> str:
    """Return one digest over a pack's sources and the SDK's own grading code.

    A source's name is its path below the folder that all of them share, or below the SDK for one of the SDK's, so that
    the digest does not depend on where pack and SDK are installed. ``OSError`` where one cannot be read.
    """
    here = Path(os.path.realpath(__file__)).parent
    every = sorted({os.path.realpath(source) for source in sources})
    of_sdk = [path for path in every if here in Path(path).parents]
    paths = [path for path in every if path not in of_sdk]
    shared = os.path.commonpath([os.path.dirname(path) for path in paths]) if paths else ""
    files = [("pack/" + Path(os.path.relpath(path, shared)).as_posix(), Path(path).read_bytes()) for path in paths]
    names = {*OWN_SOURCES, *(Path(os.path.relpath(path, here)).as_posix() for path in of_sdk)}
    files += [("sdk/" + name, (here / name).read_bytes()) for name in sorted(names)]
    return digest_files(sorted(files))
