"""A spec round-trips through its document, so a plan contains everything it needs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jsonschema
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler import canonical_json
from reconciler.spec.document import spec_from_document, spec_to_document
from reconciler.spec.load import load_specs
from reconciler.spec.model import TableSpec
from reconciler.spec.schema import TEXT
from tests.laws.specs import table_specs
from tests.selection import examples

SIZES = ("target", "small", "large", "rewrite", "perGroup")
VALIDATOR = jsonschema.Draft202012Validator(json.loads(TEXT))


def add_units(value: Any, name: str = "") -> Any:
    """Return a document whose sizes have the unit that a spec file needs."""
    if isinstance(value, dict):
        return {key: add_units(inner, key) for key, inner in value.items()}
    return f"{value}B" if name in SIZES else value


def as_document(spec: dict[str, Any]) -> dict[str, Any]:
    head = {"name": "sales.orders", "labels": {"team": "core"}, "owner": "someone"}
    return {"apiVersion": "reconciler/v1", "kind": "HudiTable", "metadata": head, "spec": spec}


def as_json(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False)


def load_text(text: str) -> TableSpec:
    with TemporaryDirectory() as folder:
        (Path(folder) / "a.yaml").write_text(text, encoding="utf-8")
        [spec] = load_specs([Path(folder)])
    return replace(spec, source="", provenance={})


class _Quoting(yaml.SafeDumper):
    """Quotes all texts: PyYAML does not quote some that YAML 1.2 reads as numbers, as 0E0."""


_Quoting.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
)


def as_yaml(document):
    return yaml.dump(document, Dumper=_Quoting, allow_unicode=True)


@settings(deadline=None, max_examples=examples(27, many=200))
@example({"path": "t", "files": {"target": "4194304TiB", "small": "4194304TiB"}})
@example({"path": "t", "files": {"target": f"{2**63 - 1}B"}})
@given(table_specs())
def test_spec_round_trips_through_its_document(spec):
    expected = load_text(as_json(as_document(spec)))
    document = json.loads(canonical_json.to_bytes(expected.document))
    actual = spec_from_document(document, expected.name, expected.path)

    assert expected == actual
    assert document == json.loads(canonical_json.to_bytes(spec_to_document(actual)))


@settings(deadline=None, max_examples=examples(17, many=100))
@given(table_specs(), st.randoms(use_true_random=False))
def test_order_of_fields_does_not_matter(spec, random):
    keys = list(spec)
    random.shuffle(keys)
    spec = {**spec, "path": "/lake/t"}
    shuffled = {key: spec[key] for key in keys}

    one, other = load_text(as_json(as_document(spec))), load_text(as_json(as_document(shuffled)))

    assert canonical_json.to_bytes(one.document) == canonical_json.to_bytes(other.document)


@settings(deadline=None, max_examples=examples(17, many=100))
@given(table_specs())
def test_document_is_a_valid_spec_file(spec):
    expected = load_text(as_json(as_document({**spec, "path": "/lake/t"})))
    block = {k: v for k, v in expected.document.items() if k not in ("labels", "owner")}

    assert expected == load_text(as_yaml(as_document(add_units(block))))


@settings(deadline=None, max_examples=examples(17, many=100))
@given(table_specs())
def test_every_loaded_spec_is_valid_by_the_schema(spec):
    load_text(as_json(as_document(spec)))

    assert [] == [error.message for error in VALIDATOR.iter_errors(as_document(spec))]
