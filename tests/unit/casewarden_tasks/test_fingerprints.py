"""A change of cases, contract, limits or grading is a new version.

``fingerprints.json`` has a row for each version there ever was. Scores under one version are comparable because what
made them is; so a released row is never edited, and a change of what it pins gets a row of its own.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from support import evalarc

import casewarden_sdk
import casewarden_tasks
from casewarden_sdk.agentbench import SOURCES
from casewarden_sdk.canonical import digest_files, sha256_json
from casewarden_sdk.contract import Pack
from casewarden_sdk.fingerprint import OWN_SOURCES
from casewarden_sdk.plan import build_plan

TABLE = Path(__file__).with_name("fingerprints.json")
RECORDED: dict[str, Any] = json.loads(TABLE.read_text())
PACKS = sorted(path.parent.name for path in Path(casewarden_tasks.__file__).parent.glob("*/__init__.py"))
SEEDS = (17, 41, 97)


def row_of(pack: Pack, folder: Path) -> dict[str, str]:
    """Return what a version pins; the SDK's own share of grading has a row of its own."""
    plan = build_plan(pack, SEEDS if getattr(pack, "seeded", True) else (0,), {})
    sources = sorted(
        (Path(source).relative_to(folder).as_posix(), Path(source).read_bytes())
        for source in pack.sources
        if folder in Path(source).parents
    )
    return {
        "cases": plan["fingerprints"]["cases"],
        "contract": plan["fingerprints"]["contract"],
        "grading": digest_files(sources),
        "limits": sha256_json(dataclasses.asdict(pack.limits)),
        "scoring": sha256_json([dict(pack.dimensions), pack.aggregation, dict(pack.exclusions)]),
    }


def require(key: str, row: dict[str, str], version_is_in: str) -> None:
    """Compare with the recorded row, and say what to do where it differs."""
    recorded = RECORDED.get(key)
    changed = sorted(name for name in row if row[name] != (recorded or {}).get(name))
    told = (
        f"{', '.join(changed)} of {key} changed. Scores before and after are not comparable, so: raise the version in "
        f"{version_is_in}, and add the row below under it"
        if recorded
        else f"{key} is new: add its row"
    )
    assert recorded == row, f'{told} to {TABLE.name}:\n\n "{key}": {json.dumps(row, indent=1)}\n'


@pytest.mark.parametrize("name", PACKS)
def test_a_version_of_a_pack_means_the_same_for_ever(name: str) -> None:
    pack = importlib.import_module(f"casewarden_tasks.{name}").PACK
    folder = Path(casewarden_tasks.__file__).parent / name
    require(
        f"{pack.id}@{pack.version}", row_of(pack, folder), f"tasks/casewarden_tasks/{name}/__init__.py and contract.md"
    )


def test_a_version_of_the_sdk_grades_the_same_for_ever() -> None:
    folder = Path(casewarden_sdk.__file__).parent
    row = {"grading": digest_files(sorted((name, (folder / name).read_bytes()) for name in OWN_SOURCES))}
    require(f"casewarden-sdk@{casewarden_sdk.__version__}", row, "tasks/casewarden_sdk/__init__.py and pyproject.toml")


def test_a_version_of_the_sdk_makes_the_same_of_agentbench_s_samples_for_ever() -> None:
    row = {"grading": digest_files(sorted((Path(name).name, Path(name).read_bytes()) for name in SOURCES))}
    version = f"casewarden-sdk-agentbench@{casewarden_sdk.__version__}"
    require(version, row, "tasks/casewarden_sdk/__init__.py and pyproject.toml")


@pytest.mark.parametrize("task", evalarc.TASKS)
def test_the_recorded_cases_are_those_of_the_peer(task: str) -> None:
    assert RECORDED[f"{task}@0.1.0"]["cases"] == sha256_json(evalarc.cases(task, SEEDS))
