"""What the quick check lets pass, jsonschema lets pass too; and it lets every good spec pass."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.spec import schema_check
from reconciler.spec.schema import load_definition

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    document
    for folder in ("specs", "policies", "environments")
    for file in sorted((ROOT / folder).glob("*.yaml"))
    for document in yaml.safe_load_all(file.read_text())
]
JUNK: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 1.0, 2.5, 10**9, "", " ", "x", "10", "-5", "10MiB", "4d", "30%"),
    *("2026-01-01", "filesystem", "none", [], ["x"], ["x", "x"], [1, True], {}, {"x": 1}),
    *({"provider": "filesystem"}, "a\nb", "UTC", "a/../b"),
)


def list_places(value: Any) -> list[tuple[Any, Any]]:
    """Return every container with every key or index in it."""
    found: list[tuple[Any, Any]] = []
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            found += [(value, key), *list_places(value[key])]
    return found


def damage(document: Any, chance: random.Random) -> Any:
    damaged = copy.deepcopy(document)
    for _ in range(chance.randrange(1, 3)):
        holder, key = chance.choice(list_places(damaged["spec"]))
        match chance.randrange(4):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[chance.choice(["x", "", "Commits", f"{key}s"])] = holder.pop(key)
            case 2 if isinstance(holder, list):
                holder.append(holder[key])
            case _:
                holder[key] = chance.choice(JUNK)
        if not list_places(damaged["spec"]):
            break
    return damaged


def find_errors(document: Any) -> list[str]:
    validator = schema_check._load_validator()(load_definition(document["kind"]))
    return [error.message for error in schema_check._select_errors(validator.iter_errors(document))]


def fits(document: Any) -> bool:
    return schema_check._CHECKER.fits(document, load_definition(document["kind"]))


def test_good_documents_pass_without_jsonschema():
    assert [] == [document["metadata"] for document in DOCUMENTS if not fits(document)]


@pytest.mark.parametrize("seed", range(4))
def test_what_passes_is_right(seed):
    chance = random.Random(seed)
    passed = 0
    for _ in range(80):
        document = damage(chance.choice(DOCUMENTS), chance)
        if fits(document):
            passed += 1

            assert [] == find_errors(document)
    assert passed


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (True, {"const": 1}),
        (1.0, {"enum": [1]}),
        (True, {"type": "integer"}),
        (1.0, {"type": "integer"}),
        ([1, True], {"uniqueItems": True}),
        ({"x": 1}, {"additionalProperties": False}),
        ("x", {"unknownKeyword": 1}),
        (3, {"minimum": 4}),
        ({}, {"required": ["a"]}),
        ({"a": 1}, {"propertyNames": {"pattern": "^b$"}}),
        ("b\n", {"pattern": "^b$"}),
    ],
)
def test_doubt_is_left_to_jsonschema(value, schema):
    assert not schema_check._CHECKER.fits(value, schema)
