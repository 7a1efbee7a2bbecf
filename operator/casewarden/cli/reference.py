"""Writes ``docs/reference/cli.md`` from the commands themselves: ``python -m casewarden.cli.reference``."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any

import typer.main

from casewarden.cli.app import app

__all__ = ["reference"]

_HEAD = """<!-- Made by `python -m casewarden.cli.reference`; do not edit. -->
# The command line

`casewarden COMMAND …`, also `kubectl casewarden COMMAND …`. Results go to standard output, progress and errors to
standard error. `--output json` and `--output yaml` write the same facts for programs.

| exit code | meaning |
|---|---|
| 0 | good: the run passed, the manifest is valid, the evidence holds |
| 1 | assessed but not good: the run has a score and did not pass |
| 2 | invalid or not set up: no valid score, a malformed manifest, evidence that does not hold, no cluster |
| 130 | interrupted |

Commands that take `RUN` take the name of a run of the cluster, or the folder of a run: of a local one, of a store, of
a copy that `casewarden verify --keep` made. What a candidate wrote is shown without escape sequences and control
characters.
"""


def reference() -> str:
    """Return the page."""
    group: Any = typer.main.get_command(app)
    parts = [_HEAD]
    for name, command in group.commands.items():
        parts.append("\n".join(_command(name, command)))
    return "\n".join(parts)


def _command(name: str, command: Any) -> Iterator[str]:
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    options = [param for param in command.params if param.param_type_name == "option" and param.name != "help"]
    shown = " ".join(_bare(item) if item.required else f"[{_bare(item)}]" for item in arguments)
    yield f"## `casewarden {name}{f' {shown}' if shown else ''}`\n"
    yield f"{command.help.strip()}\n"
    if not arguments and not options:
        return
    yield "| | default | |"
    yield "|---|---|---|"
    for argument in arguments:
        yield f"| `{_bare(argument)}` | {'' if argument.required else 'all'} | {argument.help or ''} |"
    for option in options:
        yield f"| {_names(option)} | {_default(option)} | {_help(option)} |"
    yield ""


def _bare(argument: Any) -> str:
    return str(argument.metavar or argument.name).strip("[]").upper()


def _names(option: Any) -> str:
    names = [*option.opts, *option.secondary_opts]
    return ", ".join(f"`{name}`" for name in sorted(names, key=lambda name: (name.startswith("--"), name)))


def _default(option: Any) -> str:
    if option.required:
        return "required"
    value = option.default.value if isinstance(option.default, enum.Enum) else option.default
    if value is None or value == "" or value is False:
        return ""
    return f"`{value}`" if not isinstance(value, bool) else "yes"


def _help(option: Any) -> str:
    variable = f" Also by the environment variable `{option.envvar}`." if option.envvar else ""
    return f"{option.help}{variable}".replace("|", "\\|")


if __name__ == "__main__":
    print(reference(), end="")
