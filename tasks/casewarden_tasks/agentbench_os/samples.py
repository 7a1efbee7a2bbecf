"""Samples of AgentBench's OS environment, read from its data files in every form that these have.

What is read is whole: scripts that a sample names by file are in it as code, so that a case's digest pins all that its
judgement depends on. Every error names file, sample and field.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

from casewarden_sdk.agentbench import Dataset
from casewarden_sdk.errors import ContractError

from .checks import PROGRAMS

__all__ = ["IMAGES", "SPLITS", "Script", "Source", "load", "samples_of"]

IMAGES: Final = ("default", "packages", "ubuntu")
_LANGUAGES: Final = ("bash", "python", "c", "c++")
_DATA: Final = "data/os_interaction/data"
_SCRIPTS: Final = "data/os_interaction/scripts"
_NAMED: Final = re.compile(r"(?:.*/)?([a-z-]+)\.py\Z")


class Source(NamedTuple):
    """Where samples come from: problem files (a pattern), the folder of their scripts, and their indices' prefix."""

    problems: str
    scripts: str
    prefix: str


# As AgentBench's configs/tasks/os.yaml has them. What is not named there (its back-ups) is not read.
SPLITS: Final[Mapping[str, Sequence[Source]]] = {
    "dev": [Source(f"{_DATA}/dev.json", f"{_SCRIPTS}/dev", "dev-001-")],
    "std": [Source(f"{_DATA}/{n}/*.json*", f"{_SCRIPTS}/{n}", f"std-{n:03d}-") for n in range(1, 8)],
}


@dataclass(frozen=True)
class Script:
    """A program of the data: its language, its code, and the name of the file it came from, if any."""

    language: str
    code: str
    name: str | None = None

    @property
    def program(self) -> str | None:
        """The name of the comparison that it is, where it is one of AgentBench's."""
        found = _NAMED.match(self.name or "")
        return found[1] if found and self.language == "python" and found[1] in PROGRAMS else None

    def to_json(self) -> dict[str, Any]:
        """Return what a case has of it. Of a comparison that is its name, for its code is the grader's own."""
        if self.program is not None:
            return {"program": self.program}
        return {"language": self.language, "code": self.code}


class _Malformed(Exception):
    """What is wrong with a sample, beginning with its field."""


def load(files: Dataset, sources: Sequence[Source], spare: Dataset | None = None) -> list[dict[str, Any]]:
    """Return the samples of some sources of a data set, in the order of their indices.

    ``spare`` has scripts that stand in for those which the data set has not. ``ContractError`` for what is missing or
    malformed.
    """
    found: list[dict[str, Any]] = []
    for source in sources:
        names = files.names(source.problems)
        if not names:
            raise ContractError(
                f"spec.task.params.dataset: there is no {source.problems} in the data set; give an AgentBench checkout"
            )

        def read(script: str, folder: str = source.scripts) -> str | None:
            name = posixpath.normpath(posixpath.join(folder, script))
            if not name.startswith(f"{folder}/"):
                return None
            if files.has(name):
                return files.text(name)
            return spare.text(script) if spare is not None and spare.has(script) else None

        for name in names:
            prefix = f"{source.prefix}{PurePosixPath(name).stem}-"
            found.extend(samples_of(name, files.text(name), prefix, read))
    return sorted(found, key=lambda sample: str(sample["id"]))


def samples_of(name: str, text: str, prefix: str, read: Callable[[str], str | None]) -> list[dict[str, Any]]:
    """Return the samples of one problem file's ``text``; ``read`` gives a script's text, None where there is none.

    A sample has ``id``, ``description``, ``image``, ``init``, ``start``, ``match`` or ``steps``, and ``example``.
    """
    rows = _rows(name, text)
    samples = []
    for number, row in enumerate(rows):
        try:
            samples.append({"id": f"{prefix}{number:05d}", "file": name, "index_in_file": number, **_sample(row, read)})
        except _Malformed as error:
            raise ContractError(f"spec.task.params.dataset: {name}, sample {number}: {error}") from None
    return samples


def _rows(name: str, text: str) -> list[Any]:
    """Return a file's samples: of a list, of one object, or of JSON lines."""
    where = f"spec.task.params.dataset: {name}"
    try:
        if name.endswith(".jsonl"):
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        found = json.loads(text)
    except ValueError as error:
        raise ContractError(f"{where} is no JSON: {error}") from None
    if isinstance(found, dict):
        return [found]
    if not isinstance(found, list):
        raise ContractError(f"{where} holds a {type(found).__name__}; it must be a list of samples, or one sample")
    return found


def _sample(row: Any, read: Callable[[str], str | None]) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise _Malformed(f"it is a {type(row).__name__}; it must be an object")
    create = row.get("create")
    # Two samples have a list here, by a slip; AgentBench takes that for nothing, and so do we.
    create = create if isinstance(create, dict) else {}
    if "image" in create:
        raise _Malformed("create.image: images by name are not taken; use create.local")
    image = create.get("local", "default")
    if image not in IMAGES:
        raise _Malformed(f"create.local is {image!r}; it must be one of {', '.join(IMAGES)}")
    init = create.get("init")
    init = init if isinstance(init, list) else [init]
    start = row.get("start")
    if start is not None and not isinstance(start, str):
        raise _Malformed(f"start is a {type(start).__name__}; it must be a text")
    return {
        "description": _text(row.get("description"), "description"),
        "image": image,
        "init": [_script(item, "create.init", read).to_json() for item in init if item is not None],
        "start": start,
        **_evaluation(row.get("evaluation"), read),
    }


def _evaluation(rules: Any, read: Callable[[str], str | None]) -> dict[str, Any]:
    if not isinstance(rules, dict) or ("match" in rules) == ("check" in rules):
        raise _Malformed("evaluation must be an object with one of match and check")
    example = None if rules.get("example") is None else _script(rules["example"], "evaluation.example", read)
    told = None if example is None else example.to_json()
    if "match" in rules:
        return {"match": _match(rules["match"]), "example": told}
    where = rules.get("reference", "twin")
    if where not in ("twin", "sandbox"):
        raise _Malformed(f"evaluation.reference is {where!r}; it must be twin or sandbox")
    checks = rules["check"] if isinstance(rules["check"], list) else [rules["check"]]
    if not checks:
        raise _Malformed("evaluation.check is empty; give a script, or null for the example")
    return {"steps": list(_steps(checks, example, str(where), read)), "example": told}


def _steps(
    checks: Sequence[Any], example: Script | None, where: str, read: Callable[[str], str | None]
) -> Iterator[dict[str, Any]]:
    for number, item in enumerate(checks):
        if item is None and example is None:
            raise _Malformed(f"evaluation.check[{number}] is null, which stands for evaluation.example; there is none")
        script = example if item is None else _script(item, f"evaluation.check[{number}]", read)
        assert script is not None
        if script.program is not None and number == 0:
            raise _Malformed(
                f"evaluation.check[0]: {script.name} compares with what the step before it said; there is none"
            )
        place = "grader" if script.program is not None else where if item is None else "sandbox"
        yield {"where": place, **script.to_json()}


def _match(rule: Any) -> dict[str, Any]:
    if isinstance(rule, str):
        return {"answer": rule, "strip": True}
    if not isinstance(rule, dict) or ("answer" in rule) == ("regex" in rule):
        raise _Malformed("evaluation.match must be a text, or an object with one of answer and regex")
    strip = rule.get("strip", True)
    if not isinstance(strip, bool):
        raise _Malformed(f"evaluation.match.strip is {strip!r}; it must be true or false")
    if "answer" in rule:
        return {"answer": _text(rule["answer"], "evaluation.match.answer"), "strip": strip}
    pattern = _text(rule["regex"], "evaluation.match.regex")
    try:
        re.compile(pattern)
    except re.error as error:
        raise _Malformed(f"evaluation.match.regex {pattern!r} is no pattern: {error}") from None
    return {"regex": pattern, "strip": strip}


def _script(item: Any, where: str, read: Callable[[str], str | None]) -> Script:
    if isinstance(item, str):
        return Script("bash", item)
    if not isinstance(item, dict) or ("code" in item) == ("file" in item):
        raise _Malformed(f"{where} must be a text, or an object with one of code and file")
    language = item.get("language", "bash")
    if language not in _LANGUAGES:
        raise _Malformed(f"{where}.language is {language!r}; it must be one of {', '.join(_LANGUAGES)}")
    if "code" in item:
        return Script(language, _text(item["code"], f"{where}.code"))
    name = _text(item["file"], f"{where}.file")
    script = Script(language, "", name)
    if script.program is not None:
        return script
    code = read(name)
    if code is None:
        raise _Malformed(f"{where}.file: there is no script {name!r} beside the data")
    return Script(language, code, name)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise _Malformed(f"{where} is a {type(value).__name__}; it must be a text")
    return value
