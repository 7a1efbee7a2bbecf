"""The chart's schema of values and its README, made of typed models and of values.yaml with its comments.

`python -m devkit.chart` writes them.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from devkit.settings import REPOSITORY
from devkit.values import Values, schema

CHART = REPOSITORY / "charts" / "casewarden"
WHOLE = frozenset({"resources", "tasks", "images", "labels"})
"""Maps that are one value to a reader."""


@dataclass(frozen=True)
class Value:
    """One value: its path, its default as YAML, and what the comments around it say."""

    path: str
    default: str
    comment: str


def values(text: str) -> list[Value]:
    """Read every value of a values file in its order."""
    root = yaml.compose(text)
    return list(_walk(root, "", text.splitlines())) if isinstance(root, yaml.MappingNode) else []


def _walk(node: yaml.MappingNode, prefix: str, lines: list[str]) -> Iterator[Value]:
    for key, value in node.value:
        path = f"{prefix}{key.value}"
        comment = _comment(lines, key.start_mark.line, value)
        if isinstance(value, yaml.MappingNode) and value.value and key.value not in WHOLE and not value.flow_style:
            if comment:
                yield Value(path, "", comment)
            yield from _walk(value, f"{path}.", lines)
        else:
            found = yaml.safe_load(yaml.serialize(value))
            default = yaml.safe_dump(found, default_flow_style=True, width=math.inf).removesuffix("\n...\n").strip()
            yield Value(path, default, comment)


def _comment(lines: list[str], line: int, value: yaml.Node) -> str:
    above: list[str] = []
    number = line - 1
    while number >= 0 and lines[number].strip().startswith("#"):
        above.insert(0, lines[number].strip().lstrip("# "))
        number -= 1
    inline = ""
    if not isinstance(value, yaml.MappingNode) or value.flow_style:
        _, _, inline = lines[value.end_mark.line - (value.end_mark.column == 0)].partition(" # ")
    return " ".join([*above, inline.strip()]).strip()


def unknown(known: dict[str, Any], given: Any, path: str = "") -> list[str]:
    """Return the values that the models do not know, and those of the models that have no default in values.yaml."""
    properties = known.get("properties")
    if properties is None or not isinstance(given, dict):
        return []
    found = [f"{path}{name} has no default in values.yaml" for name in properties if name not in given | {"global": 0}]
    found += [f"{path}{name} is no field of devkit/values.py" for name in given if name not in properties]
    for name, value in given.items():
        found += unknown(properties.get(name, {}), value, f"{path}{name}.")
    return found


def values_schema() -> dict[str, Any]:
    """Return the chart's schema of values."""
    text = (CHART / "values.yaml").read_text()
    return schema({value.path: value.comment for value in values(text) if value.comment})


def readme() -> str:
    """Return the chart's README."""
    text = (CHART / "values.yaml").read_text()
    meta = yaml.safe_load((CHART / "Chart.yaml").read_text())
    rows = "".join(
        f"| `{value.path}` | {_cell(f'`{value.default}`') if value.default else ''} | {_cell(value.comment)} |\n"
        for value in values(text)
    )
    return (
        (CHART / "README.md.in")
        .read_text()
        .format(description=meta["description"], kube=meta["kubeVersion"].removesuffix("-0"), rows=rows.rstrip())
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a file is stale")
    options = parser.parse_args(arguments)
    made, given = values_schema(), yaml.safe_load((CHART / "values.yaml").read_text())
    problems = unknown(made, given)
    if not problems:
        Values.model_validate(given)
    files = {CHART / "values.schema.json": json.dumps(made, indent=1) + "\n", CHART / "README.md": readme()}
    for path, text in files.items():
        if path.exists() and path.read_text() == text:
            continue
        if options.check:
            problems.append(f"charts/casewarden/{path.name}: stale: run `make chart`")
        else:
            path.write_text(text)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
