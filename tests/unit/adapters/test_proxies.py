"""Which addresses are reached by the proxy of the environment."""

from __future__ import annotations

import pytest

from casewarden.adapters.proxies import proxy_for

NAMES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "10.96.0.1,localhost,.svc,.cluster.local,direct.example")


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("https://api.example/v1", "http://proxy.example:3128"),
        ("http://api.example/v1", None),
        ("https://10.96.0.1:443", None),
        ("https://models.tools.svc:8000/v1", None),
        ("https://models.tools.svc.cluster.local", None),
        ("https://direct.example", None),
        ("https://sub.direct.example", None),
        ("https://127.0.0.1:6443", None),
        ("https://[::1]:6443", None),
        ("https://localhost:6443", None),
    ],
)
def test_what_is_outside_goes_by_the_proxy(url: str, proxy: str | None) -> None:
    assert proxy_for(url) == proxy


def test_a_proxy_without_a_scheme_is_one_of_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example:3128")
    assert proxy_for("https://api.example") == "http://proxy.example:3128"


def test_this_machine_is_never_reached_by_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_PROXY")
    assert proxy_for("https://127.0.0.1:6443") is None
