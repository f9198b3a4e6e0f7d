"""The result of an apply as a comment on a pull request."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.executor.origin import Origin
from reconciler.executor.result import ApplyResult, StepOutcome, TableResult
from reconciler.plans.model import Note
from reconciler.render.page import COMMENT_LIMIT, utf16_length
from reconciler.render.result import EXIT_MEANINGS
from reconciler.render.result_markdown import result_markdown
from tests.unit.render.test_markdown_escape import BAITS, Eye, seen
from tests.unit.render.test_plan_markdown import TAGS, Page
from tests.unit.render.test_result import DONE, result, rows, table


def test_a_completed_clean_is_one_sentence():
    found = result_markdown(
        result(table(outcomes=(DONE,)), seconds=72.0),
        Origin(environment="prod", actor="ann", spec_commit="abcdef1"),
    )

    assert [
        "<!-- reconciler:apply:prod -->",
        "### reconciler apply · prod · 1 table: 1 done",
        "",
        "Removed **12 410 files**, **1.8 TiB**, in 1.2 minutes.",
        "",
        "| table | result | removed | freed | skipped |",
        "|---|---|---:|---:|---:|",
        "| <code>t</code> | done | 12 410 files | **1.8&nbsp;TiB** | — |",
        "",
        "<details><summary><code>t</code></summary>",
        "",
        "```",
        "t  done  /w/t",
        "  clean 20261121041500123  removed 12 410 files, 1.8 TiB, in 1.2 minutes",
        "      published earliest instant to retain: 20261114041000000",
        "```",
        "</details>",
        "",
        "Plan <code>sha256:0</code> · applied by <code>ann</code> · specs at <code>abcdef1</code>",
    ] == found.splitlines()


def test_troubles_come_before_the_table():
    stayed = StepOutcome(kind="clean", how="nothing", left_out=rows("a savepoint", "a savepoint"))
    found = result_markdown(
        result(
            table("fine", unchanged=True),
            table("moved", error="its spec was edited", code=4),
            table("guarded", refusals=(Note("minRetention", "policy floor"),), code=3),
            table("saved", outcomes=(stayed,)),
            table("bad", error="the disk is full", code=1),
        )
    )
    lines = [line for line in found.splitlines() if line.startswith(("- **", "| <", "Nothing"))]

    assert [
        "Nothing was removed. Exit code 1: " + EXIT_MEANINGS[1].replace("above", "below") + ".",
        "- **failed** <code>bad</code>: the disk is full",
        "- **blocked** <code>guarded</code>: policy floor (minRetention)",
        "- **skipped** <code>moved</code>: its spec was edited",
        "- **done in part** <code>saved</code>: 2 files skipped: a savepoint",
        "| <code>bad</code> | **failed** | — | — | — |",
        "| <code>guarded</code> | **blocked** | — | — | — |",
        "| <code>moved</code> | **skipped** | — | — | — |",
        "| <code>saved</code> | **done in part** | — | — | 2 files |",
    ] == lines
    assert "· 5 tables: 1 unchanged, 1 done in part, 1 skipped, 1 blocked, 1 failed\n" in found


def test_nothing_to_do_takes_a_line():
    assert [
        "<!-- reconciler:apply:default -->",
        "### reconciler apply · 1 table: 1 unchanged",
        "",
        "Nothing was removed.",
        "",
        "Plan <code>sha256:0</code>",
    ] == result_markdown(result(table(unchanged=True))).splitlines()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(BAITS) | st.text(max_size=9), min_size=5, max_size=5))
def test_no_text_of_others_becomes_markup_or_a_reference(texts):
    name, path, error, rule, actor = (t.encode("utf-8", "replace").decode() for t in texts)
    bad = StepOutcome(
        kind="clean",
        how="inflight",
        failed=rows(error),
        partitions_left=(Note(path, error),),
        differences=(Note(rule, error),),
    )
    tables = (
        TableResult(name=name, path=path, error=error, code=1),
        TableResult(name=f"{name}2", path=path, refusals=(Note(rule, error),), code=3),
        TableResult(name=f"{name}3", path=path, outcomes=(bad,)),
    )
    found = result_markdown(
        ApplyResult(plan_digest="sha256:0", tables=tables),
        Origin(environment=rule, actor=actor, spec_commit=path),
    )
    page = Page(found)

    assert [] == page.problems
    assert [] == page.open
    assert page.tags <= TAGS
    assert [] == seen(found)
    assert not re.search(r"(?m)^/", found)
    assert Eye(found).depth == 0


@pytest.mark.parametrize("letter", ["x", "`", chr(0x1F308), "</pre>"])
def test_a_thousand_failures_fit(letter):
    many = [table(f"{letter * 90}{i}", error=f"no {letter} " * 300, code=1) for i in range(1000)]
    found = result_markdown(result(*many))
    page = Page(found)

    assert utf16_length(found) <= COMMENT_LIMIT
    assert [] == page.problems
    assert [] == page.open
    assert found.startswith("<!-- reconciler:apply:default -->\n### reconciler apply · 1 000 table")
    assert found.endswith("\nPlan <code>sha256:0</code>\n")
