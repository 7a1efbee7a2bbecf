"""AgentBench's own configuration files convert as the copies of them that the unit tests have."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from support.agentbench_data import DATA

from casewarden.cli.agentbench_config import Loader
from casewarden.cli.agentbench_convert import convert

GOLDEN = Path(__file__).resolve().parents[2] / "unit" / "cli" / "agentbench" / "golden" / "default.yaml"


def test_the_default_preset_of_the_checkout_becomes_the_golden_file() -> None:
    assert DATA is not None
    made = convert(Loader().load(DATA / "configs" / "assignments" / "default.yaml"), "agentbench")
    golden = yaml.safe_load(GOLDEN.read_text())
    assert (made.runs, made.values, made.secrets) == (golden["runs"], golden["values"], golden["secrets"])


@pytest.mark.parametrize("split", ["dev", "std"])
def test_every_task_of_the_checkout_becomes_a_run(split: str) -> None:
    assert DATA is not None
    config = Loader().load(DATA / "configs" / "assignments" / "default.yaml")
    tasks = [name for name in config["definition"]["task"] if name.endswith(f"-{split}")]
    made = convert(
        {
            **config,
            "concurrency": {"agent": {"vicuna-7b": 2}, "task": dict.fromkeys(tasks, 1)},
            "assignments": [{"agent": "vicuna-7b", "task": tasks}],
        },
        "agentbench",
    )
    assert len(made.runs) == len(tasks) == 8
    assert {run["spec"]["task"]["name"] for run in made.runs} == {
        f"agentbench-{name}" for name in ("os", "db", "kg", "dcg", "ltp", "alfworld", "webshop", "mind2web")
    }
    assert not [note for note in made.notes if "none of AgentBench's eight" in note]
