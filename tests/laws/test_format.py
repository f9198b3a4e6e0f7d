"""Formatting a spec file changes neither what it declares nor a comment, and happens once."""

from __future__ import annotations

import json
import re

import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reconciler.errors import Problems
from reconciler.spec.formatting.canonical import format_file
from reconciler.spec.yaml_nodes import to_plain
from reconciler.spec.yaml_parser import parse_yaml
from tests.laws.specs import table_specs
from tests.laws.yaml_texts import TextMaker
from tests.selection import examples

COMMENT = re.compile(r"# remark \d+: (?:'x|\"\[)")


def dump_json(document):
    return json.dumps(document, ensure_ascii=False)


def dump_blocks(document):
    return yaml.safe_dump(document, sort_keys=True, allow_unicode=True)


def dump_narrow(document):
    return yaml.safe_dump(document, width=20, indent=3, default_flow_style=None)


def dump_brackets(document):
    return yaml.safe_dump(document, width=30, default_flow_style=True)


def plain(text: str) -> str:
    problems = Problems()
    documents = [to_plain(node) for node in parse_yaml(text.encode(), "a.yaml", problems)]
    return json.dumps([documents, [str(problem) for problem in problems]], sort_keys=True)


@st.composite
def commented_files(draw):
    """Draw a file of one or two specs, and its comments."""
    documents = []
    for name in draw(st.sampled_from([["t"], ["t", "u"]])):
        head = {"kind": "HudiTable", "metadata": {"name": name}, "apiVersion": "reconciler/v1"}
        document = {**head, "spec": draw(table_specs())}
        dump = draw(st.sampled_from([dump_json, dump_blocks, dump_narrow, dump_brackets]))
        documents.append(dump(document).rstrip("\n"))
    text = "\n---\n".join(documents) + "\n"
    meant, comments = plain(text), []
    for number in range(draw(st.integers(0, 6))):
        lines = text.split("\n")
        at, comment = draw(st.integers(0, len(lines) - 1)), f"# remark {number}: 'x"
        if draw(st.booleans()):
            lines[at] += f"  {comment}"
        else:
            indent = " " * draw(st.integers(0, 6))
            blank = draw(st.sampled_from([[], [""], ["", ""]]))
            lines[at:at] = [*blank, f"{indent}{comment}", *blank]
        tried = "\n".join(lines)
        if plain(tried) == meant:  # it did not fall into a text of several lines
            text, comments = tried, [*comments, comment]
    return text, comments


@settings(deadline=None, max_examples=examples(3, many=300))
@given(commented_files())
def test_formatting_keeps_values_and_comments_and_is_done_once(file):
    check_format(*file)


@settings(deadline=None, max_examples=examples(15, many=1000))
@given(st.integers(0, 2**32))
def test_formatting_keeps_every_style_of_value_and_comments_at_every_place(seed):
    maker = TextMaker(seed)
    text = maker.make_file()
    problems = Problems()
    parse_yaml(text.encode(), "a.yaml", problems)
    assume(not list(problems))  # a few contain aliases of themselves

    check_format(text, maker.remarks)


def check_format(text, comments):
    problems = Problems()
    formatted = format_file(text.encode(), "a.yaml", problems)

    assert [] == list(problems)
    assert formatted is not None

    after = formatted.decode()

    assert plain(text) == plain(after)
    assert sorted(comments) == sorted(COMMENT.findall(after))
    assert formatted == format_file(formatted, "a.yaml", Problems())
