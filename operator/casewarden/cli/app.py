"""The command line: names, options and help. What the commands do is in their own modules, imported when called."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from casewarden.cli.failure import GOOD, INTERRUPTED, INVALID, Failure
from casewarden.cli.options import (
    ContextOption,
    EndpointOption,
    EndpointsOption,
    ExportFormat,
    ImportKind,
    KubeconfigOption,
    NamespaceOption,
    OutOption,
    OutputOption,
    PackOption,
    SystemOption,
    TargetArgument,
    TimeoutOption,
)
from casewarden.cli.printing import Output

__all__ = ["app", "run"]

_SYSTEM = "casewarden-system"
_OUT = Path("casewarden-runs")
_HELP = """Evaluate agents, and check what an evaluation is worth.

Exit codes: 0 good, 1 assessed but not good, 2 invalid or not set up, 130 interrupted.
"""

app = typer.Typer(
    name="casewarden",
    help=_HELP,
    no_args_is_help=True,
    add_completion=False,
    # Rich help costs a third of a second at every start.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

_FileOption = Annotated[
    str, typer.Option("--file", "-f", help="Manifest in YAML; - is standard input.", show_default=False)
]


def run(name: str, argv: Sequence[str]) -> int:
    """Run one command; every way in which it can end becomes an exit code, and what went wrong one line on stderr."""
    try:
        # Without its standalone mode typer returns the code of Exit, and 130 for an interrupt that it caught.
        code = app(args=list(argv) or ["--help"], prog_name=name, standalone_mode=False)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        return code if isinstance(code, int) else GOOD
    except Failure as failure:
        return _complain(name, failure.message, failure.code)
    except (KeyboardInterrupt, typer.Abort):
        return _complain(name, "interrupted", INTERRUPTED)
    except BrokenPipeError:
        # Whoever read the output has seen enough; nothing may be written at exit either.
        sys.stdout = None
        return GOOD
    except Exception as error:
        return _complain(
            name, _usage(error) or f"{type(error).__name__}: {error}; this is a bug, please report it", INVALID
        )


def _usage(error: Exception) -> str | None:
    """Return the message of a mistake on the command line; the class of these errors moves between typer's versions."""
    message = getattr(error, "format_message", None)
    if message is None:
        return None
    context = getattr(error, "ctx", None)
    where = f"; see {context.command_path} --help" if context is not None else ""
    return f"{message().rstrip('.')}{where}"


def _complain(name: str, message: str, code: int) -> int:
    print(f"{name}: {' '.join(message.split())}", file=sys.stderr)
    return code


def _ended(command: Coroutine[Any, Any, int]) -> None:
    raise typer.Exit(asyncio.run(command))


@app.command("run")
def run_command(
    file: _FileOption,
    workspace: Annotated[
        Path | None,
        typer.Option("--workspace", "-w", help="Folder of the candidate, in place of the one that the manifest names."),
    ] = None,
    pack: PackOption = None,
    endpoint: EndpointOption = None,
    endpoints: EndpointsOption = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            "--dataset",
            metavar="NAME=PATH",
            help="Folder or archive of a data set, by the name that spec.task.params.dataset has. May be repeated.",
            show_default=False,
        ),
    ] = None,
    out: OutOption = _OUT,
    output: OutputOption = Output.TABLE,
) -> None:
    """Run an EvalRun on this machine, without a cluster. It is no sandbox: the candidate runs with your rights."""
    from casewarden.cli.endpoints import read_endpoints
    from casewarden.cli.local_runs import run_file

    models = read_endpoints(endpoint or (), endpoints, os.environ)
    _ended(run_file(file, workspace, pack, out, output, models, dataset or ()))


@app.command()
def evaluate(
    folder: Annotated[Path, typer.Argument(help="The candidate's folder.", show_default=False)],
    task: Annotated[str, typer.Option("--task", "-t", help="Name of the task.", show_default=False)],
    seeds: Annotated[
        str, typer.Option("--seeds", help="Seeds, separated by commas. Default: one that is drawn.", show_default=False)
    ] = "",
    random: Annotated[int, typer.Option("--random", min=0, max=256, help="How many seeds to draw.")] = 0,
    name: Annotated[str, typer.Option("--name", help="Name of the run. Default: made of task and folder.")] = "",
    image: Annotated[
        str,
        typer.Option("--image", help="Image that the program runs in. Default: the task's own.", show_default=False),
    ] = "",
    family: Annotated[list[str] | None, typer.Option("--family", help="Case id to run; may be repeated.")] = None,
    repeats: Annotated[int, typer.Option("--repeats", min=0, help="How often each case is run.")] = 1,
    parallelism: Annotated[int, typer.Option("--parallelism", "-p", min=1, help="Cases at once.")] = 10,
    threshold: Annotated[
        str, typer.Option("--threshold", help="Lowest score that passes. Default: every case must.", show_default=False)
    ] = "",
    model: Annotated[
        str,
        typer.Option("--model", help="ENDPOINT/NAME of the model that the program uses.", show_default=False),
    ] = "",
    local: Annotated[bool, typer.Option("--local", help="Run on this machine, without a cluster.")] = False,
    pack: PackOption = None,
    endpoint: EndpointOption = None,
    endpoints: EndpointsOption = None,
    out: OutOption = _OUT,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the run and show what it came to.")] = True,
    timeout: TimeoutOption = 0,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    kubeconfig: KubeconfigOption = "",
    system_namespace: SystemOption = _SYSTEM,
    output: OutputOption = Output.TABLE,
) -> None:
    """Evaluate a candidate's folder on a task: upload it, create the run, wait for the score."""
    from casewarden.cli.cluster import Access
    from casewarden.cli.endpoints import read_endpoints
    from casewarden.cli.evaluate import Wanted
    from casewarden.cli.evaluate import evaluate as command

    wanted = Wanted(task, _seeds(seeds), random, name, image, family or (), repeats, parallelism, threshold, model)
    access = Access(kubeconfig, context, namespace, system_namespace)
    models = read_endpoints(endpoint or (), endpoints, os.environ)
    _ended(command(access, folder, wanted, local, pack, out, wait, timeout, output, models))


@app.command()
def apply(
    file: _FileOption,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    kubeconfig: KubeconfigOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Apply EvalRuns, and the ConfigMaps beside them, to the cluster."""
    from casewarden.cli.cluster import Access
    from casewarden.cli.runs import apply as command

    _ended(command(Access(kubeconfig, context, namespace), file, output))


@app.command()
def get(
    name: Annotated[str | None, typer.Argument(metavar="RUN", help="Name of a run. Default: all of them.")] = None,
    everywhere: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Runs of every namespace.")] = False,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    kubeconfig: KubeconfigOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """List the runs of the cluster, or show one."""
    from casewarden.cli.cluster import Access
    from casewarden.cli.runs import get as command

    _ended(command(Access(kubeconfig, context, namespace), name, everywhere, output))


@app.command()
def watch(
    name: Annotated[str, typer.Argument(metavar="RUN", help="Name of a run.", show_default=False)],
    timeout: TimeoutOption = 0,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    kubeconfig: KubeconfigOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Follow a run to its end; the exit code says what it came to."""
    from casewarden.cli.cluster import Access
    from casewarden.cli.runs import watch as command

    _ended(command(Access(kubeconfig, context, namespace), name, timeout, output))


@app.command()
def slots(
    context: ContextOption = "",
    kubeconfig: KubeconfigOption = "",
    system_namespace: SystemOption = _SYSTEM,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the slots of agents and tasks that all runs share, and who has them."""
    from casewarden.cli.cluster import Access
    from casewarden.cli.slots import slots as command

    _ended(command(Access(kubeconfig, context, "", system_namespace), output))


@app.command()
def cases(
    target: TargetArgument,
    failed: Annotated[bool, typer.Option("--failed", help="Only cases that did not pass.")] = False,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    kubeconfig: KubeconfigOption = "",
    system_namespace: SystemOption = _SYSTEM,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the cases of a run and what became of each."""
    from casewarden.cli.cases import cases as command
    from casewarden.cli.cluster import Access

    _ended(command(Access(kubeconfig, context, namespace, system_namespace), target, failed, output))


@app.command()
def show(
    target: TargetArgument,
    case: Annotated[str, typer.Argument(metavar="CASE", help="Id of a case.", show_default=False)],
    seed: Annotated[int | None, typer.Option("--seed", "-s", help="Its seed. Default: the run's first.")] = None,
    repeat: Annotated[int, typer.Option("--repeat", "-r", min=0, help="Its repeat, from 0.")] = 0,
    attempt: Annotated[
        int | None, typer.Option("--attempt", min=1, help="One of its attempts. Default: the one that counts.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Do not cut long lines.")] = False,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    kubeconfig: KubeconfigOption = "",
    system_namespace: SystemOption = _SYSTEM,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show all that was kept of a case: verdict, transcript, states, logs, and the facts of its pod."""
    from casewarden.cli.cases import Asked
    from casewarden.cli.cases import show as command
    from casewarden.cli.cluster import Access

    access = Access(kubeconfig, context, namespace, system_namespace)
    _ended(command(access, target, Asked(case, seed, repeat, attempt), full, output))


@app.command()
def plan(
    task: Annotated[str, typer.Option("--task", "-t", help="Name of a task.", show_default=False)] = "",
    file: Annotated[str, typer.Option("--file", "-f", help="Manifest of an EvalRun.", show_default=False)] = "",
    seeds: Annotated[str, typer.Option("--seeds", help="Seeds, separated by commas, with --task.")] = "17",
    family: Annotated[list[str] | None, typer.Option("--family", help="Case id; may be repeated, with --task.")] = None,
    params: Annotated[str, typer.Option("--params", help="Parameters of the pack as JSON, with --task.")] = "{}",
    pack: PackOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Say what would run, by the packs that are installed here: cases, dimensions, controls, fingerprints."""
    from casewarden.cli.checking import plan as command

    _ended(command(file, task, _seeds(seeds), family or (), params, pack, output))


@app.command()
def validate(
    file: _FileOption,
    catalogue: Annotated[
        Path | None, typer.Option("--catalogue", help="The operator's catalogue, to look tasks and images up in.")
    ] = None,
    planning: Annotated[
        bool, typer.Option("--plan/--no-plan", help="Ask the task's pack too, where it is installed here.")
    ] = True,
    pack: PackOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Say all that is wrong with a manifest: the field, the value and the cure."""
    from casewarden.cli.checking import validate as command

    _ended(command(file, catalogue, planning, pack, output))


@app.command()
def verify(
    target: TargetArgument,
    digest: Annotated[
        str | None, typer.Option("--digest", help="Digest that vouches for the run. Default: that of its status.")
    ] = None,
    regrade: Annotated[
        bool,
        typer.Option("--regrade", help="Grade every record again by the installed pack, if it is the same."),
    ] = False,
    pack: PackOption = None,
    keep: Annotated[
        Path | None, typer.Option("--keep", help="Folder to download the run to.", show_default=False)
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(
            "--sign",
            help="Private key in PEM: sign an in-toto statement of what was verified. An invalid run is not attested.",
            show_default=False,
        ),
    ] = None,
    statement: Annotated[
        Path | None,
        typer.Option(
            "--statement",
            help="File of the signed statement. Default with --sign: NAME.intoto.jsonl.",
            show_default=False,
        ),
    ] = None,
    signed_by: Annotated[
        Path | None,
        typer.Option(
            "--signed-by",
            help="Public key in PEM that must have signed the statement; its digest then vouches for the run.",
            show_default=False,
        ),
    ] = None,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    kubeconfig: KubeconfigOption = "",
    system_namespace: SystemOption = _SYSTEM,
    output: OutputOption = Output.TABLE,
) -> None:
    """Recompute every digest, verdict, count and score of a run from its evidence."""
    from casewarden.cli.cluster import Access
    from casewarden.cli.verifying import Wanted
    from casewarden.cli.verifying import verify as command

    access = Access(kubeconfig, context, namespace, system_namespace)
    wanted = Wanted(digest, regrade, pack, keep, sign, statement, signed_by)
    _ended(command(access, target, wanted, output))


@app.command()
def selftest(
    program: Annotated[
        list[str] | None, typer.Option("--program", help="Only this hostile program; may be repeated.")
    ] = None,
    parallelism: Annotated[int, typer.Option("--parallelism", "-p", min=1, help="Programs at once.")] = 10,
    timeout: Annotated[float, typer.Option("--timeout", min=1, help="Seconds to wait at most.")] = 1800,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the runs in the cluster.")] = False,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    kubeconfig: KubeconfigOption = "",
    system_namespace: SystemOption = _SYSTEM,
    output: OutputOption = Output.TABLE,
) -> None:
    """Play hostile candidates on the cluster, and say what its kernel and its network enforce."""
    from casewarden.cli.cluster import Access
    from casewarden.cli.selftest import selftest as command

    access = Access(kubeconfig, context, namespace, system_namespace)
    _ended(command(access, program or (), parallelism, timeout, keep, output))


@app.command()
def report(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN…", help="Names of runs, ar/NAME of audits, or folders of them.", show_default=False
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", help="File to write; - is standard output. Default: report.html.", show_default=False
        ),
    ] = "",
    max_mib: Annotated[
        int,
        typer.Option("--max-mib", min=0, max=1024, help="MiB of transcripts at most, those of failing cases first."),
    ] = 16,
    passed: Annotated[bool, typer.Option("--passed", help="Transcripts of cases that passed, too.")] = False,
    agentbench: Annotated[
        bool,
        typer.Option(
            "--agentbench",
            help="No page: the main metrics of AgentBench's environments and the paper's overall score. "
            "With --out as JSON.",
        ),
    ] = False,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    kubeconfig: KubeconfigOption = "",
    system_namespace: SystemOption = _SYSTEM,
) -> None:
    """Write one HTML page about runs and audits that needs nothing else; two runs are compared case by case."""
    from casewarden.cli.cluster import Access
    from casewarden.cli.reporting import report as command
    from casewarden.cli.reporting import report_agentbench

    access = Access(kubeconfig, context, namespace, system_namespace)
    if agentbench:
        _ended(report_agentbench(access, targets, out))
    _ended(command(access, targets, out or "report.html", max_mib, passed))


@app.command()
def export(
    targets: Annotated[
        list[str],
        typer.Argument(metavar="RUN…", help="Names of runs of the cluster, or folders of runs.", show_default=False),
    ],
    form: Annotated[ExportFormat, typer.Option("--format", "-f", help="junit, csv or inspect.", show_default=False)],
    out: Annotated[str, typer.Option("--out", "-o", help="File to write; - is standard output.")] = "-",
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    kubeconfig: KubeconfigOption = "",
    system_namespace: SystemOption = _SYSTEM,
) -> None:
    """Write finished runs as JUnit XML, as CSV, or one of them as a log of Inspect (name it FILE.eval)."""
    from casewarden.cli.cluster import Access
    from casewarden.cli.reporting import export as command

    access = Access(kubeconfig, context, namespace, system_namespace)
    _ended(command(access, targets, form, out))


@app.command()
def regrade(
    target: TargetArgument,
    pack: PackOption = None,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    kubeconfig: KubeconfigOption = "",
    system_namespace: SystemOption = _SYSTEM,
    output: OutputOption = Output.TABLE,
) -> None:
    """Grade a finished run's records again by the installed version of its pack, and say what changes."""
    from casewarden.cli.cluster import Access
    from casewarden.cli.regrading import regrade as command

    _ended(command(Access(kubeconfig, context, namespace, system_namespace), target, pack, output))


@app.command()
def compare(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Name of a run.", show_default=False)],
    baseline: Annotated[
        str, typer.Argument(metavar="BASELINE", help="Run that it is held against.", show_default=False)
    ],
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    kubeconfig: KubeconfigOption = "",
    system_namespace: SystemOption = _SYSTEM,
    output: OutputOption = Output.TABLE,
) -> None:
    """Compare two runs of the same task, grader and conditions, paired by family and seed."""
    from casewarden.cli.cluster import Access
    from casewarden.cli.comparing import compare as command

    _ended(command(Access(kubeconfig, context, namespace, system_namespace), run, baseline, output))


@app.command("agent-test")
def agent_test_command(
    file: _FileOption,
    message: Annotated[
        list[str] | None,
        typer.Option("--message", "-m", help="What is said to the agent. May be repeated.", show_default=False),
    ] = None,
    local: Annotated[bool, typer.Option("--local", help="On this machine, without a cluster.")] = False,
    out: OutOption = _OUT,
    timeout: TimeoutOption = 600,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    kubeconfig: KubeconfigOption = "",
    system_namespace: SystemOption = _SYSTEM,
    output: OutputOption = Output.TABLE,
) -> None:
    """Say something to the agent of an EvalRun, and see what it answers, or why it does not."""
    from casewarden.cli.agent_test import agent_test as command
    from casewarden.cli.cluster import Access

    access = Access(kubeconfig, context, namespace, system_namespace)
    _ended(command(access, file, message or (), local, out, timeout, output))


@app.command("import")
def import_command(
    kind: Annotated[ImportKind, typer.Argument(help="Whose configuration it is.", show_default=False)],
    config: Annotated[Path, typer.Argument(help="The assignment file.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="Folder that the files are written to.")] = Path("imported"),
    dataset: Annotated[
        str, typer.Option("--dataset", help="Name under which the catalogue has the AgentBench checkout.")
    ] = "agentbench",
    output: OutputOption = Output.TABLE,
) -> None:
    """Turn an AgentBench assignment into EvalRuns, endpoints for the chart's values, and Secrets."""
    from casewarden.cli.importing import import_agentbench

    raise typer.Exit({ImportKind.AGENTBENCH: import_agentbench}[kind](config, dataset, out, output))


@app.command()
def version() -> None:
    """Print the version."""
    from casewarden import __version__

    print(__version__)


def _seeds(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise Failure(f"--seeds {text!r}: give whole numbers separated by commas, as in 17,41,97") from None
