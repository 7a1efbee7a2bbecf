"""Model servers for local runs: named on the command line or in a file, with keys from the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from pydantic import ValidationError

from casewarden.api.catalogue import Catalogue
from casewarden.api.endpoint import Endpoint
from casewarden.cli.failure import Failure

__all__ = ["LocalEndpoints", "key_variable", "read_endpoints"]

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


@dataclass(frozen=True)
class LocalEndpoints:
    """Endpoints, and the keys of those that have one, by name."""

    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)


def key_variable(name: str) -> str:
    """Return the environment variable that has an endpoint's key: ``CASEWARDEN_KEY_TEAM_GPT`` for ``team-gpt``."""
    return f"CASEWARDEN_KEY_{name.upper().replace('-', '_')}"


def read_endpoints(named: Sequence[str], file: Path | None, variables: Mapping[str, str]) -> LocalEndpoints:
    """Read ``NAME=URL`` words and a file with ``endpoints`` as in the chart's catalogue; a word wins over the file.

    An endpoint of the file with a ``secret`` must have its key in the environment; any other may.
    """
    found = {} if file is None else _of_file(file)
    for word in named:
        name, equals, url = word.partition("=")
        if not equals or _NAME.fullmatch(name) is None:
            raise Failure(f"--endpoint {word!r}: give NAME=URL, as in team=http://localhost:11434/v1")
        found[name] = _checked(f"--endpoint {name}", {"url": url})
    keys = {}
    for name, endpoint in found.items():
        key = variables.get(key_variable(name), "").strip()
        if key:
            keys[name] = key
        elif endpoint.secret is not None:
            raise Failure(f"endpoint {name} has a secret: put its key into the environment, as {key_variable(name)}")
    # Whose runs may use it is for clusters to say.
    return LocalEndpoints({name: item.model_copy(update={"namespaces": []}) for name, item in found.items()}, keys)


def _of_file(file: Path) -> dict[str, Endpoint]:
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise Failure(f"--endpoints {file}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Failure(f"--endpoints {file}: it is no YAML: {error}") from None
    document = document if isinstance(document, dict) else {}
    # The chart's values, the catalogue in them, or its endpoints alone: whatever is at hand.
    holder = document.get("catalogue") if isinstance(document.get("catalogue"), dict) else document
    if not isinstance(holder, dict) or not isinstance(holder.get("endpoints"), dict):
        raise Failure(f"--endpoints {file}: it has no endpoints: give endpoints: {{NAME: {{url: ...}}}}")
    return {str(name): _checked(f"--endpoints {file}: {name}", item) for name, item in holder["endpoints"].items()}


def _checked(where: str, document: object) -> Endpoint:
    try:
        found = Catalogue.model_validate({"endpoints": {"x": document}}).endpoints["x"]
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        field_name = ".".join(str(part) for part in detail["loc"][2:])
        raise Failure(f"{where}: {field_name}: {detail['msg']}") from None
    return found
