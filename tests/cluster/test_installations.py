"""Stores that cannot be used, and one that is reached by a proxy."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.authority import Authority
from support.helm import Helm
from support.kubectl import Kubectl, evalrun
from support.proxy import proxying
from support.s3_server import ACCESS, SECRET, S3Server, s3_server

# Helm 4 and the S3 server may have to be built first.
pytestmark = pytest.mark.timeout(2400)

ROOT = Path(__file__).resolve().parents[2]
CHART = str(ROOT / "charts" / "casewarden")
RELEASE, SYSTEM = "casewarden", "casewarden-system"
Document = dict[str, Any]


@pytest.fixture(scope="module")
def helm(kubeconfig: str) -> Helm:
    return Helm(kubeconfig)


def rendered(helm: Helm, namespace: str, values: Document, *only: str) -> list[Document]:
    words = [word for name in only for word in ("--show-only", f"templates/{name}.yaml")]
    words += [word for name, value in values.items() for word in ("--set-json", f"{name}={json.dumps(value)}")]
    text = helm("template", RELEASE, CHART, "--namespace", namespace, "--kube-version", "1.34.0", *words)
    return [document for document in yaml.safe_load_all(text) if document]


BAD_STORES: dict[str, tuple[Document, str]] = {
    "unreachable": (
        {"bucket": "evidence", "endpoint": "http://127.0.0.1:9"},
        "check relay.storage.s3: bucket, endpoint",
    ),
    "missing": ({"bucket": "no-such-bucket"}, "NoSuchBucket"),
    "denied": ({"bucket": "evidence", "secret": "wrong-keys"}, "SignatureDoesNotMatch"),
}


def test_a_store_that_cannot_be_used_is_said_by_the_relay_which_does_not_restart(
    helm: Helm, kubectl: Kubectl, namespace: str, here: str, tmp_path: Path
) -> None:
    with s3_server(tmp_path, here) as server:
        server.bucket("evidence")
        keys(kubectl, namespace, "right-keys", SECRET)
        keys(kubectl, namespace, "wrong-keys", "wrong")
        for name, (s3, _) in BAD_STORES.items():
            base = {"endpoint": server.endpoint, "region": "us-east-1", "secret": "right-keys"}
            placed(helm, kubectl, namespace, name, {"type": "s3", "s3": {**base, **s3}})
        placed(helm, kubectl, namespace, "classless", {"type": "pvc", "size": "1Gi", "storageClass": "no-such-class"})
        for name, (_, said) in BAD_STORES.items():
            pod = said_by(kubectl, namespace, name, said)
            (state,) = pod["status"]["containerStatuses"]
            assert (state["ready"], state["restartCount"]) == (False, 0)
    claim = kubectl.get("persistentvolumeclaim", namespace, "evidence-classless")
    assert claim["status"]["phase"] == "Pending"
    kubectl.until(
        lambda: 'storageclass.storage.k8s.io "no-such-class" not found' in kubectl("get", "events", "-n", namespace),
        60,
        lambda: kubectl("get", "events", "-n", namespace),
    )


def keys(kubectl: Kubectl, namespace: str, name: str, secret: str) -> None:
    kubectl.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
         "stringData": {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": secret}}
    )  # fmt: skip


def placed(helm: Helm, kubectl: Kubectl, namespace: str, name: str, storage: Document) -> None:
    """Apply the chart's relay under another name, with the image of the release."""
    image = kubectl.get("deployment", SYSTEM, "casewarden-relay")["spec"]["template"]["spec"]["containers"][0]["image"]
    values = {"relay": {"storage": storage}, "image": {"operator": image}}
    text = json.dumps(rendered(helm, namespace, values, "relay", "catalogue"))
    for word, other in (("casewarden-relay", f"relay-{name}"), ("casewarden-evidence", f"evidence-{name}"),
                        ("relay", f"relay-{name}")):  # fmt: skip
        text = text.replace(f': "{word}"', f': "{other}"')
    # The container, too, is called "relay" by its name, and nothing else cares for that.
    kubectl.apply(*json.loads(text))


def said_by(kubectl: Kubectl, namespace: str, name: str, said: str) -> Document:
    """Wait until the relay of that name says it, and return its pod."""
    return kubectl.until(
        lambda: waiting(kubectl, namespace, name, said),
        60,
        lambda: kubectl("logs", "-n", namespace, f"deployment/relay-{name}", check=False)[-2000:],
    )


def waiting(kubectl: Kubectl, namespace: str, name: str, said: str) -> Document | None:
    pods = kubectl.list("pods", namespace, f"app.kubernetes.io/component=relay-{name}")
    if not pods or said not in kubectl("logs", "-n", namespace, pods[0]["metadata"]["name"], check=False):
        return None
    return pods[0]


def test_evidence_and_the_way_out_go_by_a_proxy_and_an_authority_of_ones_own(
    helm: Helm, kubectl: Kubectl, namespace: str, here: str, tmp_path: Path
) -> None:
    """The release is changed and put back as it was: the other tests share it."""
    authority = Authority(tmp_path)
    with s3_server(tmp_path, here, authority.issue("s3.casewarden.test")) as server:
        server.bucket("evidence")
        host, _, port = server.endpoint.removeprefix("https://").rpartition(":")
        with proxying((host, int(port)), here) as proxy:
            keys(kubectl, SYSTEM, "s3-keys", SECRET)
            kubectl.apply(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "our-authorities", "namespace": SYSTEM},
                 "data": {"ca.crt": authority.certificate.read_text()}}
            )  # fmt: skip
            s3 = {"bucket": "evidence", "prefix": "of-tests", "endpoint": "https://s3.casewarden.test:9000",
                  "region": "us-east-1", "secret": "s3-keys"}  # fmt: skip
            values = {"relay.storage.type": "s3", **{f"relay.storage.s3.{name}": value for name, value in s3.items()},
                      "proxy.https": proxy.url, "authorities.configMap": "our-authorities"}  # fmt: skip
            sets = [word for name, value in values.items() for word in ("--set", f"{name}={value}")]
            try:
                helm("upgrade", RELEASE, CHART, "-n", SYSTEM, "--reuse-values", *sets, "--wait", "--timeout", "3m")
                kubectl.apply(evalrun(namespace, "outside", task={"name": "support-routing"}, seeds={"values": [17]},
                                      candidate={"control": "reference"}))  # fmt: skip
                status = kubectl.finished(namespace, "outside")
                assert (status["score"], status["valid"]) == ("1", True)
                _evidence_is_in(server, status["evidence"]["uri"])
                _reaches_the_operator(kubectl, proxy.url)
            finally:
                environment = {**os.environ, "KUBECONFIG": kubectl.kubeconfig}
                subprocess.run([str(ROOT / "dev" / "install")], env=environment, timeout=300, check=True)
                kubectl("delete", "-n", SYSTEM, "secret/s3-keys", "configmap/our-authorities")
    # Neither the API server nor the relay nor the case pods were asked for by the proxy.
    assert set(proxy.asked) == {"s3.casewarden.test:9000"}


def _evidence_is_in(server: S3Server, uri: str) -> None:
    folder = server.root / "evidence" / "of-tests" / uri
    assert (folder / "run.json").is_file()
    assert len(list(folder.rglob("sealed.json"))) == 4


LOOK = """
import ssl
from casewarden.adapters.proxies import proxy_for
names = {"".join(v for part in ca["subject"] for k, v in part) for ca in ssl.create_default_context().get_ca_certs()}
print(proxy_for("https://models.example/v1"), proxy_for("https://casewarden-relay.casewarden-system.svc:8080"),
      "An authority of a test" in names)
"""


def _reaches_the_operator(kubectl: Kubectl, url: str) -> None:
    words = ["exec", "-n", SYSTEM, "deployment/casewarden-operator", "--", "python3", "-I", "-c", LOOK]
    assert kubectl(*words).split() == [url, "None", "True"]
