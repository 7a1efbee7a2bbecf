from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from devkit.api import Api, ApiError
from devkit.init import FIRST_PAUSE, Init, Kept


class NoApi(Api):
    """An API server that is not there yet."""

    def __init__(self) -> None:
        self.there = False

    def raw(self, method: str, path: str, body: object = None, content: str = "") -> str:
        if not self.there:
            raise ApiError(0, "no answer")
        return "ok"


@pytest.fixture
def init(tmp_path: Path) -> Init:
    (tmp_path / "run").mkdir()
    (tmp_path / "log").mkdir()
    return Init(tmp_path, "node", NoApi(), [])


def unit(name: str, code: str, *gates: str) -> Kept:
    return Kept(name, [sys.executable, "-c", code], list(gates), {})


def turn_until(init: Init, done: Callable[[], object], seconds: float = 20) -> None:
    limit = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < limit
        init.turn(time.monotonic())
        time.sleep(0.01)


def status(init: Init) -> dict[str, dict[str, object]]:
    return json.loads((init.root / "run" / "status.json").read_text())  # type: ignore[no-any-return]


def test_a_unit_is_started_when_its_gates_are_open(init: Init) -> None:
    init.units.append(unit("one", "print('here')", "file:ready"))
    init.turn(time.monotonic())
    assert init.units[0].starts == 0
    (init.root / "run" / "ready").touch()
    turn_until(init, lambda: init.units[0].last_code == 0)
    assert (init.root / "log" / "one.log").read_text() == "here\n"


def test_a_unit_that_ends_is_started_again_after_a_growing_pause(init: Init) -> None:
    init.units.append(unit("one", "raise SystemExit(7)"))
    turn_until(init, lambda: init.units[0].starts == 2)
    assert init.units[0].last_code == 7
    assert init.units[0].pause == 2 * FIRST_PAUSE
    assert status(init)["one"]["restarts"] == 1


def test_a_unit_that_waits_is_shown_with_what_it_waits_for(init: Init) -> None:
    init.units.append(unit("one", "pass", "api:/readyz", "file:ready"))
    init.write_status()
    assert status(init)["one"]["waits_for"] == ["api:/readyz", "file:ready"]


def test_gates_of_every_kind_open_with_what_they_stand_for(init: Init, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as local, socket.socket() as tcp:
        tcp.bind(("127.0.0.1", 0))
        gates = ["file:x", f"socket:{tmp_path}/s", f"tcp:127.0.0.1:{tcp.getsockname()[1]}", "api:/readyz"]
        assert [init.gate_is_open(gate) for gate in gates] == [False] * 4
        (tmp_path / "run" / "x").touch()
        local.bind(f"{tmp_path}/s")
        local.listen()
        tcp.listen()
        init.api.there = True  # type: ignore[attr-defined]
        assert [init.gate_is_open(gate) for gate in gates] == [True] * 4


def test_a_gate_that_was_open_stays_open_so_that_restarts_are_quick(init: Init) -> None:
    file = init.root / "run" / "x"
    file.touch()
    assert init.gate_is_open("file:x")
    file.unlink()
    assert init.gate_is_open("file:x")


def test_a_unit_comes_and_goes_with_its_file(init: Init) -> None:
    extra = init.root / "run" / "extra"
    extra.mkdir()
    argv = [sys.executable, "-c", "import time; time.sleep(600)"]
    (extra / "kwok.json").write_text(json.dumps({"argv": argv, "gates": [], "env": {}}))
    turn_until(init, lambda: init.units and init.units[0].process is not None)
    assert status(init)["kwok"]["running"]
    process = init.units[0].process
    (extra / "kwok.json").unlink()
    turn_until(init, lambda: not init.units)
    assert process is not None
    assert process.returncode == -9
    assert "kwok" not in status(init)
