from __future__ import annotations

import io
import tarfile

import pytest
import zstandard
from support.relay import MakeAttempt, Relay

from casewarden.adapters.stores.zstd import compress
from casewarden_sdk.workspace import MAX_BYTES, WorkspaceFile, digest_workspace, pack_workspace

FILES = [WorkspaceFile("main.py", 0o755, b"print(1)\n"), WorkspaceFile("lib/data.json", 0o644, b"{}")]
DIGEST = digest_workspace(FILES)
ARCHIVE = pack_workspace(FILES, compress)
PATH = f"/v1/workspaces/evals/{DIGEST}"


async def test_a_reader_uploads_a_folder_and_a_case_pod_of_the_namespace_gets_it(
    relay: Relay, attempt: MakeAttempt
) -> None:
    pod = attempt()
    assert await relay.said("PUT", PATH, "reader", data=ARCHIVE) == (201, None)
    assert await relay.said("PUT", PATH, "reader", data=ARCHIVE) == (200, None)

    for token in (pod.token, "operator", "reader"):
        answer = await relay.call("GET", PATH, token)
        assert (answer.status, await answer.read()) == (200, ARCHIVE)


async def test_other_namespaces_neither_read_nor_write_it(relay: Relay, attempt: MakeAttempt) -> None:
    await relay.said("PUT", PATH, "reader", data=ARCHIVE)
    stranger = attempt(namespace="other", run_uid="run-2")

    assert await relay.said("PUT", PATH, "other-reader", data=ARCHIVE) == (403, "NotYours")
    assert await relay.said("GET", PATH, "other-reader") == (403, "NotYours")
    assert await relay.said("GET", PATH, stranger.token) == (403, "NotYours")
    assert await relay.said("PUT", PATH, attempt().token, data=ARCHIVE) == (403, "NotYours")


async def test_an_archive_under_a_wrong_digest_is_refused(relay: Relay) -> None:
    assert await relay.said("PUT", f"/v1/workspaces/evals/{'0' * 64}", "reader", data=ARCHIVE) == (400, "WrongDigest")
    assert relay.store.values == {}


def archive_of(*entries: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for entry in entries:
            archive.addfile(entry, io.BytesIO(b"x" * entry.size))
    return compress(buffer.getvalue())


def entry(name: str, size: int = 1, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.size, made.type, made.linkname = size, kind, link
    return made


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no archive",
        compress(b""),
        compress(b"no tar"),
        archive_of(entry("../outside")),
        archive_of(entry("/etc/passwd")),
        archive_of(entry("a/../../b")),
        archive_of(entry("link", 0, tarfile.SYMTYPE, "/etc/passwd")),
        archive_of(entry("hard", 0, tarfile.LNKTYPE, "main.py")),
        archive_of(entry("device", 0, tarfile.CHRTYPE)),
        archive_of(entry("same"), entry("same")),
        archive_of(*(entry(f"f{number}") for number in range(1001))),
        archive_of(entry("big", MAX_BYTES + 1)),
        ARCHIVE + b"something behind",
    ],
    ids=range(14),
)
async def test_what_is_no_plain_folder_is_refused(relay: Relay, data: bytes) -> None:
    assert await relay.said("PUT", PATH, "reader", data=data) == (400, "BadWorkspace")
    assert relay.store.values == {}


async def test_an_archive_that_explodes_is_refused_without_being_unpacked(relay: Relay) -> None:
    bomb = zstandard.ZstdCompressor(level=19).compress(bytes(512 << 20))
    assert len(bomb) < 1 << 16

    assert await relay.said("PUT", PATH, "reader", data=bomb) == (400, "BadWorkspace")


async def test_an_archive_over_the_size_is_refused(relay: Relay) -> None:
    assert await relay.said("PUT", PATH, "reader", data=b"x" * (13 << 20)) == (413, "TooLarge")


@pytest.mark.parametrize("path", ["evals/abc", "evals/" + "A" * 64, "Evals/" + "0" * 64, "..%2fx/" + "0" * 64])
async def test_an_address_that_is_none_is_refused(relay: Relay, path: str) -> None:
    assert await relay.said("PUT", f"/v1/workspaces/{path}", "operator", data=ARCHIVE) == (400, "BadPath")
    assert await relay.said("GET", f"/v1/workspaces/{path}", "operator") == (400, "BadPath")


async def test_a_folder_that_is_not_there_is_404(relay: Relay) -> None:
    assert await relay.said("GET", PATH, "operator") == (404, "NotFound")
