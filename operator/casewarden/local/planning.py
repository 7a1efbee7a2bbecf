"""Plans a local run as a plan pod does: the task is asked twice, and must agree with itself."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from casewarden.api.plan import Plan
from casewarden.api.reasons import RunReason
from casewarden.core.bundle_check import strict_json
from casewarden.core.run_conditions import Why
from casewarden_sdk.canonical import sha256_bytes
from casewarden_sdk.plan import read_plan_lines

__all__ = ["PlanFailed", "make_plan", "pack_of"]

_PLAN_SECONDS = 300.0


class PlanFailed(Exception):
    """There is no plan; ``why`` is what the status says."""

    def __init__(self, reason: RunReason, message: str) -> None:
        super().__init__(message)
        self.why = Why(reason, message)


def pack_of(name: str) -> str:
    """Return ``MODULE:PACK`` for the name of a task; a name that is one already stands for itself."""
    return name if ":" in name else f"casewarden_tasks.{name.replace('-', '_')}:PACK"


async def make_plan(
    pack: str,
    seeds: Sequence[int],
    params: Mapping[str, Any],
    families: Sequence[str],
    variables: Mapping[str, str] | None = None,
) -> tuple[Plan, bytes]:
    """Return the plan and its canonical text; ``PlanFailed`` says why there is none.

    ``variables`` are put into the task's environment.
    """
    asked = json.dumps({"seeds": list(seeds), "params": dict(params), "families": list(families)})
    known = dict(variables or {})
    first, second = await asyncio.gather(_ask(pack, asked, known), _ask(pack, asked, known))
    if first != second:
        digests = " and ".join(sha256_bytes(text)[:12] for text in (first, second))
        message = f"{pack} made two plans ({digests}) of the same seeds: cases may depend on nothing but the seed"
        raise PlanFailed(RunReason.PLAN_UNSTABLE, message)
    try:
        return Plan.model_validate_json(first), first
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in detail["loc"])
        raise PlanFailed(RunReason.PLAN_REFUSED, f"plan: {where}: {detail['msg']}") from None


async def _ask(pack: str, asked: str, variables: Mapping[str, str]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="cw-plan-") as scratch:
        message = Path(scratch, "message")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "casewarden_sdk", pack, "plan"),
            env={**os.environ, **variables, "CASEWARDEN_PLAN": asked, "CASEWARDEN_TERMINATION_LOG": str(message)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(_PLAN_SECONDS):
                out, err = await process.communicate()
        except TimeoutError:
            raise PlanFailed(RunReason.PLAN_FAILED, f"{pack} made no plan within {_PLAN_SECONDS:g} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                # Not only its end but its pipes: a pipe left open speaks up after the loop is closed.
                await process.communicate()
        told = _told(message)
    if "error" in told:
        field = f"{told['field']}: " if told.get("field") and not told["error"].startswith(str(told["field"])) else ""
        raise PlanFailed(RunReason.PLAN_REFUSED, f"{field}{told['error']}")
    if process.returncode != 0:
        last = (err.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"])[-1]
        raise PlanFailed(RunReason.PLAN_FAILED, f"{pack} plan ended with exit code {process.returncode}: {last}")
    try:
        text = read_plan_lines(out.decode("utf-8", "replace").splitlines()).encode("ascii")
    except ValueError as error:
        raise PlanFailed(RunReason.PLAN_FAILED, f"{pack}: {error}") from None
    if sha256_bytes(text) != told.get("sha256"):
        raise PlanFailed(RunReason.PLAN_FAILED, f"{pack}: the plan in its output has not the digest that it tells")
    return text


def _told(message: Path) -> dict[str, Any]:
    try:
        document = strict_json(message.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
