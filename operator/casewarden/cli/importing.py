"""``import agentbench``: an assignment file and all that it imports, written as manifests, chart values and Secrets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from casewarden.api.documents import load_documents
from casewarden.api.endpoint import Endpoint
from casewarden.cli.agentbench_config import Loader
from casewarden.cli.agentbench_convert import convert
from casewarden.cli.failure import GOOD, Failure
from casewarden.cli.printing import Output, emit, print_line
from casewarden.core.validate import validate_manifest

__all__ = ["import_agentbench"]

RUNS, VALUES, SECRETS = "runs.yaml", "values.yaml", "secrets.yaml"


def import_agentbench(config: Path, dataset: str, out: Path, output: Output) -> int:
    """Write the three files below ``out`` and say what was left out."""
    made = convert(Loader().load(config), dataset)
    for name, endpoint in made.values["catalogue"]["endpoints"].items():
        try:
            Endpoint.model_validate(endpoint)
        except ValueError as error:
            raise Failure(f"endpoint {name}: {' '.join(str(error).split())}") from None
    _write(out / RUNS, _dumped(made.runs), 0o644)
    _write(out / VALUES, _dumped([made.values]), 0o644)
    # The keys are in this file and in no other; nobody else may read it.
    _write(out / SECRETS, _dumped(made.secrets), 0o600)
    notes = [*made.notes, *_later(made.runs)]
    document = {
        "runs": [run["metadata"]["name"] for run in made.runs],
        "endpoints": list(made.values["catalogue"]["endpoints"]),
        "files": [str(out / name) for name in (RUNS, VALUES, SECRETS)],
        "notes": notes,
    }

    def show() -> None:
        print_line(f"{len(made.runs)} runs in {out / RUNS}: kubectl apply -n NAMESPACE -f …")
        print_line(f"endpoints and pools in {out / VALUES}: helm upgrade … --reuse-values -f …")
        print_line(f"keys in {out / SECRETS}: kubectl apply -n casewarden-system -f …, then delete the file")
        for note in notes:
            print_line(f"note: {note}")

    emit(document, output, show)
    return GOOD


def _later(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Return what of the runs the operator would not accept."""
    return [f"run {run['metadata']['name']}: {problem}" for run in runs for problem in validate_manifest(run)]


def _dumped(documents: Sequence[Any]) -> str:
    text = yaml.safe_dump_all(documents, sort_keys=False, width=120, allow_unicode=True)
    if list(load_documents(text)) != list(documents):
        raise ValueError("what was written does not read back")
    return text


def _write(path: Path, text: str, mode: int) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
