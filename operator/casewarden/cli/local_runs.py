"""``run`` and ``evaluate --local``: the whole job on this machine."""

from __future__ import annotations

import base64
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from casewarden.api.evalrun import EvalRun
from casewarden.api.manifest import ManifestError, parse
from casewarden.cli.endpoints import LocalEndpoints
from casewarden.cli.failure import Failure
from casewarden.cli.manifests import load_runs
from casewarden.cli.outcome import exit_code, print_summary
from casewarden.cli.printing import Output, emit, print_line
from casewarden.cli.progress import RunProgress
from casewarden.local.run import Options, run_evalrun
from casewarden.local.shim import ShimMissing
from casewarden_sdk.workspace import WorkspaceError, WorkspaceFile, read_workspace, workspace_of

__all__ = ["config_map_files", "run_file", "run_here"]

NOT_A_SANDBOX = "casewarden: a local run is no sandbox: the candidate runs with your rights"


async def run_file(
    file: str,
    workspace: Path | None,
    pack: str | None,
    out: Path,
    output: Output,
    models: LocalEndpoints,
    datasets: Sequence[str] = (),
) -> int:
    """Run the EvalRuns of a file one after another; their ConfigMaps may be in the same file. The worst exit code."""
    documents, beside = load_runs(file)
    if workspace is not None and len(documents) > 1:
        raise Failure(f"--workspace is one run's, and {file} holds {len(documents)}; give one run at a time")
    runs = [checked_run(document) for document in documents]
    files = [read_folder(workspace) if workspace is not None else config_map_files(run, beside) for run in runs]
    named = dict(read_dataset(text) for text in datasets)
    together = zip(runs, files, strict=True)
    return max([await run_here(run, its, pack, out, output, models, named) for run, its in together])


def read_dataset(text: str) -> tuple[str, Path]:
    """Read ``NAME=PATH``."""
    name, equals, path = text.partition("=")
    if not equals or not name or not path:
        raise Failure(f"--dataset {text!r}: give NAME=PATH, the name as spec.task.params.dataset has it")
    if not Path(path).exists():
        raise Failure(f"--dataset {text!r}: there is no {path}")
    return name, Path(path)


def checked_run(document: Any) -> EvalRun:
    """Return the run of a manifest; a ``Failure`` with every problem of its format."""
    try:
        resource = parse(document)
    except ManifestError as error:
        raise Failure("; ".join(str(problem) for problem in error.problems)) from None
    if not isinstance(resource, EvalRun):
        raise Failure(
            "kind is AuditRun: an audit needs a cluster: apply it with kubectl, or run a control as an EvalRun here"
        )
    return resource


def read_folder(folder: Path) -> list[WorkspaceFile]:
    """Read a candidate's folder."""
    try:
        return read_workspace(folder)
    except WorkspaceError as error:
        raise Failure(str(error)) from None
    except OSError as error:
        raise Failure(f"{folder}: {error.strerror}") from None


def config_map_files(run: EvalRun, beside: Sequence[Any]) -> list[WorkspaceFile] | None:
    """Return the files of the ConfigMap that the run names, from the documents beside it; None where none is named."""
    program = run.spec.candidate.program
    name = program.workspace.config_map if program is not None and program.workspace is not None else None
    if name is None:
        return None
    for document in beside:
        if not isinstance(document, Mapping) or document.get("kind") != "ConfigMap":
            continue
        if (document.get("metadata") or {}).get("name") == name:
            return _files_of(document, name)
    raise Failure(
        f"spec.candidate.program.workspace.configMap is {name!r}: put that ConfigMap into the same file, "
        "or give the folder with --workspace"
    )


def _files_of(document: Mapping[str, Any], name: str) -> list[WorkspaceFile]:
    try:
        texts = [(key, str(text).encode("utf-8")) for key, text in (document.get("data") or {}).items()]
        texts += [(key, base64.b64decode(text)) for key, text in (document.get("binaryData") or {}).items()]
        return workspace_of(texts)
    except (WorkspaceError, ValueError) as error:
        raise Failure(f"ConfigMap {name}: {error}") from None


async def run_here(
    run: EvalRun,
    files: Sequence[WorkspaceFile] | None,
    pack: str | None,
    out: Path,
    output: Output,
    models: LocalEndpoints,
    datasets: Mapping[str, Path] | None = None,
) -> int:
    """Run to the end with progress on stderr, and return what it came to."""
    name = run.metadata.name
    print(NOT_A_SANDBOX, file=sys.stderr)
    try:
        with RunProgress(name) as progress:
            options = Options(out, pack, files, models.endpoints, models.keys, progress.show, datasets or {})
            result = await run_evalrun(run, options)
            progress.show(result.status, last=True)
    except ShimMissing as error:
        raise Failure(str(error)) from None
    document = {"metadata": {"name": name, "uid": result.uid}, "status": result.status}

    def show() -> None:
        print_summary(name, result.status)
        for key, log in result.logs.items():
            print_line(f"\nthe driver of {key} wrote:\n{log}")
        if result.status.get("evidence"):
            print_line(f"see casewarden cases {result.folder}")

    emit(document, output, show)
    return exit_code(result.status)
