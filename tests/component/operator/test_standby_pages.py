"""What an operator that waits for its turn tells whoever probes or scrapes it."""

from __future__ import annotations

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from casewarden.controller.health import serve_standby


async def test_a_standby_is_well_and_says_that_it_does_not_lead() -> None:
    runner = await serve_standby("127.0.0.1", 0)
    try:
        host, port = runner.addresses[0][:2]
        async with aiohttp.ClientSession(f"http://{host}:{port}") as session:
            for path in ("/healthz", "/readyz"):
                async with session.get(path) as answer:
                    assert answer.status == 200
            async with session.get("/metrics") as answer:
                text = await answer.text()
    finally:
        await runner.cleanup()
    (family,) = text_string_to_metric_families(text)
    assert [(sample.name, sample.value) for sample in family.samples] == [("casewarden_leader", 0.0)]
