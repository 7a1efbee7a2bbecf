"""agentbench-dcg and agentbench-ltp in real pods: their audits, models that play them, and a judge that fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.kubectl import Kubectl, condition, evalrun
from support.offers import image_of
from support.scripted import scripted_models

GAMES = {"name": "agentbench-dcg", "params": {"test_time": 1}}
JUDGE = {"judge": {"endpoint": "scripted", "name": "puzzle-judge"}}
# A puzzle of two parts, and one of five.
PUZZLES = {"name": "agentbench-ltp", "params": {"indices": [0, 21]}, "models": JUDGE}


@pytest.fixture(scope="module", autouse=True)
def _models(kubectl: Kubectl) -> Iterator[None]:
    with scripted_models(kubectl, image_of(kubectl, "python")):
        yield


def audit(namespace: str, name: str, task: dict[str, Any], seed: int) -> dict[str, Any]:
    return {
        "apiVersion": "casewarden.dev/v1alpha1",
        "kind": "AuditRun",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "task": task, "seeds": {"values": [seed]}, "referenceRepeats": 1, "parallelism": 6, "strict": True,
        },
    }  # fmt: skip


@pytest.fixture(scope="module")
def audits(kubectl: Kubectl, module_namespace: str) -> dict[str, dict[str, Any]]:
    """The statuses of both audits, which run side by side."""
    kubectl.apply(audit(module_namespace, "games", GAMES, 17), audit(module_namespace, "puzzles", PUZZLES, 0))

    def over(name: str) -> dict[str, Any] | None:
        status = kubectl.get("auditrun", module_namespace, name).get("status") or {}
        return status if condition(status, "Finished") == "True" else None

    return {
        name: kubectl.until(lambda name=name: over(name), 290, lambda: kubectl.picture(module_namespace))
        for name in ("games", "puzzles")
    }


def test_the_audit_of_the_games_catches_every_fault_and_the_witness_wins_them_all(
    audits: dict[str, dict[str, Any]],
) -> None:
    status = audits["games"]
    assert (status["valid"], status["passed"], status["killed"], status["weakestMargin"]) == (True, True, "6/6", 4), (
        status
    )
    assert (status["referenceScore"], status["floors"]["null-agent"]) == ("1", "0")


def test_the_audit_of_the_puzzles_catches_every_fault_and_its_reference_finds_every_part(
    audits: dict[str, dict[str, Any]],
) -> None:
    status = audits["puzzles"]
    assert (status["valid"], status["passed"], status["killed"], status["weakestMargin"]) == (True, True, "7/7", 2), (
        status
    )
    assert (status["referenceScore"], status["floors"]["null-agent"]) == ("1", "0")


def test_a_model_plays_both_to_their_ends_and_a_judge_of_nonsense_is_nobodys_score(
    kubectl: Kubectl, module_namespace: str
) -> None:
    def play(name: str, task: dict[str, Any], model: str, **spec: Any) -> dict[str, Any]:
        return evalrun(
            module_namespace, name, task=task, seeds={"values": [0]},
            candidate={"model": {"endpoint": "scripted", "name": model}}, **spec,
        )  # fmt: skip

    nonsense = {**PUZZLES, "models": {"judge": {"endpoint": "scripted", "name": "nonsense-judge"}}}
    kubectl.apply(
        play("plays-games", GAMES, "game-player"),
        play("asks", {**PUZZLES, "params": {"indices": [0], "judgeRepeats": 3}}, "puzzle-player"),
        play("nonsense", {**nonsense, "params": {"indices": [0]}}, "puzzle-player", retries={"environment": 0}),
    )
    games, asks, lost = (kubectl.finished(module_namespace, name) for name in ("plays-games", "asks", "nonsense"))
    assert (games["valid"], games["cases"]["agentErrors"]) == (True, 0), games
    assert 0 < float(games["score"]) <= 1
    assert (asks["score"], asks["cases"]["failed"]) == ("0", 1), asks
    # 25 questions, each judged three times, and counted apart from the model that asked them.
    assert asks["usage"]["modelCalls"] == 25
    assert asks["usage"]["models"]["judge"]["modelCalls"] == 75
    assert (lost["valid"], lost["cases"]["environmentErrors"]) == (False, 1), lost
    assert "score" not in lost
    assert "the judge answered 'Perhaps.'" in lost["failures"][0]["error"]
