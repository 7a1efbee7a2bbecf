"""Read YAML as strictly as ``kubectl`` does."""

from __future__ import annotations

from typing import Any

import yaml

from .manifest import ManifestError, Problem

__all__ = ["load_documents"]


class _Loader(yaml.SafeLoader):
    """YAML in which no key is there twice: one of the two would be lost without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for number, key in enumerate(keys):
            if key in keys[:number]:
                line = node.value[number][0].start_mark.line + 1
                raise ManifestError([Problem(f"line {line}", None, f"the key {key} is there twice: keep one")])
        return super().construct_mapping(node, deep)


def load_documents(text: str) -> list[Any]:
    """Read the documents of a YAML stream, empty ones left out; ``ManifestError`` for what is no YAML."""
    try:
        return [document for document in yaml.load_all(text, Loader=_Loader) if document is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark is not None else "the file"
        said = getattr(error, "problem", None) or str(error)
        raise ManifestError([Problem(where, None, f"this is no YAML: {said}")]) from None
