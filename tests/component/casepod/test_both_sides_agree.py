"""What the operator writes the case pod reads, and the other way round: each side has its own code for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer
from support.attempt import settings_for
from support.packs import PACK, cases

from casewarden.adapters.stores import zstd as relay_zstd
from casewarden.adapters.stores.memory import MemoryStore
from casewarden.api.attempt import SealedDocument, TerminationMessage
from casewarden.api.plan import Plan
from casewarden.casepod import zstd
from casewarden.casepod.command import resolve_argv
from casewarden.casepod.evidence import Evidence
from casewarden.casepod.relay_client import RelaySink
from casewarden.casepod.settings import Places, Settings
from casewarden.casepod.transcript import Transcript
from casewarden.core.model import AttemptKey, CaseKey, PlannedCase
from casewarden.core.network import Owner
from casewarden.core.pods import CandidateSpec, KindSpec, PodContext, case_pod
from casewarden.relay.app import make_app
from casewarden.relay.auth import StaticReviewer
from casewarden.relay.context import Limits as RelayLimits
from casewarden.relay.metrics import RelayMetrics
from casewarden_sdk.canonical import canonical, sha256_bytes
from casewarden_sdk.contract import Verdict
from casewarden_sdk.driver import Places as DriverPlaces
from casewarden_sdk.driver import case_of, tightened
from casewarden_sdk.plan import build_plan
from casewarden_sdk.termination import decode_termination, encode_termination

CASE = cases(17)[0]
KEY = AttemptKey(CaseKey(17, CASE.id, 2), 3)


def pod(**candidate) -> dict:
    context = PodContext(
        owner=Owner("a-run", "run-1"),
        namespace="evals",
        task_image="tasks:1",
        task_command=("casewarden-task", "support.packs:PACK"),
        evidence_image="evidence:1",
        relay_url="http://relay:8080",
        limits=PACK.limits,
        kinds={"default": KindSpec("python:1")},
        candidate=CandidateSpec(default_argv=PACK.default_argv, **candidate),
        params={"a": 1},
    )
    return case_pod(context, PlannedCase(17, CASE.id, CASE.dimensions, "default", CASE.sha256), KEY)


def container(manifest: dict, name: str) -> dict:
    spec = manifest["spec"]
    return next(item for item in [*spec.get("initContainers", []), *spec["containers"]] if item["name"] == name)


def environment(manifest: dict, name: str) -> dict[str, str]:
    return {item["name"]: item.get("value", "") for item in container(manifest, name).get("env", [])}


def mounts(manifest: dict, name: str) -> dict[str, bool]:
    """Paths of a container's volumes, and whether it may write there."""
    return {item["mountPath"]: not item.get("readOnly") for item in container(manifest, name)["volumeMounts"]}


def test_the_recorder_reads_the_operators_pod():
    manifest = pod(argv=("./agent", "{state}"), env=(("A", "b"),), workspace_digest="d" * 64, fetch_workspace=True)
    settings = Settings.from_environment({**environment(manifest, "evidence"), "CASEWARDEN_POD_UID": "pod-1"})
    assert (settings.seed, settings.case_id, settings.repeat, settings.attempt) == (17, CASE.id, 2, 3)
    assert settings.pod_name == manifest["metadata"]["name"]
    assert settings.case_sha256 == CASE.sha256
    assert settings.candidate is not None
    assert resolve_argv(settings.candidate, settings.places, None) == ["./agent", "/state"]
    assert settings.candidate.fetch_workspace
    assert tightened(PACK.limits, settings.told_limits) == PACK.limits


def test_every_place_that_a_process_uses_is_mounted_in_its_container():
    manifest, places, driver = pod(workspace_digest="d" * 64, fetch_workspace=True), Places(), DriverPlaces()
    evidence, task, candidate = (mounts(manifest, name) for name in ("evidence", "task", "candidate"))
    for path in (places.task_socket, places.candidate_socket, places.spool + "/x", places.own_workspace + "/x"):
        assert evidence[str(Path(path).parent)], path
    assert not evidence[str(Path(places.token).parent)]
    assert not task[str(Path(driver.evidence).parent)]
    assert not candidate[places.workspace]
    assert candidate[places.state]
    assert candidate[places.home]
    assert not candidate["/casewarden/socket"]


def test_the_projected_token_is_where_the_recorder_looks():
    manifest = pod()
    mount = next(item for item in container(manifest, "evidence")["volumeMounts"] if item["name"] == "token")
    volume = next(item for item in manifest["spec"]["volumes"] if item["name"] == "token")
    (source,) = volume["projected"]["sources"]
    assert Path(mount["mountPath"], source["serviceAccountToken"]["path"]) in (
        Path(Places().token),
        Path(Places().token, "token"),
    )


def test_the_driver_reads_the_operators_case_and_cannot_tell_repeat_or_attempt():
    told = environment(pod(), "task")
    case, seed = case_of(PACK, told["CASEWARDEN_CASE"])
    assert (case, seed) == (CASE, 17)
    assert sorted(json.loads(told["CASEWARDEN_CASE"])) == ["case_id", "params", "seed"]


@pytest.mark.parametrize("status", ["passed", "failed", "agent_error", "environment_error", "superseded"])
def test_last_words_are_the_same_on_both_sides(status):
    checks = {"passed": "11", "environment_error": "--", "superseded": ""}.get(status, "10")
    ours = encode_termination(status, checks, "d" * 64, "Exited", "é broke", 1.25)
    theirs = TerminationMessage.parse(ours)
    assert theirs.model_dump(mode="json") == decode_termination(ours) == decode_termination(theirs.format())


def test_a_plan_is_what_the_operator_reads(tmp_path):
    plan = build_plan(PACK, [17, 18], {})
    assert Plan.model_validate_json(canonical(plan)).model_dump(mode="json")["cases"] == plan["cases"]


def test_a_seal_is_what_the_operator_reads(tmp_path):
    evidence = Evidence(settings_for(CASE, tmp_path), Transcript(lambda: 0.0), 0.0)
    for verdict in (Verdict.assessed(CASE, {"echo": True}), Verdict.agent_error(CASE, "Exited", "x" * 999 + "\x1b")):
        document = evidence.sealed(verdict, "d" * 64, 1.5)
        assert SealedDocument.parse(canonical(document)).model_dump(mode="json") == document


def test_what_one_side_compresses_the_other_unpacks():
    for data in (b"", b"x" * 100_000):
        assert relay_zstd.decompress(zstd.compress(data), 100_000) == data
        assert zstd.decompress(relay_zstd.compress(data), 100_000) == data


async def test_the_recorders_calls_are_those_of_the_relay(tmp_path):
    store, reviewer = MemoryStore(), StaticReviewer()
    limits = RelayLimits(bundle_bytes=1 << 20, uploads=2, wait_seconds=1, idle_seconds=5, upload_seconds=5)
    app = make_app(store, reviewer, operator_user="operator", limits=limits, metrics=RelayMetrics())
    for attempt in (1, 2):
        key = AttemptKey(CaseKey(17, CASE.id, 0), attempt)
        reviewer.admit_pod(f"token-{attempt}", "evals", "a-run", "run-1", key, f"pod-{attempt}")
    async with TestServer(app) as server, ClientSession():
        sinks, evidences = {}, {}
        for attempt in (1, 2):
            folder = tmp_path / str(attempt)
            folder.mkdir()
            (folder / "token").write_text(f"token-{attempt}")
            settings = settings_for(
                CASE, folder, attempt=attempt, pod_uid=f"pod-{attempt}", relay_url=str(server.make_url(""))
            )
            sinks[attempt] = RelaySink(settings)
            evidences[attempt] = Evidence(settings, Transcript(lambda: 0.0), 0.0)
        verdict = Verdict.assessed(CASE, {"echo": True})
        assert [await sinks[1].claim(), await sinks[2].claim(), await sinks[1].claim()] == [True, True, True]
        won = []
        for attempt in (1, 2):
            evidence, sink = evidences[attempt], sinks[attempt]
            bundle = evidence.bundle(1.0, verdict=evidence.verdict_document(verdict, 1.0))
            await sink.put_bundle(bundle, partial=False)
            await sink.put_bundle(bundle, partial=False)
            won.append(await sink.put_sealed(evidence.sealed(verdict, sha256_bytes(bundle), 1.0)))
        assert won == [True, False]
        assert not await sinks[2].claim()
    keys = [entry.key async for entry in store.list("runs/run-1/")]
    assert f"runs/run-1/17/{CASE.id}/0/sealed.json" in keys
