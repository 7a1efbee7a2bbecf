"""What a plan is refused for. Every message names the field, the value and the cure."""

from __future__ import annotations

import math
import os
import re
from decimal import Decimal, InvalidOperation
from typing import Any, Container, Dict, List, Mapping, Optional, Sequence, Tuple

from .canonical import canonical
from .contract import Case, Control, Limits, Pack
from .errors import ContractError

__all__ = [
    "PlanRefused", "check_cases", "check_controls", "check_coverage", "check_models", "check_pack", "check_seeds",
]  # fmt: skip

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")
_DIMENSION = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}\Z")
_FLAT_NAME = re.compile(r"(?!\.\.?\Z)[A-Za-z0-9._-]{1,253}\Z")
_PROTOCOLS = ("jsonl", "chat")
_CANDIDATES = ("program", "server", "model")
_PROFILES = ("restricted", "baseline")
_CONTROL_BYTES = 1 << 20
_MODELS = 4


class PlanRefused(ContractError):
    """A plan cannot be made; ``field`` names the field of the run that is to blame, where there is one."""

    def __init__(self, message: str, field: Optional[str] = None) -> None:
        super().__init__(message)
        self.field = field


def check_seeds(seeds: Sequence[int]) -> None:
    """Require one or more different integers."""
    bad = [seed for seed in seeds if not isinstance(seed, int) or isinstance(seed, bool)]
    if bad or not seeds:
        raise PlanRefused(f"seeds {list(seeds)!r}: give one or more integers", "spec.seeds")
    if len(set(seeds)) != len(seeds):
        raise PlanRefused(f"seeds {list(seeds)!r}: a seed is named twice; use repeats to run it again", "spec.seeds")


def check_pack(pack: Pack, kinds: Mapping[str, Any]) -> None:
    """Require what a pack says of itself to be whole."""
    if not _NAME.match(pack.id):
        raise PlanRefused(f"id {pack.id!r}: use lower-case letters, digits and '-', at most 63")
    for name in ("version", "description", "contract", "aggregation"):
        if not isinstance(getattr(pack, name), str) or not getattr(pack, name).strip():
            raise PlanRefused(f"{name} is {getattr(pack, name)!r}; give a text")
    if pack.protocol not in _PROTOCOLS:
        raise PlanRefused(f"protocol {pack.protocol!r}: use one of {', '.join(_PROTOCOLS)}")
    if not pack.candidates or set(pack.candidates) - set(_CANDIDATES):
        raise PlanRefused(f"candidates {pack.candidates!r}: use one or more of {', '.join(_CANDIDATES)}")
    if not pack.default_argv or not all(isinstance(word, str) and word for word in pack.default_argv):
        raise PlanRefused(f"default_argv {pack.default_argv!r}: give the command as one or more words")
    _check_weights(pack.dimensions)
    _check_limits(pack.limits)
    _check_sources(pack.sources)
    _check_kinds(kinds)
    for name, meaning in getattr(pack, "grader_checks", {}).items():
        if not _NAME.match(name) or not isinstance(meaning, str) or not meaning.strip():
            raise PlanRefused(f"grader_checks[{name!r}] is {meaning!r}; name it in lower case, and say what it checks")


def check_models(models: Mapping[str, str]) -> None:
    """Require the models that a driver asks to have roles that can be names, and a text that says what for."""
    if len(models) > _MODELS:
        raise PlanRefused(f"models {sorted(models)}: a pack asks at most {_MODELS}")
    for role, purpose in models.items():
        # The candidate's own model is called that in transcripts.
        if not isinstance(role, str) or not _NAME.match(role) or role == "model":
            raise PlanRefused(f"models: role {role!r}: use lower-case letters, digits and '-', and not 'model'")
        if not isinstance(purpose, str) or not purpose.strip():
            raise PlanRefused(f"models: {role} is {purpose!r}; say in a text what the model is for")


def check_cases(pack: Pack, seed: int, cases: Sequence[Case], kinds: Container[str]) -> None:
    """Require the cases of one seed to be different, in known dimensions, and plain JSON."""
    if len(cases) != len({case.id for case in cases}):
        twice = sorted(case.id for case in cases if [other.id for other in cases].count(case.id) > 1)[0]
        raise PlanRefused(f"cases({seed}): the case id {twice!r} is there twice; an id is a family, once per seed")
    for case in cases:
        unknown = [name for name in case.dimensions if name not in pack.dimensions]
        if unknown:
            raise PlanRefused(f"case {case.id!r}: dimension {unknown[0]!r} is none of {sorted(pack.dimensions)}")
        if case.kind not in kinds:
            raise PlanRefused(f"case {case.id!r}: kind {case.kind!r} is not among the pack's kinds; declare it")
        if case.content.get("seed", seed) != seed:
            raise PlanRefused(f"case {case.id!r}: content['seed'] is not {seed}; the evaluator adds the seed, drop it")
        try:
            canonical(dict(case.content))
        except (TypeError, ValueError) as error:
            raise PlanRefused(f"case {case.id!r}: content is no plain JSON: {error}") from None


def check_coverage(
    pack: Pack,
    seeds: Sequence[int],
    planned: Sequence[Tuple[int, Case]],
    families: Sequence[str],
    known: Mapping[str, None],
) -> None:
    """Require every named family to exist, and every dimension to have a check for every seed."""
    unknown = [name for name in families if name not in known]
    if unknown:
        field = "spec.select.families"
        raise PlanRefused(f"{field}: no family {unknown[0]!r}; there are {', '.join(sorted(known))}", field)
    covered: Dict[int, List[str]] = {seed: [] for seed in seeds}
    for seed, case in planned:
        covered[seed].extend(case.dimensions)
    for seed in seeds:
        for dimension in pack.dimensions:
            if dimension in covered[seed]:
                continue
            if families:
                field = "spec.select.families"
                raise PlanRefused(
                    f"{field}: {list(families)!r} leave dimension {dimension!r} without a check for seed {seed}; "
                    "add a family that checks it, or select none to run all",
                    field,
                )
            raise PlanRefused(f"dimension {dimension!r} has no check for seed {seed}; add a case or drop the dimension")


def check_controls(pack: Pack, controls: Sequence[Control]) -> None:
    """Require different names, known dimensions, flat files, and a fault for every dimension or a reason for none."""
    names = [control.name for control in controls]
    if len(set(names)) != len(names):
        raise PlanRefused(f"controls {names!r}: a name is there twice; rename one")
    for control in controls:
        where = f"control {control.name!r}"
        if not _NAME.match(control.name):
            raise PlanRefused(f"{where}: use lower-case letters, digits and '-' in its name, at most 63")
        for dimension in (*((control.target,) if control.target else ()), *control.collateral):
            if dimension not in pack.dimensions:
                raise PlanRefused(f"{where}: dimension {dimension!r} is none of {sorted(pack.dimensions)}")
        bad = [name for name in control.files if not _FLAT_NAME.match(name)]
        if bad or not control.files:
            raise PlanRefused(f"{where}: files {sorted(control.files)!r}: give one or more flat names")
        if sum(len(text.encode("utf-8")) for text in control.files.values()) > _CONTROL_BYTES:
            raise PlanRefused(f"{where}: its files are over {_CONTROL_BYTES} bytes; put data into the image")
    targets = {control.target for control in controls if control.kind == "fault"}
    if not targets:
        raise PlanRefused("controls: no fault is declared, so an audit could show nothing; add one per dimension")
    reasons: Mapping[str, str] = getattr(pack, "unfaulted", {})
    for dimension in pack.dimensions:
        if dimension not in targets and not reasons.get(dimension, "").strip():
            raise PlanRefused(
                f"dimension {dimension!r} has no fault control; add one, or say why in unfaulted[{dimension!r}]"
            )


def _check_weights(dimensions: Mapping[str, str]) -> None:
    total = Decimal(0)
    for name, weight in dimensions.items():
        if not _DIMENSION.match(name):
            raise PlanRefused(f"dimension {name!r}: use letters, digits, '_', '.' and '-', a letter first, at most 63")
        try:
            value = Decimal(weight) if isinstance(weight, str) else Decimal("NaN")
        except InvalidOperation:
            value = Decimal("NaN")
        if not value.is_finite() or not 0 <= value <= 1:
            raise PlanRefused(f"dimensions[{name!r}] is {weight!r}; give a decimal string from 0 to 1")
        total += value
    if total != 1:
        raise PlanRefused(f"dimensions: the weights sum to {total}; they must sum to 1")


def _check_limits(limits: Limits) -> None:
    for name, value in limits.__dict__.items():
        if value is None and name in ("actions", "tokens"):
            continue
        whole = not name.endswith("_seconds")
        kinds = (int,) if whole else (int, float)
        if not isinstance(value, kinds) or isinstance(value, bool) or not math.isfinite(value) or value <= 0:
            raise PlanRefused(f"limits.{name} is {value!r}; give a positive {'integer' if whole else 'number'}")


def _check_sources(sources: Sequence[str]) -> None:
    if not sources:
        raise PlanRefused("sources is empty; list every file that grading depends on")
    for source in sources:
        if not os.path.isfile(source):
            raise PlanRefused(f"sources: no file {source!r}; give the path of a file, os.path.join from __file__")


def _check_kinds(kinds: Mapping[str, Any]) -> None:
    for kind, containers in kinds.items():
        where = f"kinds[{kind!r}]"
        if not isinstance(containers, Mapping) or set(containers) - {"candidate", "environments"}:
            raise PlanRefused(f"{where} is {containers!r}; it has candidate and environments, and nothing else")
        candidate = containers.get("candidate")
        if candidate is not None and (set(candidate) != {"image"} or not candidate["image"]):
            raise PlanRefused(f"{where}.candidate is {candidate!r}; give its image, or null where there is none")
        for number, environment in enumerate(containers.get("environments", ())):
            _check_environment(f"{where}.environments[{number}]", environment)


def _check_environment(where: str, environment: Mapping[str, Any]) -> None:
    if set(environment) - {"name", "image", "profile", "memory_mib", "argv"} or not environment.get("image"):
        raise PlanRefused(f"{where} is {dict(environment)!r}; it has name, image, profile, memory_mib and argv")
    if not _NAME.match(str(environment.get("name"))):
        raise PlanRefused(f"{where}.name {environment.get('name')!r}: use lower-case letters, digits and '-'")
    if environment.get("profile", "restricted") not in _PROFILES:
        raise PlanRefused(f"{where}.profile {environment['profile']!r}: use one of {', '.join(_PROFILES)}")
    memory = environment.get("memory_mib", 256)
    if not isinstance(memory, int) or isinstance(memory, bool) or memory < 1:
        raise PlanRefused(f"{where}.memory_mib {memory!r}: give a positive integer, mebibytes")
