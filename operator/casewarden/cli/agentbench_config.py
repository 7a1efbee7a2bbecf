"""AgentBench's configuration language: YAML or JSON files that import one another, with ``default`` and ``overwrite``.

The rules are upstream's, its quirk included: a file that is imported a second time comes as it was before its own
``default`` and ``overwrite`` were applied, which then act where it is imported.
"""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from casewarden.cli.failure import Failure

__all__ = ["Loader", "merged"]


def merged(base: Any, new: Any) -> Any:
    """Return ``new`` over ``base``: mappings key by key, lists one after the other, anything else the new one."""
    if isinstance(base, dict) and isinstance(new, dict):
        made = deepcopy(base)
        for key, value in new.items():
            made[key] = merged(made[key], value) if key in made else deepcopy(value)
        return made
    if isinstance(base, list) and isinstance(new, list):
        return [*deepcopy(base), *deepcopy(new)]
    return deepcopy(new)


class Loader:
    """Loads one configuration. ``Failure`` names the file for what is missing, broken, or imports itself."""

    def __init__(self) -> None:
        self._loading: list[Path] = []
        self._loaded: dict[Path, Any] = {}

    def load(self, path: Path) -> Any:
        """Return a file with its imports in place, and ``default`` and ``overwrite`` applied."""
        path = path.resolve()
        if path in self._loading:
            circle = " -> ".join(item.name for item in (*self._loading[self._loading.index(path) :], path))
            raise Failure(f"{path}: imports itself: {circle}; take one of these imports out")
        if path in self._loaded:
            return deepcopy(self._loaded[path])
        content = self._read(path)
        self._loading.append(path)
        try:
            imported = self._with_imports(path, content)
        finally:
            self._loading.pop()
        self._loaded[path] = imported
        return _applied(deepcopy(imported))

    def _read(self, path: Path) -> Any:
        by = f", which {self._loading[-1]} imports" if self._loading else ""
        if path.suffix not in (".yaml", ".yml", ".json"):
            raise Failure(f"{path}{by}: is neither .yaml, .yml nor .json")
        try:
            text = path.read_text(encoding="utf-8")
            return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
        except OSError as error:
            raise Failure(f"{path}{by}: {error.strerror}") from None
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise Failure(f"{path}{by}: cannot be read: {' '.join(str(error).split())}") from None

    def _with_imports(self, path: Path, content: Any) -> Any:
        if isinstance(content, list):
            return [self._with_imports(path, item) for item in content]
        if not isinstance(content, dict):
            return content
        own = dict(content)
        names = own.pop("import", [])
        names = [names] if isinstance(names, str) else names
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise Failure(f"{path}: import is {names!r}; give a file, or a list of files")
        made: Any = {}
        for name in names:
            made = merged(made, self.load(path.parent / name))
        return merged(made, {key: self._with_imports(path, value) for key, value in own.items()})


def _applied(content: Any) -> Any:
    """Apply ``overwrite`` and ``default`` to the values beside them, all the way down."""
    if isinstance(content, list):
        return [_applied(item) for item in content]
    if not isinstance(content, dict):
        return content
    own = dict(content)
    layers = {name: _applied(own.pop(name)) for name in ("overwrite", "default") if name in own}
    made = {}
    for key, value in own.items():
        value = _applied(value)
        if "overwrite" in layers:
            value = merged(value, layers["overwrite"])
        if "default" in layers:
            value = merged(layers["default"], value)
        made[key] = value
    return made
