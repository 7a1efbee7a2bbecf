"""``python3 -I -m casewarden.casepod.records``: fetches the records of finished runs for a grader to grade again.

Every byte is held against the root digest that the operator named: ``run.json`` by it, the results by ``run.json``,
each bundle by the row that counts it. What is written is what ``casewarden_sdk.regrading`` reads.
"""

from __future__ import annotations

import gzip
import http.client
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

from casewarden_sdk.bundle import unpack_bundle
from casewarden_sdk.canonical import canonical, sha256_bytes

from .relay_client import Answer, Call, call_over_http
from .zstd import decompress

__all__ = ["Fetcher", "RecordsError", "main"]

_PATIENCE_SECONDS = 120.0
_LONGEST_PAUSE = 10.0
_ERROR_BYTES = 600
_AT_ONCE = 8


class RecordsError(Exception):
    """The records cannot be had; the message says of which run and why."""


class Fetcher:
    """Reads runs from the relay with a reader's token, which is read again for every call."""

    def __init__(self, call: Call, token: Path, *, patience: float = _PATIENCE_SECONDS) -> None:
        self._call, self._token, self._patience = call, token, patience

    def records(self, run_uid: str, digest: str) -> Iterator[dict[str, Any]]:
        """Yield a line for each verdict that has a bundle."""
        run = self._file(run_uid, "run.json", digest.removeprefix("sha256:"))
        told = json.loads(run)
        plan = json.loads(self._file(run_uid, "plan.json", told["plan_sha256"]))
        results = self._file(run_uid, "results.jsonl", told["results_sha256"])
        planned = {(case["seed"], case["id"]): case for case in plan["cases"]}
        rows = [json.loads(line) for line in results.splitlines()]
        sealed = [row for row in rows if row["kind"] == "verdict" and row["digest"] is not None]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            # By the handful, so that no more of them than that are in memory.
            for start in range(0, len(sealed), _AT_ONCE):
                share = sealed[start : start + _AT_ONCE]
                yield from pool.map(lambda row: self._record(run_uid, row, planned[row["seed"], row["case_id"]]), share)

    def _record(self, run_uid: str, row: Mapping[str, Any], planned: Mapping[str, Any]) -> dict[str, Any]:
        case = f"/v1/runs/{run_uid}/cases/{row['seed']}/{quote(row['case_id'], safe='')}/{row['repeat']}"
        # Which attempt was sealed is not always the row's own: the seal says.
        attempt = json.loads(self._get(f"{case}/sealed"))["attempt"]
        data = self._get(f"{case}/{attempt}/bundle")
        if sha256_bytes(data) != row["digest"]:
            raise RecordsError(f"{case}/{attempt}: the bundle is not the one that the results count")
        files = unpack_bundle(data, decompress)
        return {
            "run": run_uid,
            "seed": row["seed"],
            "case_id": row["case_id"],
            "repeat": row["repeat"],
            "digest": row["digest"],
            "dimensions": planned["dimensions"],
            "kind": planned["kind"],
            "case": json.loads(files["case.json"]),
            "record": json.loads(files["record.json"]),
        }

    def _file(self, run_uid: str, name: str, sha256: str) -> bytes:
        data = self._get(f"/v1/runs/{run_uid}/files/{name}")
        if sha256_bytes(data) != sha256:
            raise RecordsError(f"run {run_uid}: {name} is not the one that the status vouches for: it was changed")
        return data

    def _get(self, path: str) -> bytes:
        give_up, pause = time.monotonic() + self._patience, 0.25
        while True:
            try:
                answer = self._call("GET", path, b"", {"Authorization": f"Bearer {self._token.read_text().strip()}"})
            except (OSError, http.client.HTTPException) as error:
                why = f"{type(error).__name__}: {error}"
            else:
                if answer.status == 200:
                    return answer.body
                why = _said(answer)
                if answer.status not in (401, 403, 408, 429) and answer.status < 500:
                    raise RecordsError(f"GET {path}: {why}")
            if time.monotonic() >= give_up:
                raise RecordsError(f"GET {path}: {why}")
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _said(answer: Answer) -> str:
    return f"{answer.status} {answer.document().get('error', '')}".strip()


def main() -> None:
    """Write the records of the runs of ``CASEWARDEN_FETCH``; what goes wrong is the termination message."""
    asked = json.loads(os.environ["CASEWARDEN_FETCH"])
    fetcher = Fetcher(call_over_http(asked["relay_url"]), Path(asked["token"]))
    try:
        with gzip.open(asked["records"], "wt", encoding="ascii", compresslevel=1) as out:
            for run in asked["runs"]:
                for record in fetcher.records(run["uid"], run["digest"]):
                    out.write(canonical(record) + "\n")
    except (RecordsError, OSError, ValueError, KeyError) as error:
        message = str(error) if isinstance(error, RecordsError) else f"{type(error).__name__}: {error}"
        sys.exit(f"casewarden: {message[:_ERROR_BYTES]}")


if __name__ == "__main__":
    main()
