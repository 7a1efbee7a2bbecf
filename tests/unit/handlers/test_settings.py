"""The operator's flags: each has a help text and a variable, and what cannot be used is said."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from casewarden.__main__ import main
from casewarden.handlers.configuration import kopf_settings
from casewarden.settings import Settings, parse_settings
from casewarden.wiring import CatalogueError, read_catalogue


def test_without_anything_the_defaults_hold() -> None:
    assert parse_settings([], {}) == Settings()


def test_flags_win_over_variables_and_variables_over_defaults() -> None:
    variables = {"CASEWARDEN_QPS": "7.5", "CASEWARDEN_NAMESPACES": "a, b,", "CASEWARDEN_PORT": "0"}
    found = parse_settings(["--qps", "9"], variables)
    assert (found.qps, found.namespaces, found.port) == (9.0, ("a", "b"), 0)


def test_every_flag_is_explained_with_its_variable(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_settings(["--help"], {})
    text = " ".join(capsys.readouterr().out.split())
    for item in fields(Settings):
        assert f"--{item.name.replace('_', '-')} " in text
        assert f"{item.metadata['help']} (CASEWARDEN_{item.name.upper()})" in text


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--qps", "0"], "give a number above 0"),
        (["--burst", "many"], "invalid int value"),
        (["--log-level", "loud"], "use DEBUG, INFO, WARNING or ERROR"),
        (["--no-such-flag"], "unrecognized arguments"),
    ],
)
def test_what_cannot_be_used_is_said(flags: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_settings(flags, {})
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tasks: {kv: {imag: x}}", "tasks.kv.image"),
        ("relayUrl: http://127.0.0.1:1", "give the relay's service"),
        ("- a\n- b", "dictionary"),
        ("{", "catalogue.yaml"),
    ],
)
def test_a_catalogue_that_cannot_be_used_is_refused_by_file_and_field(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "catalogue.yaml"
    file.write_text(text)
    with pytest.raises(CatalogueError, match=said) as error:
        read_catalogue(str(file))
    assert str(file) in str(error.value)


def test_a_catalogue_of_nothing_has_no_tasks(tmp_path: Path) -> None:
    file = tmp_path / "catalogue.yaml"
    file.write_text("")
    assert read_catalogue(str(file)).tasks == {}


def test_the_process_says_what_it_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kubeconfig = tmp_path / "nowhere"
    assert main(["operator", "--kubeconfig", str(kubeconfig)]) == 2
    assert str(kubeconfig) in capsys.readouterr().err
    assert main(["no-such-verb"]) == 2
    assert "operator,relay" in capsys.readouterr().err


def test_kopf_outlives_minutes_without_an_api_server_and_posts_nothing() -> None:
    settings = kopf_settings()
    assert sum(settings.networking.error_backoffs) > 300  # type: ignore[arg-type]
    assert settings.posting.enabled is False
    assert settings.scanning.disabled is True
