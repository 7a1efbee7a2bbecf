"""Reading manifests: YAML files, or standard input for ``-``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

from casewarden.cli.failure import Failure

__all__ = ["load_manifests", "load_run", "load_runs"]

_MAX_BYTES = 4 << 20
_OURS = ("EvalRun", "AuditRun")


class _Loader(yaml.SafeLoader):
    """Refuses a key that is there twice, which YAML parsers otherwise let the last one win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        self.flatten_mapping(node)
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str | int | float | bool | None):
                raise yaml.constructor.ConstructorError(None, None, "a key is no plain value", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} is there twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def load_manifests(source: str) -> list[Any]:
    """Return every document of a file that is not empty."""
    name = "standard input" if source == "-" else source
    try:
        data = sys.stdin.buffer.read(_MAX_BYTES + 1) if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise Failure(f"{source}: {error.strerror}") from None
    if len(data) > _MAX_BYTES:
        raise Failure(f"{name}: is over {_MAX_BYTES >> 20} MiB; that is no manifest")
    try:
        documents = [document for document in yaml.load_all(data, _Loader) if document is not None]
    except (yaml.YAMLError, UnicodeError, RecursionError) as error:
        raise Failure(f"{name}: is no YAML: {' '.join(str(error).split())}") from None
    if not documents:
        raise Failure(f"{name}: holds no document; give an EvalRun")
    return documents


def load_runs(source: str) -> tuple[list[Any], list[Any]]:
    """Return the EvalRuns and AuditRuns of a file and the other documents (ConfigMaps) beside them.

    A file with a single document of any other kind is returned as it is: the validator says what is wrong.
    """
    documents = load_manifests(source)
    runs = [item for item in documents if isinstance(item, dict) and item.get("kind") in _OURS]
    if not runs and len(documents) > 1:
        raise Failure(f"{source}: holds no EvalRun")
    runs = runs or documents
    return runs, [item for item in documents if not any(item is run for run in runs)]


def load_run(source: str) -> tuple[Any, list[Any]]:
    """Return the one run of a file as ``load_runs`` does; a ``Failure`` where it holds more."""
    runs, beside = load_runs(source)
    if len(runs) > 1:
        raise Failure(f"{source}: holds {len(runs)} runs; give one at a time")
    return runs[0], beside
