"""A graph in which AgentBench's gold programs come to their own answers: the data comes without one.

Every sample's program is walked backwards from its answer; what no sample names is made up. Two samples that name the
same things must agree, or one of them cannot be built.
"""

from __future__ import annotations

import io
import json
import lzma
import re
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from casewarden_tasks.agentbench_kg.programs import NAMESPACE, is_id

ONTOLOGY = "src/server/tasks/knowledgegraph/ontology"
QUESTIONS = "data/knowledgegraph/dev.json"
_CALL = re.compile(r"(\w+)\((.*)\)")
_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def graph_of(samples: Sequence[Mapping[str, Any]]) -> str:
    """Return N-Triples for all samples whose programs start at entities; the others are left out."""
    facts: dict[str, None] = {}
    for number, sample in enumerate(samples):
        if all(is_id(name) for name in _starts(sample["actions"])):
            facts |= dict.fromkeys(_facts(number, sample))
    return "".join(facts)


def archive_of(data: Path) -> bytes:
    """Return AgentBench's dev questions, its ontology and a graph for them as a data set, a tar.xz."""
    samples = json.loads((data / QUESTIONS).read_text(encoding="utf-8"))
    files = {QUESTIONS: (data / QUESTIONS).read_bytes(), "graph.nt": graph_of(samples).encode()}
    for path in sorted((data / ONTOLOGY).glob("*.xz")):
        files[f"{ONTOLOGY}/{path.stem}"] = lzma.decompress(path.read_bytes())
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz", format=tarfile.PAX_FORMAT) as archive:
        for name, content in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def _parsed(action: str) -> tuple[str, list[str]]:
    match = _CALL.fullmatch(action)
    assert match is not None, action
    return match[1], [part.strip() for part in match[2].split(",")]


def _starts(actions: Sequence[str]) -> list[str]:
    return [_parsed(action)[1][0] for action in actions if not _parsed(action)[1][0].startswith("#")]


def _facts(number: int, sample: Mapping[str, Any]) -> list[str]:
    made = [_parsed(action) for action in sample["actions"]]
    made = [(name, arguments) for name, arguments in made if name not in ("get_relations", "get_attributes")]
    wanted: list[set[str]] = [set() for _ in made]
    wanted[-1] = {item["answer_argument"] for item in sample["answer"]}
    found: list[str] = []

    def need(reference: str, things: set[str]) -> set[str]:
        """What a variable is to stand for: what was asked of it before, and these."""
        wanted[int(reference[1:])] |= things
        return wanted[int(reference[1:])]

    for place in reversed(range(len(made))):
        name, arguments = made[place]
        if name == "count":
            need(arguments[0], {f"m.0x{number}_{place}_{n}" for n in range(int(next(iter(wanted[place]))))})
        elif name == "intersection":
            for argument in arguments:
                need(argument, wanted[place])
        elif name in ("argmax", "argmin"):
            for thing in sorted(need(arguments[0], {*wanted[place], f"m.0y{number}_{place}"})):
                value = 5 if (thing in wanted[place]) == (name == "argmax") else 3
                found.append(_fact(thing, arguments[1], f'"{value}"^^<{_INTEGER}>'))
        elif name == "get_neighbors":
            first, relation = arguments
            starts = need(first, {f"m.0z{number}_{place}"}) if first.startswith("#") else {first}
            found += [_fact(start, relation, f"<{NAMESPACE}{thing}>") for start in starts for thing in wanted[place]]
    return found


def _fact(left: str, relation: str, right: str) -> str:
    return f"<{NAMESPACE}{left}> <{NAMESPACE}{relation}> {right} .\n"
