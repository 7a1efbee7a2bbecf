"""The Lease is asked for with the operator's token: the library must have it at its first call."""

from __future__ import annotations

from pathlib import Path

from casewarden.adapters.kube.connection import Connection, FileToken
from casewarden.adapters.kube.lease import _configuration


async def test_the_token_of_a_pod_is_sent_from_the_first_call_on(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    connection = Connection(server="https://api", token=FileToken(tmp_path / "token"))
    settings = await _configuration(connection).auth_settings()
    assert settings["BearerToken"]["value"] == "Bearer secret"
