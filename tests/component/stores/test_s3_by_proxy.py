"""A bucket that is reached by a proxy and has a certificate of an authority of one's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.authority import Authority
from support.proxy import proxying
from support.s3_server import ACCESS, SECRET, s3_server

# The S3 server may have to be built first.
pytestmark = pytest.mark.timeout(2400)

# A process of its own: proxies and authorities are read at the start.
PUT = """
import asyncio, sys
from casewarden.adapters.stores import open_store

async def main():
    store = open_store(sys.argv[1])
    try:
        print((await store.put_if_absent("a", b"value", limit=10)).created)
    except Exception as error:
        print(f"{type(error).__name__}: {error}")

asyncio.run(main())
"""


def put(endpoint: str, **environment: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    keys = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET}
    address = f"s3://evidence/?region=us-east-1&path_style=true&endpoint={endpoint}"
    done = subprocess.run([sys.executable, "-c", PUT, address], env={**clean, **keys, **environment}, text=True,
                          capture_output=True, timeout=120, check=False)  # fmt: skip
    return done.stdout + done.stderr


def test_evidence_goes_by_the_proxy_and_trusts_the_authority(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with s3_server(tmp_path, certificate=authority.issue("s3.example")) as server:
        server.bucket("evidence")
        host, _, port = server.endpoint.removeprefix("https://").rpartition(":")
        with proxying((host, int(port))) as proxy:
            way = {"HTTPS_PROXY": proxy.url, "NO_PROXY": "elsewhere.example"}
            trust = {"SSL_CERT_FILE": str(authority.certificate), "SSL_CERT_DIR": "/etc/ssl/certs"}
            assert put("https://s3.example:9000", **way).startswith("StoreUnavailable: s3://evidence/")
            assert put("https://s3.example:9000", **way, **trust) == "True\n"
    assert set(proxy.asked) == {"s3.example:9000"}
    assert (server.root / "evidence" / "a").read_bytes() == b"value"
