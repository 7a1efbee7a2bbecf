"""``/healthz``, ``/readyz``, ``/metrics`` and ``/slots``.

Unhealthy is what a restart would heal: an event loop that is late, an informer or a run whose task stands still. An API
server that is away is none of these: whoever waits for it goes on turning.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from aiohttp import web

from casewarden.ports.clock import Clock
from casewarden.ports.metrics import Metric, Metrics

__all__ = ["Health", "LoopLag", "serve", "serve_standby", "serve_waiting"]

_LAG_SECONDS = 10.0
_INFORMER_SECONDS = 180.0
_RUN_SECONDS = 300.0


class LoopLag:
    """Measures by how much the event loop is late; keeps the worst of the last minute."""

    def __init__(self, clock: Clock, metrics: Metrics, interval: float = 1.0) -> None:
        self._clock, self._metrics, self._interval = clock, metrics, interval
        self._worst, self._worst_at = 0.0, clock.monotonic()

    @property
    def worst(self) -> float:
        """Seconds by which the loop was late at worst, lately."""
        return self._worst if self._clock.monotonic() - self._worst_at < 60 else 0.0

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            due = self._clock.monotonic() + self._interval
            await self._clock.sleep(self._interval)
            lag = max(0.0, self._clock.monotonic() - due)
            self._metrics.set(Metric.LOOP_LAG, lag)
            if lag >= self.worst:
                self._worst, self._worst_at = lag, self._clock.monotonic()


class Health:
    """Gathers what is wrong.

    ``informers`` and ``runs`` return what turned when, in monotonic seconds, by name; ``ended`` what should never end.
    """

    def __init__(
        self,
        clock: Clock,
        lag: LoopLag,
        informers: Callable[[], Iterable[tuple[str, float]]],
        runs: Callable[[], Iterable[tuple[str, float]]],
        ended: Callable[[], Iterable[str]],
        ready: Callable[[], bool],
    ) -> None:
        self._clock, self._lag, self._informers, self._runs, self._ended = clock, lag, informers, runs, ended
        self.ready = ready

    def problems(self) -> list[str]:
        """Return what a restart would heal, in words; empty for a healthy operator."""
        now = self._clock.monotonic()
        found = [f"{name} has ended" for name in self._ended()]
        if self._lag.worst > _LAG_SECONDS:
            found.append(f"the event loop was {self._lag.worst:.1f} s late")
        for what, turns, limit in (
            ("the watch of", self._informers(), _INFORMER_SECONDS),
            ("run", self._runs(), _RUN_SECONDS),
        ):
            found += [f"{what} {name} stands still for {now - at:.0f} s" for name, at in turns if now - at > limit]
        return found


async def serve(
    health: Health, metrics_text: Callable[[], bytes], slots_table: Callable[[], dict[str, Any]], host: str, port: int
) -> web.AppRunner:
    """Serve the pages; the caller cleans the runner up."""

    async def healthz(request: web.Request) -> web.Response:
        problems = health.problems()
        return web.Response(text="\n".join(problems) + "\n" if problems else "ok\n", status=500 if problems else 200)

    async def readyz(request: web.Request) -> web.Response:
        ready = health.ready()
        return web.Response(
            text="ok\n" if ready else "the pods have not been listed yet\n", status=200 if ready else 503
        )

    async def metrics(request: web.Request) -> web.Response:
        return web.Response(body=metrics_text(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    async def slots(request: web.Request) -> web.Response:
        return web.json_response(slots_table())

    pages = {"/healthz": healthz, "/readyz": readyz, "/metrics": metrics, "/slots": slots}
    return await _listen(pages, host, port)


async def serve_standby(host: str, port: int) -> web.AppRunner:
    """Serve the pages of an operator that waits for its turn: it is well, and ready to take over."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text="standing by\n")

    async def metrics(request: web.Request) -> web.Response:
        text = f"# TYPE {Metric.LEADER} gauge\n{Metric.LEADER} 0\n"
        return web.Response(text=text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    return await _listen({"/healthz": answer, "/readyz": answer, "/metrics": metrics}, host, port)


async def serve_waiting(host: str, port: int, why: Callable[[], str]) -> web.AppRunner:
    """Serve the pages of an operator that cannot begin yet: a restart would not help it, and it is not ready."""

    async def healthz(request: web.Request) -> web.Response:
        return web.Response(text=f"waiting: {why()}\n")

    async def readyz(request: web.Request) -> web.Response:
        return web.Response(text=f"{why()}\n", status=503)

    return await _listen({"/healthz": healthz, "/readyz": readyz}, host, port)


_Answer = Callable[[web.Request], Awaitable[web.Response]]


async def _listen(pages: Mapping[str, _Answer], host: str, port: int) -> web.AppRunner:
    app = web.Application()
    app.add_routes([web.get(path, answer) for path, answer in pages.items()])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, host, port).start()
    return runner
