"""AgentBench's own files of a run, and a score out of ``calculate_overall``.

``overall.json``, ``runs.jsonl`` and ``error.jsonl`` have AgentBench's form. Samples that the agent broke are runs, with
their transcripts; samples that could not be assessed are errors, with theirs. An ``overall.json`` is made of what there
is, however many samples failed.
"""

from __future__ import annotations

import json
import time
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from typing import Any, Dict, List, Mapping, Optional, Sequence

from casewarden_sdk.contract import ENVIRONMENT_ERROR, JSON
from casewarden_sdk.errors import ContractError

from .messages import TaskOutput
from .statuses import SampleStatus

__all__ = ["files_of", "missing_output", "overall_document", "score_at", "score_of", "score_text"]

_PLACES = Decimal("0.00000001")


def score_at(custom: JSON, path: str) -> Decimal:
    """Return the number at a dotted ``path`` of what ``calculate_overall`` gave; ``ContractError`` where none is."""
    value = custom
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            raise ContractError(f"calculate_overall returned {custom!r}; the score is to be at {path!r}")
        value = value[key]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not Decimal(repr(value)).is_finite():
        raise ContractError(f"calculate_overall has {value!r} at {path!r}; a score is a finite number")
    if value < 0:
        raise ContractError(f"calculate_overall has {value!r} at {path!r}; a score is not negative")
    return Decimal(repr(value))


def score_text(score: Decimal) -> str:
    """Write a score as a decimal of at most 8 places, half to even, without trailing zeros."""
    text = f"{score.quantize(_PLACES, ROUND_HALF_EVEN):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def score_of(customs: Sequence[JSON], path: str) -> str:
    """Return the score of one or more passes over the samples: the mean of what each has at ``path``."""
    exact = sum((Fraction(score_at(custom, path)) for custom in customs), Fraction(0)) / len(customs)
    return score_text(Decimal(exact.numerator) / Decimal(exact.denominator))


def overall_document(outputs: Sequence[TaskOutput], custom: JSON) -> Dict[str, JSON]:
    """Return ``overall.json``: how many, the fraction of each status, the lengths of the histories, ``custom``."""
    total, lengths = len(outputs), [len(output.history or ()) for output in outputs]
    validation: Dict[str, JSON] = {
        status.value: sum(output.status is status for output in outputs) / total if total else 0.0
        for status in SampleStatus
    }
    validation["average_history_length"] = sum(lengths) / total if total else 0.0
    validation["max_history_length"] = max(lengths, default=0)
    validation["min_history_length"] = min(lengths, default=0)
    return {"total": total, "validation": validation, "custom": custom}


def missing_output(index: JSON) -> Dict[str, JSON]:
    """Return the output of a sample whose agent broke before there was one."""
    return {"index": index, "status": SampleStatus.UNKNOWN.value, "result": None, "history": []}


def files_of(rows: Sequence[Mapping[str, JSON]], overall: JSON) -> Dict[str, bytes]:
    """Return the three files, by name.

    A row has ``index``, ``output`` (of the record, or null), ``status``, ``reason`` and ``error`` (of the verdict) and
    ``ended_at`` (seconds since the epoch). Rows are in the order of the run's cases.
    """
    runs: List[str] = []
    errors: List[str] = []
    for row in rows:
        line = json.dumps(_line(row))
        (errors if row["status"] == ENVIRONMENT_ERROR else runs).append(line + "\n")
    return {
        "overall.json": (json.dumps(overall, indent=4) + "\n").encode("ascii"),
        "runs.jsonl": "".join(runs).encode("ascii"),
        "error.jsonl": "".join(errors).encode("ascii"),
    }


def _line(row: Mapping[str, JSON]) -> Dict[str, Any]:
    failed = row["status"] == ENVIRONMENT_ERROR
    output: Optional[Mapping[str, JSON]] = row["output"]
    if output is None and not failed:
        output = missing_output(row["index"])
    ended = float(row["ended_at"])
    return {
        "index": row["index"],
        "error": row["reason"] if failed else None,
        "info": row["error"] if failed else None,
        "output": output,
        # In UTC, so that the same evidence is the same bytes everywhere.
        "time": {
            "timestamp": int(ended * 1000),
            "str": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(ended)),
        },
    }
