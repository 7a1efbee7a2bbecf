"""A run as a log of Inspect (`.eval`, version 2): what its viewer and its `read_eval_log` open.

A sample is a seed and case, its epoch the repeat; a scorer is a dimension, with 1 or 0. What was not assessed has an
error and no score, and a run that is not valid has the status `error`, never `success`.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from casewarden.reporting.run import ReportedCase, ReportedRun
from casewarden_sdk.contract import AGENT_ERROR

__all__ = ["LIMITS", "Case", "to_inspect"]

LIMITS = {
    "TimeLimit": ("time", "case_seconds"), "ActionLimit": ("message", "actions"), "TokenLimit": ("token", "tokens"),
    "OutputLimit": ("custom", "output_bytes"), "ProcessLimit": ("custom", "processes"),
    "StorageLimit": ("custom", "state_mib"), "OOMKilled": ("custom", "memory_mib"),
}  # fmt: skip
"""Reasons that are limits: Inspect's name of each, and the limit of the plan that it is about."""
Row = Mapping[str, Any]
Case = Callable[[ReportedCase], tuple[Any, Sequence[Row]]]
"""Gives a case's content, and the rows of its transcript."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_inspect(run: ReportedRun, read: Case) -> bytes:
    """Return the log; ``read`` is called once for each case, in their order."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        start = {"version": 2, "eval": _spec(run), "plan": {"name": "plan", "steps": [], "config": {}}}
        _write(archive, "_journal/start.json", start)
        for case in run.cases:
            content, rows = read(case)
            sample = _sample(run, case, content, rows)
            _write(archive, f"samples/{sample['id']}_epoch_{sample['epoch']}.json", sample)
        _write(archive, "header.json", {**_header(run), **{key: start[key] for key in ("version", "eval", "plan")}})
    return out.getvalue()


def _write(archive: zipfile.ZipFile, name: str, document: Any) -> None:
    # One time for all members, so that the same run gives the same bytes.
    member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    member.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(member, json.dumps(document, ensure_ascii=True))


def _ended(run: ReportedRun) -> tuple[str, str]:
    ends = [case.ended_at for case in run.cases if case.ended_at is not None]
    starts = [case.ended_at - (case.seconds or 0.0) for case in run.cases if case.ended_at is not None]
    return _time(min(starts, default=0.0)), _time(max(ends, default=0.0))


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat() if seconds else _EPOCH.isoformat()


def _sample_id(case: ReportedCase) -> str:
    return f"{case.key.case_id}-{case.key.seed}"


def _spec(run: ReportedRun) -> dict[str, Any]:
    ids = list(dict.fromkeys(_sample_id(case) for case in run.cases))
    name, _, version = run.task.partition("@")
    repeats = int(run.spec.get("repeats", 1))
    return {
        "eval_id": run.uid,
        "run_id": run.uid,
        "created": _ended(run)[0],
        "task": name,
        "task_id": run.uid,
        "task_version": version,
        "task_args": (run.spec.get("task") or {}).get("params") or {},
        "dataset": {"name": name, "samples": len(ids), "sample_ids": ids, "shuffled": False},
        "model": (run.spec.get("candidate") or {}).get("model", {}).get("name") or run.candidate,
        "config": {"epochs": repeats},
        "metadata": {
            "casewarden": {
                "run": run.title, "candidate": run.candidate, "fingerprints": dict(run.fingerprints),
                "evidence": run.digest, "seeds": list(run.seeds), "score": dict(run.score),
            }
        },
    }  # fmt: skip


def _header(run: ReportedRun) -> dict[str, Any]:
    started, ended = _ended(run)
    dimensions = run.score.get("dimensions") or {}
    scores = [
        {
            "name": name, "scorer": name, "scored_samples": found["assessed"],
            "unscored_samples": found["total"] - found["assessed"], "params": {},
            "metrics": {"score": {"name": "score", "value": float(found["score"]), "params": {}}}
            if found.get("score") is not None else {},
        }
        for name, found in sorted(dimensions.items())
    ]  # fmt: skip
    if run.score.get("score") is not None:
        metrics = {"score": {"name": "score", "value": float(run.score["score"]), "params": {}}}
        total = len(run.cases)
        scores.insert(0, {"name": "casewarden", "scorer": str(run.score.get("rule")), "scored_samples": total,
                          "unscored_samples": 0, "params": {}, "metrics": metrics})  # fmt: skip
    header: dict[str, Any] = {
        "status": "success" if run.is_valid else "error",
        "results": {
            "total_samples": len(run.cases),
            "completed_samples": sum(case.is_assessed for case in run.cases),
            "scores": scores,
        },
        "stats": {"started_at": started, "completed_at": ended, "model_usage": _usage(run)},
    }
    if not run.is_valid:
        lost = sum(not case.is_assessed for case in run.cases)
        message = f"the run is not valid: {lost} of {len(run.cases)} cases could not be assessed"
        header["error"] = {"message": message, "traceback": "", "traceback_ansi": ""}
    return header


def _usage(run: ReportedRun) -> dict[str, Any]:
    """Return what was used by name of model, in Inspect's words."""
    found: dict[str, dict[str, int]] = {}
    asked = {**(run.spec.get("task") or {}).get("models", {})}
    own = (run.spec.get("candidate") or {}).get("model")
    usage = run.usage or {}
    pairs = [(own, usage), *((asked.get(role), sums) for role, sums in (usage.get("models") or {}).items())]
    for model, sums in pairs:
        if model is not None and sums.get("model_calls"):
            total = found.setdefault(str(model["name"]), {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0})
            total["input_tokens"] += sums["prompt_tokens"]
            total["output_tokens"] += sums["completion_tokens"]
            total["total_tokens"] += sums["prompt_tokens"] + sums["completion_tokens"]
    return found


def _sample(run: ReportedRun, case: ReportedCase, content: Any, rows: Sequence[Row]) -> dict[str, Any]:
    said = (_message(number, row) for number, row in enumerate(rows))
    messages = [item for item in said if item is not None]
    last = next((item["content"] for item in reversed(messages) if item["role"] == "assistant"), "")
    sample: dict[str, Any] = {
        "id": _sample_id(case),
        "epoch": case.key.repeat + 1,
        "input": json.dumps(content, sort_keys=True, indent=1),
        "target": "",
        "messages": messages,
        "output": {
            "model": run.candidate,
            "choices": [{"message": {"role": "assistant", "content": last}, "stop_reason": "stop"}],
        },
        "metadata": {
            "case": case.key.case_id, "seed": case.key.seed, "repeat": case.key.repeat, "status": case.status,
            "reason": case.reason, "attempt": case.attempt, "attempts": case.attempts,
        },
        "uuid": f"{run.uid}-{case.key.seed}-{case.key.case_id}-{case.key.repeat}",
    }  # fmt: skip
    if case.ended_at is not None:
        sample["completed_at"] = _time(case.ended_at)
    if case.seconds is not None:
        sample["total_time"] = case.seconds
    if not case.is_assessed:
        why = f"{case.reason or case.status}: {case.error or 'the case could not be assessed'}"
        sample["error"] = {"message": why, "traceback": "", "traceback_ansi": ""}
        return sample
    explanation = ": ".join(part for part in (case.reason, case.error) if part)
    sample["scores"] = {
        name: {"value": int(check), "explanation": explanation or None}
        for name, check in case.checks.items()
        if check is not None
    }
    kind, name = LIMITS.get(case.reason or "", ("", ""))
    if case.status == AGENT_ERROR and run.limits.get(name) is not None:
        sample["limit"] = {"type": kind, "limit": run.limits[name], "reason": case.reason}
    return sample


def _message(number: int, row: Row) -> dict[str, Any] | None:
    role = {"in": "user", "out": "assistant"}.get(str(row.get("dir")))
    if role is None:
        return None
    text = str(row["text"]) if "text" in row else f"base64 {row.get('base64', '')}"
    return {"id": str(number), "role": role, "content": text, "source": "generate" if role == "assistant" else "input"}
