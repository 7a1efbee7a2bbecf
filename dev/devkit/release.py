"""Putting the release of this checkout into a cluster, and running the examples on it."""

from __future__ import annotations

import argparse
import os
import subprocess
import time
from pathlib import Path

from devkit import targets
from devkit.errors import DevError
from devkit.settings import REPOSITORY
from devkit.shell import run, say
from devkit.targets import Target, chart_values, tool

CHART = REPOSITORY / "charts" / "casewarden"
RELEASE, NAMESPACE = "casewarden", "casewarden-system"
INSTALL_SECONDS = 300
RUN_SECONDS = 1800
INTERRUPTED = 130
DEMO_NAMESPACE = "casewarden-demo"


def install(target: Target, extra: list[str]) -> None:
    """Install or upgrade the release, and wait until it is ready. `extra` are more arguments for helm."""
    if not (CHART / "Chart.yaml").exists():
        raise DevError(f"{CHART} is not there")
    began = time.monotonic()
    values = chart_values(target.provide())
    kubeconfig = ["--kubeconfig", str(target.kubeconfig)]
    helm = [tool("helm", target), *kubeconfig, "upgrade", "--install", RELEASE, str(CHART), "--namespace", NAMESPACE]
    try:
        run(
            [*helm, "--create-namespace", "--wait", "--timeout", f"{INSTALL_SECONDS}s", "--values", "-", *extra],
            what="installing the release",
            stdin=values,
            seconds=INSTALL_SECONDS + 30,
        )
    except DevError as error:
        raise DevError(f"{error}\n{_picture(target)}") from error
    say(f"  installed {RELEASE} in {NAMESPACE} ({time.monotonic() - began:.1f} s)")


def _picture(target: Target) -> str:
    """What the cluster says of the release's pods."""
    kubectl = [tool("kubectl", target), "--kubeconfig", str(target.kubeconfig), "--namespace", NAMESPACE]
    said = []
    for words in (["get", "pods", "-o", "wide"], ["get", "events", "--sort-by=.lastTimestamp"]):
        done = subprocess.run([*kubectl, *words], capture_output=True, text=True, timeout=30, check=False)
        said.append((done.stdout or done.stderr)[-3000:])
    logs = [
        *kubectl,
        "logs",
        "--selector=app.kubernetes.io/name=casewarden",
        "--tail=20",
        "--prefix",
        "--all-containers",
    ]
    done = subprocess.run(logs, capture_output=True, text=True, timeout=30, check=False)
    return "\n".join([*said, (done.stdout or done.stderr)[-3000:]])


def _examples() -> list[Path]:
    """The examples of runs. Audits run every control, hundreds of cases, and need a cluster."""
    return [file for file in sorted((REPOSITORY / "examples").glob("*.yaml")) if not file.name.startswith("audit-")]


def apply_examples(target: Target) -> list[str]:
    """Apply the examples to a namespace of their own; the names of the runs among them."""
    kubectl = [tool("kubectl", target), "--kubeconfig", str(target.kubeconfig)]
    _namespace(kubectl)
    inside = [*kubectl, "--namespace", DEMO_NAMESPACE]
    # A run's spec cannot change, so a second demo runs anew.
    run([*inside, "delete", "evalruns", "--all", "--timeout=60s"], what="clearing the runs of an earlier demo")
    given = [word for file in _examples() for word in ("-f", str(file))]
    run([*inside, "apply", *given], what="applying examples/")
    return run([*inside, "get", "evalruns", "-o", "name"], what="the examples' runs").split()


def _namespace(kubectl: list[str]) -> None:
    text = (
        f'{{"apiVersion": "v1", "kind": "Namespace", "metadata": {{"name": "{DEMO_NAMESPACE}", '
        '"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}'
    )
    run([*kubectl, "apply", "-f", "-"], what=f"namespace {DEMO_NAMESPACE}", stdin=text)


def _casewarden(*words: str, kubeconfig: Path | None = None) -> bool:
    """Run the project's own command for the user to see; whether it came to a valid score.

    It exits 1 for a run that was assessed and found wanting, and the examples have such candidates.
    """
    program = REPOSITORY / ".venv" / "bin" / "casewarden"
    if not program.exists():
        raise DevError("the project is not installed: make setup")
    environment = {**os.environ, **({"KUBECONFIG": str(kubeconfig)} if kubeconfig else {})}
    try:
        code = subprocess.run([program, *words], env=environment, timeout=RUN_SECONDS, check=False).returncode
    except subprocess.TimeoutExpired as error:
        raise DevError(f"casewarden {' '.join(words)}: not done after {RUN_SECONDS} s") from error
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return code in (0, 1)


def demo_local() -> int:
    """The examples without a cluster."""
    began = time.monotonic()
    well = [_casewarden("run", "-f", str(file), "--out", str(REPOSITORY / "build" / "demo")) for file in _examples()]
    say(f"done in {time.monotonic() - began:.0f} s; evidence in build/demo")
    return 0 if well and all(well) else 1


def demo(context: str, registry: str) -> int:
    """The main job, from nothing to printed scores."""
    began = time.monotonic()
    target = targets.choose(context, registry)
    install(target, [])
    runs = apply_examples(target)
    if not runs:
        raise DevError("examples/ has no EvalRun")
    names = [name.rpartition("/")[2] for name in runs]
    well = [_casewarden("watch", name, "-n", DEMO_NAMESPACE, kubeconfig=target.kubeconfig) for name in names]
    kubectl = [tool("kubectl", target), "--kubeconfig", str(target.kubeconfig), "--namespace", DEMO_NAMESPACE]
    print(run([*kubectl, "get", "evalruns", "-o", "wide"], what="the scores"), end="")
    say(f"done in {time.monotonic() - began:.0f} s; look around with: export KUBECONFIG={_lasting(target)}")
    return 0 if all(well) else 1


def _lasting(target: Target) -> str:
    own = isinstance(target, targets.Own)
    return str(target.kubeconfig) if own else os.environ.get("KUBECONFIG", str(Path.home() / ".kube" / "config"))


def _arguments(program: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("--context", default=os.environ.get("CONTEXT", ""), help="of your kubeconfig ($CONTEXT)")
    parser.add_argument(
        "--registry",
        default=os.environ.get("REGISTRY", ""),
        help="that you push to and the cluster pulls from ($REGISTRY)",
    )
    return parser


def main_install() -> int:
    """The command `dev/install`."""
    parser = _arguments(
        "dev/install", "Build what has changed, and install this checkout's release into the cluster of KUBECONFIG."
    )
    parser.add_argument("helm", nargs="*", help="more arguments for helm, after --")
    given = parser.parse_args()
    try:
        install(targets.named(given.context, given.registry), given.helm)
    except DevError as error:
        say(f"dev/install: {error}")
        return 1
    return 0


def main_demo() -> int:
    """The command `dev/demo`."""
    parser = _arguments(
        "dev/demo",
        "The main job on a cluster: the one that is named, else kind where Docker runs, else one made on this machine.",
    )
    parser.add_argument("--local", action="store_true", help="without a cluster; it is no sandbox")
    given = parser.parse_args()
    try:
        return demo_local() if given.local else demo(given.context, given.registry)
    except DevError as error:
        say(f"dev/demo: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
