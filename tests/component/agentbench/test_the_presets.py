"""AgentBench's own configuration files convert as the copies of them that the unit tests have."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest
import yaml
from support.agentbench_data import DATA

import casewarden_tasks
from casewarden.cli.agentbench_config import Loader
from casewarden.cli.agentbench_convert import Converted, convert
from casewarden_sdk.agentbench.dataset import VARIABLE

GOLDEN = Path(__file__).resolve().parents[2] / "unit" / "cli" / "agentbench" / "golden" / "default.yaml"


def test_the_default_preset_of_the_checkout_becomes_the_golden_file() -> None:
    assert DATA is not None
    made = convert(Loader().load(DATA / "configs" / "assignments" / "default.yaml"), "agentbench")
    golden = yaml.safe_load(GOLDEN.read_text())
    assert (made.runs, made.values, made.secrets) == (golden["runs"], golden["values"], golden["secrets"])


def runs_of(split: str) -> Converted:
    assert DATA is not None
    config = Loader().load(DATA / "configs" / "assignments" / "default.yaml")
    tasks = [name for name in config["definition"]["task"] if name.endswith(f"-{split}")]
    return convert(
        {
            **config,
            "concurrency": {"agent": {"vicuna-7b": 2}, "task": dict.fromkeys(tasks, 1)},
            "assignments": [{"agent": "vicuna-7b", "task": tasks}],
        },
        "agentbench",
    )


@pytest.mark.parametrize("split", ["dev", "std"])
def test_every_task_of_the_checkout_becomes_a_run(split: str) -> None:
    made = runs_of(split)
    assert len(made.runs) == 8
    assert {run["spec"]["task"]["name"] for run in made.runs} == {
        f"agentbench-{name}" for name in ("os", "db", "kg", "dcg", "ltp", "alfworld", "webshop", "mind2web")
    }
    assert not [note for note in made.notes if note.startswith("task ")]


def test_the_packs_take_the_parameters_that_are_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, json.dumps({"agentbench": {"path": str(DATA)}}))
    here = {path.parent.name for path in Path(casewarden_tasks.__file__).parent.glob("agentbench_*/__init__.py")}
    for run in runs_of("dev").runs:
        task = run["spec"]["task"]
        module = task["name"].replace("-", "_")
        # Games, records and a catalogue are not in AgentBench's own repository, and the ontology is packed here.
        if module in here - {f"agentbench_{name}" for name in ("alfworld", "kg", "mind2web", "webshop")}:
            assert importlib.import_module(f"casewarden_tasks.{module}").PACK.cases(0, task["params"])
