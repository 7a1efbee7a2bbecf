"""A real API server without nodes: etcd and kube-apiserver, up in seconds, for all that needs no pod to run."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from support.kubectl import Kubectl
from support.ports import free_port

from devkit import programs

__all__ = ["api_server", "kubeconfig_of"]

_SECONDS = 120.0


def kubeconfig_of(file: Path, port: int, token: str) -> str:
    """Write a kubeconfig for the server at a port, and return its path."""
    cluster = {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}
    document = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "u", "user": {"token": token}}],
    }  # fmt: skip
    file.write_text(json.dumps(document))
    return str(file)


@contextmanager
def api_server(folder: Path) -> Iterator[tuple[Kubectl, int]]:
    """Run one; yield an administrator's kubectl and the port. RBAC is enforced, and Pod Security."""
    built = programs.ensure(programs.CLUSTER)
    client, peer, port = free_port(), free_port(), free_port()
    subprocess.run(["openssl", "genrsa", "-out", str(folder / "sa.key"), "2048"], capture_output=True, check=True)
    (folder / "tokens.csv").write_text('administrator,admin,1,"system:masters"\n')
    etcd, url = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
    commands = (
        [str(built / "etcd"), f"--data-dir={folder / 'etcd'}", f"--listen-client-urls={etcd}", "--unsafe-no-fsync",
         f"--advertise-client-urls={etcd}", f"--listen-peer-urls={url}"],
        [str(built / "kube-apiserver"), f"--etcd-servers={etcd}", f"--cert-dir={folder / 'certs'}",
         f"--secure-port={port}", "--bind-address=127.0.0.1", "--service-account-issuer=https://issuer.example",
         f"--service-account-key-file={folder / 'sa.key'}", f"--service-account-signing-key-file={folder / 'sa.key'}",
         f"--token-auth-file={folder / 'tokens.csv'}", "--authorization-mode=RBAC",
         "--service-cluster-ip-range=10.97.0.0/24"],
    )  # fmt: skip
    os.environ["PATH"] = f"{built}:{os.environ['PATH']}"
    with ExitStack() as stack:
        log = stack.enter_context((folder / "log").open("w"))
        for command in commands:
            process = stack.enter_context(subprocess.Popen(command, stdout=log, stderr=log, cwd=folder))
            stack.callback(process.terminate)
        kubectl = Kubectl(kubeconfig_of(folder / "kubeconfig", port, "administrator"))
        until = time.monotonic() + _SECONDS
        while kubectl("get", "--raw", "/readyz", check=False) != "ok":
            assert time.monotonic() < until, (folder / "log").read_text()[-3000:]
            time.sleep(0.2)
        yield kubectl, port
