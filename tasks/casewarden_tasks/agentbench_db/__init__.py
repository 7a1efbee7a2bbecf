"""agentbench-db: DBBench of AgentBench, each case with a MariaDB of its own."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from casewarden_sdk.agentbench import SOURCES, AgentBenchPack, TaskOutput, open_dataset
from casewarden_sdk.agentbench.messages import SampleIndex
from casewarden_sdk.agentbench.pack import case_id_of
from casewarden_sdk.contract import Case, Control, Limits
from casewarden_sdk.errors import ContractError

from . import metrics, planted
from .rows import Row, parse_rows
from .task import DBBench, is_right

__all__ = ["PACK", "AgentBenchDb"]

_HERE: Final = Path(__file__).parent
_OWN: Final = _HERE / "data.jsonl"
_DATA_FILE: Final = "data/dbbench/standard.jsonl"
_MAX_ROUND: Final = 15
_PARAMETERS: Final = ("dataset", "datasetDigest", "dataFile", "maxRound", "indices")
_DIMENSION_OF: Final = {"INSERT": "insert", "UPDATE": "update"}
_SHOWN: Final = 120  # characters of an answer in a diagnostic


@functools.lru_cache(maxsize=1)
def _own_rows() -> tuple[Row, ...]:
    return tuple(parse_rows(_OWN.read_text(encoding="utf-8"), _OWN.name))


class AgentBenchDb(AgentBenchPack):
    """The pack; attributes and methods are those of ``AgentBenchPack``."""

    id = "agentbench-db"
    version = "0.1.0"
    description = "Answer questions about a table, and change it, by SQL (AgentBench DB)"
    contract = (_HERE / "contract.md").read_text(encoding="utf-8")
    dimensions: Mapping[str, str] = {"select": "0.34", "insert": "0.33", "update": "0.33"}
    limits = Limits(
        case_seconds=900, response_seconds=240, start_seconds=120, output_bytes=4 << 20, request_bytes=1 << 20
    )
    score = metrics.MAIN
    passes = "the answer is right, or, where the table was to be changed, it was left as it should be"
    kinds: Mapping[str, Any] = {
        "default": {
            "candidate": {"image": "python"},
            "environments": [{"name": "db", "image": "mariadb", "profile": "restricted", "memory_mib": 192}],
        }
    }
    sources = (
        *SOURCES,
        *(
            str(_HERE / name)
            for name in (
                "__init__.py", "client.py", "contract.md", "data.jsonl", "database.py", "hashing.py", "judging.py",
                "mariadb.cnf", "metrics.py", "play.py", "printing.py", "replies.py", "rows.py", "server.py", "start.sh",
                "task.py",
            )
        ),
    )  # fmt: skip

    controls = planted.controls(_own_rows())

    def controls_for(self, params: Mapping[str, Any]) -> Sequence[Control]:
        """Return the controls for the data set of a run."""
        return planted.controls(self._rows(params))

    def task(self, params: Mapping[str, Any], seed: int) -> DBBench:
        """Return the task over the data set of a run."""
        for name in params:
            if name not in _PARAMETERS:
                raise ContractError(f"spec.task.params.{name}: agentbench-db has {', '.join(_PARAMETERS)}; remove it")
        return DBBench(self._rows(params), _whole(params, "maxRound", _MAX_ROUND), _indices(params))

    def exclusions_for(self, params: Mapping[str, Any]) -> Mapping[str, str]:
        """Return the rows that no database can hold, by their case ids, each with what is wrong."""
        found = {index: row.table.broken for index, row in enumerate(self._rows(params))}
        return {case_id_of(index): f"row {index}: {broken}" for index, broken in found.items() if broken is not None}

    def content(self, task: Any, index: SampleIndex) -> Mapping[str, Any]:
        """Return the row."""
        row: Row = task.rows[int(index)]
        return {"row": row.to_json(), "max_round": task.max_round}

    def dimensions_of(self, task: Any, index: SampleIndex) -> tuple[str, ...]:
        """Return the one dimension that the kind of the row belongs to."""
        return (_DIMENSION_OF.get(task.rows[int(index)].type, "select"),)

    def passed(self, case: Case, output: TaskOutput, facts: Mapping[str, Any]) -> bool:
        """Judge the result by the row."""
        return is_right(Row.from_json(case.content["row"]), output.result)

    def explain(self, case: Case, output: TaskOutput, facts: Mapping[str, Any]) -> str | None:
        """Say what came instead of what is right."""
        row = Row.from_json(case.content["row"])
        got = output.result.get("answer") if isinstance(output.result, dict) else None
        if row.changes:
            return f"the table hashes to {str(got)[:_SHOWN]}, not to {row.answer_md5}"
        return f"the answer is {str(got).strip()[:_SHOWN]!r}, not {list(row.label)!r:.{_SHOWN}}"

    def _rows(self, params: Mapping[str, Any]) -> Sequence[Row]:
        dataset = open_dataset(params)
        if dataset is None:
            if "dataFile" in params:
                raise ContractError("spec.task.params.dataFile: names a file of a data set; give dataset too")
            return _own_rows()
        name = params.get("dataFile", _DATA_FILE)
        if not isinstance(name, str):
            raise ContractError(
                f"spec.task.params.dataFile: {name!r} is no path; give {_DATA_FILE}, or another as a text"
            )
        return parse_rows(dataset.text(name), f"spec.task.params.dataset: {name}")


def _whole(params: Mapping[str, Any], name: str, default: int) -> int:
    value = params.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ContractError(f"spec.task.params.{name}: {value!r} is no whole number from 1; give one")
    return value


def _indices(params: Mapping[str, Any]) -> Sequence[int] | None:
    """Return the rows that a run wants to play; None for all."""
    wanted = params.get("indices")
    if wanted is None:
        return None
    whole = isinstance(wanted, list) and all(isinstance(index, int) and not isinstance(index, bool) for index in wanted)
    if not whole or not wanted or len(set(wanted)) != len(wanted):
        raise ContractError(f"spec.task.params.indices: {wanted!r:.80} is no list of different whole numbers; give one")
    return list(wanted)


PACK: Final = AgentBenchDb()
