"""A candidate's folder: one digest, wherever its files come from, and nothing in it that could leave it."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden_sdk.workspace import (
    MAX_BYTES,
    MAX_FILES,
    WorkspaceError,
    WorkspaceFile,
    digest_workspace,
    pack_workspace,
    read_workspace,
    unpack_workspace,
    workspace_of,
    write_workspace,
)


def compress(data: bytes) -> bytes:
    return zlib.compress(data)


def decompress(data: bytes, limit: int) -> bytes:
    try:
        text = zlib.decompressobj().decompress(data, limit + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if len(text) > limit:
        raise ValueError("too large")
    return text


_PART = st.text(alphabet="ab.-é ", min_size=1, max_size=4).filter(lambda part: part not in (".", ".."))
_NAME = st.lists(_PART, min_size=1, max_size=3).map("/".join)


def whole(files: dict[str, tuple[bytes, bool]]) -> list[WorkspaceFile]:
    return [WorkspaceFile(name, 0o755 if runs else 0o644, data) for name, (data, runs) in files.items()]


def no_file_below_a_file(files: dict[str, object]) -> bool:
    return not any(other.startswith(f"{name}/") for name in files for other in files)


_FILES = st.dictionaries(_NAME, st.tuples(st.binary(max_size=40), st.booleans()), min_size=1, max_size=5).filter(
    no_file_below_a_file
)


@given(_FILES)
def test_folder_archive_and_what_is_unpacked_have_one_digest(tmp_path_factory, files):
    original = whole(files)
    folder = tmp_path_factory.mktemp("workspace")
    write_workspace(original, folder)
    read = read_workspace(folder)
    unpacked = unpack_workspace(pack_workspace(read, compress), decompress)
    assert read == unpacked == sorted(original, key=lambda file: file.name.encode())
    assert digest_workspace(original) == digest_workspace(read)


@given(_FILES, _FILES)
def test_other_files_have_another_digest(one, other):
    assert (digest_workspace(whole(one)) == digest_workspace(whole(other))) == (one == other)


def test_the_digest_is_the_one_that_is_written_down():
    files = [WorkspaceFile("b.py", 0o644, b"x"), WorkspaceFile("a", 0o755, b"")]
    framed = b"".join(
        len(name).to_bytes(8, "big") + name + mode.to_bytes(2, "big") + len(data).to_bytes(8, "big") + data
        for name, mode, data in ((b"a", 0o755, b""), (b"b.py", 0o644, b"x"))
    )
    assert digest_workspace(files) == hashlib.sha256(framed).hexdigest()


def test_a_config_map_and_a_folder_with_the_same_files_are_the_same_candidate(tmp_path):
    (tmp_path / "main.py").write_bytes(b"print(1)")
    assert digest_workspace(workspace_of([("main.py", b"print(1)")])) == digest_workspace(read_workspace(tmp_path))


def test_version_control_environments_and_caches_are_left_out(tmp_path):
    for name in (".git/config", ".venv/bin/python", "a/__pycache__/x.pyc", "main.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    assert [file.name for file in read_workspace(tmp_path)] == ["main.py"]


def links(folder: Path) -> None:
    (folder / "link").symlink_to("/etc/passwd")


def folder_link(folder: Path) -> None:
    (folder / "link").symlink_to("/etc", target_is_directory=True)


def pipe(folder: Path) -> None:
    os.mkfifo(folder / "pipe")


def nothing(folder: Path) -> None:
    (folder / "empty").mkdir()


def too_many(folder: Path) -> None:
    for number in range(MAX_FILES + 1):
        (folder / str(number)).touch()


def too_much(folder: Path) -> None:
    with (folder / "big").open("wb") as file:
        file.truncate(MAX_BYTES + 1)


def no_utf8(folder: Path) -> None:
    (Path(os.fsdecode(os.fsencode(folder) + b"/\xff"))).touch()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (links, "link: is a link"),
        (folder_link, "link: is a link"),
        (pipe, "pipe: is no regular file"),
        (nothing, "has no file"),
        (too_many, "over 1000 files or 10 MiB"),
        (too_much, "over 1000 files or 10 MiB"),
        (no_utf8, "not UTF-8"),
    ],
)
def test_a_folder_with_what_may_not_be_in_it_is_refused(tmp_path, make, message):
    make(tmp_path)
    with pytest.raises(WorkspaceError, match=message):
        read_workspace(tmp_path)


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(WorkspaceError, match="no such folder"):
        read_workspace(tmp_path / "nope")


def archive(*entries: tarfile.TarInfo, data: bytes = b"") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as out:
        for entry in entries:
            entry.size = len(data) if entry.isreg() else 0
            out.addfile(entry, io.BytesIO(data))
    return compress(buffer.getvalue())


def entry(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, target
    return made


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (archive(entry("../x")), "no plain path"),
        (archive(entry("/etc/x")), "no plain path"),
        (archive(entry("a//b")), "no plain path"),
        (archive(entry("a/./b")), "no plain path"),
        (archive(entry("a"), entry("a")), "is there twice"),
        (archive(entry("a"), entry("a/b")), "lies below a file"),
        (archive(entry("a", tarfile.SYMTYPE, "/etc/passwd")), "no regular file"),
        (archive(entry("a", tarfile.LNKTYPE, "b")), "no regular file"),
        (archive(entry("a", tarfile.DIRTYPE)), "no regular file"),
        (archive(entry("a", tarfile.CHRTYPE)), "no regular file"),
        (archive(entry("a/.git/config")), "never part"),
        (archive(), "has no file"),
        (archive(entry("a"), data=b"x" * (MAX_BYTES + 1)), "over 1000 files"),
        (archive(*(entry(str(n)) for n in range(MAX_FILES + 1))), "over 1000 files"),
        (b"no archive", "cannot be decompressed"),
        (compress(b"x" * 2000), "no tar archive"),
        (compress(b"\0" * (30 << 20)), "cannot be decompressed|no file"),
    ],
)
def test_an_archive_that_could_leave_its_folder_is_refused_before_anything_is_written(data, message):
    with pytest.raises(WorkspaceError, match=message):
        unpack_workspace(data, decompress)


def test_equal_files_give_equal_archives():
    one = [WorkspaceFile("b", 0o644, b"1"), WorkspaceFile("a", 0o755, b"2")]
    assert pack_workspace(one, compress) == pack_workspace(reversed(one), compress)


@pytest.mark.parametrize("name", ["../x", "", "a/../b", ".git", "x\0y"])
def test_names_given_as_texts_are_held_to_the_same_rules(name):
    with pytest.raises(WorkspaceError):
        workspace_of([(name, b"")])
