"""The engine where nothing can be written but a folder for what is passing, as in a pod."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

READS = """
from casewarden_tasks.agentbench_alfworld.engine import Engine, own_document
from casewarden_tasks.agentbench_alfworld.own import own_games
game = own_games()[0]
print(Engine(own_document(game.problem, game.task)).opening.text)
"""


def test_it_is_imported_and_plays_where_the_home_folder_cannot_be_written(tmp_path: Path) -> None:
    nowhere = tmp_path / "a file"
    nowhere.write_text("")
    environ = {"HOME": str(nowhere), "XDG_CACHE_HOME": str(nowhere / "cache"), "TMPDIR": str(tmp_path), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", READS], env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Your task is to: put some apple on" in done.stdout
