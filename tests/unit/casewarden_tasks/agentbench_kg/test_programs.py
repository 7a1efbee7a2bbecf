"""Programs and the SPARQL that they come to: the engine says what walking through the world by sets says."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from casewarden_tasks.agentbench_kg.graph import Embedded
from casewarden_tasks.agentbench_kg.own import own_ontology, own_triples, walked
from casewarden_tasks.agentbench_kg.programs import And, Count, Entity, Join, Most, Program, is_id, query
from casewarden_tasks.agentbench_kg.world import ATTRIBUTES, RELATIONS, world

GRAPH = Embedded(own_triples(), "test")
LEADING: dict[str, list[str]] = {}
for relation, (domain, range_, other) in RELATIONS.items():
    LEADING.setdefault(domain, []).append(relation)
    LEADING.setdefault(range_, []).append(other)


def asked(program: Program) -> tuple[str, ...]:
    return tuple(asyncio.run(GRAPH.select(query(program))))


def test_texts_of_other_languages_and_what_is_named_are_no_values() -> None:
    ns = "http://rdf.freebase.com/ns/"
    facts = ['"Holm"@en', '"Holmen"@da', '"7"', f"<{ns}m.1>", f"<{ns}m.2>", '"1999-01-01-08:00"']
    graph = Embedded("".join(f"<{ns}m.1> <{ns}a.r> {fact} .\n" for fact in facts), "test")
    found = asyncio.run(graph.select(query(Join("a.r", Entity("m.1")))))
    assert found == ["1999-01-01", "7", "Holm", "m.2"]


def test_of_a_tie_all_are_the_most() -> None:
    ns = "http://rdf.freebase.com/ns/"
    number = "^^<http://www.w3.org/2001/XMLSchema#integer>"
    facts = "".join(
        f'<{ns}m.1> <{ns}a.r> <{ns}m.{n}> .\n<{ns}m.{n}> <{ns}a.n> "{value}"{number} .\n'
        for n, value in ((2, 5), (3, 9), (4, 9))
    )
    graph = Embedded(facts, "test")
    most = Most(True, Join("a.r", Entity("m.1")), "a.n")
    assert asyncio.run(graph.select(query(most))) == ["m.3", "m.4"]
    assert asyncio.run(graph.select(query(Count(most)))) == ["2"]


def test_ids_are_told_from_everything_that_could_end_a_query() -> None:
    assert [is_id(text) for text in ("m.0abc_1", "g.11b", "f.x", "m.", "x.1", "m.1>", "m.1 ", "common.topic")] == [
        True, True, True, False, False, False, False, False,
    ]  # fmt: skip


@st.composite
def walks(draw: st.DrawFn) -> tuple[Program, list[str]]:
    """A program and the same as calls: hops from a thing, maybe met with those from another, narrowed, counted."""
    made, ranges = world(), own_ontology().ranges
    calls: list[str] = []

    def hops() -> tuple[Program, str, int]:
        id = draw(st.sampled_from(sorted(made.names)))
        program: Program = Entity(id)
        type_, at = made.types[id], id
        for _ in range(draw(st.integers(1, 3))):
            name = draw(st.sampled_from(LEADING[type_]))
            calls.append(f"get_neighbors({at}, {name})")
            program, type_ = Join(name, program), ranges[name]
            at = f"#{len(calls) - 1}"
        return program, type_, len(calls) - 1

    program, type_, at = hops()
    if draw(st.booleans()):
        other, other_type, other_at = hops()
        if other_type == type_:
            calls.append(f"intersection(#{at}, #{other_at})")
            program, at = And(program, other), len(calls) - 1
        else:
            program, type_, at = other, other_type, other_at
    of_type = [name for name, domain in ATTRIBUTES.items() if domain == type_]
    if of_type and draw(st.booleans()):
        attribute, highest = draw(st.sampled_from(of_type)), draw(st.booleans())
        calls.append(f"{'argmax' if highest else 'argmin'}(#{at}, {attribute})")
        program = Most(highest, program, attribute)
    elif draw(st.booleans()):
        calls.append(f"count(#{at})")
        program = Count(program)
    else:
        calls.append(f"intersection(#{at}, #{at})")
    return program, calls


@given(walks())
@settings(max_examples=150, deadline=None)
def test_the_engine_and_the_walk_by_sets_agree(walk: tuple[Program, list[str]]) -> None:
    program, calls = walk
    assert asked(program) == walked(world(), calls)
