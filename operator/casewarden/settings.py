"""The operator's settings: flags, each also an environment variable (``--relay-url`` is ``CASEWARDEN_RELAY_URL``)."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

__all__ = ["Settings", "parse_settings"]


def _setting(default: Any, help_: str) -> Any:
    return field(default=default, metadata={"help": help_})


@dataclass(frozen=True, slots=True)
class Settings:
    """How one operator runs; every field is a flag of its name."""

    catalogue: str = _setting("/etc/casewarden/catalogue.yaml", "file with the tasks and images that runs may use")
    namespaces: tuple[str, ...] = _setting((), "namespaces to work in, separated by commas; default: all")
    kubeconfig: str | None = _setting(None, "kubeconfig to use; default: the pod's account, else KUBECONFIG")
    context: str | None = _setting(None, "context of the kubeconfig; default: its current one")
    relay_url: str | None = _setting(None, "where the operator itself reaches the relay; default: the catalogue's")
    relay_token_file: str = _setting(
        "/var/run/casewarden/relay/token", "file with the token for the relay, of audience casewarden-relay"
    )
    relay_address: str | None = _setting(
        None, "IP address under which pods find the relay; default: what its name resolves to here"
    )
    qps: float = _setting(50.0, "requests to the API server per second, over time")
    burst: int = _setting(100, "requests to the API server that may be made at once after a pause")
    in_flight: int = _setting(32, "requests to the API server that may be under way at once")
    status_interval: float = _setting(1.0, "seconds between two status writes of one run")
    status_qps: float = _setting(10.0, "status writes of all runs together per second")
    relist_seconds: float = _setting(300.0, "seconds between two full lists of the pods")
    lease: str | None = _setting(
        None, "name of the Lease, in the operator's own namespace, that only one operator holds; default: none"
    )
    host: str = _setting("0.0.0.0", "address for /healthz, /readyz and /metrics")  # noqa: S104 - a pod's own
    port: int = _setting(8080, "port for /healthz, /readyz and /metrics; 0 for any free one")
    log_level: str = _setting("INFO", "DEBUG, INFO, WARNING or ERROR")


def parse_settings(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings from flags, then from the environment; exits with a message for what cannot be used."""
    variables = os.environ if environment is None else environment
    parser = argparse.ArgumentParser(prog="casewarden operator", description=__doc__)
    for item in fields(Settings):
        flag = "--" + item.name.replace("_", "-")
        variable = f"CASEWARDEN_{item.name.upper()}"
        parser.add_argument(
            flag,
            type=_reader(item.default),
            default=variables.get(variable, item.default),
            metavar=item.name.upper(),
            help=f"{item.metadata['help']} ({variable})".replace("%", "%%"),
        )
    values = vars(parser.parse_args(list(argv)))
    if values["log_level"] not in ("DEBUG", "INFO", "WARNING", "ERROR"):
        parser.error(f"--log-level is {values['log_level']!r}: use DEBUG, INFO, WARNING or ERROR")
    for name in ("qps", "burst", "in_flight", "status_interval", "status_qps", "relist_seconds"):
        if values[name] <= 0:
            parser.error(f"--{name.replace('_', '-')} is {values[name]}: give a number above 0")
    return Settings(**values)


def _reader(default: Any) -> Any:
    if isinstance(default, tuple):
        return _words
    return type(default) if isinstance(default, int | float) else str


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())
