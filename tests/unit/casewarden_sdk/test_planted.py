from __future__ import annotations

from pathlib import Path

import pytest

from casewarden_sdk.errors import ContractError
from casewarden_sdk.planted import Fault, planted


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    for name in ("null-agent", "crashing-agent"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "main.py").write_text(f"# {name}\n")
    return tmp_path


def test_a_fault_is_the_reference_with_its_passage_replaced_and_nothing_else(programs: Path) -> None:
    made = planted("a = 1\nb = 2\n", programs, [Fault("off", "sum", "b = 2", "b = 3", ("rest",), breaks=True)])
    assert [(one.name, one.files["main.py"]) for one in made] == [
        ("reference", "a = 1\nb = 2\n"),
        ("null-agent", "# null-agent\n"),
        ("crashing-agent", "# crashing-agent\n"),
        ("off", "a = 1\nb = 3\n"),
    ]
    assert (made[3].target, tuple(made[3].collateral), made[3].protocol_fault) == ("sum", ("rest",), True)


@pytest.mark.parametrize(("reference", "times"), [("b = 2", 0), ("a = 1; a = 1", 2)])
def test_a_passage_that_is_not_there_exactly_once_is_named(programs: Path, reference: str, times: int) -> None:
    with pytest.raises(ContractError, match=f"fault 'off': 'a = 1' is {times} times in the reference"):
        planted(reference, programs, [Fault("off", "sum", "a = 1", "a = 2")])
