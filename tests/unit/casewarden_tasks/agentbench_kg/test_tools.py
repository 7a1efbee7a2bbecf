"""The seven tools: what is read as a call, what it makes, and what is said to a call that cannot be made."""

from __future__ import annotations

import asyncio

import pytest

from casewarden_tasks.agentbench_kg.graph import Embedded
from casewarden_tasks.agentbench_kg.ontology import Ontology
from casewarden_tasks.agentbench_kg.own import own_ontology, own_triples
from casewarden_tasks.agentbench_kg.tools import Call, ToolRefused, Tools, calls_in

COMMA = "Museum of Fine Arts, Holm"
ENTITIES = {COMMA: "m.0m7", "storms": "g.114", "Anna Holm": "m.0a00"}
GRAPH = Embedded(own_triples(), "test")


def tools(compat: bool = False) -> Tools:
    return Tools(own_ontology(), GRAPH, ENTITIES, compat)


def told(*lines: str, of: Tools | None = None, compat: bool = False) -> list[str]:
    made = of or tools(compat)

    async def call(line: str) -> str:
        try:
            return await made.call(calls_in(line, compat)[0])
        except ToolRefused as refused:
            return f"refused: {refused}"

    async def all_of_them() -> list[str]:
        return [await call(line) for line in lines]

    return asyncio.run(all_of_them())


@pytest.mark.parametrize(
    ("line", "meant", "as_v0_2"),
    [
        ("Action: get_relations(Anna Holm)", ("Anna Holm",), ("Anna Holm",)),
        (f"Action: get_neighbors({COMMA}, r.s)", (COMMA, "r.s"), ("Museum of Fine Arts", "Holm", "r.s")),
        ("Action: get_relations(Ivo Dahl (the Younger))", ("Ivo Dahl (the Younger)",), ("Ivo Dahl (the Younger",)),
        ("Action: argmax( #1 ,a.b )", ("#1", "a.b"), ("#1", "a.b")),
        ("Action: count(#0", ("#0",), ("#0",)),
    ],
)
def test_names_may_have_commas_and_brackets_but_in_v0_2(
    line: str, meant: tuple[str, ...], as_v0_2: tuple[str, ...]
) -> None:
    assert [calls_in(line, compat)[0].arguments for compat in (False, True)] == [meant, as_v0_2]


def test_only_the_tools_are_read_as_calls_and_each_of_them_in_its_order() -> None:
    line = "Action: open(x) or union(#0, #1) or count(#0) or get_relations(#1)"
    assert calls_in(line, compat=False) == [Call("count", ("#0",)), Call("get_relations", ("#1",))]


def test_a_walk_makes_variables_with_the_types_of_the_ontology() -> None:
    assert told(
        "get_relations(storms)",
        "get_neighbors(storms, art.subject.paintings)",
        "get_attributes(variable #0)",
        "argmax(#0, art.painting.year)",
        "count(#0)",
        "get_relations(#2)",
    ) == [
        "[art.subject.paintings]",
        "variable #0, which are instances of art.painting",
        "[art.painting.height_cm, art.painting.year]",
        "variable #1, which are instances of art.painting",
        "variable #2, which is a number",
        "refused: a number has neither relations nor attributes",
    ]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("get_relations(nobody)", "nobody is neither a variable nor one of the entities"),
        ("get_relations(#0)", "there is no variable #0 yet"),
        ("get_neighbors(storms, art.subject.paintings)", "call get_relations for it first"),
        ("get_attributes(storms)", "storms is no variable"),
        ("intersection(#0, #1)", "there is no variable #0 yet"),
        ("count()", "count takes 1 argument"),
        ("argmax(#0)", "argmax takes 2 arguments"),
        ("get_relations(m.0m7> ?y . <x)", "is neither a variable nor one of the entities"),
    ],
)
def test_a_call_that_cannot_be_made_says_what_is_wrong(line: str, why: str) -> None:
    (said,) = told(line)
    assert said.startswith("refused: ")
    assert why in said


def test_a_relation_that_was_not_listed_is_refused_so_that_nothing_else_gets_into_a_query() -> None:
    of = tools()
    told("get_relations(storms)", of=of)
    (said,) = told("get_neighbors(storms, art.subject.paintings> ?x . <y)", of=of)
    assert "is not among its relations" in said


def test_what_was_listed_for_another_question_does_not_count() -> None:
    told("get_relations(storms)")
    assert told("get_neighbors(storms, art.subject.paintings)")[0].startswith("refused")


def test_ids_that_start_with_g_are_entities_but_in_v0_2() -> None:
    assert told("get_relations(storms)", compat=True)[0].startswith("refused")


def test_types_of_which_one_is_among_the_other_can_be_intersected_but_in_v0_2() -> None:
    ontology = Ontology(
        {"a.r": "t.narrow", "a.s": "t.wide"},
        frozenset({"a.r", "a.s"}),
        frozenset(),
        {"t.narrow": frozenset({"t.wide"})},
    )
    ns = "http://rdf.freebase.com/ns/"
    graph = Embedded(
        f"<{ns}m.1> <{ns}a.r> <{ns}m.2> .\n<{ns}m.1> <{ns}a.s> <{ns}m.2> .\n", "test"
    )  # fmt: skip
    walk = ("get_relations(it)", "get_neighbors(it, a.r)", "get_neighbors(it, a.s)", "intersection(#1, #0)")
    now, then = (told(*walk, of=Tools(ontology, graph, {"it": "m.1"}, compat))[-1] for compat in (False, True))
    assert now == "variable #2, which are instances of t.narrow"
    assert then.startswith("refused: intersection needs two variables of one type, and got t.wide and t.narrow")


def test_a_variable_more_than_there_may_be_is_refused() -> None:
    of = tools()
    told("get_relations(storms)", of=of)
    said = told(*["get_neighbors(storms, art.subject.paintings)"] * 65, of=of)
    assert said[-1] == "refused: there are 64 variables already"
