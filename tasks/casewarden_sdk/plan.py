"""The plan: what a task image says that it will run, checked before anything is run.

``build_plan`` refuses, with the reason, a pack or a choice that could not give an honest score. The document is the one
of ``docs/internals/wire.md`` section 6; its canonical text must come out the same however often it is made.
"""

from __future__ import annotations

import base64
import dataclasses
import zlib
from typing import Any, Dict, Iterable, List, Mapping, Sequence, Tuple

from . import __version__
from .always import with_always
from .canonical import canonical, sha256_bytes, sha256_json
from .checking import PlanRefused, check_cases, check_controls, check_coverage, check_models, check_pack, check_seeds
from .contract import DEFAULT_KINDS, JSON, Case, Control, Pack
from .fingerprint import grader_fingerprint

__all__ = [
    "CONTRACT_VERSION",
    "LINE_PREFIX",
    "PlanRefused",
    "build_plan",
    "controls_of",
    "pack_lines",
    "plan_lines",
    "read_plan_lines",
    "unpack_lines",
]

CONTRACT_VERSION = "1"
LINE_PREFIX = "casewarden-plan "
_LINE = 4096
_MAX_PLAN_BYTES = 64 << 20


def build_plan(
    pack: Pack, seeds: Sequence[int], params: Mapping[str, JSON], families: Sequence[str] = ()
) -> Dict[str, JSON]:
    """Return the plan for ``seeds``, of the named families or, where none is named, of all.

    ``PlanRefused`` where pack, seeds, params or families break the contract.
    """
    kinds = dict(getattr(pack, "kinds", DEFAULT_KINDS))
    models = dict(getattr(pack, "models", {}))
    check_pack(pack, kinds)
    check_models(models)
    check_seeds(seeds)
    controls = controls_of(pack, params)
    check_controls(pack, controls)
    exclusions = _exclusions_of(pack, params)
    planned: List[Tuple[int, Case]] = []
    excluded: List[Dict[str, JSON]] = []
    known: Dict[str, None] = {}
    for seed in seeds:
        cases = _generate(pack, seed, params, kinds)
        known.update(dict.fromkeys(case.id for case in cases))
        for case in cases:
            if families and case.id not in families:
                continue
            if case.id in exclusions:
                excluded.append({"seed": seed, "id": case.id, "reason": exclusions[case.id]})
            else:
                planned.append((seed, case))
    check_coverage(pack, seeds, planned, families, known)
    return {
        "v": 1,
        "contract_version": CONTRACT_VERSION,
        "task": {"id": pack.id, "version": pack.version, "description": pack.description},
        "contract": {"sha256": _contract_sha256(pack), "bytes": len(pack.contract.encode("utf-8"))},
        "dimensions": dict(pack.dimensions),
        "aggregation": pack.aggregation,
        "protocol": pack.protocol,
        "candidates": list(pack.candidates),
        "limits": dataclasses.asdict(pack.limits),
        "default_argv": list(pack.default_argv),
        "kinds": kinds,
        "seeds": list(seeds),
        "families": list(dict.fromkeys(case.id for _, case in planned)),
        "params": dict(params),
        "cases": [_case_row(seed, case) for seed, case in planned],
        "excluded": excluded,
        "controls": [_control_row(control) for control in with_always(controls)],
        "checks": list(getattr(pack, "grader_checks", {})),
        "fingerprints": {
            "grader": grader_fingerprint(pack.sources),
            "cases": sha256_json([{"seed": seed, **case.content} for seed, case in planned]),
            "contract": _contract_sha256(pack),
        },
        "sdk": __version__,
        **({"models": models} if models else {}),
        **({"score": pack.score} if hasattr(pack, "score") else {}),
    }


def controls_of(pack: Pack, params: Mapping[str, JSON]) -> Sequence[Control]:
    """Return the controls of a pack for ``params``, those that every audit has left out.

    A pack that reads data sets may have ``controls_for(params)``, controls for that data in the place of ``controls``;
    as it may have ``exclusions_for(params)``, exclusions of that data beside ``exclusions``.
    """
    made = getattr(pack, "controls_for", None)
    return tuple(pack.controls if made is None else made(params))


def _exclusions_of(pack: Pack, params: Mapping[str, JSON]) -> Mapping[str, str]:
    made = getattr(pack, "exclusions_for", None)
    return {**pack.exclusions, **({} if made is None else made(params))}


def plan_lines(plan: Mapping[str, JSON]) -> List[str]:
    """Write a plan as lines that survive a container's log."""
    return pack_lines(LINE_PREFIX, canonical(dict(plan)))


def read_plan_lines(lines: Iterable[str]) -> str:
    """Return the canonical text of a plan from a log; ``ValueError`` where there is none, or not the whole."""
    return unpack_lines(LINE_PREFIX, lines, "plan")


def pack_lines(prefix: str, text: str) -> List[str]:
    """Write ASCII text as lines of a log that start with ``prefix``."""
    packed = base64.b64encode(zlib.compress(text.encode("ascii"), 9)).decode("ascii")
    return [prefix + packed[start : start + _LINE] for start in range(0, len(packed), _LINE)]


def unpack_lines(prefix: str, lines: Iterable[str], what: str) -> str:
    """Return the text of ``pack_lines`` from a log; ``ValueError`` names ``what`` is missing or damaged."""
    packed = "".join(line[len(prefix) :].strip() for line in lines if line.startswith(prefix))
    if not packed:
        raise ValueError(f"the log has no {what} in it")
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(packed, validate=True), _MAX_PLAN_BYTES)
    except (ValueError, zlib.error) as error:
        raise ValueError(f"the {what} in the log is damaged: {error}") from None
    if not unpacker.eof:
        raise ValueError(f"the {what} in the log is cut, or larger than 64 MiB")
    return data.decode("ascii")


def _generate(pack: Pack, seed: int, params: Mapping[str, JSON], kinds: Mapping[str, Any]) -> Sequence[Case]:
    cases = list(pack.cases(seed, params))
    check_cases(pack, seed, cases, kinds)
    again = [case.sha256 for case in pack.cases(seed, params)]
    if again != [case.sha256 for case in cases]:
        raise PlanRefused(f"cases({seed}) gave other cases when called again; draw only from random.Random(seed)")
    return cases


def _contract_sha256(pack: Pack) -> str:
    return sha256_bytes(pack.contract.encode("utf-8"))


def _case_row(seed: int, case: Case) -> Dict[str, JSON]:
    return {
        "seed": seed,
        "id": case.id,
        "dimensions": list(case.dimensions),
        "kind": case.kind,
        "sha256": case.sha256,
    }


def _control_row(control: Control) -> Dict[str, JSON]:
    return {
        "name": control.name,
        "kind": control.kind,
        "target": control.target,
        "collateral": list(control.collateral),
        "protocol_fault": control.protocol_fault,
        "argv": None if control.argv is None else list(control.argv),
        "files": dict(control.files),
    }
