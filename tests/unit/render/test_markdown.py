from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from reconciler.hudi import arrow
from reconciler.plan import columns
from reconciler.plan.document import spec_digest
from reconciler.plan.model import (
    CleanStep,
    Finding,
    Impact,
    Note,
    Observed,
    Plan,
    RemovedFiles,
    TablePlan,
)
from reconciler.render.inert import fenced
from reconciler.render.markdown import plan_markdown

#: what the comment itself is made of
TAGS = {
    *("h3", "p", "strong", "ul", "li", "code", "pre", "details", "summary"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}


class Page(HTMLParser):
    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.words = ""
        self.comments: list[str] = []
        self.problems: list[str] = []
        self.feed(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.open.append(tag)
        # alignment of columns and language of blocks are ours
        self.problems += [f"{tag} {name}" for name, _ in attrs if name not in ("style", "class")]

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}>")

    def handle_comment(self, data):
        self.comments.append(data.strip())

    def handle_data(self, data):
        self.words += data


def table(name: str, *, says: str = "old", **fields) -> TablePlan:
    one = np.zeros(1, np.int8)
    files = RemovedFiles(
        columns.dictionary(np.zeros(1, np.int32), [says]),
        arrow.strings([says]),
        np.array([5]),
        one,
        one,
        columns.dictionary(np.zeros(1, np.int32), [says]),
    )
    clean = CleanStep(policy="KEEP_LATEST_COMMITS", earliest_instant_to_retain=None, files=files)
    given = {
        "steps": (clean,),
        "path": f"/w/{name}",
        "impact": Impact(files_removed=1, bytes_removed=5),
        "observed": Observed(
            table_version=9, table_type="COPY_ON_WRITE", last_completed="20260101000000000"
        ),
    }
    return TablePlan(name=name, spec={}, spec_digest=spec_digest({}), **{**given, **fields})


def plan(*tables: TablePlan) -> Plan:
    return Plan(created_at="2026-11-21T09:00:00+00:00", tool="x", tables=tables)


HOSTILE = [
    "</details></summary></code>",
    "<script>alert(1)</script>",
    "<!-- reconciler:plan:default -->",
    "`````\n</details>",
    "~~~",
    "|a|b|",
    "[x](http://evil) ![x](http://evil)",
    "**bold** _it_ ~~gone~~",
    "# heading\n\n- item",
    "&lt;b&gt; &#60;b&#62;",
    "http://evil.example www.evil.example",
    "\x1b[31m\x00\u202egnp",
    "$x$ <b",
    "\\",
]
texts = st.sampled_from(HOSTILE) | st.text(max_size=20)


@settings(max_examples=150, deadline=None)
@given(st.lists(texts, min_size=6, max_size=6))
def test_nothing_that_others_chose_becomes_markup(said):
    name, path, rule, because, partition, error = (
        t.encode("utf-8", "replace").decode() for t in said
    )
    found = plan_markdown(
        plan(
            table(name, says=partition, drift=(Finding("f", 1, because, because),)),
            table("b", path=path, refusals=(Note(rule, because),), warnings=(Note(rule, because),)),
            table("c", steps=(), warnings=(Note("x", f"nothing to do: {because}"),)),
            table("d", steps=(), error=error, observed=None),
        )
    )
    page = Page(found)

    assert [] == page.problems
    assert [] == page.open
    assert page.tags <= TAGS
    assert ["reconciler:plan:default"] == page.comments


@pytest.mark.parametrize("name", ["sales.orders", "a_b*c", "a|b", "<b>", "@team", "`x`", "a  b"])
def test_names_read_as_they_are(name):
    page = Page(plan_markdown(plan(table(name, refusals=(Note("r", "b"),)))))

    assert (
        name.replace("@", "@\u2060").split()
        == page.words.split("attention")[1].split(" is b")[0].split()
    )


@pytest.mark.parametrize("limit", [1_000, 5_000, 60_000, 1_000_000])
@pytest.mark.parametrize("kind", ["change", "blocked", "error", "unchanged"])
def test_a_thousand_tables_fit_and_close_every_tag(limit, kind):
    fields = {
        "change": {},
        "blocked": {"refusals": (Note("suspend", "suspend: true in the spec"),)},
        "error": {"steps": (), "error": "nothing is there", "observed": None},
        "unchanged": {"steps": (), "impact": Impact()},
    }[kind]
    one = table("a.b", **fields)
    found = plan_markdown(
        plan(*(replace(one, name=f"a.t{i:04d}") for i in range(1000))), limit=limit
    )
    page = Page(found)

    assert len(found) <= limit
    assert [] == page.problems
    assert [] == page.open
    assert page.words.rstrip().endswith(page.words[page.words.index("sha256:") :].rstrip())
    assert ("plan.json" in found) is (limit < 1_000_000 or kind in ("change", "blocked"))


def test_many_changes_do_not_push_out_what_is_unchanged():
    changing = [table(f"a.t{i:04d}") for i in range(1000)]
    idle = [table(f"b.t{i:04d}", steps=(), impact=Impact()) for i in range(200)]
    found = plan_markdown(plan(*changing, *idle))

    assert "200 tables unchanged" in found
    assert "<code>b.t0000</code>" in found


def test_a_fence_is_longer_than_what_it_holds():
    assert "````diff\na\n```\n````\n" == fenced(["a", "```"], "diff")


def test_the_biggest_table_is_first_and_the_blocked_one_before_it():
    big = table("z.big", impact=Impact(files_removed=1, bytes_removed=9))
    blocked = table("y.blocked", refusals=(Note("suspend", "stop"),))
    found = plan_markdown(plan(table("a.small"), big, blocked))
    places = [found.index(f"| <code>{name}") for name in ("y.blocked", "z.big", "a.small")]

    assert sorted(places) == places


def test_an_artifact_is_a_link_only_when_it_is_one():
    link = plan_markdown(plan(table("t")), artifact='https://ci/x?a=1&b="2"')
    file = plan_markdown(plan(table("t")), artifact="javascript:alert(1)")

    assert '<a href="https://ci/x?a=1&amp;b=&quot;2&quot;">' in link
    assert "<a" not in file


def test_the_marker_is_the_same_for_the_next_plan():
    first = plan_markdown(plan(table("t")), marker="prod eu-->").splitlines()[0]

    assert "<!-- reconciler:plan:prodeu -->" == first
