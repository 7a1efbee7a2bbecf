"""A manifest is read as strictly as the API server reads it, and refused in the same words."""

from __future__ import annotations

from typing import Any

import pytest
from support.refused import Refused, refused_by

from casewarden.api.catalogue import Catalogue
from casewarden.api.documents import load_documents
from casewarden.api.evalrun import EvalRun
from casewarden.api.manifest import ManifestError, did_you_mean, parse
from casewarden.core.validate import validate_manifest

CATALOGUE = Catalogue.model_validate(
    {
        "tasks": {"durable-kv": {"image": "tasks:1"}, "support-routing": {"image": "tasks:1"}},
        "images": {"python": "p:1"},
    }
)
GOOD: dict[str, Any] = {
    "apiVersion": "casewarden.dev/v1alpha1",
    "kind": "EvalRun",
    "metadata": {"name": "good"},
    "spec": {"task": {"name": "durable-kv"}, "seeds": {"values": [17]}, "candidate": {"control": "reference"}},
}


def with_spec(**fields: Any) -> dict[str, Any]:
    return {**GOOD, "spec": {**GOOD["spec"], **fields}}


def problems(document: Any) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        parse(document)
    return [str(problem) for problem in caught.value.problems]


def test_a_good_manifest_gets_the_defaults_that_the_api_server_gives() -> None:
    run = parse(GOOD)
    assert isinstance(run, EvalRun)
    assert validate_manifest(GOOD, CATALOGUE) == []
    assert (run.spec.parallelism, run.spec.retries.environment, run.spec.keep_pods) == (10, 2, "Never")


@pytest.mark.parametrize("refused", refused_by("api", "accepted"), ids=lambda item: item.name)
def test_what_the_cluster_refuses_is_refused_without_one(refused: Refused) -> None:
    found = validate_manifest(refused.document, CATALOGUE)
    said = [str(problem) for problem in found]
    assert [problem.field for problem in found] == [refused.field], said
    assert refused.offline in said[0]
    assert refused.value.strip('"') in said[0]


def test_all_problems_are_told_at_once() -> None:
    assert problems(with_spec(repeats=0, parallelism="x", keepPods="Always")) == [
        "spec.repeats is 0: give 1 or more",
        'spec.parallelism is "x": give a whole number, without quotes',
        "spec.keepPods is \"Always\": use one of 'Never', 'OnFailure'",
    ]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (None, "the document is null: give an object with apiVersion, kind and spec"),
        ([], "the document is []: give an object with apiVersion, kind and spec"),
        ({**GOOD, "kind": "EvalRuns"}, 'kind is "EvalRuns": did you mean EvalRun?'),
        ({**GOOD, "kind": 3}, "kind is 3: use one of EvalRun, AuditRun"),
        ({**GOOD, "metadata": {}}, "metadata.name: it is missing: give it"),
        ({**GOOD, "metadata": {"name": "A b"}}, 'metadata.name is "A b": use lower-case letters'),
        ({**GOOD, "spce": {}}, "spce: there is no such field: did you mean spec?"),
        ({**GOOD, "spec": []}, "spec is []: give an object"),
        (with_spec(seeds=[17]), "spec.seeds is [17]: give an object"),
        (with_spec(threshold={"score": True}), "spec.threshold.score is true: put it in quotes"),
        (with_spec(threshold={"dimensions": {"a b": "1"}}), "spec.threshold.dimensions is a b: use letters"),
        (
            with_spec(threshold={"dimensions": {"basic": "2"}}),
            'spec.threshold.dimensions[basic] is "2": give a decimal',
        ),
        (with_spec(candidate={"program": {"argv": ["a\0"]}}), 'spec.candidate.program.argv[0] is "a\\u0000"'),
    ],
)
def test_a_problem_names_the_field_the_value_and_the_cure(document: Any, said: str) -> None:
    (only,) = problems(document)
    assert only.startswith(said)


def test_a_field_without_a_value_is_as_if_it_were_not_there() -> None:
    run = parse(with_spec(repeats=None, threshold=None, podTemplate={"labels": None}))
    assert isinstance(run, EvalRun)
    assert (run.spec.repeats, run.spec.threshold, run.spec.pod_template.labels) == (1, None, {})


def test_parameters_of_a_pack_are_nobodys_business_here() -> None:
    run = parse(with_spec(task={"name": "durable-kv", "params": {"any": [None, {"x": 1.5}]}}))
    assert isinstance(run, EvalRun)
    assert run.spec.task.params == {"any": [None, {"x": 1.5}]}


def test_a_name_may_be_left_to_the_api_server() -> None:
    assert parse({**GOOD, "metadata": {"generateName": "nightly-"}}).metadata.name.startswith("nightly-")


def test_long_values_are_cut() -> None:
    (only,) = problems(with_spec(repeats="x" * 10_000))
    assert len(only) < 200


def test_yaml_with_a_key_twice_is_refused_with_its_line() -> None:
    with pytest.raises(ManifestError, match="line 3: the key a is there twice: keep one"):
        load_documents("b: 1\na: 1\na: 2\n")


def test_what_is_no_yaml_is_refused_with_its_line() -> None:
    with pytest.raises(ManifestError, match="line 2: this is no YAML"):
        load_documents("a: [1,\n}")


def test_documents_of_a_stream_are_read_and_empty_ones_left_out() -> None:
    assert load_documents("---\na: 1\n---\n---\nb: 2\n") == [{"a": 1}, {"b": 2}]


def test_yaml_can_make_nothing_but_data() -> None:
    with pytest.raises(ManifestError, match="this is no YAML"):
        load_documents("a: !!python/object/apply:os.getcwd []")


@pytest.mark.parametrize(
    ("word", "said"), [("Paralelism", "did you mean parallelism?"), ("zzz", "use one of parallelism, seeds")]
)
def test_a_misspelt_word_gets_the_one_that_was_meant(word: str, said: str) -> None:
    assert did_you_mean(word, ["parallelism", "seeds"]) == said
