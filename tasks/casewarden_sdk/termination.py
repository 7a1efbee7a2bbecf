"""The termination message of a ``task`` container: at most 1 KiB, with a checksum, since the kubelet cuts silently."""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping, Optional

from .canonical import canonical, sha256_bytes
from .wire import WIRE_VERSION

__all__ = ["ERROR_BYTES", "MESSAGE_BYTES", "cut_text", "decode_termination", "encode_termination"]

MESSAGE_BYTES = 1024
ERROR_BYTES = 200


def cut_text(text: Optional[str], limit: int = ERROR_BYTES) -> Optional[str]:
    """Return ``text`` without control characters or lone surrogates, in at most ``limit`` bytes of UTF-8."""
    if text is None:
        return None
    printable = "".join(" " if not character.isprintable() else character for character in text)
    data = printable.encode("utf-8", "replace")
    return data[:limit].decode("utf-8", "ignore")


def encode_termination(
    status: str,
    checks: str = "",
    digest: Optional[str] = None,
    reason: Optional[str] = None,
    error: Optional[str] = None,
    seconds: Optional[float] = None,
) -> str:
    """Write the message. ``status`` is a verdict's or ``superseded``; ``checks`` are ``contract.check_bits``."""
    document: Dict[str, Any] = {
        "v": WIRE_VERSION,
        "status": status,
        "checks": checks,
        "digest": digest,
        "reason": reason,
        "error": cut_text(error),
        "seconds": seconds,
    }
    text = canonical({**document, "sum": _sum(document)})
    if len(text) > MESSAGE_BYTES:
        document["error"] = None
        text = canonical({**document, "sum": _sum(document)})
    return text


def decode_termination(text: str) -> Optional[Dict[str, Any]]:
    """Read a message back; None for anything whose checksum does not hold (cut, absent, or not ours)."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or document.get("v") != WIRE_VERSION:
        return None
    body = {name: value for name, value in document.items() if name != "sum"}
    try:
        return body if document.get("sum") == _sum(body) else None
    except ValueError:
        return None


def _sum(document: Mapping[str, Any]) -> str:
    return sha256_bytes(canonical(dict(document)).encode("ascii"))[:16]
