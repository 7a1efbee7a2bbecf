"""Every command of the pages for whoever runs the release works here, or is one that a cluster test runs."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from support.evidence import finished_run
from support.helm import program

from casewarden.cli.app import run

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "docs" / "operations.md", ROOT / "charts" / "casewarden" / "README.md")
COMMANDS = sorted({line.strip() for page in PAGES for line in re.findall(r"^    (\S.*)$", page.read_text(), re.M)})
ON_A_CLUSTER = {
    "helm test casewarden --namespace casewarden-system",
    "helm uninstall casewarden --namespace casewarden-system",
    "kubectl delete crd evalruns.casewarden.dev auditruns.casewarden.dev",
    "kubectl --namespace casewarden-system delete persistentvolumeclaim casewarden-evidence",
}
pytestmark = pytest.mark.timeout(2400)


def of(program: str) -> list[str]:
    return [line for line in COMMANDS if line.startswith(program)]


def test_no_command_is_forgotten() -> None:
    assert {*of("casewarden "), *of("helm install"), *of("helm upgrade"), *ON_A_CLUSTER} == set(COMMANDS)
    assert len(COMMANDS) >= 11


@pytest.mark.parametrize("line", of("casewarden "))
def test_a_command_of_ours_works(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = finished_run()
    for path, data in found.files.items():
        for folder in ("RUN", "OTHER-RUN"):
            file = tmp_path / folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    monkeypatch.chdir(tmp_path)
    program, *words = shlex.split(line)
    assert run(program, words) == 0
    out = tmp_path / words[words.index("--out") + 1]
    assert out.stat().st_size > 300


@pytest.mark.parametrize("line", [*of("helm install"), *of("helm upgrade")])
def test_an_installation_renders(line: str) -> None:
    helm = program()
    words = [word for word in shlex.split(line)[2:] if word not in ("--create-namespace", "--wait")]
    done = subprocess.run([helm, "template", *words, "--kube-version", "1.34.0"], cwd=ROOT, capture_output=True,
                          text=True, timeout=60, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "kind: Deployment" in done.stdout
