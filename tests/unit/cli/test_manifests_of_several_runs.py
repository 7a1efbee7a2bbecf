from __future__ import annotations

from pathlib import Path

import pytest

from casewarden.cli.endpoints import LocalEndpoints
from casewarden.cli.failure import Failure
from casewarden.cli.local_runs import run_file
from casewarden.cli.manifests import load_run, load_runs
from casewarden.cli.printing import Output

TWO = """
kind: EvalRun
metadata: {name: one}
---
kind: ConfigMap
metadata: {name: files}
---
kind: EvalRun
metadata: {name: two}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "two.yaml").write_text(TWO)
    return str(tmp_path / "two.yaml")


def test_every_run_of_a_file_is_found_in_order_with_what_stands_beside_them(file: str) -> None:
    runs, beside = load_runs(file)
    assert [run["metadata"]["name"] for run in runs] == ["one", "two"]
    assert [document["kind"] for document in beside] == ["ConfigMap"]


def test_where_one_run_is_meant_a_file_with_two_is_refused(file: str) -> None:
    with pytest.raises(Failure, match="holds 2 runs; give one at a time"):
        load_run(file)


async def test_one_folder_for_two_runs_is_refused(file: str, tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"--workspace is one run's, and .* holds 2"):
        await run_file(file, tmp_path, None, tmp_path, Output("table"), LocalEndpoints())
