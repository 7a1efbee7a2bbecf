"""Where local runs take the shim from, and what they say when there is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.shim import shim

from casewarden.local.shim import ShimMissing, find_shim


def program(path: Path) -> Path:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_one_that_is_named_wins(tmp_path):
    named, on_path = program(tmp_path / "named"), program(tmp_path / "casewarden-shim")
    variables = {"CASEWARDEN_SHIM": str(named), "PATH": str(tmp_path)}
    assert find_shim(variables) == named
    assert find_shim({"PATH": str(tmp_path)}) == on_path


def test_a_name_that_is_no_program_is_refused_with_its_value(tmp_path):
    with pytest.raises(ShimMissing, match="CASEWARDEN_SHIM is '/no/such/shim'"):
        find_shim({"CASEWARDEN_SHIM": "/no/such/shim"})


def test_without_go_and_without_a_shim_the_cure_is_named(tmp_path):
    with pytest.raises(ShimMissing, match="set CASEWARDEN_SHIM"):
        find_shim({"PATH": "/nowhere", "XDG_CACHE_HOME": str(tmp_path)})


def test_a_source_that_cannot_be_built_says_what_the_compiler_said(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "go.mod").write_text("module x\n\ngo 1.21\n")
    (source / "main.go").write_text("package main\n\nfunc main() { nonsense }\n")
    variables = {**os.environ, "CASEWARDEN_SHIM": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with pytest.raises(ShimMissing, match="nonsense"):
        find_shim(variables, source)
    assert list((tmp_path / "cache" / "casewarden").iterdir()) == []


def test_it_is_built_once_and_kept_until_its_source_changes(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "go.mod").write_text("module x\n\ngo 1.21\n")
    (source / "main.go").write_text("package main\n\nfunc main() {}\n")
    variables = {**os.environ, "CASEWARDEN_SHIM": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    first = find_shim(variables, source)
    made = first.stat().st_mtime_ns
    assert find_shim(variables, source) == first
    assert first.stat().st_mtime_ns == made
    (source / "main.go").write_text("package main\n\nfunc main() { println(1) }\n")
    assert find_shim(variables, source) != first


def test_the_projects_own_is_a_program():
    assert os.access(shim(), os.X_OK)
