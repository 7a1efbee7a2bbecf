"""Signatures over statements: DSSE envelopes, made and checked by securesystemslib."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from casewarden.cli.failure import Failure
from casewarden.core.statement import PAYLOAD_TYPE, digest_in
from casewarden_sdk.canonical import canonical

__all__ = ["check_statement", "sign_statement"]

_STATEMENT_BYTES = 16 << 20


def sign_statement(statement: Mapping[str, Any], key: Path) -> bytes:
    """Return the signed envelope as a line of JSON; ``key`` is a private key in PEM (PKCS 8), without a passphrase."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer import CryptoSigner

    try:
        signer = CryptoSigner(load_pem_private_key(key.read_bytes(), None))
    except (OSError, ValueError, TypeError) as error:
        raise Failure(f"{key}: is no private key in PEM without a passphrase: {error}") from None
    envelope = Envelope(canonical(dict(statement)).encode("ascii"), PAYLOAD_TYPE, {})
    envelope.sign(signer)
    return canonical(envelope.to_dict()).encode("ascii") + b"\n"


def check_statement(path: Path, key: Path, file: str) -> tuple[str, str]:
    """Return UID and root digest of what a signed statement is about; a ``Failure`` where its signature is not good.

    ``key`` is the public key in PEM; ``file`` is ``run.json`` or ``audit.json``.
    """
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    from securesystemslib.dsse import Envelope
    from securesystemslib.exceptions import VerificationError
    from securesystemslib.signer import SSlibKey

    try:
        public = SSlibKey.from_crypto(load_pem_public_key(key.read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        raise Failure(f"{key}: is no public key in PEM: {error}") from None
    try:
        data = path.read_bytes()
        envelope = Envelope.from_dict(json.loads(data[:_STATEMENT_BYTES]))
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
    except Exception as error:  # a foreign file: whatever it makes the reader raise, it is no envelope
        raise Failure(f"{path}: is no DSSE envelope: {type(error).__name__}: {error}") from None
    try:
        envelope.verify([public], 1)
    except VerificationError:
        raise Failure(f"{path}: is not signed by {key}") from None
    if envelope.payload_type != PAYLOAD_TYPE:
        raise Failure(f"{path}: signs a {envelope.payload_type!r}, not {PAYLOAD_TYPE!r}")
    try:
        return digest_in(json.loads(envelope.payload), file)
    except (ValueError, AttributeError, TypeError) as error:
        raise Failure(f"{path}: {error}") from None
