from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler import canonical_json
from reconciler.errors import SpecError
from reconciler.spec.document import spec_from_document, spec_to_document
from reconciler.spec.load import load_specs
from reconciler.spec.model import (
    Clustering,
    ClusteringBudget,
    ClusteringTrigger,
    FromEnv,
    Option,
    PartitionFilter,
    SizeTrigger,
    TableSpec,
)

HEAD = "apiVersion: reconciler/v1\nkind: HudiTable\nmetadata: {name: t, labels: {a: b}, owner: o}\n"


@pytest.fixture
def load(tmp_path):
    def one(spec: str) -> TableSpec:
        (tmp_path / "a.yaml").write_text(f"{HEAD}spec:\n  path: /lake/t\n{spec}")
        [loaded] = load_specs([tmp_path])
        return loaded

    return one


def test_a_document_is_the_spec_with_defaults_filled_in_and_units_gone(load):
    spec = load(
        "  retention: {commits: 10}\n  files: {target: 1MiB, small: 1kB}\n"
        "  clustering: {columns: [a], curve: linear}\n"
        "  queries: [{name: q, where: a = 1, maxScan: 12.5%}]\n"
        "  readers: {longestQuery: 90m, incrementalConsumers: [{name: c, maxLag: 48h}]}\n"
        "  concurrency: {lock: {provider: none}}\n"
    )

    assert spec.document == {
        "path": "/lake/t",
        "labels": {"a": "b"},
        "owner": "o",
        "suspend": False,
        "retention": {"policy": "KEEP_LATEST_COMMITS", "commits": 10, "scan": "full"},
        "files": {
            "target": 1024**2,
            "small": 1000,
            "large": 2 * 1024**2,
            "assign": "steady",
            "recordSize": 1024,
            "when": {"smallFileShareAbove": 0.3, "largeFiles": True},
            "budget": {"perGroup": 2 * 1024**3, "groups": 30},
        },
        "clustering": {
            "columns": ["a"],
            "curve": "linear",
            "mapping": "rank",
            "afterCommits": 1,
            "when": {"smallFileShareAbove": 0.3, "gainAbove": 0.2},
            "singleFile": True,
            "budget": {"perGroup": 2 * 1024**3, "groups": 30},
        },
        "queries": [{"name": "q", "where": "a = 1", "maxScan": "12.5%"}],
        "readers": {
            "longestQuery": "90m",
            "incrementalConsumers": [{"name": "c", "maxLag": "2d"}],
        },
        "concurrency": {
            "lock": {"provider": "none", "path": ".hoodie", "expire": 0},
            "staleAfter": "1h",
        },
    }


@pytest.mark.parametrize(
    "same",
    [
        "  files: {small: 100MiB, target: 120MiB}\n  retention: {commits: 10}\n",
        (
            "  retention: {scan: full, commits: 10, policy: KEEP_LATEST_COMMITS}\n"
            "  files: {target: 125829120B}\n  queries: []\n  suspend: false\n"
        ),
    ],
)
def test_two_ways_to_say_the_same_are_one_document(same, load):
    spec = load("  retention: {commits: 10}\n  files: {small: 100MiB}\n")

    assert canonical_json.to_bytes(spec.document) == canonical_json.to_bytes(load(same).document)


def test_only_sizes_are_for_existing_files(load):
    """How new rows are assigned says nothing about the files that are there."""
    spec = load("  retention: {commits: 10}\n  files: {assign: hudi, recordSize: 100B}\n")

    assert (None, None) == (spec.rewriting, spec.files.when)
    assert "when" not in spec.document["files"]
    assert spec == replace(
        spec_from_document(spec.document, spec.name, spec.path),
        source=spec.source,
        provenance=spec.provenance,
    )


@pytest.mark.parametrize("field", ["target: 1MiB", "small: 1MiB", "large: 1GiB"])
def test_a_size_declares_a_rewrite_of_existing_files(load, field):
    spec = load(f"  files: {{{field}, partitions: {{exclude: [a]}}, budget: {{groups: 2}}}}\n")

    assert Clustering(
        columns=(),
        when=ClusteringTrigger(small_file_share_above=0.3, overlap_above=None, gain_above=None),
        after_commits=0,
        partitions=PartitionFilter(exclude=("a",)),
        budget=ClusteringBudget(groups=2),
    ) == (spec.rewriting)


def test_a_condition_that_is_not_declared_is_off(load):
    when = load("  files: {target: 1MiB, when: {largeFiles: true}}\n").files.when

    assert SizeTrigger(small_file_share_above=None, large_files=True) == when


def test_a_document_names_the_variable_of_a_secret(load):
    options: dict[str, Option] = {
        "region": "eu",
        "secret": FromEnv(variable="LAKE", declared_at="a:1:1"),
    }
    spec = replace(load("  retention: {hours: 1}\n"), storage_options=options)

    document = spec_to_document(spec)

    assert {"region": "eu", "secret": {"fromEnv": "LAKE"}} == document["storageOptions"]
    assert options == spec_from_document(document, "t", "/lake/t").storage_options


def test_a_document_with_a_secret_is_refused_without_saying_it(load):
    document = {**load("").document, "storageOptions": {"secret": "hunter2"}}

    with pytest.raises(SpecError) as caught:
        spec_from_document(document, "t", "/lake/t")

    assert (
        "plan of t: spec.storageOptions.secret: is a credential by its name, and files must not "
        "have credentials; write {fromEnv: SECRET} and set this variable"
    ) == str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"path": "/lake/u"},
            "plan of t: spec.path: is '/lake/u', but the table's path is /lake/t",
        ),
        ({"retention": {"commits": 0}}, "plan of t: spec.retention.commits: must be at least 1"),
        ({"retention": None}, "plan of t: spec.retention: has no value"),
        ({"retention": []}, "plan of t: spec.retention: expected a mapping, got a list"),
        ({"rettention": {}}, "did you mean 'retention'?"),
        ({"suspend": 1}, "plan of t: spec.suspend: expected true or false, got the number 1"),
    ],
)
def test_a_document_that_was_tampered_with_is_refused(change, said, load):
    document = {**load("  retention: {hours: 1}\n").document, **change}

    with pytest.raises(SpecError) as caught:
        spec_from_document(document, "t", "/lake/t")

    assert said in str(caught.value)


EXAMPLES = Path(__file__).parents[3] / "specs"


def test_every_example_comes_back_from_its_document():
    for spec in load_specs([EXAMPLES]):
        document = json.loads(canonical_json.to_bytes(spec.document))
        expected = replace(spec, source="", provenance={}, guarded_by=())

        assert expected == spec_from_document(document, spec.name, spec.path)
