"""The chart's values as typed models; `values.schema.json` is made of them, its descriptions of values.yaml's comments.

What is in `catalogue` are the operator's own models, so that a value which the chart takes is one that the operator
takes. A field with a default here may be set to null by a user; one without must be there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool

from casewarden.api.catalogue import CataloguePools, CatalogueTask
from casewarden.api.common import ApiModel, EnvName, FreeObject, Image, Quantity, ShortName
from casewarden.api.endpoint import Endpoint

__all__ = ["Values", "schema"]

Text = Annotated[str, Field(max_length=512)]
Map = dict[str, str]
Objects = list[FreeObject]
Flags = list[Annotated[str, Field(pattern=r"^--[a-z]")]]
Duration = Annotated[str, Field(pattern=r"^[0-9]+(ms|s|m|h)$")]
Url = r"^(https?://[^\s/?#@]+(/[^\s?#]*)?)?$"
Unique = Field(json_schema_extra={"uniqueItems": True})
Namespaces = Annotated[list[ShortName], Unique]


class Images(ApiModel):
    registry: Annotated[str, Field(pattern=r"^[^\s]*[^\s/]$|^$")] = ""
    operator: Image
    evidence: Image


class PullSecret(ApiModel):
    name: Annotated[str, Field(min_length=1)]


class CatalogueValues(ApiModel):
    tasks: dict[ShortName, CatalogueTask | None] = Field(default_factory=dict)
    images: dict[ShortName, Image | None] = Field(default_factory=dict)
    endpoints: dict[ShortName, Endpoint | None] = Field(default_factory=dict)
    allowed_task_images: Annotated[list[Annotated[str, Field(min_length=1)]], Unique] = Field(default_factory=list)
    allow_baseline: Namespaces = Field(default_factory=list)
    pools: CataloguePools = Field(default_factory=CataloguePools)


class Requests(ApiModel):
    """Any resource, CPU and memory at least."""

    cpu: Quantity | Annotated[float, Field(gt=0)]
    memory: Quantity | Annotated[float, Field(gt=0)]


class Limits(ApiModel):
    """Any resource, memory at least."""

    memory: Quantity | Annotated[float, Field(gt=0)]


class Resources(ApiModel):
    requests: Requests
    limits: Limits


class EnvVar(ApiModel):
    name: EnvName


class Service(ApiModel):
    """What operator and relay have in common."""

    resources: Resources
    extra_args: Flags = Field(default_factory=list)
    node_selector: Map = Field(default_factory=dict)
    tolerations: Objects = Field(default_factory=list)
    affinity: FreeObject = Field(default_factory=dict)
    topology_spread_constraints: Objects = Field(default_factory=list)
    priority_class_name: Text = ""
    runtime_class_name: Text = ""
    pod_labels: Map = Field(default_factory=dict)
    pod_annotations: Map = Field(default_factory=dict)
    service_account_annotations: Map = Field(default_factory=dict)
    extra_env: list[EnvVar] = Field(default_factory=list)


class OperatorValues(Service):
    replicas: Annotated[int, Field(ge=0, le=3)]
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"


class Bucket(ApiModel):
    bucket: Annotated[str, Field(pattern=r"^([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])?$")] = ""
    prefix: Annotated[
        str, Field(pattern=r"^([A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*)?$", max_length=200)
    ] = ""
    endpoint: Annotated[str, Field(pattern=Url, max_length=512)] = ""
    region: Annotated[str, Field(pattern=r"^[a-z0-9-]*$")] = ""
    path_style: StrictBool = True
    secret: Text = ""


class Storage(ApiModel):
    type: Literal["pvc", "emptyDir", "s3"]
    size: Quantity
    storage_class: Text = ""
    s3: Bucket


class RelayValues(Service):
    storage: Storage
    retention_days: Annotated[float, Field(ge=0)] = 0
    extra_volumes: Objects = Field(default_factory=list)
    extra_volume_mounts: Objects = Field(default_factory=list)


class Proxy(ApiModel):
    http: Annotated[str, Field(pattern=Url, max_length=512)] = ""
    https: Annotated[str, Field(pattern=Url, max_length=512)] = ""
    bypass: Annotated[list[Annotated[str, Field(pattern=r"^[^\s,]+$", max_length=253)]], Unique] = Field(
        default_factory=list
    )


class Authorities(ApiModel):
    config_map: Annotated[str, Field(pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$", max_length=253)] = ""
    key: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,253}$")] = "ca.crt"


class Switch(ApiModel):
    install: StrictBool


class Rbac(ApiModel):
    aggregate: StrictBool


class Policies(ApiModel):
    enabled: StrictBool
    metrics_from: Objects = Field(default_factory=list)


class Monitors(ApiModel):
    enabled: StrictBool
    interval: Duration
    scrape_timeout: Duration
    labels: Map = Field(default_factory=dict)
    relabelings: Objects = Field(default_factory=list)
    metric_relabelings: Objects = Field(default_factory=list)


class Rules(ApiModel):
    enabled: StrictBool
    labels: Map = Field(default_factory=dict)
    runbook_url: Annotated[str, Field(pattern=r"^https?://")]


class Dashboards(ApiModel):
    enabled: StrictBool
    labels: Map
    annotations: Map = Field(default_factory=dict)


class Monitoring(ApiModel):
    service_monitor: Monitors
    alerts: Annotated[Rules, Field(alias="rules")]
    dashboards: Dashboards


class HelmTest(ApiModel):
    enabled: StrictBool
    task: ShortName
    namespace: Annotated[str, Field(pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$", max_length=63)] = ""
    seconds: Annotated[int, Field(ge=10, le=3600)]


class AnyManifest(ApiModel):
    api_version: Annotated[str, Field(min_length=1)]
    kind: Annotated[str, Field(min_length=1)]


class Values(ApiModel):
    """All of values.yaml. `global` is Helm's own and not used."""

    image: Images
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"]
    image_pull_secrets: list[PullSecret] = Field(default_factory=list)
    catalogue: CatalogueValues
    watch_namespaces: Namespaces = Field(default_factory=list)
    operator: OperatorValues
    relay: RelayValues
    # Younger than the chart: an upgrade that reuses older values has none.
    proxy: Proxy = Field(default_factory=Proxy)
    authorities: Authorities = Field(default_factory=Authorities)
    crds: Switch
    rbac: Rbac
    network_policy: Policies
    monitoring: Monitoring
    test: HelmTest
    extra_objects: list[AnyManifest] = Field(default_factory=list)


OPEN = (EnvVar, Requests, Limits, AnyManifest)
"""Models of which only these fields are checked; the rest is Kubernetes' own."""
_RULE = re.compile(r"self\.matches\(r'(.*)'\)", re.DOTALL)


def schema(comments: Mapping[str, str]) -> dict[str, Any]:
    """Return the JSON schema. `comments` are descriptions by the path of a value (`relay.storage.size`)."""
    made = Values.model_json_schema(by_alias=True)
    definitions = made.pop("$defs")
    free = {model.__name__ for model in OPEN}
    found: dict[str, Any] = _plain(made, definitions, free)
    found["properties"]["global"] = {"type": "object", "description": "Helm adds it to every chart; not used."}
    for path, text in comments.items():
        place: Any = found
        for name in path.split("."):
            place = place.get("properties", {}).get(name)
            if place is None:
                break
        else:
            place["description"] = text
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Values of the Casewarden chart", **found}


def _plain(node: Any, definitions: Mapping[str, Any], free: set[str]) -> Any:
    """Say it without references, defaults (they are in values.yaml), and the API server's own words."""
    if isinstance(node, list):
        return [_plain(item, definitions, free) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        found = _plain(definitions[name], definitions, free)
        return {key: value for key, value in found.items() if key != "additionalProperties"} if name in free else found
    made: dict[str, Any] = {}
    for key, value in node.items():
        if key == "properties":
            made[key] = {name: _plain(item, definitions, free) for name, item in value.items()}
        elif key == "x-kubernetes-validations":
            made["pattern"] = _RULE.fullmatch(value[0]["rule"]).group(1)  # type: ignore[union-attr]
        elif key == "additionalProperties" and value is True:
            continue
        elif key not in ("title", "default", "description", "x-kubernetes-preserve-unknown-fields"):
            made[key] = _plain(value, definitions, free)
    return made
