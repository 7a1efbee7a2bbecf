"""``selftest``: hostile candidates against a cluster, and what its kernel and its network enforce."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from casewarden.api.names import GROUP, case_pod_name
from casewarden.cli.cases import read_bundle
from casewarden.cli.cluster import Access, Cluster, open_cluster
from casewarden.cli.failure import GOOD, NOT_GOOD, Failure
from casewarden.cli.network_check import check_network
from casewarden.cli.outcome import is_finished
from casewarden.cli.printing import Output, emit, print_line, print_rows
from casewarden.cli.relay import RelayReader, open_relay
from casewarden.cli.sources import RelayFiles, parse_object
from casewarden.core.evidence import parse_evidence_key
from casewarden.ports.kube import CONFIG_MAPS, EVAL_RUNS, Manifest, NotFound, list_all, selector
from casewarden.selftest.judge import Played, Secrets, facts_of, judge, unmet
from casewarden.selftest.table import Program, load, manifests, run_name

__all__ = ["Report", "selftest"]

_LABEL: Final = f"{GROUP}/selftest"
_POLL_SECONDS: Final = 1.0
_NOT_ENFORCED: Final = "not enforced here"


@dataclass(slots=True)
class Report:
    """What a self-test found: the kernel's facts, whether the network is cut, a row for each program."""

    kernel: dict[str, str] = field(default_factory=dict)
    network: dict[str, Any] = field(default_factory=dict)
    programs: list[dict[str, Any]] = field(default_factory=list)

    def held(self) -> bool:
        """Tell whether every fence held."""
        return bool(self.network.get("enforced")) and all(row["held"] for row in self.programs)

    def document(self) -> dict[str, Any]:
        """Return it as programs read it."""
        return {"held": self.held(), "kernel": self.kernel, "network": self.network, "programs": self.programs}


async def selftest(
    access: Access, only: Sequence[str], at_once: int, timeout_seconds: float, keep: bool, output: Output
) -> int:
    """Play the hostile programs in a namespace of the cluster and judge what came of them."""
    programs = _chosen(only)
    prefix = f"selftest-{secrets.token_hex(3)}"
    async with open_cluster(access) as cluster:
        try:
            async with asyncio.timeout(timeout_seconds):
                report = await _test(cluster, prefix, programs, at_once, output)
        except TimeoutError:
            raise Failure(f"the self-test was not over after {timeout_seconds:g} s; give --timeout more") from None
        finally:
            if not keep:
                await _remove(cluster, prefix)
    emit(report.document(), output, lambda: _show(report))
    return GOOD if report.held() else NOT_GOOD


def _chosen(only: Sequence[str]) -> list[Program]:
    programs = load()
    unknown = set(only) - {program.name for program in programs}
    if unknown:
        raise Failure(f"--program {sorted(unknown)[0]!r}: there is no such program; they are in docs/security.md")
    return [program for program in programs if not only or program.kind == "facts" or program.name in only]


async def _test(cluster: Cluster, prefix: str, programs: list[Program], at_once: int, output: Output) -> Report:
    runs = await _play(cluster, prefix, programs, at_once, progress=output is Output.TABLE)
    report = Report()
    async with open_relay(cluster) as relay:
        played = {program.name: await _read(relay, runs[program.name]) for program in programs}
    for program in programs:
        if program.kind == "facts":
            report.kernel = facts_of(played[program.name].written())
    report.programs = [_row(program, played[program.name], report.kernel) for program in programs]
    report.network = await check_network(cluster, prefix, _LABEL, _image(runs.values()))
    return report


async def _play(
    cluster: Cluster, prefix: str, programs: Sequence[Program], at_once: int, progress: bool
) -> dict[str, Manifest]:
    """Run all programs, so many at once, and return their finished runs by the program's name."""
    waiting = list(reversed(programs))
    going: dict[str, Program] = {}
    done: dict[str, Manifest] = {}
    while waiting or going:
        while waiting and len(going) < at_once:
            program = waiting.pop()
            config_map, run = manifests(prefix, program, cluster.namespace, {_LABEL: prefix})
            await cluster.api.create(CONFIG_MAPS, cluster.namespace, config_map)
            await cluster.api.create(EVAL_RUNS, cluster.namespace, run)
            going[run_name(prefix, program)] = program
        await asyncio.sleep(_POLL_SECONDS)
        for run in await list_all(cluster.api, EVAL_RUNS, cluster.namespace, selector({_LABEL: prefix})):
            name = run["metadata"]["name"]
            if name in going and is_finished(run.get("status") or {}):
                done[going.pop(name).name] = run
                if progress and len(done) % 10 == 0:
                    print_line(f"{len(done)} of {len(programs)} programs are done")
    return done


async def _read(relay: RelayReader, run: Manifest) -> Played:
    meta = run["metadata"]
    files = RelayFiles(relay, meta["uid"])
    sealed, transcripts, names, ids = [], [], [], []
    for path in await files.paths():
        key = parse_evidence_key(path)
        if key is None or key.kind != "sealed":
            continue
        document = parse_object(await files.read(path), path)
        bundle = await read_bundle(files, key.case, document["attempt"])
        sealed.append(document)
        transcripts.append(bundle.get("transcript") or [])
        ids.append(key.case.case_id)
        names.append(case_pod_name(meta["name"], meta["uid"], key.case.seed, key.case.case_id, key.case.repeat, 1))
    return Played(run.get("status") or {}, sealed, transcripts, Secrets(meta["uid"], names, ids))


def _row(program: Program, played: Played, kernel: Mapping[str, str]) -> dict[str, Any]:
    problems, lacking = judge(program, played), unmet(program, kernel)
    sealed = played.sealed[0] if played.sealed else {}
    return {
        "name": program.name,
        "tries": program.tries,
        "status": sealed.get("status"),
        "reason": sealed.get("reason"),
        "score": played.status.get("score"),
        "held": not problems,
        "problems": problems,
        "lacking": lacking,
    }


def _image(runs: Iterable[Manifest]) -> str:
    """Return an image that the cluster has, with a Python in it: the one that the programs ran in."""
    for run in runs:
        images = ((run.get("status") or {}).get("fingerprints") or {}).get("images") or {}
        for name, image in images.items():
            if name not in ("task", "evidence") and image:
                return str(image)
    raise Failure("no run came so far as to say which image its candidate ran in; see casewarden get")


async def _remove(cluster: Cluster, prefix: str) -> None:
    for kind in (EVAL_RUNS, CONFIG_MAPS):
        for item in await list_all(cluster.api, kind, cluster.namespace, selector({_LABEL: prefix})):
            try:
                await cluster.api.delete(kind, cluster.namespace, item["metadata"]["name"])
            except NotFound:
                continue


def _show(report: Report) -> None:
    print_rows(
        {"name": "PROGRAM", "status": "STATUS", "reason": "REASON", "score": "SCORE", "said": "HELD"},
        [{**row, "said": _word(row)} for row in report.programs],
    )
    for row in report.programs:
        for problem in row["problems"]:
            print_line(f"{row['name']}, which tries to {row['tries']}: {problem}")
    print_line()
    for name, value in report.kernel.items():
        print_line(f"{name}: {value}")
    print_line(f"network policies: {report.network['message']}")
    count = sum(row["held"] for row in report.programs)
    print_line(f"{count} of {len(report.programs)} programs came to what they must")


def _word(row: Mapping[str, Any]) -> str:
    if row["held"]:
        return "yes"
    return f"{_NOT_ENFORCED}: needs {', '.join(row['lacking'])}" if row["lacking"] else "NO"
