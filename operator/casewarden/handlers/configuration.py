"""kopf's settings and its way to the API server (the reasons are in ``docs/decisions``: kopf delivers events only)."""

from __future__ import annotations

import logging
from typing import Any

import kopf

from casewarden.adapters.kube.connection import Connection
from casewarden.adapters.proxies import proxy_for
from casewarden.api.names import GROUP

__all__ = ["kopf_settings", "register_login"]

# An API server that is away for minutes must not end the operator: kopf exits when these are used up.
_BACKOFFS = (1, 1, 2, 3, 5, 8, 13, 21, 30, 30, 30, 60, 60, 60, 60)


def kopf_settings() -> kopf.OperatorSettings:
    """Return settings under which kopf leaves no trace on any object."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.server_timeout = 300
    settings.watching.chunk_size = 500
    settings.networking.request_timeout = 30
    settings.networking.connect_timeout = 5
    settings.networking.error_backoffs = _BACKOFFS
    settings.networking.enforce_retry_after = True
    settings.queueing.error_delays = (1, 2, 5, 10, 30)
    settings.execution.default_backoff = 5
    settings.process.ultimate_exiting_timeout = 25
    # Never written, since no handler keeps state; named so that nothing of kopf's would be foreign to the group.
    settings.persistence.finalizer = f"{GROUP}/operator"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=GROUP)
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=GROUP)
    # One line for every event of every object is of no use to anybody.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    return settings


def register_login(handlers: kopf.OperatorRegistry, connection: Connection) -> None:
    """Let kopf log in as the operator's own client does; it asks again when the API server answers 401."""

    @kopf.on.login(registry=handlers)
    async def login(**_: Any) -> kopf.ConnectionInfo:
        header = await connection.token.header(fresh=True) if connection.token is not None else None
        scheme, _space, token = (header or "").partition(" ")
        return kopf.ConnectionInfo(
            server=connection.server,
            ca_path=connection.ca_file,
            insecure=connection.insecure or None,
            certificate_path=connection.certificate_file,
            private_key_path=connection.key_file,
            scheme=scheme if token else None,
            token=token or None,
            proxy_url=proxy_for(connection.server),
        )
