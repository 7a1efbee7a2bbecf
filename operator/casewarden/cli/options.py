"""The options that commands share, once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from casewarden.cli.printing import Output

__all__ = [
    "ContextOption", "EndpointOption", "EndpointsOption", "ExportFormat", "ImportKind", "KubeconfigOption",
    "NamespaceOption", "OutOption", "OutputOption", "PackOption",
    "SystemOption", "TargetArgument", "TimeoutOption",
]  # fmt: skip


class ExportFormat(StrEnum):
    """What a run is exported as."""

    JUNIT = "junit"
    CSV = "csv"
    INSPECT = "inspect"


class ImportKind(StrEnum):
    """Whose configuration is imported."""

    AGENTBENCH = "agentbench"


NamespaceOption = Annotated[
    str,
    typer.Option("--namespace", "-n", help="Namespace of the run. Default: the context's.", show_default=False),
]
ContextOption = Annotated[
    str, typer.Option("--context", help="Context of the kubeconfig. Default: the current one.", show_default=False)
]
KubeconfigOption = Annotated[
    str,
    typer.Option("--kubeconfig", help="Kubeconfig file. Default: KUBECONFIG, or ~/.kube/config.", show_default=False),
]
SystemOption = Annotated[
    str,
    typer.Option("--system-namespace", envvar="CASEWARDEN_SYSTEM_NAMESPACE", help="Namespace that the chart is in."),
]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How results are written: table, json or yaml.")]
PackOption = Annotated[
    str | None,
    typer.Option("--pack", help="MODULE:PACK of a task that is not one of the project's.", show_default=False),
]
EndpointOption = Annotated[
    list[str] | None,
    typer.Option(
        "--endpoint",
        metavar="NAME=URL",
        help="Model server of a local run, by the name that the manifest gives it; may be repeated. Its key is read "
        "from CASEWARDEN_KEY_NAME.",
        show_default=False,
    ),
]
EndpointsOption = Annotated[
    Path | None,
    typer.Option(
        "--endpoints",
        help="File with endpoints of local runs, written as in the chart's catalogue.",
        show_default=False,
    ),
]
OutOption = Annotated[Path, typer.Option("--out", help="Folder that keeps the evidence of local runs.")]
TimeoutOption = Annotated[
    float, typer.Option("--timeout", min=0, help="Seconds to wait at most; 0 waits for as long as it takes.")
]
TargetArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="Name of a run of the cluster, or the folder of a run.", show_default=False)
]
