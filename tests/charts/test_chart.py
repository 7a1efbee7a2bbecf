"""The chart, rendered by helm in the ways that people install it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.chart_values import KNOBS, VALUES
from support.helm import program

from casewarden.adapters.stores import open_store
from casewarden.adapters.stores.s3 import S3Store
from casewarden.api.catalogue import Catalogue
from casewarden.api.manifest import parse
from casewarden.core.network import NetworkContext
from casewarden.relay.__main__ import parser as relay_parser
from casewarden.settings import parse_settings
from casewarden.wiring import read_catalogue
from devkit import chart, dashboards

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "casewarden"
NAMESPACE = "casewarden-system"
Document = dict[str, Any]

# helm may have to be built first, with the development cluster's other programs.
pytestmark = pytest.mark.timeout(2400)


@pytest.fixture(scope="session")
def helm() -> str:
    return program()


@pytest.fixture(scope="session")
def helm4() -> str:
    return program(4)


def run(helm: str, *words: str, values: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [helm, *words, "--values", "-"],
        input=json.dumps(values),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def template(helm: str, values: dict[str, Any], namespace: str = NAMESPACE) -> list[Document]:
    where = ["--namespace", namespace, "--kube-version", "1.34.0"]
    done = run(helm, "template", "casewarden", str(CHART), *where, values=values)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


@pytest.fixture(scope="session", params=VALUES)
def documents(request: pytest.FixtureRequest, helm: str) -> list[Document]:
    return template(helm, VALUES[request.param])


@pytest.fixture(scope="session")
def plain(helm: str) -> list[Document]:
    return template(helm, {})


def of_kind(documents: list[Document], *kinds: str) -> list[Document]:
    return [document for document in documents if document["kind"] in kinds]


def named(documents: list[Document], kind: str, name: str) -> Document:
    (found,) = [document for document in of_kind(documents, kind) if document["metadata"]["name"] == name]
    return found


def pods(documents: list[Document]) -> Iterator[tuple[str, Document]]:
    for document in of_kind(documents, "Deployment"):
        yield document["metadata"]["name"], document["spec"]["template"]["spec"]


def rules(documents: list[Document]) -> Iterator[tuple[str, Document]]:
    for document in of_kind(documents, "Role", "ClusterRole"):
        for rule in document["rules"]:
            yield document["metadata"]["name"], rule


@pytest.mark.parametrize("values", VALUES)
def test_helm_finds_nothing_to_complain_of(helm: str, values: str) -> None:
    done = run(helm, "lint", "--strict", str(CHART), "--kube-version", "1.34.0", values=VALUES[values])
    assert done.returncode == 0, done.stdout
    assert "WARNING" not in done.stdout


@pytest.mark.parametrize("values", VALUES)
def test_helm_4_finds_nothing_to_complain_of_either_and_renders_the_same(helm: str, helm4: str, values: str) -> None:
    done = run(helm4, "lint", "--strict", str(CHART), "--kube-version", "1.34.0", values=VALUES[values])
    assert done.returncode == 0, done.stdout
    assert "WARNING" not in done.stdout
    assert template(helm4, VALUES[values]) == template(helm, VALUES[values])


def test_helm_4_refuses_a_value_by_name_too(helm4: str) -> None:
    done = run(helm4, "template", "casewarden", str(CHART), values={"operator": {"replicas": 4}})
    assert done.returncode != 0
    assert "operator/replicas" in done.stderr.replace(".", "/")


def test_every_pod_passes_the_level_restricted(documents: list[Document]) -> None:
    found = list(pods(documents))
    assert {name for name, _ in found} == {"casewarden-operator", "casewarden-relay"}
    for _, pod in found:
        security = pod["securityContext"]
        assert security["runAsNonRoot"] is True
        assert security["runAsUser"] > 0
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        allowed = {"configMap", "emptyDir", "projected", "persistentVolumeClaim", "secret"}
        assert all(set(volume) - {"name"} <= allowed for volume in pod["volumes"])
        for container in pod["containers"]:
            own = container["securityContext"]
            assert own["allowPrivilegeEscalation"] is False
            assert own["readOnlyRootFilesystem"] is True
            assert own["capabilities"] == {"drop": ["ALL"]}


def test_every_container_has_requests_a_memory_limit_and_probes(documents: list[Document]) -> None:
    for _, pod in pods(documents):
        for container in pod["containers"]:
            assert set(container["resources"]["requests"]) >= {"cpu", "memory"}
            assert "memory" in container["resources"]["limits"]
            assert {"livenessProbe", "readinessProbe"} <= set(container)


def test_nobody_may_read_secrets_or_anything_by_a_star(documents: list[Document]) -> None:
    for role, rule in rules(documents):
        assert "secrets" not in rule["resources"], role
        assert "*" not in [*rule["resources"], *rule["verbs"], *rule["apiGroups"]], role


def test_the_operator_and_the_relay_may_do_what_they_do_and_no_more(plain: list[Document]) -> None:
    def of(role: str) -> set[tuple[str, str]]:
        return {
            (resource, verb)
            for rule in named(plain, "ClusterRole", role)["rules"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }

    def may(resources: str, verbs: str) -> set[tuple[str, str]]:
        return {(resource, verb) for resource in resources.split() for verb in verbs.split()}

    assert of("casewarden-operator") == (
        may("evalruns", "get list watch create patch delete")
        | may("auditruns", "get list watch delete")
        | may("evalruns/status auditruns/status", "patch")
        | may("pods", "get list watch create delete")
        | may("pods/log", "get")
        | may("configmaps", "get list create patch")
        | may("serviceaccounts networkpolicies", "get create patch")
        | may("events", "create")
    )
    assert of("casewarden-relay") == may("tokenreviews", "create") | may("pods", "get")


def test_every_binding_names_a_role_and_an_account_that_are_there(documents: list[Document]) -> None:
    accounts = {document["metadata"]["name"] for document in of_kind(documents, "ServiceAccount")}
    roles = {
        (document["kind"], document["metadata"].get("namespace"), document["metadata"]["name"])
        for document in of_kind(documents, "Role", "ClusterRole")
    }
    bindings = of_kind(documents, "RoleBinding", "ClusterRoleBinding")
    assert bindings
    for binding in bindings:
        role = binding["roleRef"]
        namespace = binding["metadata"].get("namespace") if role["kind"] == "Role" else None
        assert (role["kind"], namespace, role["name"]) in roles
        assert all(subject["name"] in accounts for subject in binding["subjects"])
    assert {pod["serviceAccountName"] for _, pod in pods(documents)} <= accounts


def test_operators_share_one_lease_and_may_touch_no_other(helm: str) -> None:
    plain = template(helm, {"operator": {"replicas": 2}})
    create, use = named(plain, "Role", "casewarden-operator-lease")["rules"]
    assert (create["resources"], create["verbs"]) == (["leases"], ["create"])
    assert (use["resourceNames"], use["verbs"]) == (["casewarden-operator"], ["get", "update"])
    (container,) = dict(pods(plain))["casewarden-operator"]["containers"]
    assert parse_settings(container["args"], {}).lease == use["resourceNames"][0]


def test_an_operator_of_some_namespaces_has_rights_in_those_alone(helm: str) -> None:
    documents = template(helm, VALUES["for two namespaces"])
    owners = [
        document["metadata"]
        for document in of_kind(documents, "Role")
        if document["metadata"]["name"] == "casewarden-operator"
    ]
    assert {meta["namespace"] for meta in owners} == {"evals", "research"}
    assert "casewarden-operator" not in {d["metadata"]["name"] for d in of_kind(documents, "ClusterRole")}
    (container,) = dict(pods(documents))["casewarden-operator"]["containers"]
    assert parse_settings(container["args"], {}).namespaces == ("evals", "research")


def test_the_programs_take_the_flags_that_they_are_given(documents: list[Document]) -> None:
    by_name = dict(pods(documents))
    (operator,) = by_name["casewarden-operator"]["containers"]
    assert operator["command"][-2:] == ["casewarden", "operator"]
    settings = parse_settings(operator["args"], {})
    assert settings.port == operator["ports"][0]["containerPort"]
    (relay,) = by_name["casewarden-relay"]["containers"]
    assert relay["command"][-2:] == ["casewarden", "relay"]
    options = relay_parser().parse_args(relay["args"])
    assert options.listen.endswith(f":{relay['ports'][0]['containerPort']}")
    account = by_name["casewarden-operator"]["serviceAccountName"]
    assert options.operator_user == f"system:serviceaccount:{NAMESPACE}:{account}"


def test_what_the_flags_name_is_mounted(documents: list[Document]) -> None:
    by_name = dict(pods(documents))
    (operator,) = by_name["casewarden-operator"]["containers"]
    (relay,) = by_name["casewarden-relay"]["containers"]
    settings = parse_settings(operator["args"], {})
    store = relay_parser().parse_args(relay["args"]).store
    named_by_flags = [
        (str(Path(settings.catalogue).parent), operator, by_name["casewarden-operator"]),
        (str(Path(settings.relay_token_file).parent), operator, by_name["casewarden-operator"]),
    ]
    if store.startswith("file://"):
        named_by_flags.append((store.removeprefix("file://"), relay, by_name["casewarden-relay"]))
    for path, container, pod in named_by_flags:
        (mount,) = [mount for mount in container["volumeMounts"] if mount["mountPath"] == path]
        assert mount["name"] in {volume["name"] for volume in pod["volumes"]}


def test_the_operator_reads_the_catalogue_that_is_rendered(documents: list[Document], tmp_path: Path) -> None:
    file = tmp_path / "catalogue.yaml"
    file.write_text(named(documents, "ConfigMap", "casewarden-catalogue")["data"]["catalogue.yaml"])
    catalogue = read_catalogue(str(file))
    service = named(documents, "Service", "casewarden-relay")
    assert catalogue.relay_url == f"http://casewarden-relay.{NAMESPACE}.svc:{service['spec']['ports'][0]['port']}"
    assert catalogue.tasks


def test_a_pack_is_added_replaced_and_left_out_by_its_name(helm: str) -> None:
    def catalogue(values: dict[str, Any]) -> Catalogue:
        text = named(template(helm, values), "ConfigMap", "casewarden-catalogue")["data"]["catalogue.yaml"]
        return Catalogue.model_validate(yaml.safe_load(text))

    assert {"durable-kv", "support-routing", "agentbench-db", "agentbench-dcg", "agentbench-ltp"} <= set(
        catalogue({}).tasks
    )
    own = catalogue(VALUES["with a catalogue of one's own"])
    assert "mine" in own.tasks
    assert "support-routing" not in own.tasks
    assert own.tasks["mine"].command == []
    assert own.images == {**catalogue({}).images, "node": "node:22"}
    assert own.allowed_task_images == ["r.example/team/"]
    assert own.allow_baseline == ["mine"]
    replaced = catalogue({"catalogue": {"tasks": {"durable-kv": {"image": "r.example/tasks:3"}}}})
    assert replaced.tasks["durable-kv"].image == "r.example/tasks:3"
    assert replaced.tasks["durable-kv"].command == catalogue({}).tasks["durable-kv"].command


def test_a_changed_catalogue_restarts_the_operator_and_the_relay_only_for_endpoints(
    helm: str, plain: list[Document]
) -> None:
    own = VALUES["with a catalogue of one's own"]["catalogue"]
    changed = template(helm, {"catalogue": {name: part for name, part in own.items() if name != "endpoints"}})
    for name, same in (("casewarden-operator", False), ("casewarden-relay", True)):
        before, after = named(plain, "Deployment", name), named(changed, "Deployment", name)
        assert (before["spec"]["template"] == after["spec"]["template"]) is same
    endpoints = template(helm, {"catalogue": {"endpoints": own["endpoints"]}})
    before, after = (named(documents, "Deployment", "casewarden-relay") for documents in (plain, endpoints))
    assert before["spec"]["template"]["metadata"] != after["spec"]["template"]["metadata"]
    mounts = after["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
    assert {"name": "key-team", "mountPath": "/etc/casewarden-keys/team", "readOnly": True} in mounts


def test_case_pods_find_the_relay_where_their_policy_lets_them_go(documents: list[Document]) -> None:
    context = NetworkContext(relay_namespace=NAMESPACE)
    deployment = named(documents, "Deployment", "casewarden-relay")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert context.relay_labels.items() <= labels.items()
    service = named(documents, "Service", "casewarden-relay")
    assert service["spec"]["selector"].items() <= labels.items()
    policies = [item for item in of_kind(documents, "NetworkPolicy") if item["metadata"]["name"] == "casewarden-relay"]
    if not policies:
        return
    (policy,) = policies
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    ports = [port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]]
    assert (
        ports
        == [context.relay_port]
        == [deployment["spec"]["template"]["spec"]["containers"][0]["ports"][0]["containerPort"]]
    )


def test_the_operator_never_takes_the_release_for_pods_of_a_run(documents: list[Document]) -> None:
    for document in of_kind(documents, "Deployment"):
        assert document["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/managed-by"] != "casewarden"


def test_the_evidence_outlives_the_release_unless_it_is_a_trial(helm: str, plain: list[Document]) -> None:
    claim = named(plain, "PersistentVolumeClaim", "casewarden-evidence")
    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert "storageClassName" not in claim["spec"]
    placed = named(template(helm, VALUES["from a registry, placed"]), "PersistentVolumeClaim", "casewarden-evidence")
    assert placed["spec"]["storageClassName"] == "fast"
    trial = template(helm, VALUES["for a trial"])
    assert of_kind(trial, "PersistentVolumeClaim") == []
    volumes = dict(pods(trial))["casewarden-relay"]["volumes"]
    assert {"name": "evidence", "emptyDir": {"sizeLimit": "1Gi"}} in volumes


def test_the_crds_are_those_of_the_models_and_are_kept(helm: str, plain: list[Document]) -> None:
    sources = {path.name: path.read_text() for path in (ROOT / "crds").glob("*.yaml")}
    assert sources == {path.name: path.read_text() for path in (CHART / "files" / "crds").glob("*.yaml")}
    rendered = of_kind(plain, "CustomResourceDefinition")
    for crd in rendered:
        assert crd["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    by_name = {crd["metadata"]["name"]: crd for crd in rendered}
    expected = [yaml.safe_load(text) for text in sources.values()]
    assert by_name == {crd["metadata"]["name"]: crd for crd in expected}
    assert len(expected) == 2
    assert of_kind(template(helm, VALUES["without CRDs and aggregation"]), "CustomResourceDefinition") == []


def test_people_with_kubernetes_own_roles_get_rights_on_runs_only_where_that_is_wanted(helm: str) -> None:
    def aggregated(values: dict[str, Any]) -> dict[str, set[str]]:
        return {
            role["metadata"]["name"]: {
                label.rpartition("-")[2] for label in role["metadata"]["labels"] if "/aggregate-to-" in label
            }
            for role in of_kind(template(helm, values), "ClusterRole")
            if role["metadata"]["name"] in ("casewarden-viewer", "casewarden-editor")
        }

    assert aggregated({}) == {"casewarden-viewer": {"view", "edit", "admin"}, "casewarden-editor": {"edit", "admin"}}
    assert aggregated(VALUES["without CRDs and aggregation"]) == {
        "casewarden-viewer": set(),
        "casewarden-editor": set(),
    }


def test_everything_of_the_release_is_in_its_namespace(helm: str) -> None:
    documents = template(helm, VALUES["as it comes"], namespace="elsewhere")
    cluster_wide = ("CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding")
    for document in documents:
        namespace = document["metadata"].get("namespace")
        assert namespace == (None if document["kind"] in cluster_wide else "elsewhere"), document["metadata"]
    text = named(documents, "ConfigMap", "casewarden-catalogue")["data"]["catalogue.yaml"]
    assert yaml.safe_load(text)["relayUrl"] == "http://casewarden-relay.elsewhere.svc:8080"


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"operator": {"replicas": 4}}, "operator/replicas"),
        ({"operater": {}}, "operater"),
        ({"relay": {"storage": {"type": "nfs"}}}, "relay/storage/type"),
        ({"relay": {"storage": {"size": "much"}}}, "relay/storage/size"),
        ({"relay": {"retentionDays": -1}}, "relay/retentionDays"),
        ({"relay": {"resources": {"limits": {"memory": None}}}}, "relay/resources"),
        ({"image": {"operator": ""}}, "image/operator"),
        ({"image": {"registry": "r.example/"}}, "image/registry"),
        ({"monitoring": {"rules": {"runbookUrl": "here"}}}, "monitoring/rules/runbookUrl"),
        ({"monitoring": {"serviceMonitor": {"interval": "often"}}}, "monitoring/serviceMonitor/interval"),
        ({"test": {"seconds": 1}}, "test/seconds"),
        ({"extraObjects": [{"kind": "ConfigMap"}]}, "extraObjects"),
        ({"imagePullPolicy": "Sometimes"}, "imagePullPolicy"),
        ({"catalogue": {"tasks": {"Mine": {"image": "x"}}}}, "Mine"),
        ({"catalogue": {"tasks": {"mine": {"comand": ["x"]}}}}, "catalogue/tasks/mine"),
        ({"catalogue": {"evidenceImage": "x"}}, "evidenceImage"),
        ({"watchNamespaces": ["a b"]}, "watchNamespaces"),
        ({"operator": {"extraArgs": ["qps"]}}, "operator/extraArgs"),
        ({"operator": {"extraEnv": [{"value": "x"}]}}, "operator/extraEnv"),
        ({"proxy": {"https": "proxy.example:3128"}}, "proxy/https"),
        ({"proxy": {"bypass": ["a,b"]}}, "proxy/bypass"),
        ({"authorities": {"configMap": "Mine"}}, "authorities/configMap"),
        ({"relay": {"storage": {"s3": {"endpoint": "s3.example"}}}}, "relay/storage/s3/endpoint"),
        ({"catalogue": {"endpoints": {"team": {"url": "models.example"}}}}, "catalogue/endpoints/team"),
        ({"catalogue": {"images": {"x": "a b"}}}, "catalogue/images/x"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name(helm: str, values: dict[str, Any], field: str) -> None:
    done = run(helm, "template", "casewarden", str(CHART), "--kube-version", "1.34.0", values=values)
    assert done.returncode != 0
    assert field in done.stderr.replace(".", "/"), done.stderr


def _leaves(node: Any, path: str = ".Values") -> Iterator[str]:
    """The values that a template must name; what is handed on whole counts as one."""
    whole = path.endswith((".resources", ".tasks", ".images", ".labels", ".pools"))
    if isinstance(node, dict) and node and not whole:
        for key, value in node.items():
            yield from _leaves(value, f"{path}.{key}")
    else:
        yield path


def test_every_value_is_used_by_a_template() -> None:
    templates = "".join(path.read_text() for path in (CHART / "templates").rglob("*") if path.is_file())
    leaves = set(_leaves(yaml.safe_load((CHART / "values.yaml").read_text())))
    placement = {
        f".Values.{part}.{name}"
        for part in ("operator", "relay")
        for name in (
            "nodeSelector", "tolerations", "affinity", "topologySpreadConstraints", "priorityClassName",
            "runtimeClassName", "podLabels", "extraEnv",
        )
    }  # fmt: skip
    # These are read within a `with`, and held by a test of their own.
    placement |= {f".Values.{name}" for name in ("proxy.http", "proxy.https", "proxy.bypass", "authorities.key")}
    assert placement < leaves
    unused = {path for path in leaves - placement if not re.search(re.escape(path) + r"\b", templates)}
    assert unused == set()


def test_pods_are_placed_as_the_values_say(helm: str) -> None:
    values, by_name = VALUES["from a registry, placed"], dict(pods(template(helm, VALUES["from a registry, placed"])))
    operator, relay = by_name["casewarden-operator"], by_name["casewarden-relay"]
    assert {key: operator[key] for key in ("nodeSelector", "tolerations", "affinity")} == {
        key: values["operator"][key] for key in ("nodeSelector", "tolerations", "affinity")
    }
    assert relay["nodeSelector"] == values["relay"]["nodeSelector"]
    for pod in (operator, relay):
        assert pod["imagePullSecrets"] == [{"name": "registry"}]
        assert pod["containers"][0]["image"] == values["image"]["operator"]
        assert pod["containers"][0]["imagePullPolicy"] == "Always"


def test_evidence_in_a_bucket_needs_no_volume_and_takes_its_keys_from_a_secret(helm: str) -> None:
    documents = template(helm, VALUES["with evidence in a bucket"])
    assert not of_kind(documents, "PersistentVolumeClaim")
    pod = dict(pods(documents))["casewarden-relay"]
    (container,) = pod["containers"]
    assert {volume["name"] for volume in pod["volumes"]} == {mount["name"] for mount in container["volumeMounts"]}
    assert "evidence" not in {volume["name"] for volume in pod["volumes"]}
    assert container["envFrom"] == [{"secretRef": {"name": "s3-keys"}}]
    store = relay_parser().parse_args(container["args"]).store
    assert store == "s3://evidence/team/one?path_style=true&endpoint=https%3A%2F%2Fs3.example%3A9000&region=eu-1"
    assert isinstance(open_store(store), S3Store)
    account = named(documents, "ServiceAccount", "casewarden-relay")
    assert set(account["metadata"]["annotations"]) == {"eks.amazonaws.com/role-arn"}


def test_a_bucket_must_be_named(helm: str) -> None:
    done = run(helm, "template", "casewarden", str(CHART), values={"relay": {"storage": {"type": "s3"}}})
    assert done.returncode != 0
    assert "relay.storage.s3.bucket" in done.stderr


def test_every_knob_reaches_its_pod(helm: str) -> None:
    documents = template(helm, VALUES["with every knob"])
    for part in ("operator", "relay"):
        deployment = named(documents, "Deployment", f"casewarden-{part}")["spec"]["template"]
        spec, meta = deployment["spec"], deployment["metadata"]
        for name in ("topologySpreadConstraints", "priorityClassName", "runtimeClassName"):
            assert spec[name] == KNOBS[name]
        assert meta["labels"].items() >= KNOBS["podLabels"].items()
        assert meta["annotations"].items() >= KNOBS["podAnnotations"].items()
        assert spec["containers"][0]["env"] == KNOBS["extraEnv"]
        account = named(documents, "ServiceAccount", f"casewarden-{part}")
        assert account["metadata"]["annotations"] == KNOBS["serviceAccountAnnotations"]
    assert named(documents, "ConfigMap", "mine")
    assert of_kind(documents, "NetworkPolicy") == []


def test_a_mirror_stands_before_every_image_that_names_no_registry(helm: str) -> None:
    own = {
        "tasks": {"mine": {"image": "team/mine:1"}, "far": {"image": "r.example/x:1"}},
        "images": {"a": "localhost/b"},
    }
    documents = template(helm, {"image": {"registry": "r.example:5000/mirror"}, "catalogue": own})
    text = named(documents, "ConfigMap", "casewarden-catalogue")["data"]["catalogue.yaml"]
    catalogue = Catalogue.model_validate(yaml.safe_load(text))
    assert catalogue.evidence_image == "r.example:5000/mirror/casewarden-evidence:dev"
    assert catalogue.tasks["mine"].image == "r.example:5000/mirror/team/mine:1"
    assert catalogue.tasks["far"].image == "r.example/x:1"
    assert catalogue.images["a"] == "localhost/b"
    assert catalogue.images["python"] == "r.example:5000/mirror/casewarden-python:dev"
    for _, pod in pods(documents):
        assert pod["containers"][0]["image"] == "r.example:5000/mirror/casewarden-operator:dev"


def test_the_relay_of_some_namespaces_reads_pods_in_those_alone(helm: str) -> None:
    documents = template(helm, VALUES["for two namespaces"])
    (rule,) = named(documents, "ClusterRole", "casewarden-relay")["rules"]
    assert rule["resources"] == ["tokenreviews"]
    owners = [d["metadata"]["namespace"] for d in of_kind(documents, "Role") if d["metadata"]["name"].endswith("relay")]
    assert owners == ["evals", "research"]
    kept = template(helm, {"relay": {"retentionDays": 1}})
    assert {"apiGroups": ["casewarden.dev"], "resources": ["evalruns", "auditruns"], "verbs": ["list"]} in named(
        kept, "ClusterRole", "casewarden-relay"
    )["rules"]


def test_what_is_watched_is_found_by_its_labels(helm: str) -> None:
    documents = template(helm, VALUES["watched"])
    monitors = of_kind(documents, "ServiceMonitor")
    assert {monitor["metadata"]["name"] for monitor in monitors} == {"casewarden-operator", "casewarden-relay"}
    for monitor in monitors:
        assert monitor["metadata"]["labels"]["release"] == "prometheus"
        service = named(documents, "Service", monitor["metadata"]["name"])
        assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        (endpoint,) = monitor["spec"]["endpoints"]
        assert endpoint["port"] == service["spec"]["ports"][0]["name"]
        assert endpoint["interval"] == "15s"
        deployment = named(documents, "Deployment", monitor["metadata"]["name"])
        assert service["spec"]["selector"].items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
    (policy,) = [d for d in of_kind(documents, "NetworkPolicy") if d["metadata"]["name"] == "casewarden-operator"]
    assert policy["spec"]["ingress"][0]["from"] == VALUES["watched"]["networkPolicy"]["metricsFrom"]


def test_every_alert_has_its_runbook(helm: str) -> None:
    (rule,) = of_kind(template(helm, VALUES["watched"]), "PrometheusRule")
    alerts = rule["spec"]["groups"][0]["rules"]
    pages = {path.stem for path in (ROOT / "docs" / "runbooks").glob("Casewarden*.md")}
    assert {alert["alert"] for alert in alerts} == pages
    for alert in alerts:
        assert alert["annotations"]["runbook_url"] == f"https://docs.example/books/{alert['alert']}.md"
        assert alert["labels"]["severity"] in ("info", "warning", "critical")
        assert (ROOT / "docs" / "runbooks" / f"{alert['alert']}.md").read_text().startswith(f"# {alert['alert']}\n")


def test_the_dashboards_are_those_that_were_built(helm: str) -> None:
    documents = template(helm, VALUES["watched"])
    for name, text in dashboards.render().items():
        config = named(documents, "ConfigMap", f"casewarden-dashboard-{name.removesuffix('.json')}")
        assert json.loads(config["data"][name]) == json.loads(text)
        assert config["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert config["metadata"]["annotations"] == {"grafana_folder": "Evals"}
        assert len(text) < 200_000


def test_without_the_prometheus_operator_nothing_asks_for_it(plain: list[Document]) -> None:
    assert of_kind(plain, "ServiceMonitor", "PrometheusRule") == []


def test_what_the_hub_is_told_is_true() -> None:
    annotations = yaml.safe_load((CHART / "Chart.yaml").read_text())["annotations"]
    told = {key.removeprefix("artifacthub.io/"): value for key, value in annotations.items()}
    names = set(re.findall(r"casewarden-[a-z-]+:dev", (CHART / "values.yaml").read_text()))
    assert {item["image"] for item in yaml.safe_load(told["images"])} == names
    crds = {item["kind"] for item in yaml.safe_load(told["crds"])}
    examples = yaml.safe_load(told["crdsExamples"])
    assert {item["kind"] for item in examples} == crds
    for example in examples:
        parse(example)


def test_the_readme_and_the_schema_know_every_value() -> None:
    assert chart.main(["--check"]) == 0


def test_a_value_that_the_models_do_not_know_is_noticed() -> None:
    known = {"properties": {"a": {"properties": {"b": {}}}, "c": {}}}
    assert chart.unknown(known, {"a": {"x": 1}}) == [
        "c has no default in values.yaml",
        "a.b has no default in values.yaml",
        "a.x is no field of devkit/values.py",
    ]


@pytest.mark.parametrize("name", ["values.schema.json", "README.md"])
def test_a_generated_file_that_is_stale_is_noticed_and_written_anew(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for source in CHART.glob("*.*"):
        if source.is_file():
            (tmp_path / source.name).write_text(source.read_text())
    monkeypatch.setattr(chart, "CHART", tmp_path)
    (tmp_path / name).write_text("{}")
    assert chart.main(["--check"]) == 1
    assert f"{name}: stale: run `make chart`" in capsys.readouterr().out
    assert chart.main([]) == 0
    assert (tmp_path / name).read_text() == (CHART / name).read_text()


def test_the_schema_is_as_strict_as_the_operators_own_models() -> None:
    """What the catalogue may be is said once; a name that the operator would refuse is refused by helm."""
    properties = json.loads((CHART / "values.schema.json").read_text())["properties"]
    catalogue = properties["catalogue"]["properties"]
    assert catalogue["tasks"]["propertyNames"]["pattern"] == catalogue["endpoints"]["propertyNames"]["pattern"]
    assert set(catalogue) == {
        field.alias for name, field in Catalogue.model_fields.items() if name not in ("evidence_image", "relay_url")
    }
    assert "PersistentVolumeClaim" in properties["relay"]["properties"]["storage"]["description"]
    text = (CHART / "values.schema.json").read_text()
    assert "$ref" not in text
    assert "x-kubernetes" not in text


def test_proxies_and_authorities_reach_both_services(helm: str, plain: list[Document]) -> None:
    for _, pod in pods(template(helm, VALUES["behind a proxy"])):
        (container,) = pod["containers"]
        found = {item["name"]: item["value"] for item in container["env"]}
        assert found["HTTPS_PROXY"] == found["https_proxy"] == "http://proxy.example:3128"
        assert "HTTP_PROXY" not in found
        bypass = found["NO_PROXY"].split(",")
        assert found["no_proxy"] == found["NO_PROXY"]
        assert {"$(KUBERNETES_SERVICE_HOST)", ".svc", "169.254.169.254", "s3.example", "10.0.0.8"} <= set(bypass)
        folder, _, key = found["SSL_CERT_FILE"].rpartition("/")
        assert (found["SSL_CERT_DIR"], key) == ("/etc/ssl/certs", "bundle.pem")
        (mount,) = [mount for mount in container["volumeMounts"] if mount["mountPath"] == folder]
        (volume,) = [volume for volume in pod["volumes"] if volume["name"] == mount["name"]]
        assert volume["configMap"] == {"name": "company-ca"}
    for _, pod in pods(plain):
        assert "env" not in pod["containers"][0]


def test_values_of_a_release_from_before_a_value_was_there_are_enough(helm: str) -> None:
    """What `helm upgrade --reuse-values` gives the templates."""
    assert template(helm, {"proxy": None, "authorities": None}) == template(helm, {})


def test_the_hook_of_helm_test_may_do_what_its_script_does(helm: str, plain: list[Document]) -> None:
    (pod,) = of_kind(plain, "Pod")
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    assert named(plain, "Role", "casewarden-test")["rules"] == [
        {"apiGroups": ["casewarden.dev"], "resources": ["evalruns"], "verbs": ["get", "create", "delete"]}
    ]
    (container,) = pod["spec"]["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["command"][3:] == [NAMESPACE, "support-routing", "300"]
    script = named(plain, "ConfigMap", "casewarden-test")["data"]["test-run.py"]
    compile(script, "test-run.py", "exec")
    watched = template(helm, VALUES["for two namespaces"])
    assert named(watched, "Role", "casewarden-test")["metadata"]["namespace"] == "evals"


def test_an_admin_may_what_an_editor_may_and_read_evidence(plain: list[Document]) -> None:
    admin, editor = named(plain, "ClusterRole", "casewarden-admin"), named(plain, "ClusterRole", "casewarden-editor")
    reader = named(plain, "ClusterRole", "casewarden-evidence-reader")
    assert admin["rules"] == [*editor["rules"], *reader["rules"]]


def test_a_budget_keeps_one_operator_where_there_is_a_standby_and_blocks_no_drain_where_there_is_none(
    helm: str, plain: list[Document]
) -> None:
    assert of_kind(plain, "PodDisruptionBudget") == []
    documents = template(helm, {"operator": {"replicas": 2}})
    (budget,) = of_kind(documents, "PodDisruptionBudget")
    assert budget["spec"]["minAvailable"] == 1
    labels = named(documents, "Deployment", "casewarden-operator")["spec"]["template"]["metadata"]["labels"]
    assert budget["spec"]["selector"]["matchLabels"].items() <= labels.items()
