"""Data sets by reference: the volume that the catalogue names, read-only in every container that runs a task's code.

``datasets`` here are those of the run's task as the catalogue has them, plain JSON; a run names one of them in
``spec.task.params.dataset``. All are told to the task, so that it can say which there are; only the named one is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from casewarden.core import containers as c
from casewarden_sdk.canonical import canonical

__all__ = ["PARAMETER", "VARIABLE", "environment", "mounts", "named", "volumes"]

Manifest = dict[str, Any]
Datasets = Mapping[str, Mapping[str, Any]]
PARAMETER: Final = "dataset"
VARIABLE: Final = "CASEWARDEN_DATASETS"
_VOLUME: Final = "dataset"
_FOLDER: Final = "/casewarden/datasets"
# Where it is missing the pod starts without, and the task says so; a pod that waits for it says nothing for long.
_OPTIONAL: Final = frozenset({"configMap"})


def named(datasets: Datasets, params: Mapping[str, Any]) -> str | None:
    """Return the data set that a run names, where the catalogue has it."""
    name = params.get(PARAMETER)
    return name if isinstance(name, str) and name in datasets else None


def environment(datasets: Datasets) -> list[Manifest]:
    """Return the variable that says where they are."""
    if not datasets:
        return []
    places = {
        name: {"path": "/".join(part for part in (f"{_FOLDER}/{name}", item.get("path", "")) if part),
               **({"sha256": item["sha256"]} if item.get("sha256") else {})}
        for name, item in datasets.items()
    }  # fmt: skip
    return [c.env(VARIABLE, canonical(places))]


def mounts(datasets: Datasets, params: Mapping[str, Any]) -> list[Manifest]:
    """Return the mount of the data set that a run names, if it names one."""
    name = named(datasets, params)
    return [] if name is None else [c.mount(_VOLUME, f"{_FOLDER}/{name}", read_only=True)]


def volumes(datasets: Datasets, params: Mapping[str, Any]) -> list[Manifest]:
    """Return the volume of the data set that a run names, if it names one."""
    name = named(datasets, params)
    if name is None:
        return []
    ((kind, source),) = datasets[name]["volume"].items()
    if kind in _OPTIONAL:
        source = {"optional": True, **source}
    elif kind == "persistentVolumeClaim":
        source = {**source, "readOnly": True}
    return [{"name": _VOLUME, kind: source}]
