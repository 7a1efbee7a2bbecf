from __future__ import annotations

import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from support.ports import free_port

from casewarden.relay.__main__ import main

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: u, user: {token: t}}]
"""


def test_it_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(KUBECONFIG)
    port = free_port()
    arguments = ["--store", f"file://{tmp_path}/store", "--listen", f"127.0.0.1:{port}", "--kubeconfig"]
    process = subprocess.Popen([sys.executable, "-m", "casewarden.relay", *arguments, str(tmp_path / "config")])
    try:
        assert fetch(port, "/healthz") == (200, b"ok\n")
        for _ in range(100):
            if (ready := fetch(port, "/readyz")) == (200, b"ok\n"):
                break
            time.sleep(0.1)
        assert ready == (200, b"ok\n")
        status, body = fetch(port, "/v1/runs", token="unknown")
        assert status == 503, "without an API server nobody can be told from anybody"
        assert b"ReviewUnavailable" in body
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
    assert (tmp_path / "store").is_dir()


def fetch(port: int, path: str, token: str = "") -> tuple[int, bytes]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Authorization": f"Bearer {token}"})
    for _ in range(100):
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the relay did not start within 10 s")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--store", "gs://x"], "scheme must be one of"),
        (["--store", "file://relative/path"], "absolute path"),
        (["--store", "memory:", "--listen", "8080x"], "ADDRESS:PORT"),
        (["--store", "memory:", "--kubeconfig", "/nowhere"], "/nowhere"),
    ],
)
def test_what_cannot_be_set_up_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2

    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert message in lines[0]
