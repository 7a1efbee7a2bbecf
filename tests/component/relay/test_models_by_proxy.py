"""An endpoint that is reached by a proxy, and one with a certificate of an authority of one's own."""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from support.authority import Authority
from support.proxy import proxying


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[tuple[int, Authority]]:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("models.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"usage": {"prompt_tokens": 1, "completion_tokens": 1}})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    yield runner.addresses[0][1], authority
    await runner.cleanup()


# A process of its own: authorities are read once, at the start.
CALL = """
import asyncio, sys
from casewarden.api.endpoint import Endpoint
from casewarden.relay.models.upstream import TryAgain, Upstream
from casewarden.relay.models.usage import UsageReader

async def main():
    upstream = Upstream(Endpoint(url=sys.argv[1]), None)
    try:
        answer = await upstream.attempt("chat/completions", b"{}", {}, stream=False, reader=UsageReader(10), begin=None)
        print(answer.status)
    except TryAgain as error:
        print(error)
    await upstream.close()

asyncio.run(main())
"""


async def called(url: str, **environment: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CALL, url, env={**clean, **environment}, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await asyncio.wait_for(process.communicate(), 60)
    return said.decode()


async def test_a_call_goes_by_the_proxy_and_trusts_the_authority(server: tuple[int, Authority]) -> None:
    port, authority = server
    with proxying(("127.0.0.1", port)) as proxy:
        # A private address: what the administrator named may be one.
        way = {"HTTPS_PROXY": proxy.url.replace("127.0.0.1", "localhost"), "NO_PROXY": "elsewhere.example"}
        assert "CERTIFICATE_VERIFY_FAILED" in await called("https://models.example/v1", **way)
        trusted = await called("https://models.example/v1", **way, SSL_CERT_FILE=str(authority.certificate))
    assert trusted == "200\n"
    assert proxy.asked == ["models.example:443", "models.example:443"]
