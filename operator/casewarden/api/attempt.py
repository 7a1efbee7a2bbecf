"""What an attempt says of itself at its end: the termination message of ``task`` and the store's ``sealed.json``.

The case pod writes both without this module (it does without pydantic); a contract test holds the two sides equal.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from casewarden_sdk.canonical import canonical, sha256_json

from .common import CaseId, Seed, Sha256, WireModel

__all__ = [
    "MAX_ERROR_BYTES",
    "MAX_MESSAGE_BYTES",
    "BadMessageError",
    "SealedDocument",
    "TerminationMessage",
    "cut_utf8",
]

MAX_MESSAGE_BYTES = 1024
MAX_ERROR_BYTES = 200

Status = Literal["passed", "failed", "agent_error", "environment_error"]


class BadMessageError(ValueError):
    """A termination message or sealed document is not what its writer would have written."""


def cut_utf8(value: str, size: int) -> str:
    """Return the longest beginning of a text that is at most ``size`` bytes of UTF-8."""
    data = value.encode("utf-8", "replace")
    return value if len(data) <= size else data[:size].decode("utf-8", "ignore")


def _seconds(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


_Seconds = Annotated[float, BeforeValidator(_seconds), Field(ge=0, le=1e9, allow_inf_nan=False)]
_Bits = Annotated[str, Field(pattern=r"^[01-]*$", max_length=64)]
_Reason = Annotated[str, Field(pattern=r"^[A-Za-z]{1,64}$")]


def _bits_fit(status: str, checks: str) -> bool:
    """Hold the invariants of a verdict over its bits: all null, or none; passed exactly when all are true."""
    if not checks or ("-" in checks) != (status == "environment_error"):
        return False
    if status == "environment_error":
        return set(checks) == {"-"}
    return ("0" not in checks) == (status == "passed")


class TerminationMessage(WireModel):
    """The last word of the ``task`` container.

    ``status`` is a verdict's, or ``superseded`` when the claim was lost or the case already sealed; then there are no
    checks. ``checks`` are bits over the case's dimensions sorted by name. ``digest`` is the bundle's.
    """

    v: Literal[1] = 1
    status: Literal["passed", "failed", "agent_error", "environment_error", "superseded"]
    checks: _Bits = ""
    digest: Sha256 | None = None
    reason: _Reason | None = None
    error: str | None = None
    seconds: _Seconds | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.status != "superseded" and not _bits_fit(self.status, self.checks):
            raise ValueError(f"checks {self.checks!r} do not fit status {self.status!r}")
        return self

    def format(self) -> str:
        """Return the text for ``/dev/termination-log``, with its checksum, at most 1 KiB."""
        error = None if self.error is None else cut_utf8(self.error, MAX_ERROR_BYTES)
        body = {**self.model_dump(mode="json"), "error": error}
        while len(canonical({**body, "sum": _checksum(body)})) > MAX_MESSAGE_BYTES:
            # Escaped characters take up to six bytes each, so the cut above may not be enough.
            body["error"] = body["error"][: len(body["error"]) * 3 // 4]
        return canonical({**body, "sum": _checksum(body)})

    @classmethod
    def parse(cls, text: str) -> TerminationMessage:
        """Read a message back; ``BadMessageError`` for anything that ``format`` would not have written."""
        document = _object(text)
        claimed = document.pop("sum", None)
        if claimed != _checksum(document):
            raise BadMessageError("the checksum does not fit: the message was cut or is not the driver's")
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            raise BadMessageError(_first(error)) from None


class SealedDocument(WireModel):
    """``sealed.json``: the commit point of one seed, case and repeat."""

    v: Literal[1] = 1
    run_uid: Annotated[str, Field(min_length=1, max_length=64)]
    seed: Seed
    case_id: CaseId
    repeat: Annotated[int, Field(ge=0)]
    attempt: Annotated[int, Field(ge=1)]
    pod_uid: Annotated[str, Field(max_length=64)]
    digest: Sha256
    status: Status
    checks: _Bits
    reason: _Reason | None = None
    error: str | None = None
    seconds: _Seconds | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not _bits_fit(self.status, self.checks):
            raise ValueError(f"checks {self.checks!r} do not fit status {self.status!r}")
        return self

    @classmethod
    def parse(cls, text: str | bytes) -> SealedDocument:
        """Read ``sealed.json``; ``BadMessageError`` where it breaks the format or a verdict's invariants."""
        try:
            return cls.model_validate(_object(text))
        except ValidationError as error:
            raise BadMessageError(_first(error)) from None


def _checksum(body: dict[str, Any]) -> str:
    return sha256_json(body)[:16]


def _object(text: str | bytes) -> dict[str, Any]:
    try:
        document = json.loads(text)
        canonical(document)
    except (ValueError, RecursionError) as error:
        raise BadMessageError(f"no JSON: {error}") from None
    if not isinstance(document, dict):
        raise BadMessageError("no JSON object")
    return document


def _first(error: ValidationError) -> str:
    detail = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in detail["loc"])
    return f"{where}: {detail['msg']}" if where else detail["msg"]
