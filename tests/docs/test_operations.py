"""Every command of the pages for whoever runs the release works here, or is one that a cluster test runs."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from support.audit_evidence import AuditFolder
from support.evidence import finished_run
from support.helm import program
from support.pages import COMMANDS, INLINE, ON_A_CLUSTER

from casewarden.cli.app import run

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.timeout(2400)


def of(program: str) -> list[str]:
    return [line for line in COMMANDS if line.startswith(program)]


def test_no_command_is_forgotten() -> None:
    here = {*of("casewarden "), *of("helm install"), *of("helm upgrade"), *of("helm template")}
    assert here | ON_A_CLUSTER == set(COMMANDS)
    assert len(COMMANDS) >= 18
    assert len(INLINE) >= 15


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """RUN, OTHER-RUN and AUDIT as folders of the current one."""
    found = finished_run()
    for name, files in (("RUN", found.files), ("OTHER-RUN", found.files), ("AUDIT", AuditFolder().files)):
        for path, data in files.items():
            file = tmp_path / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("line", of("casewarden "))
def test_a_command_of_ours_works(line: str, folders: Path) -> None:
    program, *words = shlex.split(line.replace("DIGEST", finished_run().digest))
    assert run(program, words) == 0
    if "--out" in words:
        assert (folders / words[words.index("--out") + 1]).stat().st_size > 300


@pytest.mark.parametrize("major", [3, 4])
@pytest.mark.parametrize("line", [*of("helm install"), *of("helm upgrade")])
def test_an_installation_renders(line: str, major: int) -> None:
    words = [word for word in shlex.split(line)[2:] if word not in ("--create-namespace", "--wait", "--take-ownership")]
    done = subprocess.run([program(major), "template", *words, "--kube-version", "1.34.0"], cwd=ROOT,
                          capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "kind: Deployment" in done.stdout


def test_the_images_to_be_copied_are_those_of_the_values() -> None:
    (line,) = of("helm template")
    line = line.replace("helm ", f"{program()} ", 1).replace(" --set ", " --kube-version 1.34.0 --set ", 1)
    done = subprocess.run(["bash", "-ec", line], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    names = re.findall(r"\bcasewarden-[a-z-]+:dev\b", (ROOT / "charts" / "casewarden" / "values.yaml").read_text())
    assert done.stdout.split() == sorted({f"registry.example/mirror/{name}" for name in names})
