"""Where queries are answered: a graph in this process, or somebody's SPARQL endpoint."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Final, Protocol

from casewarden_sdk.errors import ContractError, EnvironmentFailure

from .programs import NAMESPACE

__all__ = ["Embedded", "Graph", "QueryRefused", "Remote"]

_ANSWER_BYTES: Final = 16 << 20
_SECONDS: Final = 60.0
_RESULTS: Final = "application/sparql-results+json"
# What every engine can answer at once: it tells a query that is too much from an engine that is away.
_NOTHING: Final = "ASK {}"
# Freebase's dates end in the zone of the machine that dumped them.
_ZONE: Final = "-08:00"


class QueryRefused(Exception):
    """The engine answers, but not this query: it takes too long, or too much."""


class Graph(Protocol):
    """Answers queries of one variable."""

    async def select(self, query: str) -> list[str]:
        """Return the values, ids without their namespace, sorted; ``QueryRefused`` for a query that is too much."""


class Embedded:
    """A graph of N-Triples in this process. ``ContractError`` where they are none."""

    def __init__(self, triples: str, where: str) -> None:
        import pyoxigraph

        self._store = pyoxigraph.Store()
        try:
            self._store.load(triples.encode("utf-8"), format=pyoxigraph.RdfFormat.N_TRIPLES)
        except (SyntaxError, ValueError, OSError) as error:
            raise ContractError(f"{where}: is no graph in N-Triples: {error}") from None

    async def select(self, query: str) -> list[str]:
        """See ``Graph``."""
        solutions: Any = self._store.query(query)
        return sorted({plain(solution[0].value) for solution in solutions if solution[0] is not None})


class Remote:
    """An endpoint of the SPARQL protocol, asked by POST."""

    def __init__(self, url: str, seconds: float = _SECONDS) -> None:
        self._url = url
        self._seconds = seconds

    async def select(self, query: str) -> list[str]:
        """See ``Graph``; ``EnvironmentFailure`` where the endpoint is away, or is none."""
        try:
            document = await asyncio.to_thread(self._ask, query)
        except (OSError, TimeoutError) as error:
            await self._must_be_there(error)
            raise QueryRefused("the query takes too long, or asks for too much") from None
        (name,) = document["head"]["vars"]
        rows = document["results"]["bindings"]
        return sorted({plain(row[name]["value"]) for row in rows if name in row})

    async def _must_be_there(self, trouble: Exception) -> None:
        try:
            document = await asyncio.to_thread(self._ask, _NOTHING)
        except OSError as error:
            raise self._failed(f"cannot be asked: {error}") from None
        if not isinstance(document.get("boolean"), bool):
            raise self._failed(f"does not answer {_NOTHING}: {trouble}")

    def _ask(self, query: str) -> Any:
        request = urllib.request.Request(  # noqa: S310 - only http and https get here
            self._url,
            data=urllib.parse.urlencode({"query": query}).encode("ascii"),
            headers={"Accept": _RESULTS, "Content-Type": "application/x-www-form-urlencoded"},
        )
        with urllib.request.urlopen(request, timeout=self._seconds) as response:  # noqa: S310
            kind = response.headers.get_content_type()
            data = response.read(_ANSWER_BYTES + 1)
        if len(data) > _ANSWER_BYTES:
            raise TimeoutError(f"the answer is over {_ANSWER_BYTES} bytes")
        try:
            document = json.loads(data)
            if not isinstance(document["head"], dict):
                raise TypeError("head is no object")
        except (ValueError, LookupError, TypeError, RecursionError):
            raise self._failed(f"answers with {kind}, not with {_RESULTS}: it is no SPARQL endpoint") from None
        return document

    def _failed(self, why: str) -> EnvironmentFailure:
        return EnvironmentFailure("TaskFailed", f"spec.task.params.endpoint: {self._url} {why}")


def plain(value: str) -> str:
    """Return a value as AgentBench compares it."""
    return value.removeprefix(NAMESPACE).replace(_ZONE, "")
