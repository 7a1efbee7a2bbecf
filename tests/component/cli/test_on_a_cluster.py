from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from support.audit_evidence import AUDIT_UID, AuditFolder
from support.evidence import UID, finished_run

from casewarden.adapters.stores.zstd import decompress
from casewarden_sdk.workspace import unpack_workspace

DIMENSIONS = {
    "basic": {"weight": "0.25", "passed": 4, "assessed": 4, "total": 4, "score": "1"},
    "recovery": {"weight": "0.75", "passed": 1, "assessed": 2, "total": 2, "score": "0.5"},
}


def status(*, passed: str = "False", valid: bool = True, finished: str = "True", **more: Any) -> dict[str, Any]:
    complete = "True" if finished == "True" and valid else "False"
    return {
        "conditions": [
            {"type": "Finished", "status": finished, "reason": "Completed" if finished == "True" else "Running"},
            {"type": "Complete", "status": complete, "reason": "Completed"},
            {"type": "Passed", "status": passed, "reason": "x", "message": "1 of 4 cases did not pass"},
        ],
        "cases": {"total": 4, "passed": 3, "failed": 1, "running": 0},
        "progress": "4/4",
        "fingerprints": {"task": "small@0.1.0"},
        **({"valid": valid, "resolved": False} if finished == "True" else {}),
        **({"score": "0.625", "passRate": "0.75", "dimensions": DIMENSIONS} if valid and finished == "True" else {}),
        **more,
    }


async def test_get_lists_runs_of_the_contexts_namespace(cli: Any) -> None:
    cli.api.put("kv", status(), task={"name": "small"})
    cli.api.put("young", task={"name": "small"})

    ran = await cli.on_cluster("get")

    assert ran.code == 0
    head, *rows = [line.split() for line in ran.out.splitlines()]
    assert head == ["NAME", "TASK", "STATE", "PROGRESS", "SCORE", "VALID", "PASSED", "AGE"]
    assert rows[0][:7] == ["kv", "small@0.1.0", "complete", "4/4", "0.625", "True", "False"]
    assert rows[1][:2] == ["young", "small"]
    assert "GET /apis/casewarden.dev/v1alpha1/namespaces/evals/evalruns" in cli.api.calls


async def test_get_of_nothing_says_so_and_of_all_namespaces_asks_for_all(cli: Any) -> None:
    assert (await cli.on_cluster("get")).out == "there are no EvalRuns in namespace evals\n"
    assert (await cli.on_cluster("get", "-n", "other")).out == "there are no EvalRuns in namespace other\n"
    assert (await cli.on_cluster("get", "-A", "-o", "json")).json == []
    assert cli.api.calls[-1] == "GET /apis/casewarden.dev/v1alpha1/evalruns"


async def test_get_of_a_run_shows_what_it_came_to(cli: Any) -> None:
    failure = {"case": "restart", "seed": 17, "repeat": 0, "status": "failed", "error": "\x1b[31mred\x1b[0m\nlines"}
    cli.api.put("kv", status(failures=[failure]))

    ran = await cli.on_cluster("get", "kv")

    assert "score 0.625: 3 of 4 cases passed, 1 failed" in ran.out
    assert "red lines" in ran.out
    assert "\x1b" not in ran.out
    assert (await cli.on_cluster("get", "kv", "-o", "yaml")).out.startswith("apiVersion: casewarden.dev/v1alpha1\n")


async def test_a_run_that_is_not_there_is_one_clear_line(cli: Any) -> None:
    ran = await cli.on_cluster("get", "nope")

    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "casewarden: there is no EvalRun 'nope' in namespace 'evals'; see casewarden get\n"


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (status(passed="True"), 0),
        (status(passed="False"), 1),
        (status(valid=False, passed="Unknown"), 2),
    ],
)
async def test_watch_follows_a_run_and_exits_by_what_it_came_to(cli: Any, end: dict[str, Any], code: int) -> None:
    cli.api.put("kv", status(finished="False", cases={"total": 4, "passed": 1}))
    seen = 0

    async def later(name: str) -> None:
        nonlocal seen
        seen += 1
        if seen == 2:
            cli.api.put("kv", end)

    cli.api.on_get = later
    ran = await cli.on_cluster("watch", "kv", "-o", "json")

    assert ran.code == code
    assert ran.json["status"] == end
    assert ran.err.splitlines()[0] == "kv: running, 1/4 done (1 passed)"
    assert len(ran.err.splitlines()) == 2


async def test_watch_gives_up_after_its_time(cli: Any) -> None:
    cli.api.put("kv", status(finished="False"))
    ran = await cli.on_cluster("watch", "kv", "--timeout", "0.3")

    assert ran.code == 2
    assert "is not over after 0.3 s" in ran.err


async def test_apply_puts_what_a_run_uses_before_the_run(cli: Any) -> None:
    file = cli.write(
        "run.yaml",
        """
apiVersion: casewarden.dev/v1alpha1
kind: EvalRun
metadata: {name: kv}
spec: {}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: agent, namespace: elsewhere}
data: {main.py: "print(1)"}
""",
    )
    ran = await cli.on_cluster("apply", "-f", file)

    assert ran.code == 0
    assert ran.out.splitlines() == ["configmap/agent applied in elsewhere", "evalrun/kv applied in evals"]


async def test_what_the_api_server_refuses_is_one_line(cli: Any) -> None:
    file = cli.write(
        "run.yaml",
        "{apiVersion: casewarden.dev/v1alpha1, kind: EvalRun, metadata: {name: kv}, spec: {parallelism: 999}}",
    )
    ran = await cli.on_cluster("apply", "-f", file)

    assert (ran.code, ran.err) == (2, "casewarden: refused: EvalRun is invalid: spec: the spec cannot be changed\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{apiVersion: v1, kind: Pod, metadata: {name: x}}", "use kubectl for others"),
        ("{apiVersion: casewarden.dev/v1alpha1, kind: EvalRun, metadata: {}}", "metadata.name is missing"),
        ("[]", "a document has no metadata"),
        ("", "holds no document"),
        ("a: 1\na: 2", "'a' is there twice"),
        ("a: [", "is no YAML"),
        ("{[1]: 2}", "is no YAML"),
    ],
)
async def test_a_file_that_cannot_be_applied_is_refused_before_any_call(cli: Any, text: str, said: str) -> None:
    ran = await cli.on_cluster("apply", "-f", cli.write("run.yaml", text))

    assert ran.code == 2
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1
    assert cli.api.calls == []


async def fill(cli: Any, **more: Any) -> Any:
    run = finished_run()
    for path, data in run.files.items():
        await cli.store.put(f"runs/{UID}/{path}", data, limit=1 << 20)
    evidence = {"uri": f"runs/{UID}", "digest": run.digest}
    cli.api.put("small-run", status(evidence=evidence, **more), uid=UID, task={"name": "small"})
    return run


async def test_verify_authenticates_a_run_against_its_status(cli: Any) -> None:
    await fill(cli)
    ran = await cli.on_cluster("verify", "small-run")

    assert ran.code == 0
    assert "evals/small-run: authenticated against the digest of the run's status" in ran.out
    assert "4 verdicts of 5 attempts, 4 bundles" in ran.out


async def test_verify_finds_evidence_that_was_changed_after_the_run(cli: Any) -> None:
    run = await fill(cli)
    run.edit("run.json", seeds=[17, 42])
    await cli.store.put(f"runs/{UID}/run.json", run.files["run.json"], limit=1 << 20)

    ran = await cli.on_cluster("verify", "small-run", "-o", "json")

    assert ran.code == 2
    assert ran.json["authenticated"] is False
    assert ran.json["consistent"] is False


async def test_verify_finds_a_status_that_the_evidence_does_not_bear_out(cli: Any) -> None:
    await fill(cli, score="1")
    ran = await cli.on_cluster("verify", "small-run")

    assert ran.code == 2
    assert "status: score is '1'; the evidence comes to '0.625'" in ran.out


async def test_verify_of_a_run_that_is_not_over_says_so(cli: Any) -> None:
    cli.api.put("kv", status(finished="False"))
    assert "is not over" in (await cli.on_cluster("verify", "kv")).err


async def test_verify_keeps_what_it_downloaded_and_the_copy_verifies_without_a_cluster(cli: Any) -> None:
    run = await fill(cli)
    await cli.on_cluster("verify", "small-run", "--keep", str(cli.folder / "kept"))

    ran = await cli("verify", str(cli.folder / "kept"), "--digest", run.digest)
    assert (ran.code, "authenticated" in ran.out) == (0, True)
    ran = await cli("verify", str(cli.folder / "kept"))
    assert "consistent, not authenticated" in ran.out


async def test_cases_lists_what_became_of_each_case(cli: Any) -> None:
    await fill(cli)

    ran = await cli.on_cluster("cases", "small-run")
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == "3 passed, 1 failed"

    failed = (await cli.on_cluster("cases", "small-run", "--failed", "-o", "json")).json
    assert [(row["seed"], row["case"], row["attempts"]) for row in failed] == [(17, "restart", 2)]
    assert failed[0]["checks"] == {"basic": True, "recovery": False}


async def test_cases_of_a_run_that_is_going_on_shows_what_is_sealed(cli: Any) -> None:
    run = await fill(cli)
    for path in ("results.jsonl", "run.json", "41/add/0/sealed.json", "41/add/0/1.tar.zst", "41/restart/0/sealed.json"):
        await cli.store.delete(f"runs/{UID}/{path}")
    assert run.files

    rows = (await cli.on_cluster("cases", "small-run", "-o", "json")).json
    assert [row["status"] for row in rows] == ["passed", "failed", "pending", "running"]


async def test_show_has_the_verdict_the_transcript_the_states_and_the_pod(cli: Any) -> None:
    await fill(cli)
    ran = await cli.on_cluster("show", "small-run", "restart")

    assert ran.code == 0
    assert "17/restart/0, attempt 2" in ran.out
    assert "recovery: FAIL" in ran.out
    assert "-> [1, 2]" in ran.out
    assert "<- base64" in ran.out
    assert "state end" in ran.out
    assert "state table\na |##|\nb |# |\n" in ran.out
    assert (await cli.on_cluster("show", "small-run", "restart", "--seed", "41", "-o", "json")).json["attempt"] == 1


async def test_show_of_what_is_not_there_names_what_is(cli: Any) -> None:
    await fill(cli)

    assert "its cases are add, restart" in (await cli.on_cluster("show", "small-run", "nope")).err
    assert "for seeds 17, 41" in (await cli.on_cluster("show", "small-run", "add", "--seed", "5")).err
    assert "nothing was kept" in (await cli.on_cluster("show", "small-run", "add", "--repeat", "3")).err


async def test_evaluate_uploads_the_folder_creates_the_run_and_waits(cli: Any) -> None:
    agent = cli.folder / "My Agent"
    (agent / "lib").mkdir(parents=True)
    (agent / "main.py").write_text("print(1)")
    (agent / "lib" / "x.py").write_text("")

    async def finish(name: str) -> None:
        cli.api.objects[f"evalruns/evals/{name}"]["status"] = status(passed="True")

    cli.api.on_get = finish
    ran = await cli.on_cluster("evaluate", str(agent), "--task", "durable-kv", "--seeds", "17,41", "-o", "json")

    assert ran.code == 0, ran.err
    spec = ran.json["spec"]
    assert ran.json["metadata"]["name"].startswith("durable-kv-my-agent-")
    assert spec["seeds"] == {"values": [17, 41]}
    digest = spec["candidate"]["program"]["workspace"]["digest"].removeprefix("sha256:")
    archive = cli.store.values[f"workspaces/evals/{digest}.tar.zst"]
    assert [file.name for file in unpack_workspace(archive, decompress)] == ["lib/x.py", "main.py"]


async def test_evaluate_without_waiting_says_how_to_go_on(cli: Any) -> None:
    (cli.folder / "main.py").write_text("print(1)")
    ran = await cli.on_cluster("evaluate", ".", "-t", "durable-kv", "--name", "mine", "--no-wait")

    assert (ran.code, ran.out) == (0, "evalrun/mine created: casewarden watch mine\n")


async def test_evaluate_makes_the_readers_account_where_it_is_missing_and_allowed(cli: Any) -> None:
    (cli.folder / "main.py").write_text("print(1)")
    cli.api.accounts.clear()

    assert (await cli.on_cluster("evaluate", ".", "-t", "durable-kv", "--no-wait")).code == 0
    assert cli.api.accounts == {"evals"}


async def test_who_may_not_read_evidence_is_told_what_is_missing(cli: Any) -> None:
    (cli.folder / "main.py").write_text("print(1)")
    cli.api.accounts.clear()
    cli.api.may_make_accounts = False
    ran = await cli.on_cluster("evaluate", ".", "-t", "durable-kv", "--no-wait")

    assert ran.code == 2
    assert "evidence is read as casewarden-reader of namespace evals" in ran.err


async def test_a_relay_that_cannot_be_reached_is_one_line(cli: Any) -> None:
    await fill(cli)
    cli.api.relay_port = 1
    ran = await cli.on_cluster("cases", "small-run")

    assert ran.code == 2
    assert ran.err.startswith("casewarden: port-forward to pod casewarden-system/relay-0 failed: connection refused")
    assert len(ran.err.splitlines()) == 1


async def test_a_cluster_that_does_not_answer_is_one_line(cli: Any) -> None:
    await cli.api.stop()
    try:
        ran = await cli.on_cluster("get")
    finally:
        await cli.api.start()

    assert ran.code == 2
    assert ran.err.startswith("casewarden: the cluster does not answer")
    assert len(ran.err.splitlines()) == 1


async def test_without_a_kubeconfig_it_says_what_to_set(cli: Any) -> None:
    ran = await cli("get")

    assert ran.code == 2
    assert "give --kubeconfig or set KUBECONFIG" in ran.err


async def test_a_report_of_a_run_has_its_floor_and_ceiling(cli: Any) -> None:
    await fill(cli, floor={"nullAgent": "0.25", "reference": "1"})
    page = cli.folder / "report.html"
    assert (await cli.on_cluster("report", "small-run", "-o", str(page))).code == 0
    text = page.read_text()
    assert "score 0.625, null agent 0.25, reference 1, of 1" in text
    assert "1 transcripts are in this report." in text


@pytest.mark.parametrize(("form", "begins"), [("junit", b"<?xml"), ("csv", b"namespace,run"), ("inspect", b"PK")])
async def test_a_run_is_exported(cli: Any, form: str, begins: bytes) -> None:
    await fill(cli)
    file = cli.folder / "exported"
    assert (await cli.on_cluster("export", "small-run", "-f", form, "-o", str(file))).code == 0
    assert file.read_bytes().startswith(begins)


async def test_an_audit_is_reported_by_its_name(cli: Any) -> None:
    found = AuditFolder()
    for path, data in found.files.items():
        await cli.store.put(f"runs/{AUDIT_UID}/{path}", data, limit=1 << 20)
    audit = cli.api.put("trial", status(evidence={"digest": found.digest}), uid=AUDIT_UID)
    cli.api.objects["auditruns/evals/trial"] = {**audit, "kind": "AuditRun"}
    page = cli.folder / "report.html"
    ran = await cli.on_cluster("report", "ar/trial", "-o", str(page))
    assert (ran.code, ran.err.endswith("bytes\n")) == (0, True)
    assert "<dt>weakest margin</dt><dd>1 family</dd>" in page.read_text()


async def test_what_is_not_over_has_no_report(cli: Any) -> None:
    cli.api.put("kv", status(finished="False"))
    ran = await cli.on_cluster("report", "kv")
    assert ran.code != 0
    assert "EvalRun kv is not over" in ran.err


def keys(cli: Any, name: str = "key") -> tuple[str, str]:
    """Write a private and a public key, and return their paths."""
    private = Ed25519PrivateKey.generate()
    cli.write(name, private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())
    public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return str(cli.folder / name), cli.write(f"{name}.pub", public.decode())


async def test_what_was_verified_is_signed_and_the_signature_vouches_for_a_copy(cli: Any) -> None:
    await fill(cli)
    private, public = keys(cli)
    kept, statement = str(cli.folder / "kept"), str(cli.folder / "small.intoto.jsonl")
    ran = await cli.on_cluster("verify", "small-run", "--keep", kept, "--sign", private, "--statement", statement)
    assert (ran.code, "FAILED is signed in" in ran.err) == (0, True)
    ran = await cli("verify", kept, "--statement", statement, "--signed-by", public)
    assert (ran.code, "authenticated by the signature of its statement" in ran.out) == (0, True)

    (cli.folder / "kept/results.jsonl").write_bytes(b"")
    (cli.folder / "kept/run.json").write_bytes(b"{}\n")
    ran = await cli("verify", kept, "--statement", statement, "--signed-by", public)
    assert (ran.code, "run.json: has the digest" in ran.out) == (2, True)


async def test_another_key_or_another_payload_is_no_signature(cli: Any) -> None:
    await fill(cli)
    private, public = keys(cli)
    _, other = keys(cli, "other")
    statement = cli.folder / "small-run.intoto.jsonl"
    await cli.on_cluster("verify", "small-run", "--sign", private)
    of = ("verify", "small-run", "--statement", str(statement), "--signed-by")
    assert "is not signed by" in (await cli.on_cluster(*of, other)).err

    envelope = json.loads(statement.read_bytes())
    payload = base64.b64decode(envelope["payload"]).replace(b'"FAILED"', b'"PASSED"')
    statement.write_text(json.dumps({**envelope, "payload": base64.b64encode(payload).decode()}))
    assert "is not signed by" in (await cli.on_cluster(*of, public)).err
    for text in ("", "{}", '{"payload": 1, "payloadType": 2, "signatures": [3]}'):
        statement.write_text(text)
        ran = await cli.on_cluster(*of, public)
        assert (ran.code, "is no DSSE envelope" in ran.err) == (2, True)


async def test_nothing_is_signed_that_nothing_vouches_for(cli: Any) -> None:
    await fill(cli)
    private, public = keys(cli)
    await cli.on_cluster("verify", "small-run", "--keep", str(cli.folder / "kept"))
    ran = await cli("verify", str(cli.folder / "kept"), "--sign", private)
    assert (ran.code, "nothing vouches for the evidence" in ran.err) == (2, True)
    ran = await cli.on_cluster("verify", "small-run", "--sign", public)
    assert "is no private key in PEM" in ran.err
    assert not list(cli.folder.glob("*.jsonl"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--sign", "k", "--signed-by", "k"), "give one of them"),
        (("--signed-by", "k"), "give --statement"),
        (("--statement", "s"), "give --sign with a private key"),
        (("--signed-by", "k", "--statement", "s", "--digest", "d"), "leave --digest out"),
    ],
)
async def test_options_of_signatures_that_do_not_go_together_are_refused(
    cli: Any, options: tuple[str, ...], said: str
) -> None:
    ran = await cli.on_cluster("verify", "small-run", *options)
    assert (ran.code, said in ran.err) == (2, True)
    assert cli.api.calls == []
