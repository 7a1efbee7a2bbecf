"""Write the reference pages of the programs' settings and metrics from the code: ``python -m casewarden.reference``.

With ``--check`` nothing is written; the exit code is 1 where a page is stale.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from prometheus_client import Counter, Gauge, Histogram

from casewarden.adapters.metrics import DEFINITIONS
from casewarden.relay.__main__ import parser as relay_parser
from casewarden.relay.metrics import RelayMetrics
from casewarden.settings import Settings

__all__ = ["main", "render"]

_HEAD: Final = "<!-- Made by `python -m casewarden.reference`; do not edit. -->"
# A label with more values than this is told by their number.
_SHOWN: Final = 9


def render() -> dict[str, str]:
    """Return the text of every page, by its path below the project's root."""
    pages = {"docs/reference/settings.md": _settings(), "docs/reference/metrics.md": _metrics()}
    return {path: "\n".join(lines) + "\n" for path, lines in pages.items()}


def _settings() -> Iterator[str]:
    yield from (
        _HEAD,
        "# Settings",
        "",
        "The chart sets what a release needs; `operator.extraArgs` and `relay.extraArgs` of its values take any flag.",
        "",
        "## The operator",
        "",
        "`python3 -m casewarden operator`. A flag wins over its environment variable, and that over the default.",
        "",
        "| flag | environment variable | default | meaning |",
        "|---|---|---|---|",
    )
    for item in fields(Settings):
        default = "" if item.default in (None, ()) else f"`{item.default}`"
        meaning = _cell(item.metadata["help"])
        yield f"| `--{item.name.replace('_', '-')}` | `CASEWARDEN_{item.name.upper()}` | {default} | {meaning} |"
    yield from (
        "",
        "## The relay",
        "",
        "`python3 -m casewarden relay`.",
        "",
        "| flag | default | meaning |",
        "|---|---|---|",
    )
    for action in relay_parser()._actions:
        if action.default is argparse.SUPPRESS:
            continue
        default = "" if action.default is None else f"`{action.default}`"
        meaning = (action.help or "").removesuffix(" (default %(default)s)").replace("%%", "%")
        yield f"| `{action.option_strings[0]}` | {'required' if action.required else default} | {_cell(meaning)} |"


def _metrics() -> Iterator[str]:
    yield from (
        _HEAD,
        "# Metrics",
        "",
        "Both programs answer `/metrics`. Where a label's values are listed there are no others; whatever else there "
        "might be is counted as `other`. No label is ever a case, a pod or a URL.",
        "",
        "## The operator",
        "",
    )
    yield from _table(
        (
            str(metric),
            item.type,
            _labels([*((name, ()) for name in getattr(item, "open", ())), *item.labels.items()]),
            item.help,
        )
        for metric, item in DEFINITIONS.items()
    )
    yield from ("", "## The relay", "")
    made = [item for item in vars(RelayMetrics()).values() if isinstance(item, Counter | Gauge | Histogram)]
    yield from _table(
        (
            f"{item._name}_total" if isinstance(item, Counter) else item._name,
            item._type,
            _labels((name, ()) for name in item._labelnames),
            item._documentation,
        )
        for item in made
    )


def _table(rows: Iterable[tuple[str, str, str, str]]) -> Iterator[str]:
    yield from ("| metric | type | labels | meaning |", "|---|---|---|---|")
    for name, type_, labels, meaning in rows:
        yield f"| `{name}` | {type_} | {labels} | {_cell(meaning)} |"


def _labels(labels: Iterable[tuple[str, Any]]) -> str:
    return "; ".join(f"`{name}`{_values(tuple(values))}" for name, values in labels)


def _values(values: tuple[str, ...]) -> str:
    # A single value is the program's version.
    if len(values) < 2:
        return ""
    if len(values) > _SHOWN:
        return f": one of {len(values)}, see [reasons](reasons.md)"
    return ": " + ", ".join(f"`{value}`" for value in values)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m casewarden.reference", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a page is stale")
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="the project's root")
    options = parser.parse_args(arguments)
    code = 0
    for name, text in render().items():
        path: Path = options.root / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if options.check:
            print(f"{name}: stale: run `python -m casewarden.reference`")
            code = 1
        else:
            path.write_text(text, encoding="utf-8")
            print(f"{name}: written")
    return code


if __name__ == "__main__":
    sys.exit(main())
