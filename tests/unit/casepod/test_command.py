"""The run's command wins over the workspace's, and that over the pack's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden.casepod.command import candidate_environment, manifest_argv, resolve_argv
from casewarden.casepod.settings import CandidateSettings, Places
from casewarden_sdk.errors import CandidateError

PACK = CandidateSettings(argv=None, default_argv=("{python}", "main.py", "{state}/store.db"))
RUN = CandidateSettings(argv=("./serve", "{workspace}/x"), default_argv=("no",))


def places(folder) -> Places:
    return Places(own_workspace=str(folder))


def manifest(folder, text):
    (folder / "evalarc.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder / "evalarc.toml"


def test_the_packs_default_is_used_where_nobody_says_otherwise(tmp_path):
    assert resolve_argv(PACK, places(tmp_path), None) == ["python3", "main.py", "/state/store.db"]
    assert resolve_argv(PACK, places(tmp_path), ["{python}", "-I"]) == ["python3", "-I"]


def test_the_workspaces_manifest_wins_over_the_pack_and_the_run_over_both(tmp_path):
    manifest(tmp_path, 'command = ["node", "{workspace}/agent.js"]')
    assert resolve_argv(PACK, places(tmp_path), ["x"]) == ["node", "/candidate/agent.js"]
    assert resolve_argv(RUN, places(tmp_path), ["x"]) == ["./serve", "/candidate/x"]


def test_a_folder_without_a_manifest_has_no_command(tmp_path):
    assert manifest_argv(tmp_path / "evalarc.toml") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "one key, command"),
        ('command = ["a"]\nimage = "x"', "one key, command"),
        ('command = "sh -c x"', "list of 1 to 64 words"),
        ("command = []", "list of 1 to 64 words"),
        (f"command = {['a'] * 65}", "list of 1 to 64 words"),
        ('command = ["a", ""]', "non-empty text"),
        ('command = ["a", 1]', "non-empty text"),
        ('command = ["a\\u0000"]', "non-empty text"),
        (f'command = ["{"a" * 8193}"]', "at most 8192 characters"),
        ("command = [", "no TOML"),
        (b"\xff", "no TOML"),
        ("command = " + "[" * 20000, "no TOML|one key"),
        ("# " + "x" * 70000, "at most 64 KiB"),
    ],
)
def test_a_manifest_that_is_none_is_the_candidates_mistake(tmp_path, text, message):
    with pytest.raises(CandidateError, match=message) as caught:
        manifest_argv(manifest(tmp_path, text))
    assert caught.value.reason == "CannotStartProgram"


def test_a_folder_in_the_manifests_place_is_the_candidates_mistake(tmp_path):
    (tmp_path / "evalarc.toml").mkdir()
    with pytest.raises(CandidateError, match="cannot be read"):
        manifest_argv(tmp_path / "evalarc.toml")


@given(st.lists(st.text(alphabet="{}python state", min_size=1, max_size=9), min_size=1, max_size=4))
def test_no_word_of_a_command_is_ever_split_or_dropped(words):
    made = CandidateSettings(argv=tuple(words), default_argv=("x",))
    assert len(resolve_argv(made, Places(), None)) == len(words)


def test_the_candidate_sees_nothing_of_the_recorders_environment(monkeypatch):
    monkeypatch.setenv("CASEWARDEN_ATTEMPT", "secret")
    own = CandidateSettings(argv=None, default_argv=("x",), env=(("A", "b"), ("HOME", "/state")))
    found = candidate_environment(own, Places(path="/bin"))
    assert found == {"PATH": "/bin", "LANG": "C.UTF-8", "HOME": "/state", "A": "b"}
