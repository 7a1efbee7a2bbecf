"""The cluster's certificates and its users' kubeconfigs. Made once per cluster; they name its addresses."""

from __future__ import annotations

import base64
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from devkit.settings import Cluster
from devkit.shell import run

DAYS = "3650"
CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
USERS = ("admin", "controller-manager", "scheduler", "proxy", "kubelet")


def certificates(cluster: Cluster) -> dict[str, tuple[str, str]]:
    """Each certificate's subject and its subjectAltName ("" for none)."""
    names = ("", ".default", ".default.svc", ".default.svc.cluster.local")
    service = ",".join(f"DNS:kubernetes{rest}" for rest in names)
    return {
        "apiserver": (
            "/CN=kube-apiserver",
            f"IP:127.0.0.1,IP:{cluster.address},IP:{cluster.service_api_address},DNS:localhost,{service}",
        ),
        "admin": ("/O=system:masters/CN=admin", ""),
        "controller-manager": ("/CN=system:kube-controller-manager", ""),
        "scheduler": ("/CN=system:kube-scheduler", ""),
        "proxy": ("/CN=system:kube-proxy", ""),
        "kubelet": (
            f"/O=system:nodes/CN=system:node:{cluster.node}",
            f"IP:127.0.0.1,IP:{cluster.address},DNS:{cluster.node}",
        ),
        "apiserver-kubelet": ("/O=system:masters/CN=kube-apiserver-kubelet-client", ""),
        "front-proxy": ("/CN=front-proxy-client", ""),
    }


def _sign(pki: Path, name: str, subject: str, alternative: str) -> None:
    request, extensions = pki / f"{name}.csr", pki / f"{name}.ext"
    extensions.write_text(
        "extendedKeyUsage=clientAuth,serverAuth\n" + (f"subjectAltName={alternative}\n" if alternative else "")
    )
    run(
        ["openssl", "req", "-new", *CURVE, "-keyout", pki / f"{name}.key", "-out", request, "-subj", subject],
        what=f"key of {name}",
    )
    authority = ["-CA", pki / "ca.crt", "-CAkey", pki / "ca.key", "-CAserial", pki / f"{name}.srl", "-CAcreateserial"]
    run(
        [
            *("openssl", "x509", "-req", "-in", request, *authority, "-days", DAYS),
            *("-out", pki / f"{name}.crt", "-extfile", extensions),
        ],
        what=f"certificate of {name}",
    )
    for leftover in (request, extensions, pki / f"{name}.srl"):
        leftover.unlink()


def kubeconfig(cluster: Cluster, user: str) -> str:
    """A kubeconfig (JSON is YAML) that holds its certificates, so that it can be copied elsewhere."""

    def data(name: str) -> str:
        return base64.b64encode((cluster.pki / name).read_bytes()).decode()

    name = f"casewarden-{cluster.name}"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": name, "cluster": {"server": cluster.api_url, "certificate-authority-data": data("ca.crt")}}
        ],
        "users": [
            {
                "name": name,
                "user": {"client-certificate-data": data(f"{user}.crt"), "client-key-data": data(f"{user}.key")},
            }
        ],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    return json.dumps(config, indent=1) + "\n"


def ensure(cluster: Cluster) -> None:
    """Make whatever of it is not there yet. Certificates for other addresses than the cluster's are made anew."""
    pki, done = cluster.pki, cluster.pki / "addresses"
    wanted = f"{cluster.address} {cluster.node}\n"
    if not (done.exists() and done.read_text() == wanted):
        shutil.rmtree(pki, ignore_errors=True)
        pki.mkdir(parents=True, mode=0o700)
        run(
            [
                *("openssl", "req", "-x509", *CURVE, "-days", DAYS, "-keyout", pki / "ca.key", "-out", pki / "ca.crt"),
                *("-subj", f"/CN=casewarden-{cluster.name}"),
            ],
            what="certificate authority",
        )
        with ThreadPoolExecutor() as pool:
            signed = [
                pool.submit(_sign, pki, name, subject, alternative)
                for name, (subject, alternative) in certificates(cluster).items()
            ]
            for one in signed:
                one.result()
        run(["openssl", "genrsa", "-out", pki / "sa.key", "2048"], what="service account key")
        run(["openssl", "rsa", "-in", pki / "sa.key", "-pubout", "-out", pki / "sa.pub"], what="service account key")
        for user in USERS:
            (pki / f"{user}.kubeconfig").write_text(kubeconfig(cluster, user))
        done.write_text(wanted)
    cluster.kubeconfig.touch(mode=0o600)
    cluster.kubeconfig.write_text(kubeconfig(cluster, "admin"))
