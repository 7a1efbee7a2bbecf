"""Records graded again: equal graders change nothing, another one is held to what it changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from support.evidence import finished_run, grade, regrade

from casewarden.adapters.stores.zstd import decompress
from casewarden.core.bundle_check import Bundle
from casewarden.core.regrade import regrade_run
from casewarden_sdk.contract import Case


def lenient(planned: Any, bundle: Bundle) -> Mapping[str, Any]:
    """Another version: it does not look at what comes after the restart."""
    case = Case(planned.id, tuple(planned.dimensions), bundle.content)
    return grade(case, {**bundle.record, "again": sum(bundle.content["numbers"])}).to_json()


def test_an_equal_grader_changes_no_byte_of_a_verdict() -> None:
    result = regrade_run(finished_run().files.get, decompress, regrade)
    assert (result.graded, result.kept, list(result.changes)) == (4, 0, [])
    assert result.after == result.before


def test_another_grader_is_told_by_the_cases_that_it_judges_otherwise_and_by_the_score() -> None:
    result = regrade_run(finished_run().files.get, decompress, lenient)
    (change,) = result.changes
    assert (change.case, change.before["status"], change.after["status"]) == ("17/restart/0", "failed", "passed")
    assert (result.before["score"], result.after["score"]) == ("0.625", "1")


def test_a_bundle_that_is_not_there_is_named() -> None:
    run = finished_run()
    del run.files["17/add/0/1.tar.zst"]
    with pytest.raises(ValueError, match=r"17/add/0/1\.tar\.zst is missing"):
        regrade_run(run.files.get, decompress, regrade)
