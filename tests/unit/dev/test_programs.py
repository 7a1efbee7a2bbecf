from __future__ import annotations

from pathlib import Path

import pytest

from devkit import programs
from devkit.errors import DevError
from devkit.programs import Group, damage, ensure, key_of, link_flags, write_manifest

GO = """#!/bin/sh
# Stands in for the go command: `env GOVERSION`, and `build … -o OUTPUT TARGET`.
if [ "$1" = env ]; then echo go1.99; exit; fi
echo built >>"$BUILDS"
while [ $# -gt 2 ]; do if [ "$1" = -o ]; then out=$2; fi; shift; done
if [ -n "$FAIL" ]; then echo "undefined: thing" >&2; exit 1; fi
echo "$2" >"$out"
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module's folder; `go` is a script that notes each build in `builds`."""
    folder = tmp_path / "source"
    (folder / "one").mkdir(parents=True)
    (folder / "go.mod").write_text("module x\n\nrequire (\n\tk8s.io/kubernetes v1.34.4\n\thelm.sh/helm/v3 v3.19.5\n)\n")
    (folder / "one" / "main.go").write_text("package main")
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "go").write_text(GO)
    (tools / "go").chmod(0o755)
    (tmp_path / "builds").touch()
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    monkeypatch.setenv("BUILDS", str(tmp_path / "builds"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(programs, "SOURCE", folder)
    return folder


@pytest.fixture
def group(source: Path) -> Group:
    return Group("some", source, ("./one", "example.org/two"), (("other", "one"),))


def builds(source: Path) -> int:
    return len((source.parent / "builds").read_text().split())


def test_programs_are_built_once_and_then_used_as_they_are(group: Group, source: Path) -> None:
    folder = ensure(group)
    assert {file.name for file in folder.iterdir()} == {"one", "two", "other", programs.MANIFEST}
    assert (folder / "other").resolve() == folder / "one"
    assert ensure(group) == folder
    assert builds(source) == 2


@pytest.mark.parametrize("harm", ["changed", "removed", "manifest removed"])
def test_programs_that_are_not_what_was_built_are_built_anew(group: Group, source: Path, harm: str) -> None:
    folder = ensure(group)
    if harm == "changed":
        (folder / "two").write_text("something else")
    else:
        (folder / ("two" if harm == "removed" else programs.MANIFEST)).unlink()
    assert damage(folder) is not None
    assert ensure(group) == folder
    assert damage(folder) is None
    assert builds(source) == 4


def test_another_version_is_built_into_another_folder(group: Group, source: Path) -> None:
    before = ensure(group)
    (source / "go.mod").write_text((source / "go.mod").read_text().replace("1.34.4", "1.35.0"))
    assert ensure(group) != before
    assert before.exists()


def test_a_build_that_fails_leaves_nothing_that_looks_built(
    group: Group, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIL", "1")
    with pytest.raises(DevError, match=r"(?s)building one: .* exited 1; see .*some\.log.*undefined: thing"):
        ensure(group)
    monkeypatch.setenv("FAIL", "")
    assert damage(ensure(group)) is None
    assert [entry.name for entry in ensure(group).parent.iterdir() if entry.name.startswith(".")] == []


def test_the_key_covers_sources_targets_and_compiler(source: Path) -> None:
    key = key_of(source, ("./one",), "go1.26")
    assert key != key_of(source, ("./one", "./two"), "go1.26")
    assert key != key_of(source, ("./one",), "go1.27")
    (source / "one" / "main.go").write_text("package other")
    assert key != key_of(source, ("./one",), "go1.26")


def test_the_key_does_not_cover_where_the_sources_are(source: Path, tmp_path: Path) -> None:
    before = key_of(source, ("./one",), "go1.26")
    moved = source.rename(tmp_path / "moved")
    assert key_of(moved, ("./one",), "go1.26") == before


def test_programs_say_the_versions_that_they_are_built_from(source: Path) -> None:
    flags = link_flags((source / "go.mod").read_text())
    assert "-X k8s.io/component-base/version.gitVersion=v1.34.4" in flags
    assert "-X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=34" in flags


def test_the_pinned_versions_are_found_in_the_real_go_mod() -> None:
    assert "=v0.0.0" not in link_flags((Path(programs.__file__).parents[1] / "programs" / "go.mod").read_text())


def test_a_program_of_a_module_of_its_own_says_its_version_too() -> None:
    folder = Path(programs.__file__).parents[1] / "programs"
    flags = link_flags((folder / "go.mod").read_text() + (folder / "helm4" / "go.mod").read_text())
    assert "-X helm.sh/helm/v4/internal/version.version=v4." in flags


def test_the_key_does_not_cover_modules_of_their_own(source: Path) -> None:
    key = key_of(source, ("./one",), "go1.26")
    (source / "inner" / "deep").mkdir(parents=True)
    (source / "inner" / "go.mod").write_text("module inner")
    (source / "inner" / "deep" / "main.go").write_text("package main")
    assert key_of(source, ("./one",), "go1.26") == key


def test_a_manifest_covers_files_and_not_links(tmp_path: Path) -> None:
    (tmp_path / "program").write_text("x")
    (tmp_path / "link").symlink_to("program")
    write_manifest(tmp_path)
    (tmp_path / "link").unlink()
    assert damage(tmp_path) is None
