"""The ways in which people install the chart, as the documentation has them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

__all__ = ["KNOBS", "VALUES", "combinations"]

KNOBS: dict[str, Any] = {
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
    ],
    "priorityClassName": "high",
    "runtimeClassName": "gvisor",
    "podLabels": {"team": "evals"},
    "podAnnotations": {"note": "seen"},
    "serviceAccountAnnotations": {"iam": "role"},
    "extraEnv": [{"name": "TZ", "value": "UTC"}],
}
VALUES: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "with a tokenizer": {
        "catalogue": {
            "endpoints": {
                "team-qwen": {"url": "http://qwen.models.svc:8000/v1", "tokenizer": "/tokenizers/qwen3/tokenizer.json"}
            }
        },
        "relay": {
            "extraVolumes": [{"name": "tokenizers", "persistentVolumeClaim": {"claimName": "tokenizers"}}],
            "extraVolumeMounts": [{"name": "tokenizers", "mountPath": "/tokenizers", "readOnly": True}],
        },
    },
    "for a trial": {"relay": {"storage": {"type": "emptyDir", "size": "1Gi"}}},
    "with evidence in a bucket": {
        "relay": {
            "storage": {
                "type": "s3",
                "s3": {
                    "bucket": "evidence",
                    "prefix": "team/one",
                    "endpoint": "https://s3.example:9000",
                    "region": "eu-1",
                    "secret": "s3-keys",
                },
            },
            "serviceAccountAnnotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/evidence"},
        },
    },
    "for two namespaces": {"watchNamespaces": ["evals", "research"]},
    "without CRDs and aggregation": {"crds": {"install": False}, "rbac": {"aggregate": False}},
    "from a registry, placed": {
        "image": {"operator": "r.example:5000/op@sha256:" + "0" * 64, "evidence": "r.example:5000/ev:1"},
        "imagePullPolicy": "Always",
        "imagePullSecrets": [{"name": "registry"}],
        "operator": {
            "logLevel": "DEBUG",
            "extraArgs": ["--qps=100", "--burst=200"],
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "tolerations": [{"key": "control", "operator": "Exists"}],
            "affinity": {"nodeAffinity": {}},
        },
        "relay": {
            "storage": {"type": "pvc", "size": "100Gi", "storageClass": "fast"},
            "retentionDays": 30,
            "extraArgs": ["--max-uploads=64"],
            "nodeSelector": {"disk": "ssd"},
        },
    },
    "watched": {
        "monitoring": {
            "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}, "interval": "15s"},
            "rules": {
                "enabled": True,
                "labels": {"release": "prometheus"},
                "runbookUrl": "https://docs.example/books/",
            },
            "dashboards": {"enabled": True, "annotations": {"grafana_folder": "Evals"}},
        },
        "networkPolicy": {"enabled": True, "metricsFrom": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}]},
    },
    "with every knob": {
        "image": {"registry": "r.example:5000/mirror"},
        "watchNamespaces": ["evals"],
        "operator": KNOBS,
        "relay": {**KNOBS, "retentionDays": 3},
        "networkPolicy": {"enabled": False},
        "test": {"enabled": False},
        "extraObjects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}}],
    },
    "behind a proxy": {
        "proxy": {"https": "http://proxy.example:3128", "bypass": ["s3.example", "10.0.0.8"]},
        "authorities": {"configMap": "company-ca", "key": "bundle.pem"},
        "relay": {"extraEnv": [{"name": "TZ", "value": "UTC"}]},
    },
    "with a catalogue of one's own": {
        "catalogue": {
            "tasks": {"support-routing": None, "mine": {"image": "r.example/mine:2"}},
            "images": {"node": "node:22"},
            "allowedTaskImages": ["r.example/team/"],
            "allowBaseline": ["mine"],
            "pools": {"agents": {"team": {"concurrency": 4}}, "tasks": {"mine": {"concurrency": 0}}},
            "endpoints": {
                "team": {"url": "https://models.example/v1", "secret": {"name": "team-key"}, "concurrency": 8},
                "open": {"url": "http://models.tools.svc:8000/v1", "namespaces": ["evals"]},
                "gone": None,
            },
        },
    },
}


_SWITCHES: tuple[dict[str, dict[str, Any]], ...] = (
    {
        "a volume": {},
        "an emptyDir": {"relay": {"storage": {"type": "emptyDir"}}},
        "a bucket": {"relay": {"storage": {"type": "s3", "s3": {"bucket": "evidence", "secret": "s3-keys"}}}},
    },
    {"all namespaces": {}, "two namespaces": {"watchNamespaces": ["evals", "research"]}},
    {"one operator": {}, "a standby": {"operator": {"replicas": 2}}},
    {
        "unwatched": {},
        "watched": {
            "monitoring": {part: {"enabled": True} for part in ("serviceMonitor", "rules", "dashboards")},
            "networkPolicy": {"metricsFrom": [{"namespaceSelector": {}}]},
        },
    },
)


def combinations() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every way of the documentation, then each storage with each scope, each number of operators and both ways
    to be watched."""
    yield from VALUES.items()
    for names in product(*_SWITCHES):
        values: dict[str, Any] = {}
        for switch, name in zip(_SWITCHES, names, strict=True):
            values = {**values, **switch[name]}
        yield ", ".join(names), values
