"""``python3 -I -m casewarden.casepod``: the process of the ``evidence`` container."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

from .recorder import Recorder
from .relay_client import RelaySink
from .settings import Settings, SettingsError

__all__ = ["main", "serve"]

# A sidecar that exits is started again, so it stays until the kubelet stops it; no pod is stopped later than this.
_LINGER_SECONDS = 3600.0


def serve(settings: Settings) -> None:
    """Serve one attempt and end the process at SIGTERM."""
    mark = Path(settings.places.spool, "used")
    asyncio.run(_serve(settings, mark, restarted=mark.exists()))


async def _serve(settings: Settings, mark: Path, *, restarted: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await Recorder(settings, RelaySink(settings), restarted=restarted, on_used=mark.touch).run(stop)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_SECONDS):
            await stop.wait()
    sys.stderr.flush()
    # A call to the relay may still hang in a thread; nothing waits for its answer.
    os._exit(0)


def main() -> None:
    """Serve the attempt of ``CASEWARDEN_ATTEMPT`` until SIGTERM."""
    try:
        settings = Settings.from_environment(os.environ)
    except SettingsError as error:
        sys.exit(f"casewarden: {error}")
    serve(settings)


if __name__ == "__main__":
    main()
