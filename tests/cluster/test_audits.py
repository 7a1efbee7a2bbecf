"""An audit on a real cluster, and a run that waits for it at the gate."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.kubectl import FINISHED, Kubectl, condition, evalrun, message, reason
from support.prometheus import told_by, watching

MARGINS = {
    "claim-without-actions": 4, "wrong-ticket": 4, "wrong-queue": 4, "duplicate-note": 4, "close-unresolved": 2,
    "skip-retry": 1, "new-key-on-retry": 1, "never-finishes": 4,
}  # fmt: skip
"""The peer's own margins for its seven faults, and that of the fault of protocol."""


@pytest.fixture(scope="module")
def waited(kubectl: Kubectl, module_namespace: str) -> dict[str, Any]:
    """The status of a run that requires an audit, while there is none."""
    kubectl.apply(
        evalrun(module_namespace, "gated", task={"name": "support-routing"}, seeds={"values": [41]},
                candidate={"control": "null-agent"}, audit={"policy": "Require"}),
    )  # fmt: skip
    return kubectl.until(
        lambda: (
            status if reason(status := kubectl.status(module_namespace, "gated"), FINISHED) == "NotAudited" else None
        ),
        90,
        lambda: kubectl.picture(module_namespace),
    )


@pytest.fixture(scope="module")
def audited(kubectl: Kubectl, module_namespace: str, waited: dict[str, Any]) -> dict[str, Any]:
    """The status of a finished audit of support-routing."""
    kubectl.apply(
        {
            "apiVersion": "casewarden.dev/v1alpha1",
            "kind": "AuditRun",
            "metadata": {"name": "trial", "namespace": module_namespace},
            "spec": {"task": {"name": "support-routing"}, "seeds": {"values": [17]}, "referenceRepeats": 1,
                     "parallelism": 12, "graderMutants": True},
        }
    )  # fmt: skip

    def finished() -> dict[str, Any] | None:
        status = kubectl.get("auditrun", module_namespace, "trial").get("status") or {}
        return status if condition(status, FINISHED) == "True" else None

    return kubectl.until(finished, 280, lambda: kubectl.picture(module_namespace))


def test_a_run_that_requires_an_audit_starts_no_case_without_one(waited: dict[str, Any]) -> None:
    assert condition(waited, "Audited") == "False"
    assert waited["cases"]["running"] == waited["attempts"]["total"] == 0
    assert "apply an AuditRun" in message(waited, FINISHED)


def test_every_fault_is_caught_in_its_place_by_as_many_families_as_the_peer_says(audited: dict[str, Any]) -> None:
    assert (audited["valid"], audited["passed"], audited["killed"], audited["weakestMargin"]) == (True, True, "8/8", 1)
    assert {row["name"]: row["margin"] for row in audited["controls"] if row["kind"] == "fault"} == MARGINS
    assert audited["floors"]["null-agent"] == "0.35"
    assert audited["floors"]["crashing-agent"] == "0.25"
    assert float(audited["floors"]["forger"]) <= 0.35


def test_it_names_the_mutants_of_the_grader_that_no_control_notices(audited: dict[str, Any]) -> None:
    mutants = audited["graderMutants"]
    assert (mutants["total"], mutants["noticed"]) == (18, 14)
    assert sorted(mutants["unnoticed"]) == [
        "exit-code:dropped", "kept-fields:dropped", "no-signal:dropped", "nothing-unasked:dropped",
    ]  # fmt: skip


def test_its_evidence_verifies_down_to_the_bundles(
    audited: dict[str, Any], module_namespace: str, casewarden: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = casewarden("verify", "ar/trial", "-n", module_namespace, "--regrade")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "authenticated" in done.stdout
    assert "8 of 8 faults are caught, weakest margin 1" in done.stdout
    assert "14 of 18 mutants of the grader are noticed" in done.stdout


def test_it_is_reported_with_its_margins(
    audited: dict[str, Any],
    module_namespace: str,
    casewarden: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path: Path,
) -> None:
    page = tmp_path / "report.html"
    done = casewarden("report", "ar/trial", "-n", module_namespace, "-o", str(page))
    assert done.returncode == 0, done.stderr
    assert re.search(r"<dt>weakest margin</dt><dd>1 family</dd>", page.read_text())
    assert "<dt>faults caught</dt><dd>8 of 8</dd>" in page.read_text()


def test_the_run_then_starts_by_itself_and_shows_floor_and_ceiling_beside_its_score(
    kubectl: Kubectl, module_namespace: str, audited: dict[str, Any]
) -> None:
    status = kubectl.finished(module_namespace, "gated")
    assert (status["score"], condition(status, "Audited")) == ("0.35", "True")
    assert status["floor"] == {"audit": "trial", "nullAgent": "0.35", "reference": "1"}


def test_a_real_prometheus_has_data_for_every_panel_of_audits(
    kubectl: Kubectl, module_namespace: str, audited: dict[str, Any], tmp_path: Path
) -> None:
    kubectl.finished(module_namespace, "gated")
    with watching(kubectl, tmp_path) as prometheus:
        kubectl.until(
            lambda: not prometheus.without_data(told_by("audits")),
            20,
            lambda: f"no data: {prometheus.without_data(told_by('audits'))}",
        )


def test_its_records_graded_again_by_an_equal_grader_are_byte_for_byte_the_same(
    kubectl: Kubectl,
    module_namespace: str,
    audited: dict[str, Any],
    tmp_path: Path,
    casewarden: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    before = kubectl.finished(module_namespace, "gated")
    of = {"evalRun": "gated"}
    kubectl.apply(
        evalrun(module_namespace, "again", task={"name": "support-routing"}, seeds={"values": [41]},
                candidate={"control": "null-agent"}, regradeOf=of, baseline=of),
    )  # fmt: skip
    status = kubectl.finished(module_namespace, "again")
    assert (status["score"], status["regrade"]["graded"], status["regrade"]["changed"]) == (before["score"], 4, 0)
    assert status["baseline"]["matched"] == 4
    assert (status["baseline"]["difference"], status["baseline"]["pValue"]) == ("0", "1")
    done = casewarden("verify", "again", "-n", module_namespace, "--regrade", "--keep", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    one, other = (path.read_bytes() for path in tmp_path.glob("*/results.jsonl"))
    assert one == other


def test_what_was_verified_is_signed_and_the_signature_vouches_for_it(
    module_namespace: str,
    audited: dict[str, Any],
    tmp_path: Path,
    casewarden: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    private, public, statement = (str(tmp_path / name) for name in ("key", "key.pub", "trial.intoto.jsonl"))
    for command in (
        ["genpkey", "-algorithm", "ed25519", "-out", private],
        ["pkey", "-in", private, "-pubout", "-out", public],
    ):
        subprocess.run(["openssl", *command], check=True, capture_output=True)
    of = ("verify", "ar/trial", "-n", module_namespace, "--statement", statement)
    signed = casewarden(*of, "--sign", private)
    assert (signed.returncode, "PASSED is signed" in signed.stderr) == (0, True), signed.stderr
    checked = casewarden(*of, "--signed-by", public)
    assert (checked.returncode, "by the signature" in checked.stdout) == (0, True), checked.stdout + checked.stderr
