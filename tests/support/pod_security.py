"""The Pod Security Standards, as far as they speak of what a pod's spec says (Kubernetes 1.34)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
_CAPABILITIES = {
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
    "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
}  # fmt: skip


def containers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [*spec.get("initContainers", []), *spec["containers"]]


def baseline_faults(spec: dict[str, Any]) -> Iterator[str]:
    """Yield what the level ``baseline`` forbids."""
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(name):
            yield name
    for volume in spec.get("volumes", []):
        if "hostPath" in volume:
            yield f"volume {volume['name']} is a hostPath"
    for container in containers(spec):
        context, name = container.get("securityContext", {}), container["name"]
        if context.get("privileged"):
            yield f"{name} is privileged"
        if set(context.get("capabilities", {}).get("add", [])) - _CAPABILITIES:
            yield f"{name} adds capabilities"
        if context.get("procMount", "Default") != "Default":
            yield f"{name} has another /proc"
        if any(port.get("hostPort") for port in container.get("ports", [])):
            yield f"{name} has a host port"


def restricted_faults(spec: dict[str, Any]) -> Iterator[str]:
    """Yield what the level ``restricted`` forbids."""
    yield from baseline_faults(spec)
    pod = spec.get("securityContext", {})
    for volume in spec.get("volumes", []):
        if not (set(volume) - {"name"}) <= _VOLUMES:
            yield f"volume {volume['name']}"
    for container in containers(spec):
        context, name = container.get("securityContext", {}), container["name"]
        if context.get("allowPrivilegeEscalation") is not False:
            yield f"{name} may escalate"
        if context.get("runAsNonRoot", pod.get("runAsNonRoot")) is not True:
            yield f"{name} may be root"
        if context.get("runAsUser", pod.get("runAsUser")) == 0:
            yield f"{name} is root"
        profile = context.get("seccompProfile", pod.get("seccompProfile", {})).get("type")
        if profile not in ("RuntimeDefault", "Localhost"):
            yield f"{name} has seccomp {profile}"
        if "ALL" not in context.get("capabilities", {}).get("drop", []):
            yield f"{name} keeps capabilities"
        if set(context.get("capabilities", {}).get("add", [])) - {"NET_BIND_SERVICE"}:
            yield f"{name} adds capabilities"
