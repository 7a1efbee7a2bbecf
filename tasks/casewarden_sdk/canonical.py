"""Canonical JSON and the digests made of it.

Two values are equal for Casewarden when their canonical texts are: keys sorted, ASCII, Python's default separators, no
NaN or infinity. The text is type-sensitive: ``true`` differs from ``1`` and ``1`` from ``1.0``.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Iterable, Tuple

__all__ = ["canonical", "canonical_equal", "digest_files", "sha256_bytes", "sha256_json"]


def canonical(value: Any) -> str:
    """Return the canonical JSON text of ``value``; ``ValueError`` for NaN, infinity and what JSON cannot hold."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, allow_nan=False)


def canonical_equal(left: Any, right: Any) -> bool:
    """Tell whether two JSON values have the same canonical text."""
    return canonical(left) == canonical(right)


def sha256_bytes(data: bytes) -> str:
    """Return the lower-case hexadecimal SHA-256 of ``data``, 64 characters."""
    return hashlib.sha256(data).hexdigest()


def sha256_json(value: Any) -> str:
    """Return the SHA-256 of the canonical text of ``value``."""
    return sha256_bytes(canonical(value).encode("ascii"))


def digest_files(files: Iterable[Tuple[str, bytes]]) -> str:
    """Return one SHA-256 over named contents, each framed by its lengths so that no two lists share a digest.

    Order counts; give the files sorted by name.
    """
    digest = hashlib.sha256()
    for name, content in files:
        encoded = name.encode("utf-8")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()
