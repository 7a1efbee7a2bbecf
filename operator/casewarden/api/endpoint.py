"""An endpoint: a model server that an administrator lets runs use, and how much of it."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from .common import ApiModel, ObjectName

__all__ = ["Endpoint", "Price", "SecretKey", "checked_headers"]

_Amount = Annotated[str, Field(pattern=r"^[0-9]{1,9}(\.[0-9]{1,8})?$")]


class SecretKey(ApiModel):
    """Where the key is: a Secret of the release's namespace, which only the relay mounts."""

    name: ObjectName
    key: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,253}$")] = "key"


class Price(ApiModel):
    """What a million tokens cost, as decimals in one currency of the administrator's choice."""

    prompt: _Amount
    completion: _Amount


_OWN_HEADERS = frozenset({
    "accept", "accept-encoding", "anthropic-version", "authorization", "connection", "content-encoding",
    "content-length", "content-type", "cookie", "expect", "host", "keep-alive", "proxy-authorization",
    "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "user-agent", "x-api-key",
})  # fmt: skip


def checked_headers(headers: Any) -> dict[str, str]:
    """Return headers that a run may add to its calls; ``ValueError`` for those that are the relay's own."""
    if not isinstance(headers, dict):
        raise ValueError("give an object of names and texts")
    for name, text in headers.items():
        if re.fullmatch(r"[A-Za-z0-9-]{1,64}", str(name)) is None or name.lower().startswith("casewarden-"):
            raise ValueError(f"{name!r} is no header of an endpoint's: remove it")
        if name.lower() in _OWN_HEADERS:
            raise ValueError(f"{name} is the relay's own: remove it")
        if not isinstance(text, str) or re.fullmatch(r"[ -~]{0,1024}", text) is None:
            raise ValueError(f"{name} is {text!r}: give printable ASCII")
    return headers


class Endpoint(ApiModel):
    """A model server. Its address and key are known to the relay alone; limits hold over all runs together.

    ``url`` is what comes before ``/chat/completions`` (or, for Anthropic's dialect, before ``/messages``). An address
    inside the cluster, or of this machine, counts as named where ``url`` has it literally or as a name of the cluster;
    any other name must resolve to public addresses, unless ``private_addresses`` says otherwise. Addresses that are
    link-local are never called. ``retry_seconds`` bounds what is spent on one call's further tries, ``idle_seconds``
    how long an answer may stall, ``call_seconds`` how long one try may take. ``tokenizer`` is a file in the relay, the
    model's own ``tokenizer.json``, by which tokens are counted that it does not report.
    """

    url: Annotated[str, Field(pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$", max_length=512)]
    dialect: Literal["openai", "anthropic"] = "openai"
    secret: SecretKey | None = None
    namespaces: Annotated[list[ObjectName], Field(max_length=1000)] = Field(default_factory=list)
    """Namespaces whose runs may use it; empty means all."""
    concurrency: Annotated[int, Field(ge=1, le=10_000)] = 4
    requests_per_minute: Annotated[int, Field(ge=1)] | None = None
    tokens_per_minute: Annotated[int, Field(ge=1)] | None = None
    price: Price | None = None
    tokenizer: Annotated[str, Field(pattern=r"^/[^\s]+$", max_length=512)] | None = None
    private_addresses: bool = False
    retry_seconds: Annotated[float, Field(ge=0, le=3600)] = 120.0
    idle_seconds: Annotated[float, Field(gt=0, le=3600)] = 60.0
    call_seconds: Annotated[float, Field(gt=0, le=3600)] = 600.0
    answer_bytes: Annotated[int, Field(ge=1024, le=64 << 20)] = 8 << 20

    @field_validator("url")
    @classmethod
    def _never_link_local(cls, url: str) -> str:
        host = urlsplit(url).hostname or ""
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return url
        if address.is_link_local:
            raise ValueError("a link-local address, such as a cloud's metadata service, is never called")
        return url

    def allows(self, namespace: str) -> bool:
        """Tell whether runs of a namespace may use it."""
        return not self.namespaces or namespace in self.namespaces
