from __future__ import annotations

import re
from pathlib import Path

import pytest

from devkit import images
from devkit.errors import DevError
from devkit.images import IMAGES, PRODUCT, chosen, folder_digest, key
from devkit.settings import REPOSITORY


def test_an_image_comes_after_those_that_it_stands_on() -> None:
    assert [image.name for image in chosen(["operator", "evidence"])] == ["base", "python", "operator", "evidence"]


@pytest.mark.parametrize("name", ["tasks", "casewarden-tasks", "casewarden-tasks:dev", IMAGES["tasks"].reference])
def test_an_image_may_be_named_in_full_or_in_short(name: str) -> None:
    assert chosen([name])[-1].name == "tasks"


def test_a_name_that_is_no_image_is_refused_with_those_that_are() -> None:
    with pytest.raises(DevError, match=r"no image 'task': it is one of .*tasks"):
        chosen(["task"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "a.py").write_text("a = 1\n")
    (tmp_path / "run").write_text("#!/bin/sh\n")
    return tmp_path


def content(folder: Path) -> None:
    (folder / "run").write_text("#!/bin/bash\n")


def mode(folder: Path) -> None:
    (folder / "run").chmod(0o755)


def name(folder: Path) -> None:
    (folder / "run").rename(folder / "walk")


def more(folder: Path) -> None:
    (folder / "code" / "b.py").touch()


@pytest.mark.parametrize("change", [content, mode, name, more])
def test_whatever_goes_into_an_image_changes_its_digest(folder: Path, change: object) -> None:
    before = folder_digest(folder)
    change(folder)  # type: ignore[operator]
    assert folder_digest(folder) != before


def test_times_do_not_change_a_digest(folder: Path) -> None:
    before = folder_digest(folder)
    (folder / "run").touch()
    assert folder_digest(folder) == before


def test_an_image_is_built_again_when_its_base_was(folder: Path) -> None:
    image = IMAGES["tasks"]
    assert key(image, folder, "old base", "buildah") != key(image, folder, "new base", "buildah")


def test_what_is_staged_is_the_folder_of_the_image_its_sources_and_no_caches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in ("images/some/Containerfile", "images/some/README.md", "code/a.py", "code/__pycache__/a.pyc", "one.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    monkeypatch.setattr(images, "REPOSITORY", tmp_path)
    staged = images.stage(images.Image("some", sources=("code", "one.py")))
    files = {file.relative_to(staged).as_posix() for file in staged.rglob("*") if file.is_file()}
    assert files == {"Containerfile", "code/a.py", "one.py"}


@pytest.mark.parametrize("image", sorted(IMAGES.keys() - {"base"}))
def test_every_image_runs_as_a_user_by_number_that_is_not_root(image: str) -> None:
    users = re.findall(r"^USER (.*)$", (REPOSITORY / "images" / image / "Containerfile").read_text(), re.MULTILINE)
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1])


@pytest.mark.parametrize("image", PRODUCT)
def test_every_image_says_what_it_is(image: str) -> None:
    assert (REPOSITORY / "images" / image / "README.md").read_text().startswith("# ")


@pytest.mark.parametrize("image", IMAGES.values(), ids=IMAGES.keys())
def test_every_source_of_an_image_is_in_the_repository(image: images.Image) -> None:
    assert [source for source in image.sources if not (REPOSITORY / source).exists()] == []
