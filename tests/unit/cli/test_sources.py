from __future__ import annotations

from pathlib import Path

import pytest

from casewarden.cli.failure import Failure
from casewarden.cli.sources import FolderFiles, find_folder, list_files, parse_object


def run_in(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "meta.json").write_text("{}")
    return folder


def test_a_folder_of_a_run_is_found_by_itself_and_through_the_store_that_holds_it(tmp_path: Path) -> None:
    run = run_in(tmp_path / "out" / "runs" / "uid")

    for target in (run, tmp_path / "out" / "runs", tmp_path / "out"):
        assert find_folder(str(target)) == run


def test_of_several_runs_one_must_be_named(tmp_path: Path) -> None:
    run_in(tmp_path / "runs" / "one")
    run_in(tmp_path / "runs" / "two")

    with pytest.raises(Failure, match=r"holds 2 runs; give one of them, such as .*/one"):
        find_folder(str(tmp_path))


def test_a_name_is_a_run_of_the_cluster_even_beside_a_folder_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kv").mkdir()

    assert find_folder("kv") is None
    assert find_folder("kv-other") is None


@pytest.mark.parametrize("target", ["./kv", "a/b", "/nowhere"])
def test_a_path_that_leads_nowhere_is_said_to(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Failure, match="no such folder"):
        find_folder(target)


async def test_nothing_outside_the_folder_is_read(tmp_path: Path) -> None:
    run = run_in(tmp_path / "run")
    (tmp_path / "secret").write_text("secret")
    (run / "link").symlink_to(tmp_path / "secret")
    (run / "folder").symlink_to(tmp_path)
    files = FolderFiles(run)

    for path in ("link", "../secret", "folder/secret"):
        with pytest.raises(Failure, match="a run has no links"):
            await files.read(path)
    assert list_files(run) == ["folder", "link", "meta.json"]
    assert await files.read("absent") is None


@pytest.mark.parametrize("data", [None, b"", b"[]", b"{", b"[" * 100_000, b"\xff"])
def test_what_is_no_object_is_one_line(data: bytes | None) -> None:
    with pytest.raises(Failure, match=r"plan\.json"):
        parse_object(data, "plan.json")
