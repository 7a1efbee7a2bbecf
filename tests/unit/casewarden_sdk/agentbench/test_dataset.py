import io
import json
import random
import tarfile

import pytest

from casewarden_sdk.agentbench.dataset import VARIABLE, open_dataset
from casewarden_sdk.errors import ContractError

FILES = {"data/a.txt": b"alpha\n", "data/deep/b.txt": b"beta\n"}


def tar(path, files=FILES, mode="w:xz", top=""):
    with tarfile.open(path, mode) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(top + name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        link = tarfile.TarInfo(top + "data/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return path


def folder(path, files=FILES):
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def opened(path, params=None, **place):
    known = {"ab": {"path": str(path), **place}}
    return open_dataset({"dataset": "ab", **(params or {})}, {VARIABLE: json.dumps(known)})


@pytest.fixture(params=["folder", "folder with a top", "tar", "tar.gz", "tar.xz", "archive with a top"])
def data(request, tmp_path):
    if request.param == "folder":
        return opened(folder(tmp_path / "d"))
    if request.param == "folder with a top":
        folder(tmp_path / "d" / "AgentBench-0.2")
        return opened(tmp_path / "d")
    if request.param == "archive with a top":
        return opened(tar(tmp_path / "d.tar.xz", top="./AgentBench-0.2/"))
    ending = request.param.partition(".")[2]
    return opened(tar(tmp_path / f"d.{request.param}", mode=f"w:{ending}"))


def test_a_folder_and_an_archive_have_the_same_files(data):
    assert data.names() == ["data/a.txt", "data/deep/b.txt"]
    assert data.names("data/deep/*") == ["data/deep/b.txt"]
    assert (data.read("data/a.txt"), data.text("data/deep/b.txt")) == (b"alpha\n", "beta\n")
    assert (data.has("data/a.txt"), data.has("data/c.txt")) == (True, False)


def test_a_file_that_is_not_there_is_named(data):
    with pytest.raises(ContractError, match=r"spec\.task\.params\.dataset: .* has no file 'data/c\.txt'"):
        data.read("data/c.txt")


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "data/../../x"])
def test_nothing_outside_a_folder_is_read(tmp_path, name):
    (tmp_path / "secret").write_text("x")
    with pytest.raises(ContractError, match="no path below"):
        opened(folder(tmp_path / "d")).read(name)


def test_links_of_a_folder_are_not_followed_out_of_it(tmp_path):
    folder(tmp_path / "d")
    (tmp_path / "d" / "data" / "out").symlink_to(tmp_path)
    assert opened(tmp_path / "d").names() == ["data/a.txt", "data/deep/b.txt"]


def test_a_configmap_s_links_are_its_files(tmp_path):
    real = tmp_path / "v" / "..2026"
    real.mkdir(parents=True)
    (real / "a.txt").write_text("alpha")
    (tmp_path / "v" / "..data").symlink_to("..2026")
    (tmp_path / "v" / "a.txt").symlink_to("..data/a.txt")
    assert opened(tmp_path / "v").names() == ["a.txt"]


def test_a_run_without_a_data_set_has_none():
    assert open_dataset({}, {}) is None


@pytest.mark.parametrize("name", [3, "", ["ab"]])
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(ContractError, match="is no name of a data set"):
        open_dataset({"dataset": name}, {})


def test_an_unknown_name_hears_which_there_are(tmp_path):
    known = {"ab": {"path": str(tmp_path)}}
    with pytest.raises(ContractError, match=r"no data set 'xy' \(there are: ab\).*--dataset NAME=PATH"):
        open_dataset({"dataset": "xy"}, {VARIABLE: json.dumps(known)})


def test_a_place_where_nothing_is_and_a_file_that_is_no_archive_are_refused(tmp_path):
    with pytest.raises(ContractError, match="where nothing is; mount it"):
        opened(tmp_path / "nowhere")
    (tmp_path / "d.zip").write_bytes(b"")
    with pytest.raises(ContractError, match=r"give a folder, or one of \.tar"):
        opened(tmp_path / "d.zip")


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
@pytest.mark.parametrize("kept", [0, 10, 40_000])
def test_an_archive_that_is_cut_is_refused(tmp_path, mode, kept):
    noise = random.Random(1).randbytes(100_000)
    path = tar(tmp_path / f"d.tar{mode[1:].replace(':', '.')}", {"data/a.bin": noise}, mode=mode)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ContractError, match="is no whole archive"):
        opened(path).names()


def test_the_digest_of_catalogue_and_run_is_checked_and_the_found_one_told(tmp_path):
    path = tar(tmp_path / "d.tar.xz")
    digest = opened(path).sha256()
    assert opened(path, {"datasetDigest": f"sha256:{digest}"}, sha256=digest) is not None
    with pytest.raises(ContractError, match=rf"^spec\.task\.params\.dataset: .*sha256:{digest}.*is wanted"):
        opened(path, sha256="0" * 64)
    with pytest.raises(ContractError, match=r"^spec\.task\.params\.datasetDigest: .*is wanted"):
        opened(path, {"datasetDigest": "sha256:" + "0" * 64})
    with pytest.raises(ContractError, match="'abc' is no digest"):
        opened(path, {"datasetDigest": "abc"})


def test_a_folder_s_digest_is_over_names_and_bytes(tmp_path):
    one, same = folder(tmp_path / "a"), folder(tmp_path / "b")
    other = folder(tmp_path / "c", {"data/a.txt": b"alpha\n", "data/deep/c.txt": b"beta\n"})
    assert opened(one).sha256() == opened(same).sha256() != opened(other).sha256()
