"""Endpoints: one that answers, one that is none, one that is away, and a query that is too much for it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from support.ports import free_port

from casewarden_sdk.errors import ContractError, EnvironmentFailure
from casewarden_tasks.agentbench_kg.graph import Embedded, QueryRefused, Remote
from casewarden_tasks.agentbench_kg.programs import NAMESPACE

Reply = tuple[int, str, str]
RESULTS = "application/sparql-results+json"


@contextmanager
def endpoint(answer: Callable[[str], Reply]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            assert self.headers["Accept"] == RESULTS
            status, kind, text = answer(urllib.parse.parse_qs(body)["query"][0])
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.end_headers()
            with suppress(BrokenPipeError):
                self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/sparql"
    finally:
        server.shutdown()
        server.server_close()


def rows(*values: str) -> Reply:
    bindings = [{"x": {"type": "uri", "value": value}} for value in values]
    return 200, RESULTS, json.dumps({"head": {"vars": ["x"]}, "results": {"bindings": bindings}})


ALIVE: Reply = (200, RESULTS, json.dumps({"head": {}, "boolean": True}))


def test_values_come_without_their_namespace_each_once_and_sorted() -> None:
    with endpoint(lambda _: rows(f"{NAMESPACE}m.2", f"{NAMESPACE}m.1", "7", f"{NAMESPACE}m.2")) as url:
        assert asyncio.run(Remote(url).select("SELECT ?x WHERE {}")) == ["7", "m.1", "m.2"]


@pytest.mark.parametrize("answer", [(200, "text/html", "<html>hello</html>"), (200, "application/json", "[]")])
def test_what_is_no_sparql_endpoint_is_said_to_be_none(answer: Reply) -> None:
    with endpoint(lambda _: answer) as url, pytest.raises(EnvironmentFailure, match="is no SPARQL endpoint") as caught:
        asyncio.run(Remote(url).select("SELECT ?x WHERE {}"))
    assert url in str(caught.value)


def test_an_endpoint_that_is_away_is_the_environments() -> None:
    url = f"http://127.0.0.1:{free_port()}/sparql"
    with pytest.raises(EnvironmentFailure, match=r"spec\.task\.params\.endpoint: .* cannot be asked"):
        asyncio.run(Remote(url).select("SELECT ?x WHERE {}"))


def test_a_query_that_only_fails_itself_is_the_agents() -> None:
    def answer(query: str) -> Reply:
        return ALIVE if query == "ASK {}" else (500, "text/plain", "estimated time exceeds the limit")

    with endpoint(answer) as url, pytest.raises(QueryRefused):
        asyncio.run(Remote(url).select("SELECT ?x WHERE {}"))


def test_a_query_that_takes_too_long_is_the_agents_too() -> None:
    def answer(query: str) -> Reply:
        if query != "ASK {}":
            time.sleep(1.0)
        return ALIVE

    with endpoint(answer) as url, pytest.raises(QueryRefused):
        asyncio.run(Remote(url, seconds=0.2).select("SELECT ?x WHERE {}"))


def test_a_file_that_is_no_graph_is_refused_with_where_it_stands() -> None:
    with pytest.raises(ContractError, match=r"graph\.nt: is no graph in N-Triples"):
        Embedded("this is no triple\n", "graph.nt")
