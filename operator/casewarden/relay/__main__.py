"""``python -m casewarden.relay``: serve evidence of a release's runs."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import yaml
from aiohttp import web
from pydantic import ValidationError

from casewarden.adapters.kube.client import KubeClient, RetryBudget
from casewarden.adapters.kube.connection import ConfigError, connect
from casewarden.adapters.stores import open_store
from casewarden.api.catalogue import Catalogue
from casewarden.api.endpoint import Endpoint
from casewarden.api.names import AUDIENCE
from casewarden.ports.store import StoreError
from casewarden.relay.app import make_app
from casewarden.relay.context import Limits
from casewarden.relay.metrics import RelayMetrics
from casewarden.relay.readiness import Readiness
from casewarden.relay.retention import keep_sweeping
from casewarden.relay.reviewer import KubeReviewer

__all__ = ["main"]

_STORE_HELP = "where evidence is kept: file:///path, s3://bucket/prefix?endpoint=https://host, or memory: for a trial"
_LOG = logging.getLogger("casewarden.relay")


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    made = argparse.ArgumentParser(prog="casewarden-relay", description="Take evidence in and give it out.")
    made.add_argument("--store", required=True, help=_STORE_HELP)
    made.add_argument("--listen", default="0.0.0.0:8080", help="address and port (default %(default)s)")
    made.add_argument(
        "--operator-user",
        default="system:serviceaccount:casewarden-system:casewarden-operator",
        help="user name of the operator (default %(default)s)",
    )
    made.add_argument("--audience", default=AUDIENCE, help="audience of the tokens (default %(default)s)")
    made.add_argument("--kubeconfig", help="file to reach the cluster by, when not in a pod of it")
    made.add_argument("--context", help="context of the kubeconfig")
    made.add_argument(
        "--max-bundle-mib", type=int, default=64, help="largest bundle of one attempt (default %(default)s)"
    )
    made.add_argument("--max-uploads", type=int, default=32, help="uploads at the same time (default %(default)s)")
    made.add_argument(
        "--retention-days",
        type=float,
        default=0.0,
        help="days that evidence is kept after its run was deleted; 0, the default, keeps it for ever",
    )
    made.add_argument(
        "--catalogue", type=Path, help="the catalogue's file, for its endpoints of models; without it there are none"
    )
    made.add_argument(
        "--keys",
        type=Path,
        default=Path("/etc/casewarden/keys"),
        help="folder with a folder of each endpoint's Secret (default %(default)s)",
    )
    made.add_argument("--shutdown-seconds", type=float, default=20.0, help="time for calls under way when told to stop")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; return 0, or 2 with one line on stderr for what cannot be set up."""
    options = parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    host, _, port = options.listen.rpartition(":")
    if not port.isdecimal():
        return _complain(f"--listen {options.listen!r}: give ADDRESS:PORT, as in 0.0.0.0:8080")
    try:
        store = open_store(options.store)
        endpoints = _endpoints(options.catalogue)
        connection = asyncio.run(connect(options.kubeconfig, options.context))
    except (ValueError, StoreError, ConfigError) as error:
        return _complain(str(error))

    async def started() -> web.Application:
        stack = AsyncExitStack()
        api = await stack.enter_async_context(KubeClient(connection, budget=RetryBudget(tries=3, seconds=6.0)))
        stack.push_async_callback(store.close)
        reviewer, metrics = KubeReviewer(api, options.audience), RelayMetrics()
        readiness = Readiness(store, options.store)
        limits = Limits(bundle_bytes=options.max_bundle_mib << 20, uploads=options.max_uploads)
        app = make_app(
            store,
            reviewer,
            operator_user=options.operator_user,
            limits=limits,
            metrics=metrics,
            endpoints=endpoints,
            keys=options.keys,
            unready=lambda: readiness.why,
        )

        async def alongside(app: web.Application) -> AsyncIterator[None]:
            async with stack:
                sweep = keep_sweeping(store, reviewer.run_uids, days=options.retention_days, metrics=metrics)
                tasks = [asyncio.create_task(work) for work in (readiness.ask(), sweep)]
                yield
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

        app.cleanup_ctx.append(alongside)
        _LOG.info("serving %s on %s", options.store, options.listen)
        return app

    web.run_app(
        started(),
        host=host.strip("[]") or None,
        port=int(port),
        shutdown_timeout=options.shutdown_seconds,
        print=None,
        access_log=None,
    )
    return 0


def _endpoints(file: Path | None) -> Mapping[str, Endpoint]:
    """Read the catalogue's endpoints; ``ValueError`` for a file that is none."""
    if file is None:
        return {}
    try:
        return Catalogue.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")) or {}).endpoints
    except OSError as error:
        raise ValueError(f"--catalogue {file}: {error.strerror}") from None
    except (yaml.YAMLError, ValidationError) as error:
        raise ValueError(f"--catalogue {file} is no catalogue: {error}") from None


def _complain(message: str) -> int:
    print(f"casewarden-relay: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
