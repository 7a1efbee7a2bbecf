"""``cases`` and ``show``: what became of each case, and all that was kept of one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from casewarden.adapters.stores.zstd import decompress
from casewarden.api.names import case_pod_name
from casewarden.cli.cluster import Access, Cluster, open_cluster
from casewarden.cli.failure import GOOD, Failure
from casewarden.cli.printing import Output, emit, print_line, print_rows
from casewarden.cli.relay import open_relay
from casewarden.cli.sources import FolderFiles, RelayFiles, RunFiles, find_folder, parse_object
from casewarden.cli.text import clean, cut, one_line
from casewarden.core.bundle_check import strict_json
from casewarden.core.evidence import PLAN, RESULTS, EvidenceKey
from casewarden.core.model import CaseKey
from casewarden.ports.kube import PODS, NotFound
from casewarden_sdk.bundle import BundleError, unpack_bundle

__all__ = ["Asked", "case_rows", "cases", "read_bundle", "show"]

_LINE_WIDTH = 2000
# Names of a bundle's documents that would say something else in what is shown.
_NAMES = {"attempt": "facts", "case": "content"}
_ARROWS = {"in": "-> ", "out": "<- ", "err": "!! ", "start": "** started ", "exit": "** ended "}


@dataclass(frozen=True, slots=True)
class _Source:
    """A run's files, and for one of the cluster what else can be asked of it."""

    files: RunFiles
    name: str
    uid: str = ""
    repeats: int = 1
    over: bool = True
    cluster: Cluster | None = None


@asynccontextmanager
async def _open(access: Access, target: str) -> AsyncIterator[_Source]:
    folder = find_folder(target)
    if folder is not None:
        files = FolderFiles(folder)
        data = await files.read("run.json")
        spec = parse_object(data, "run.json").get("spec", {}) if data is not None else {}
        yield _Source(files, folder.name, repeats=spec.get("repeats", 1), over=data is not None)
        return
    async with open_cluster(access) as cluster:
        run = await cluster.run(target)
        async with open_relay(cluster) as relay:
            uid = run["metadata"]["uid"]
            repeats = run["spec"].get("repeats", 1)
            yield _Source(RelayFiles(relay, uid), target, uid, repeats, cluster=cluster)


async def cases(access: Access, target: str, failed: bool, output: Output) -> int:
    """List the cases of a run, or only those that did not pass."""
    async with _open(access, target) as source:
        rows = await case_rows(source.files, source.repeats)
    if failed:
        rows = [row for row in rows if row["status"] not in ("passed", "pending", "running")]

    def write() -> None:
        columns = {
            "seed": "SEED", "case": "CASE", "repeat": "REPEAT", "status": "STATUS", "failed": "FAILED",
            "reason": "REASON", "seconds": "SECONDS", "attempts": "ATTEMPTS", "error": "ERROR",
        }  # fmt: skip
        shown = [{**row, "failed": ",".join(_failed(row)), "error": one_line(row["error"] or "", 80)} for row in rows]
        print_rows(columns, shown)
        by_status = Counter(row["status"] for row in rows)
        print_line(", ".join(f"{count} {status}" for status, count in by_status.items()) or "no such cases")

    emit(rows, output, write)
    return GOOD


def _failed(row: Mapping[str, Any]) -> list[str]:
    return [name for name, check in row["checks"].items() if check is False]


async def case_rows(files: RunFiles, repeats: int) -> list[dict[str, Any]]:
    """Return a row for each case of the plan, times repeats, made of the seals and, once there are any, the results."""
    plan = parse_object(await files.read(PLAN), "plan.json (the run has none yet)")
    attempts: Counter[CaseKey] = Counter()
    sealed: dict[CaseKey, Mapping[str, Any]] = {}
    for key, seal in await files.index():
        if seal is not None:
            sealed[key.case] = seal
        else:
            attempts[key.case] = max(attempts[key.case], key.attempt or 0)
    counted: dict[CaseKey, Mapping[str, Any]] = {}
    results = await files.read(RESULTS)
    for line in (results or b"").splitlines():
        row = parse_object(line, RESULTS)
        case = CaseKey(row["seed"], row["case_id"], row["repeat"])
        attempts[case] = max(attempts[case], row["attempt"])
        if counted.get(case, {}).get("kind") != "verdict":
            counted[case] = row
    found = []
    for planned in plan["cases"]:
        for repeat in range(repeats):
            case = CaseKey(planned["seed"], planned["id"], repeat)
            waiting = "not assessed" if results is not None else "running" if attempts[case] else "pending"
            document = sealed.get(case) or counted.get(case) or {"status": waiting, "checks": ""}
            found.append(_row(case, planned["dimensions"], document, attempts[case]))
    return found


def _row(case: CaseKey, dimensions: list[str], document: Mapping[str, Any], attempts: int) -> dict[str, Any]:
    bits = str(document["checks"]).ljust(len(dimensions), "-")
    checks = {name: {"1": True, "0": False}.get(bit) for name, bit in zip(sorted(dimensions), bits, strict=False)}
    return {
        "seed": case.seed,
        "case": case.case_id,
        "repeat": case.repeat,
        "status": document["status"],
        "checks": checks,
        "reason": document.get("reason"),
        "error": document.get("error"),
        "seconds": document.get("seconds"),
        "attempts": attempts,
    }


@dataclass(frozen=True, slots=True)
class Asked:
    """Which case is to be shown; None is the first seed that has it, and the attempt that counts."""

    case_id: str
    seed: int | None = None
    repeat: int = 0
    attempt: int | None = None


async def show(access: Access, target: str, asked: Asked, full: bool, output: Output) -> int:
    """Show all that was kept of a case: verdict, transcript, states, and the facts of its pod."""
    async with _open(access, target) as source:
        case = CaseKey(await _seed_of(source.files, asked.case_id, asked.seed), asked.case_id, asked.repeat)
        sealed_data = await source.files.read(EvidenceKey(case, "sealed").path())
        sealed = parse_object(sealed_data, "sealed.json") if sealed_data is not None else None
        number = asked.attempt or (sealed or {}).get("attempt") or await _last_attempt(source.files, case)
        files = await read_bundle(source.files, case, number)
        pod = await _pod(source, case, number)
    document = {"case": str(case), "attempt": number, "sealed": sealed, **files, "pod": pod}
    emit(document, output, lambda: _show(document, full))
    return GOOD


async def _seed_of(files: RunFiles, case_id: str, seed: int | None) -> int:
    plan = parse_object(await files.read(PLAN), "plan.json (the run has none yet)")
    seeds = [item["seed"] for item in plan["cases"] if item["id"] == case_id]
    if not seeds:
        known = sorted({item["id"] for item in plan["cases"]})
        raise Failure(f"the run has no case {case_id!r}; its cases are {', '.join(known)}")
    if seed is not None and seed not in seeds:
        raise Failure(f"--seed {seed}: the run has case {case_id} for seeds {', '.join(map(str, seeds))}")
    return seeds[0] if seed is None else seed


async def _last_attempt(files: RunFiles, case: CaseKey) -> int:
    numbers = [key.attempt or 0 for key, _ in await files.index() if key.case == case]
    if not numbers:
        raise Failure(f"nothing was kept of case {case} yet; see casewarden cases")
    return max(numbers)


async def read_bundle(files: RunFiles, case: CaseKey, attempt: int) -> dict[str, Any]:
    """Return the documents of a bundle, of a partial one where there is no other, by name without ending."""
    found: dict[str, Any] = {}
    for kind in ("bundle", "partial"):
        data = await files.read(EvidenceKey(case, kind, attempt).path())
        if data is None:
            continue
        try:
            unpacked = unpack_bundle(data, decompress)
            for name, content in unpacked.items():
                stem, _, ending = name.partition(".")
                lines = [line for line in content.split(b"\n") if line.strip()]
                found[_NAMES.get(stem, stem)] = (
                    [strict_json(line) for line in lines] if ending == "jsonl" else strict_json(content)
                )
        except (BundleError, ValueError) as error:
            raise Failure(f"the bundle of attempt {case}/{attempt}: {error}") from None
        return found
    return found


async def _pod(source: _Source, case: CaseKey, attempt: int) -> dict[str, Any] | None:
    """Return what the cluster still knows of the attempt's pod."""
    if source.cluster is None:
        return None
    name = case_pod_name(source.name, source.uid, case.seed, case.case_id, case.repeat, attempt)
    try:
        pod = await source.cluster.api.get(PODS, source.cluster.namespace, name)
    except NotFound:
        return None
    status = pod.get("status") or {}
    states = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    return {
        "name": name,
        "node": (pod.get("spec") or {}).get("nodeName"),
        "phase": status.get("phase"),
        "reason": status.get("reason"),
        "containers": {item["name"]: {"state": item.get("state"), "imageID": item.get("imageID")} for item in states},
    }


def _show(document: Mapping[str, Any], full: bool) -> None:
    sealed, facts = document["sealed"], document.get("facts") or {}
    print_line(f"{document['case']}, attempt {document['attempt']}")
    if sealed is None:
        why = f": {facts['reason']}: {facts.get('error')}" if "reason" in facts else ""
        print_line(f"no verdict was sealed{clean(why)}")
    else:
        reason = f" ({sealed['reason']})" if sealed.get("reason") else ""
        print_line(f"{sealed['status']}{reason} in {sealed['seconds']:g} s, checks {sealed['checks']}")
    verdict = document.get("verdict") or {}
    for name, check in sorted((verdict.get("checks") or {}).items()):
        print_line(f"  {name}: {'-' if check is None else 'pass' if check else 'FAIL'}")
    if verdict.get("error"):
        print_line(f"error: {clean(str(verdict['error']))}")
    if document["pod"]:
        print_line(f"pod: {clean(json.dumps(document['pod']))}")
    if facts.get("versions"):
        print_line("versions: " + ", ".join(f"{name} {value}" for name, value in facts["versions"].items()))
    _show_transcript(document.get("transcript") or [], full)
    for state in document.get("states") or []:
        print_line(f"\nstate {one_line(str(state.get('name', '')))}")
        if isinstance(state.get("value"), str):  # a picture, drawn for people
            for line in state["value"].split("\n"):
                print_line(_cut(clean(line), full))
        else:
            print_line(_cut(clean(json.dumps({key: value for key, value in state.items() if key != "name"})), full))


def _show_transcript(rows: list[Mapping[str, Any]], full: bool) -> None:
    if rows:
        print_line("\ntranscript (-> to the candidate, <- from it, !! its stderr)")
    for row in rows:
        text = row["text"] if "text" in row else f"base64 {row.get('base64', '')}"
        mark = _ARROWS.get(str(row.get("dir")), f"{row.get('dir')} ")
        for line in (clean(str(text)).rstrip("\n") or "").split("\n"):
            print_line(_cut(f"{row.get('t', 0):9.3f} {row.get('session', '')} {mark}{line}", full))


def _cut(text: str, full: bool) -> str:
    return text if full else cut(text, _LINE_WIDTH)
