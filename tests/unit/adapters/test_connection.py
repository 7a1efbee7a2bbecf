"""Tokens are read again when they are old or refused; a missing cluster is said in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from casewarden.adapters.kube.connection import ConfigError, FileToken, connect

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443/", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: secret}}]
"""


async def test_a_token_is_read_again_when_it_was_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one\n")
    token = FileToken(file)
    assert await token.header() == "Bearer one"
    file.write_text("two")
    assert await token.header() == "Bearer one"
    assert await token.header(fresh=True) == "Bearer two"


async def test_a_kubeconfig_says_where_and_who(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(KUBECONFIG)
    found = await connect(str(file))
    assert (found.server, found.insecure) == ("https://127.0.0.1:6443", True)
    assert found.token is not None
    assert await found.token.header() == "Bearer secret"


async def test_no_cluster_is_an_error_that_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--kubeconfig"):
        await connect(str(tmp_path / "nowhere"))
