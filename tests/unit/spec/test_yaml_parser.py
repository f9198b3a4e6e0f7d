from __future__ import annotations

import pytest
import yaml

from reconciler.errors import Problems, SourcePosition
from reconciler.spec import yaml_parser
from reconciler.spec.yaml_nodes import MappingNode, to_plain


def parsed(text: str) -> list:
    problems = Problems()
    nodes = yaml_parser.parse_yaml(text.encode(), "a.yaml", problems)
    assert [] == list(map(str, problems))
    return nodes


def refused(data: str | bytes) -> str:
    problems = Problems()
    yaml_parser.parse_yaml(data.encode() if isinstance(data, str) else data, "a.yaml", problems)
    [problem] = problems
    return str(problem)


@pytest.mark.parametrize(
    "text",
    [
        "on",
        "off",
        "yes",
        "no",
        "y",
        "n",
        "2026-01-01",
        "2026-01-01T00:00:00Z",
        "12:30",
        "1_000",
        "007",
        "0x1F",
        "0o17",
        ".inf",
        ".nan",
        "1e999",
        "<<x",
        "=",
    ],
)
def test_what_yaml_1_1_would_turn_into_something_else_stays_text(text):

    assert [{"a": text}] == [to_plain(node) for node in parsed(f"a: {text}")]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10", 10),
        ("-3", -3),
        ("0", 0),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("'10'", "10"),
        ('"true"', "true"),
        ("!!str 10", "10"),
        ("|\n  10", "10"),
    ],
)
def test_scalars_are_of_the_core_schema(text, value):
    [node] = parsed(f"a: {text}")

    assert {"a": value} == to_plain(node)
    assert type(value) is type(to_plain(node)["a"])


def test_every_key_and_value_knows_its_place():
    [node] = parsed("a: 1\nb:\n  - c: é\n    d: 2\n")
    assert isinstance(node, MappingNode)
    entry = node.entries["b"].node.items[0].entries["d"]

    assert SourcePosition("a.yaml", 4, 5) == entry.position
    assert SourcePosition("a.yaml", 4, 8) == entry.node.position


def test_a_file_has_many_documents_and_empty_ones_do_not_count():

    assert [1, {"a": 2}] == [
        to_plain(node) for node in parsed("---\n---\n1\n---\n# x\n---\na: 2\n")
    ]


def test_a_byte_order_mark_is_no_text():

    assert [{"a": 1}] == [to_plain(node) for node in parsed("\ufeffa: 1")]


def test_an_alias_is_its_anchor():

    assert [{"a": ["x"], "b": ["x"]}] == [to_plain(node) for node in parsed("a: &c [x]\nb: *c\n")]


def test_anchors_end_with_their_document():

    problem = "a.yaml:3:4: no anchor named c for the alias *c; quote a text that starts with *"

    assert problem == refused("a: &c 1\n---\nb: *c\n")


def test_aliases_of_aliases_are_counted_unfolded_and_quickly():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 40)]

    assert (
        "a.yaml:5:45: the document expands to more than 100000 values; "
        "check for aliases nested in aliases" == refused("\n".join(lines))
    )


def test_nesting_has_an_end():

    assert "a.yaml:1:44: nested more than 40 levels deep; flatten the document" == refused(
        "a: " + "[" * 100_000
    )


def test_the_first_value_that_is_nested_too_deep_is_named_however_far_the_library_reads_ahead():
    flat = "flat: [[1], {a: [2]}]\n"

    assert "a.yaml:2:44: nested more than 40 levels deep; flatten the document" == refused(
        flat + "a: " + "[" * 1_200 + "]" * 1_200
    )
    assert "a.yaml:2:84: nested more than 40 levels deep; flatten the document" == refused(
        flat + "a: " + "[ " * 1_200
    )


def test_a_large_plain_document_is_refused_too():

    assert "more than 100000 values" in refused("- 1\n" * 100_001)


def test_without_the_c_library_a_document_reads_the_same(monkeypatch):
    text = "a: &x [1, '2', on]\nb: {c: *x}\n---\n!!str 5\n"
    expected = parsed(text)
    monkeypatch.setattr(yaml_parser, "_LOADER", yaml.SafeLoader)

    assert expected == parsed(text)
