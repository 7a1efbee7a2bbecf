"""The pod of a case: golden files for the whole, and the promises that each of its parts keeps."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.golden import check_golden
from support.pod_security import baseline_faults, containers, restricted_faults

from casewarden.api.names import CANDIDATE, EVIDENCE, TASK
from casewarden.api.podtemplate import PodTemplate
from casewarden.casepod.settings import Settings
from casewarden.core import facts
from casewarden.core.model import AttemptKey, CaseKey, PlannedCase
from casewarden.core.network import Owner
from casewarden.core.observe import observe
from casewarden.core.pods import (
    CandidateSpec,
    EnvironmentSpec,
    KindSpec,
    PodContext,
    attempt_uid,
    backstop_seconds,
    case_pod,
    conditions_of,
)
from casewarden_sdk.contract import Limits

GOLDEN = Path(__file__).parent / "golden"
CASE = PlannedCase(17, "read-write-delete", ("basic", "crash_recovery"), "default", "c0" * 32)
KEY = AttemptKey(CaseKey(17, "read-write-delete", 2), 3)
PROGRAM = CandidateSpec(
    default_argv=("{python}", "-I", "main.py", "{state}/store.db"),
    env=(("MODE", "fast"),),
    workspace_config_map="kv-0123456789-workspace",
    workspace_digest="ab" * 32,
)
CONTEXT = PodContext(
    owner=Owner("kv", "9b2f6f0e-6f0a-4d6e-9df3-0c5a2f6a1b2c"),
    namespace="evals",
    task_image="casewarden-tasks:dev",
    task_command=("casewarden-task", "casewarden_tasks.durable_kv:PACK"),
    evidence_image="casewarden-evidence:dev",
    relay_url="http://casewarden-relay.casewarden-system.svc:8080",
    limits=Limits(),
    kinds={"default": KindSpec("casewarden-python:dev")},
    candidate=PROGRAM,
)
ROOT = EnvironmentSpec("os", "ubuntu:22.04", "baseline", 512)
DATABASE = EnvironmentSpec("db", "mariadb:10.11", memory_mib=300)
FULL = replace(
    CONTEXT,
    kinds={"default": KindSpec("casewarden-python:dev", (DATABASE, ROOT))},
    candidate=replace(PROGRAM, argv=("./agent", "--price=$(COST)"), workspace_config_map=None, fetch_workspace=True),
    params={"level": 2},
    relay_address="10.96.0.12",
    template=PodTemplate.model_validate(
        {
            "nodeSelector": {"pool": "evals"},
            "tolerations": [{"key": "evals", "operator": "Exists"}],
            "runtimeClassName": "gvisor",
            "imagePullSecrets": [{"name": "registry"}],
            "priorityClassName": "batch",
            "labels": {"team": "search"},
            "annotations": {"example.com/ticket": "7"},
            "candidate": {"resources": {"requests": {"cpu": "2"}, "limits": {"memory": "1Gi", "nvidia.com/gpu": "1"}}},
            "task": {"resources": {"limits": {"cpu": "5m"}}},
        }
    ),
)


def build(context: PodContext = CONTEXT, case: PlannedCase = CASE, key: AttemptKey = KEY) -> dict[str, Any]:
    return case_pod(context, case, key)


def container(pod: dict[str, Any], name: str) -> dict[str, Any]:
    return next(item for item in containers(pod["spec"]) if item["name"] == name)


def value(pod: dict[str, Any], name: str, variable: str) -> str:
    """Return a variable as the container sees it: the kubelet makes ``$`` of ``$$``."""
    text = next(item["value"] for item in container(pod, name)["env"] if item["name"] == variable)
    return text.replace("$$", "$")


def writers(pod: dict[str, Any], volume: str) -> set[str]:
    return {
        item["name"]
        for item in containers(pod["spec"])
        for mount in item["volumeMounts"]
        if mount["name"] == volume and not mount.get("readOnly")
    }


@pytest.mark.parametrize(
    ("name", "context"),
    [
        ("case_pod_with_a_program", CONTEXT),
        ("case_pod_with_environments_and_a_template", FULL),
        ("case_pod_with_an_uploaded_folder", replace(FULL, kinds=CONTEXT.kinds, template=PodTemplate())),
        ("case_pod_without_a_candidate", replace(CONTEXT, candidate=None, kinds={"default": KindSpec(None)})),
    ],
)
def test_the_pod_is_the_one_that_was_looked_at(name, context):
    check_golden(GOLDEN / f"{name}.yaml", build(context))


class TestSecurity:
    def test_every_container_passes_restricted(self):
        assert list(restricted_faults(build()["spec"])) == []

    def test_an_environment_that_must_be_root_passes_baseline_and_is_alone_in_it(self):
        spec = build(FULL)["spec"]
        assert list(baseline_faults(spec)) == []
        assert {fault.split()[0] for fault in restricted_faults(spec)} == {"env-os"}

    def test_every_root_is_read_only_but_that_of_a_baseline_environment(self):
        read_only = {
            item["name"]: item["securityContext"].get("readOnlyRootFilesystem", False)
            for item in containers(build(FULL)["spec"])
        }
        assert {name for name, is_read_only in read_only.items() if not is_read_only} == {"env-os"}

    def test_no_two_containers_share_a_user(self):
        users = [item["securityContext"]["runAsUser"] for item in containers(build(FULL)["spec"])]
        assert len(set(users)) == len(users)

    @given(st.integers(1, 1000), st.integers(1, 1000))
    def test_no_two_attempts_share_a_user_and_all_are_valid(self, one, other):
        key = replace(KEY, attempt=one)
        uid = attempt_uid("run", key)
        assert 65536 < uid < uid + 16 < 2**31
        assert one == other or attempt_uid("run", replace(KEY, attempt=other)) != uid
        assert attempt_uid("another run", key) != uid

    def test_only_the_evidence_has_a_token_and_it_is_for_the_relay_alone(self):
        spec = build(FULL)["spec"]
        assert spec["automountServiceAccountToken"] is False
        mounted = {
            item["name"] for item in containers(spec) for mount in item["volumeMounts"] if mount["name"] == "token"
        }
        assert mounted == {EVIDENCE}
        (token,) = [volume for volume in spec["volumes"] if volume["name"] == "token"]
        assert token["projected"]["sources"][0]["serviceAccountToken"]["audience"] == "casewarden-relay"

    def test_nothing_but_evidence_writes_where_the_shim_and_the_sockets_of_the_candidate_are(self):
        pod = build(FULL)
        assert [writers(pod, name) for name in ("bin", "candidate-socket", "task-socket", "spool", "workspace")] == (
            [{EVIDENCE}] * 5
        )
        assert writers(pod, "env-db-socket") == {TASK}

    def test_every_volume_that_a_candidate_can_write_is_in_memory_with_a_limit(self):
        pod = build(FULL)
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        written = {mount["name"] for mount in container(pod, CANDIDATE)["volumeMounts"] if not mount.get("readOnly")}
        assert written == {facts.STATE, facts.CANDIDATE_TMP, facts.CANDIDATE_SHM}
        for name in written | {name for name in volumes if name.startswith("env-")}:
            assert volumes[name]["emptyDir"]["medium"] == "Memory"
            assert volumes[name]["emptyDir"]["sizeLimit"]

    def test_everything_that_is_mounted_is_a_volume_and_the_other_way_round(self):
        for context in (CONTEXT, FULL):
            spec = build(context)["spec"]
            mounted = {mount["name"] for item in containers(spec) for mount in item["volumeMounts"]}
            assert mounted == {volume["name"] for volume in spec["volumes"]}

    def test_a_run_cannot_shed_or_fake_what_is_the_operators(self):
        forged = PodTemplate.model_construct(
            **{
                **dict(PodTemplate()),
                "labels": {
                    "casewarden.dev/role": "x",
                    "casewarden.dev/network": "open",
                    "app.kubernetes.io/managed-by": "me",
                },
                "annotations": {"casewarden.dev/attempt": "1", "casewarden.dev/other": "1"},
            }
        )
        assert build(replace(CONTEXT, template=forged))["metadata"] == build()["metadata"]


class TestSecrecy:
    def test_nothing_that_task_or_candidate_can_see_tells_repeat_or_attempt(self):
        first, second = build(), build(key=AttemptKey(replace(KEY.case, repeat=0), 1))
        for name in (CANDIDATE, TASK):
            one, other = container(first, name), container(second, name)
            assert {**one, "securityContext": None} == {**other, "securityContext": None}
        assert first["spec"]["hostname"] == second["spec"]["hostname"] == "case"

    def test_the_candidates_container_does_not_know_its_case(self):
        assert "env" not in container(build(), CANDIDATE)
        other = replace(CASE, case_id="another")
        one, two = build(), build(case=other, key=replace(KEY, case=replace(KEY.case, case_id="another")))
        assert {**container(one, CANDIDATE), "securityContext": 0} == {
            **container(two, CANDIDATE),
            "securityContext": 0,
        }

    def test_no_service_of_the_namespace_is_in_anybodys_environment(self):
        assert build()["spec"]["enableServiceLinks"] is False

    def test_with_the_relays_address_no_pod_asks_any_dns(self):
        spec = build(FULL)["spec"]
        assert spec["dnsPolicy"] == "None"
        assert spec["hostAliases"] == [{"ip": "10.96.0.12", "hostnames": ["casewarden-relay.casewarden-system.svc"]}]


class TestResources:
    def test_every_container_asks_for_what_quotas_count(self):
        for item in containers(build(FULL)["spec"]):
            for kind in ("requests", "limits"):
                assert {"cpu", "memory", "ephemeral-storage"} <= set(item["resources"][kind]), item["name"]

    @pytest.mark.parametrize("context", [CONTEXT, FULL], ids=["default", "overridden"])
    def test_memory_that_a_candidate_can_fill_is_reserved(self, context):
        for item in containers(build(context)["spec"]):
            if item["name"] == CANDIDATE or item["name"].startswith("env-"):
                assert item["resources"]["requests"]["memory"] == item["resources"]["limits"]["memory"]

    def test_a_candidates_memory_has_room_for_its_full_volumes(self):
        limits = Limits(memory_mib=100, state_mib=50, tmp_mib=10)
        memory = container(build(replace(CONTEXT, limits=limits)), CANDIDATE)["resources"]["limits"]["memory"]
        assert memory == "176Mi"

    def test_twenty_pods_fit_on_two_cores_beside_the_system(self):
        asked = sum(int(item["resources"]["requests"]["cpu"].removesuffix("m")) for item in containers(build()["spec"]))
        assert 20 * asked <= 1500

    def test_what_cannot_burst_is_requested_up_to_its_limit(self):
        asked = container(build(FULL), CANDIDATE)["resources"]
        assert (asked["requests"]["nvidia.com/gpu"], asked["limits"]["nvidia.com/gpu"]) == ("1", "1")
        assert (asked["requests"]["memory"], asked["requests"]["cpu"], asked["limits"]["cpu"]) == ("1Gi", "2", "2")

    def test_a_limit_below_the_default_request_lowers_the_request(self):
        asked = container(build(FULL), TASK)["resources"]
        assert (asked["requests"]["cpu"], asked["limits"]["cpu"]) == ("5m", "5m")

    def test_the_backstop_is_later_than_all_that_may_go_well(self):
        limits = Limits(case_seconds=600, start_seconds=30)
        context = replace(CONTEXT, limits=limits, hold_seconds=900, pending_seconds=300)
        assert backstop_seconds(context) > 600 + 30 + 900 + 300
        assert build(context)["spec"]["activeDeadlineSeconds"] == backstop_seconds(context)

    def test_the_grace_is_well_within_the_time_after_which_a_pod_counts_as_lost(self):
        assert build()["spec"]["terminationGracePeriodSeconds"] * 2 < facts.STUCK_SECONDS


class TestBoundaries:
    def test_the_recorder_reads_what_it_is_told(self):
        told = Settings.from_environment(
            {"CASEWARDEN_ATTEMPT": value(build(FULL), EVIDENCE, "CASEWARDEN_ATTEMPT"), "CASEWARDEN_POD_UID": "pod-uid"}
        )
        assert (told.seed, told.case_id, told.repeat, told.attempt) == (17, "read-write-delete", 2, 3)
        assert (told.pod_name, told.pod_uid) == (build(FULL)["metadata"]["name"], "pod-uid")
        assert (told.candidate.argv, told.candidate.env) == (("./agent", "--price=$(COST)"), (("MODE", "fast"),))
        assert (told.candidate.fetch_workspace, told.candidate.workspace_digest) == (True, "ab" * 32)
        assert (told.dimensions, told.case_sha256) == (("basic", "crash_recovery"), CASE.sha256)
        assert told.limits.case_seconds == Limits().case_seconds

    def test_the_driver_is_told_seed_case_and_parameters(self):
        assert json.loads(value(build(FULL), TASK, "CASEWARDEN_CASE")) == {
            "seed": 17, "case_id": "read-write-delete", "params": {"level": 2},
        }  # fmt: skip

    @given(st.text(alphabet="$()AB{}", max_size=12))
    def test_the_kubelet_hands_every_word_on_as_it_was_written(self, word):
        context = replace(CONTEXT, candidate=replace(PROGRAM, argv=(f"x{word}",)), task_command=("run", word))
        pod = build(context)
        assert [_expand(item) for item in container(pod, TASK)["command"]] == ["run", word, "drive"]
        text = next(item["value"] for item in container(pod, EVIDENCE)["env"] if item["name"] == "CASEWARDEN_ATTEMPT")
        assert json.loads(_expand(text))["candidate"]["argv"] == [f"x{word}"]

    def test_an_empty_command_leaves_the_images_own_entry_point(self):
        task = container(build(replace(CONTEXT, task_command=())), TASK)
        assert "command" not in task
        assert task["args"] == ["drive"]

    def test_nothing_hides_the_folder_of_a_program_that_brings_its_files_in_its_image(self):
        candidate = replace(PROGRAM, workspace_config_map=None, workspace_digest=None)
        pod = build(replace(CONTEXT, candidate=candidate))
        assert container(pod, CANDIDATE)["workingDir"] == "/candidate", "the runtime makes it where the image lacks it"
        assert not [volume for volume in pod["spec"]["volumes"] if volume["name"] == "workspace"]
        for item in containers(pod["spec"]):
            assert "/candidate" not in [mount["mountPath"] for mount in item["volumeMounts"]]

    def test_the_shim_is_there_before_any_container_that_is_started_by_it(self):
        (evidence,) = build()["spec"]["initContainers"]
        assert evidence["restartPolicy"] == "Always"
        assert evidence["lifecycle"]["postStart"]["exec"]["command"][-2:] == ["--copy", "/casewarden/bin"]
        assert container(build(), CANDIDATE)["command"][0] == "/casewarden/bin/shim"

    def test_nothing_restarts_silently(self):
        spec = build(FULL)["spec"]
        assert spec["restartPolicy"] == "Never"
        assert [item["name"] for item in containers(spec) if "restartPolicy" in item] == [EVIDENCE]

    def test_a_lost_node_is_tolerated_for_half_a_minute(self):
        tolerations = {item["key"]: item.get("tolerationSeconds") for item in build(FULL)["spec"]["tolerations"]}
        assert tolerations == {"evals": None, "node.kubernetes.io/not-ready": 30, "node.kubernetes.io/unreachable": 30}

    def test_the_operator_recognises_the_pods_that_it_makes(self):
        pod = build(FULL)
        pod["metadata"]["uid"] = "pod-uid"
        record = observe(pod)
        assert record is not None
        assert (record.attempt, record.run_uid, record.role) == (KEY, CONTEXT.owner.uid, "case")
        assert record.active_deadline == backstop_seconds(FULL)


def _expand(text: str) -> str:
    """Expand as the kubelet does: ``$$`` is ``$``, and a reference to what is not set stays as it is."""
    return re.sub(r"\$(\$|\([^)]*\))?", lambda m: "$" if m[1] == "$" else f"<{m[0]}>" if m[1] else m[0], text)


def test_what_bears_on_a_candidate_is_in_the_conditions():
    changes = {
        "limits": replace(CONTEXT, limits=Limits(case_seconds=1)),
        "the runtime": replace(CONTEXT, template=PodTemplate.model_validate({"runtimeClassName": "gvisor"})),
        "resources": replace(CONTEXT, template=FULL.template),
        "environments": FULL,
    }
    conditions = [json.dumps(conditions_of(context), sort_keys=True) for context in (CONTEXT, *changes.values())]
    assert len(set(conditions)) == len(conditions)
    elsewhere = replace(CONTEXT, namespace="b", owner=Owner("x", "y"), evidence_image="registry/evidence:2")
    assert conditions_of(elsewhere) == conditions_of(CONTEXT)
