from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from reconciler import units
from reconciler.spec import field_suggestions, model
from reconciler.spec.load import read_specs
from reconciler.spec.schema import TEXT, find_block, list_field_paths, load_definition

ROOT = Path(__file__).parents[3]
CHECKED_IN = ROOT / "schemas" / "table-spec.v1.json"
EXAMPLES = sorted(
    file for kind in ("specs", "environments", "policies") for file in (ROOT / kind).glob("*.yaml")
)
SCHEMA = json.loads(TEXT)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def document(text: str) -> dict:
    return {
        "apiVersion": "reconciler/v1",
        "kind": "HudiTable",
        "metadata": {"name": "t"},
        "spec": {"path": "x", **yaml.safe_load(text)},
    }


def test_the_copy_for_editors_is_the_schema_that_is_packaged():

    assert TEXT == CHECKED_IN.read_text(encoding="utf-8")


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_an_example_is_valid_and_names_its_schema(file):
    text = file.read_text(encoding="utf-8")
    hint, _, _ = text.partition("\n")

    assert "# yaml-language-server: $schema=../schemas/table-spec.v1.json" == hint
    assert [] == [e.message for d in yaml.safe_load_all(text) for e in VALIDATOR.iter_errors(d)]


def test_the_examples_load_in_the_environment_that_is_one_too():
    loaded = read_specs([ROOT / "specs"], environment="example")

    assert [] == list(loaded.problems)
    assert {"s3://vault/payments", "s3://logs/raw", "s3://lake/sales/orders"} <= {
        table.path for table in loaded.tables
    }


def test_the_examples_load_together_without_a_word():
    loaded = read_specs([ROOT / "specs"])

    assert [] == list(loaded.problems)
    assert set(model.Policy) <= {t.retention.policy for t in loaded.tables if t.retention}


@pytest.mark.parametrize(
    "text",
    [
        "retention: {commits: 0}",
        "retention: {commits: true}",
        "retention: {commits: '10'}",
        "retention: {commits: 1, hours: 2}",
        "retention: {policy: KEEP_LATEST_BY_HOURS, commits: 1}",
        "retention: {comits: 1}",
        "retention: null",
        "retention: []",
        "files: {target: 120M}",
        "files: {target: -1}",
        "files: {target: 120}",
        "clustering: {columns: a}",
        "clustering: {columns: [a, a]}",
        "clustering: {columns: [], curve: zorder}",
        "clustering: {columns: [], when: {}}",
        "clustering: {columns: [], when: sometimes}",
        "clustering: {columns: [], when: {smallFileShareAbove: 2}}",
        "index: {columns: [''], hudi: keep}",
        "queries: [{name: q}]",
        "queries: [{name: q, where: a, maxScan: 5}]",
        "readers: {longestQuery: 6}",
        "concurrency: {lock: {provider: inprocess}}",
        "table: {version: 7}",
        "suspend: 'yes'",
        "bananas: 1",
        "path: 1",
    ],
)
def test_what_structure_can_reject_the_schema_rejects(text):

    assert not VALIDATOR.is_valid(document(text))


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"apiVersion": "reconciler/v1"},
        {"apiVersion": "reconciler/v1", "kind": "HudiTabel"},
        {**document("{}"), "apiVersion": "reconciler/v2"},
        {**document("{}"), "metadata": {"name": "a/b"}},
        {**document("{}"), "metadata": {"name": "t", "labels": {"a": 1}}},
        {**document("{}"), "selector": {}},
        {**document("{}"), "kind": "TableDefaults"},
        {**document("{}"), "kind": "Policy"},
    ],
)
def test_a_broken_envelope_is_rejected(broken):

    assert not VALIDATOR.is_valid(broken)


ENVIRONMENTS = [
    (True, "{}"),
    (True, "{tables: {a.b: s3://x, c: {path: ../c, timezone: UTC}}, pattern: '../{name}'}"),
    (True, "{storageOptions: {region: eu, secret: {fromEnv: A}}, spark: {master: yarn}}"),
    (True, "{spark: {conf: {spark.a: b, spark.c: {fromEnv: D}}}}"),
    (False, "{tables: {a/b: s3://x}}"),
    (False, "{tables: {a: {}}}"),
    (False, "{tables: {a: {path: s3://x, retention: {hours: 1}}}}"),
    (False, "{tables: {a: 1}}"),
    (False, "{suspend: true}"),
    (False, "{minRetention: {hours: 1}}"),
    (True, "{storageOptions: {anon: true, max_concurrency: 4, client_kwargs: {use_ssl: false}}}"),
    (True, "{storageOptions: {pathStyle: true, anonymous: 'true', endpoint: 'http://a:1'}}"),
    (True, "{spark: {conf: {spark.a: 1, spark.b: true}}}"),
    (False, "{storageOptions: {pathStyle: maybe}}"),
    (False, "{storageOptions: {endpoint: minio}}"),
    (False, "{storageOptions: {region: [eu]}}"),
    (False, "{storageOptions: {secret: {fromEnv: A, default: b}}}"),
    (False, "{spark: {conf: {executor.memory: 2g}}}"),
    (False, "{spark: {master: here}}"),
    (False, "{spark: {master: not local}}"),
]


@pytest.mark.parametrize(("is_valid", "spec"), ENVIRONMENTS)
def test_what_an_environment_says_is_in_the_schema(is_valid, spec):
    head = {"apiVersion": "reconciler/v1", "kind": "Environment", "metadata": {"name": "x"}}

    assert is_valid == VALIDATOR.is_valid({**head, "spec": yaml.safe_load(spec)})


def test_defaults_and_policies_are_in_the_schema():
    head = {"apiVersion": "reconciler/v1", "metadata": {"name": "x"}}
    defaults = {"kind": "TableDefaults", "spec": {"retention": {"scan": "full"}}}
    rules = {"minRetention": {"hours": 24}, "protected": ["fin.*"], "maxBytesRemoved": "1TiB"}
    policy = {"kind": "Policy", "selector": {"labels": {"a": "b"}}, "spec": rules}

    assert VALIDATOR.is_valid({**head, **defaults})
    assert VALIDATOR.is_valid({**head, **policy})


BLOCKS = {
    "files": model.FileSizes(),
    "clustering": model.Clustering(columns=()),
    "budget": model.ClusteringBudget(),
    "index": model.IndexColumns(columns=()),
    "lock": model.Lock(provider="none"),
    "retention": model.Retention(policy=model.Policy.HOURS, keep=1),
}


@pytest.mark.parametrize("block", BLOCKS)
def test_the_defaults_of_the_schema_are_the_models(block):
    for name, field in load_definition(block)["properties"].items():
        if "default" not in field:
            continue
        default = field["default"]
        if field.get("format") == "byte-size" and isinstance(default, str):
            default = units.parse_size(default)

        assert default == getattr(BLOCKS[block], attribute(name))


@pytest.mark.parametrize("block", sorted(BLOCKS.keys() - {"retention"}))
def test_the_fields_of_a_block_are_the_fields_of_its_value(block):
    names_in_schema = {attribute(name) for name in load_definition(block)["properties"]}

    assert names_in_schema == {field.name for field in dataclasses.fields(BLOCKS[block])}


def attribute(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def test_every_alias_leads_to_a_field():

    assert set() == set(field_suggestions.ALIASES) - set(list_field_paths(load_definition("table")))


def test_every_field_has_a_description_that_is_a_sentence():
    def sentences(block):
        for field in block["properties"].values():
            yield field["description"]
            for inner in (field, field.get("items")):
                if (nested := find_block(inner)) is not None:
                    yield from sentences(nested)

    kinds = ("HudiTable", "TableDefaults", "Policy", "Environment")
    found = [says for kind in kinds for says in sentences(load_definition(kind))]

    assert [] == [says for says in found if not says.endswith((".", "`."))]
    assert [] == [says for says in found if not says[0].isupper()]
