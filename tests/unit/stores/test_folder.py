from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from casewarden.adapters.stores import folder
from casewarden.adapters.stores.folder import FolderStore
from casewarden.ports.store import BadKey, NotFound, StoreUnavailable


async def test_a_full_disk_is_said_to_be_unavailable_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FolderStore(tmp_path / "s")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(folder.os, "fsync", full)
    with pytest.raises(StoreUnavailable, match="No space left"):
        await store.put_if_absent("a/b", b"x", limit=10)
    monkeypatch.undo()

    assert [path for path in (tmp_path / "s").rglob("*") if path.is_file()] == []


async def test_a_folder_that_vanished_is_unavailable_and_not_merely_empty(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "s")
    (tmp_path / "s" / ".tmp").rmdir()
    (tmp_path / "s").rmdir()

    with pytest.raises(StoreUnavailable):
        await store.get("a", limit=10)
    with pytest.raises(StoreUnavailable):
        await store.put_if_absent("a", b"x", limit=10)


async def test_a_symbolic_link_is_never_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    store = FolderStore(tmp_path / "s")
    (tmp_path / "s" / "link").symlink_to(secret)

    with pytest.raises((NotFound, OSError)):
        await store.get("link", limit=100)
    assert [entry async for entry in store.list("")] == []


async def test_a_key_below_another_key_is_refused(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "s")
    await store.put("a", b"x", limit=10)
    await store.put("b/c", b"x", limit=10)

    with pytest.raises(BadKey):
        await store.put_if_absent("a/b", b"x", limit=10)
    with pytest.raises(BadKey):
        await store.put_if_absent("b", b"x", limit=10)
    with pytest.raises(BadKey):
        await store.put("b", b"x", limit=10)


async def test_what_a_crash_left_is_cleared_later_and_an_upload_under_way_is_not(tmp_path: Path) -> None:
    FolderStore(tmp_path / "s")
    old, young = tmp_path / "s" / ".tmp" / "old", tmp_path / "s" / ".tmp" / "young"
    old.write_text("x")
    young.write_text("x")
    os.utime(old, (time.time() - 7200, time.time() - 7200))

    FolderStore(tmp_path / "s")

    assert not old.exists()
    assert young.exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreUnavailable, match="file"):
        FolderStore(tmp_path / "file" / "store")
