"""Write what is generated from the models: the CRDs, the chart's copy of them, and their reference pages.

``python -m casewarden.api.generate`` writes, with ``--check`` it only says what is stale and exits 1.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import yaml

from .schema import CRDS

__all__ = ["main", "render"]

_HEADER = "# Generated from operator/casewarden/api by `python -m casewarden.api.generate`. Do not edit.\n"


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # shared parts are written out: the API server knows no anchors' use
        return True


def render() -> dict[str, str]:
    """Return the text of every generated file, by its path below the project's root."""
    files = {}
    for plural, make in CRDS.items():
        crd = make()
        text = _HEADER + yaml.dump(crd, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)
        files[f"crds/{plural}.yaml"] = text
        files[f"charts/casewarden/files/crds/{plural}.yaml"] = text
        files[f"docs/reference/{crd['spec']['names']['singular']}.md"] = _page(crd)
    return files


def _page(crd: dict[str, Any]) -> str:
    names = crd["spec"]["names"]
    version = crd["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]
    lines = [
        "<!-- Generated from operator/casewarden/api by `python -m casewarden.api.generate`. Do not edit. -->",
        f"# {names['kind']}",
        "",
        f"`apiVersion: {crd['spec']['group']}/{version['name']}`, `kind: {names['kind']}`, short name "
        f"`{names['shortNames'][0]}`, category `{names['categories'][0]}`.",
        "",
        schema["description"],
    ]
    for part in ("spec", "status"):
        _table(lines, part, schema["properties"][part])
    return "\n".join(lines) + "\n"


def _table(lines: list[str], path: str, node: dict[str, Any]) -> None:
    """Append the table of an object's fields, then those of the objects in it."""
    lines += ["", f"## {path}", "", node.get("description", ""), ""]
    checks = [rule for rule in node.get("x-kubernetes-validations", ()) if "oldSelf" not in rule["rule"]]
    lines += [f"- {rule['message'][0].upper()}{rule['message'][1:]}." for rule in checks]
    lines += (
        ["", "| field | type | default | |", "| --- | --- | --- | --- |"]
        if checks
        else [
            "| field | type | default | |",
            "| --- | --- | --- | --- |",
        ]
    )
    nested: list[tuple[str, dict[str, Any]]] = []
    for name, value in node["properties"].items():
        required = "**required**" if name in node.get("required", ()) else _default(value)
        lines.append(f"| `{name}` | {_type(value)} | {required} | {_cell(value.get('description', ''))} |")
        nested += _objects(f"{path}.{name}", value)
    for child, value in nested:
        _table(lines, child, value)


def _objects(path: str, node: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    if "properties" in node:
        return [(path, node)]
    if "properties" in node.get("items", {}):
        return [(f"{path}[]", node["items"])]
    if "properties" in node.get("additionalProperties", {}):
        return [(f"{path}.*", node["additionalProperties"])]
    return []


def _default(node: dict[str, Any]) -> str:
    return (
        f"`{yaml.safe_dump(node['default'], default_flow_style=True).split(chr(10))[0]}`" if "default" in node else ""
    )


def _type(node: dict[str, Any]) -> str:
    if "enum" in node:
        return " \\| ".join(f"`{value}`" for value in node["enum"])
    if "items" in node:
        return f"list of {_type(node['items'])}{_bounds(node, 'minItems', 'maxItems', ' entries')}"
    if "additionalProperties" in node:
        return f"map of {_type(node['additionalProperties'])}"
    return f"{node['type']}{_bounds(node, 'minimum', 'maximum', '')}"


def _bounds(node: dict[str, Any], low: str, high: str, unit: str) -> str:
    if low in node and high in node:
        return f", {node[low]} to {node[high]}{unit}"
    if high in node:
        return f", at most {node[high]}{unit}"
    return f", {node[low]} or more{unit}" if low in node else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;").replace("{", "&#123;")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a file is stale")
    parser.add_argument(
        "--root", type=Path, default=Path.cwd(), help="the project's root (default: the current folder)"
    )
    options = parser.parse_args(arguments)
    stale = []
    for name, text in render().items():
        path = options.root / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"{name}: {'stale: run `python -m casewarden.api.generate`' if options.check else 'written'}")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
