"""The commands of the pages for whoever runs the release: blocks of the pages, and what runbooks name in a line."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["COMMANDS", "INLINE", "ON_A_CLUSTER"]

ROOT = Path(__file__).resolve().parents[2]
_PAGES = (ROOT / "docs" / "operations.md", ROOT / "charts" / "casewarden" / "README.md")
_LINES = (*_PAGES, *sorted((ROOT / "docs" / "runbooks").glob("*.md")))
_FENCED = re.compile(r"^```.*?^```$", re.M | re.S)
COMMANDS = sorted(
    {line for page in _PAGES for line in re.findall(r"^    (\S.*)$", _FENCED.sub("", page.read_text()), re.M)}
)
"""Commands that stand alone, indented."""
INLINE = sorted(
    {
        line
        for page in _LINES
        for line in re.findall(r"`((?:casewarden|kubectl) [^`]+)`", page.read_text())
        if len(line.split()) > 1 and line not in ("kubectl apply", "kubectl casewarden")
    }
)
"""Commands within the text, with RUN, NAMESPACE and the like for names."""
ON_A_CLUSTER = {
    "helm test casewarden --namespace casewarden-system",
    "helm uninstall casewarden --namespace casewarden-system",
    "kubectl apply -f crds/",
    "kubectl delete crd evalruns.casewarden.dev auditruns.casewarden.dev",
    "kubectl get evalruns,auditruns --all-namespaces --output yaml",
    "kubectl --namespace casewarden-system delete persistentvolumeclaim casewarden-evidence",
}
"""What tests run on a cluster or on a real API server, with the release that they make and remove."""
