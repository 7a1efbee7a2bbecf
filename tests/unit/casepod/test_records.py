"""Records of finished runs, fetched for a grader: every byte held against the root digest that was named."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.evidence import RunFolder, finished_run

from casewarden.casepod import records
from casewarden.casepod.records import Fetcher, RecordsError
from casewarden.casepod.relay_client import Answer


class Relay:
    """Answers as the relay does, from a run's files; ``first`` are answers that come before."""

    def __init__(self, run: RunFolder, *first: Answer | OSError) -> None:
        self.run, self.first, self.tokens = run, list(first), set[str]()

    def __call__(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        self.tokens.add(headers["Authorization"])
        if self.first:
            answer = self.first.pop(0)
            if isinstance(answer, OSError):
                raise answer
            return answer
        below = path.removeprefix(f"/v1/runs/{self.run.uid}/").removeprefix("files/").removeprefix("cases/")
        below = below.replace("/sealed", "/sealed.json") if below.endswith("/sealed") else below
        below = re.sub(r"/bundle$", ".tar.zst", below)
        found = self.run.files.get(below)
        return Answer(404, b'{"error": "nothing is there"}') if found is None else Answer(200, found)


def fetched(run: RunFolder, tmp_path: Path, *first: Answer | OSError, digest: str | None = None) -> list[Any]:
    (tmp_path / "token").write_text("secret\n")
    relay = Relay(run, *first)
    found = list(Fetcher(relay, tmp_path / "token", patience=5.0).records(run.uid, digest or run.digest))
    assert relay.tokens == {"Bearer secret"}
    return found


def test_each_verdict_with_a_bundle_is_a_record_with_its_case_and_digest(tmp_path: Path) -> None:
    run = finished_run()
    found = fetched(run, tmp_path)
    assert [(row["seed"], row["case_id"]) for row in found] == [
        (17, "add"), (17, "restart"), (41, "add"), (41, "restart"),
    ]  # fmt: skip
    flawed = found[1]
    assert (flawed["run"], flawed["kind"], flawed["dimensions"]) == (run.uid, "default", ["basic", "recovery"])
    assert flawed["record"] == {"sum": 19, "again": -1}
    assert flawed["case"]["numbers"] == [17, 2]
    assert flawed["digest"] == next(row.digest for row in run.rows if row.status == "failed")


def edit(path: str, **changes: Any) -> Callable[[RunFolder], None]:
    return lambda run: run.edit(path, **changes)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (edit("run.json", seeds=[1]), "run.json is not the one that the status vouches for"),
        (edit("plan.json", params={"a": 1}), "plan.json is not the one"),
        (lambda run: run.files.update({"results.jsonl": b""}), "results.jsonl is not the one"),
        (lambda run: run.files.update({"17/add/0/1.tar.zst": b"x"}), "the bundle is not the one"),
        (lambda run: run.files.pop("41/add/0/1.tar.zst"), "404 nothing is there"),
    ],
)
def test_what_was_changed_is_not_graded(damage: Callable[[RunFolder], Any], said: str, tmp_path: Path) -> None:
    run = finished_run()
    digest = run.digest
    damage(run)
    with pytest.raises(RecordsError, match=said):
        fetched(run, tmp_path, digest=digest)


def test_a_relay_that_is_away_for_a_moment_is_asked_again(tmp_path: Path) -> None:
    away = (Answer(503, b"{}"), ConnectionRefusedError("nobody"), Answer(401, b"{}"))
    assert len(fetched(finished_run(), tmp_path, *away)) == 4


def test_a_refusal_is_final(tmp_path: Path) -> None:
    with pytest.raises(RecordsError, match="404 gone"):
        fetched(finished_run(), tmp_path, Answer(404, b'{"error": "gone"}'))


def test_the_process_writes_the_lines_or_says_why_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, out = finished_run(), tmp_path / "records.jsonl.gz"
    (tmp_path / "token").write_text("secret")
    asked = {
        "relay_url": "http://relay:8080", "token": str(tmp_path / "token"), "records": str(out),
        "runs": [{"uid": run.uid, "digest": run.digest}],
    }  # fmt: skip
    monkeypatch.setenv("CASEWARDEN_FETCH", json.dumps(asked))
    monkeypatch.setattr(records, "call_over_http", lambda url: Relay(run))
    records.main()
    with gzip.open(out, "rt") as lines:
        assert len(list(lines)) == 4
    run.files["results.jsonl"] = b""
    with pytest.raises(SystemExit, match=r"casewarden: run .* results\.jsonl is not the one"):
        records.main()
