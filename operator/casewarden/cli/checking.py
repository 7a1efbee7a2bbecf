"""``validate`` and ``plan``: what can be said of a run before anything runs."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from casewarden.api.auditrun import AuditRun, AuditRunSpec
from casewarden.api.catalogue import Catalogue
from casewarden.api.evalrun import EvalRun, EvalRunSpec
from casewarden.api.manifest import Problem, parse
from casewarden.api.plan import Plan
from casewarden.api.reasons import RunReason
from casewarden.cli.failure import GOOD, INVALID, Failure
from casewarden.cli.local_runs import checked_run
from casewarden.cli.manifests import load_manifests, load_run
from casewarden.cli.printing import Output, emit, print_line, print_rows
from casewarden.core.seeds import ENTROPY_BYTES, draw_seeds
from casewarden.core.validate import check_audit_plan, check_plan, validate_manifest
from casewarden.local.planning import PlanFailed, make_plan, pack_of
from casewarden_sdk.canonical import sha256_bytes

__all__ = ["plan", "validate"]

_OURS = ("EvalRun", "AuditRun")


async def validate(file: str, catalogue_file: Path | None, planning: bool, pack: str | None, output: Output) -> int:
    """Say all that is wrong with the runs of a file; with ``planning`` the task's own pack is asked too."""
    catalogue = _catalogue(catalogue_file) if catalogue_file is not None else None
    documents = load_manifests(file)
    runs = [item for item in documents if not isinstance(item, dict) or item.get("kind") != "ConfigMap"]
    reports: list[tuple[str, list[Problem]]] = []
    for document in runs or documents:
        problems = validate_manifest(document, catalogue)
        if not problems and planning:
            resource = parse(document)
            if isinstance(resource, AuditRun):
                problems = await _audit_problems(resource.spec, pack)
            else:
                problems = await _plan_problems(resource, pack)
        meta = document.get("metadata") if isinstance(document, dict) else None
        name = (meta or {}).get("name") or (meta or {}).get("generateName") or "the document"
        reports.append((str(name), problems))

    def show() -> None:
        for name, problems in reports:
            print_line(f"{file}: {name}: {'invalid' if problems else 'valid'}")
            for problem in problems:
                print_line(f"  {problem}")

    report = [
        {"name": name, "valid": not problems, "problems": [asdict(problem) for problem in problems]}
        for name, problems in reports
    ]
    emit(report, output, show)
    return INVALID if any(problems for _, problems in reports) else GOOD


def _catalogue(file: Path) -> Catalogue:
    try:
        return Catalogue.model_validate(yaml.safe_load(file.read_text()) or {})
    except OSError as error:
        raise Failure(f"{file}: {error.strerror}") from None
    except (yaml.YAMLError, ValidationError, UnicodeError) as error:
        raise Failure(f"{file}: is no catalogue: {' '.join(str(error).split())}") from None


async def _plan_problems(run: EvalRun, pack: str | None) -> list[Problem]:
    task = run.spec.task
    if pack is None and not _is_installed(task.name):
        return []
    seeds, families = _seeds_of(run.spec), run.spec.select.families
    try:
        made, _ = await make_plan(pack or pack_of(task.name or ""), seeds, dict(task.params or {}), families)
    except PlanFailed as error:
        return [Problem("spec.task", None, str(error), RunReason(error.why.reason))]
    return list(check_plan(run.spec, seeds, made, None))


async def _audit_problems(spec: AuditRunSpec, pack: str | None) -> list[Problem]:
    if pack is None and not _is_installed(spec.task.name):
        return []
    seeds = list(spec.seeds.values or draw_seeds(spec.seeds.random or 1, os.urandom(ENTROPY_BYTES)))
    try:
        made, _ = await make_plan(pack or pack_of(spec.task.name or ""), seeds, dict(spec.task.params or {}), [])
    except PlanFailed as error:
        return [Problem("spec.task", None, str(error), RunReason(error.why.reason))]
    return list(check_audit_plan(spec, made))


def _is_installed(name: str | None) -> bool:
    import importlib.util

    try:
        return name is not None and importlib.util.find_spec(pack_of(name).partition(":")[0]) is not None
    except ModuleNotFoundError:
        return False


def _seeds_of(spec: EvalRunSpec) -> list[int]:
    return list(spec.seeds.values or draw_seeds(spec.seeds.random or 1, os.urandom(ENTROPY_BYTES)))


async def plan(
    file: str, task: str, seeds: Sequence[int], families: Sequence[str], params: str, pack: str | None, output: Output
) -> int:
    """Say what would run: cases, dimensions, controls, fingerprints."""
    asked: Mapping[str, Any]
    if bool(file) == bool(task):
        raise Failure("give exactly one of --file and --task")
    if file:
        run = checked_run(load_run(file)[0])
        name, seeds, families = run.spec.task.name or "", _seeds_of(run.spec), run.spec.select.families
        asked, repeats = run.spec.task.params or {}, run.spec.repeats
        if not name and pack is None:
            raise Failure("spec.task.image: an image is planned on a cluster; give --pack MODULE:PACK to plan it here")
    else:
        name, asked, repeats = task, _params(params), 1
    try:
        made, text = await make_plan(pack or pack_of(name), seeds, dict(asked), families)
    except PlanFailed as error:
        raise Failure(str(error)) from None
    if file:
        problems = list(check_plan(run.spec, seeds, made, None))
        if problems:
            raise Failure("; ".join(str(problem) for problem in problems))
    emit(json.loads(text), output, lambda: _show(made, text, repeats))
    return GOOD


def _params(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise Failure(f"--params: is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise Failure("--params: give a JSON object")
    return value


def _show(made: Plan, text: bytes, repeats: int) -> None:
    times = f", {repeats} times each" if repeats > 1 else ""
    seeds = ", ".join(map(str, made.seeds))
    print_line(f"{made.task.id}@{made.task.version}: {len(made.cases)} cases{times}, seeds {seeds}")
    print_line(made.task.description)
    print_line(f"\nscored by {made.aggregation}")
    checked = Counter(name for case in made.cases for name in case.dimensions)
    rows = [{"name": name, "weight": made.dimensions[name], "cases": checked[name]} for name in made.dimensions]
    print_rows({"name": "DIMENSION", "weight": "WEIGHT", "cases": "CASES"}, rows)
    print_line()
    families = Counter(case.id for case in made.cases)
    dimensions = {case.id: ",".join(case.dimensions) for case in made.cases}
    print_rows(
        {"id": "CASE", "seeds": "SEEDS", "dimensions": "DIMENSIONS"},
        [{"id": name, "seeds": count, "dimensions": dimensions[name]} for name, count in families.items()],
    )
    for item in made.excluded:
        print_line(f"excluded: {item.seed}/{item.id}: {item.reason}")
    print_line()
    print_rows(
        {"name": "CONTROL", "kind": "KIND", "target": "TARGET"}, [control.model_dump() for control in made.controls]
    )
    print_line()
    prints = {"plan": sha256_bytes(text), **made.fingerprints.model_dump()}
    print_rows({"name": "FINGERPRINT", "value": "SHA-256"}, [{"name": key, "value": prints[key]} for key in prints])
