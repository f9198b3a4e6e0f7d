from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from reconciler import arrays
from reconciler.plans import columns
from reconciler.plans.encode import compute_spec_digest
from reconciler.plans.model import (
    CleanStep,
    Finding,
    Impact,
    Note,
    Observed,
    RemovedFiles,
    Selection,
    TablePlan,
)
from reconciler.plans.plan import Plan
from reconciler.render.markdown_escape import code_block
from reconciler.render.page import COMMENT_LIMIT, utf16_length
from reconciler.render.plan_markdown import plan_markdown
from tests.selection import examples, take_turns
from tests.unit.render.test_markdown_escape import BAITS, seen

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
        columns.build_dictionary(np.zeros(1, np.int32), [says]),
        arrays.to_arrow([says]),
        np.array([5]),
        one,
        one,
        columns.build_dictionary(np.zeros(1, np.int32), [says]),
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
    return TablePlan(
        name=name, spec_digest=compute_spec_digest({}), **{"spec": {}, **given, **fields}
    )


def plan(*tables: TablePlan, by: tuple[str, ...] = (), of: int = 30) -> Plan:
    chosen = Selection(tables=len(tables), total=of, by=by) if by else None
    made = "2026-11-21T09:00:00+00:00"
    return Plan(created_at=made, tool="x", tables=tables, selection=chosen)


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
texts = st.sampled_from([*HOSTILE, *BAITS, "/close", "x\n/merge"]) | st.text(max_size=20)


@settings(max_examples=examples(30, many=150), deadline=None)
@given(st.lists(texts, min_size=6, max_size=6))
def test_no_text_of_others_becomes_markup(said):
    name, path, rule, because, partition, error = (
        t.encode("utf-8", "replace").decode() for t in said
    )
    found = plan_markdown(
        plan(
            table(name, says=partition, drift=(Finding("f", 1, because, because),)),
            table("b", path=path, refusals=(Note(rule, because),), warnings=(Note(rule, because),)),
            table("c", steps=(), warnings=(Note("x", f"nothing to do: {because}"),)),
            table("d", steps=(), error=error, observed=None),
            table("e", spec={"owner": because}, warnings=(Note("protected", because),)),
            by=(f"--name {name}",),
        ),
        environment=rule,
    )
    page = Page(found)

    assert [] == page.problems
    assert [] == page.open
    assert page.tags <= TAGS
    assert [] == seen(found)
    assert not re.search(r"(?m)^/", found)
    assert 1 == len(page.comments)
    assert re.fullmatch(r"reconciler:plan:[A-Za-z0-9._/-]+", page.comments[0])


@pytest.mark.parametrize("name", ["sales.orders", "a_b*c", "a|b", "<b>", "@team", "`x`", "a  b"])
def test_names_read_as_they_are(name):
    page = Page(plan_markdown(plan(table(name, refusals=(Note("r", "b"),)))))

    assert (
        name.replace("@", "@\u2060").split()
        == page.words.split("attention")[1].split("blocked")[1].split(" (r)")[0].split()
    )


@pytest.mark.parametrize(
    ("limit", "kind"),
    take_turns([10_000, 20_000, 60_000, 1_000_000], ["change", "blocked", "error", "unchanged"]),
)
def test_a_thousand_tables_fit_and_close_every_tag(limit, kind):
    fields = {
        "change": {},
        "blocked": {"refusals": (Note("suspend", "suspend: true in the spec"),)},
        "error": {"steps": (), "error": "nothing is there", "observed": None},
        "unchanged": {"steps": (), "impact": Impact()},
    }[kind]
    one = table("a.b", **fields)
    many = 250 if limit == 1_000_000 else 1000
    found = plan_markdown(
        plan(*(replace(one, name=f"a.t{i:04d}") for i in range(many))), limit=limit
    )
    page = Page(found)

    assert utf16_length(found) <= limit
    assert [] == page.problems
    assert [] == page.open
    assert re.search(r"Digest sha256:[0-9a-f]{64} · made ", page.words)
    assert ("plan.json" in found) is (limit < 1_000_000 or kind in ("change", "blocked"))


def test_many_changes_do_not_push_out_the_unchanged_tables():
    changing = [table(f"a.t{i:04d}") for i in range(1000)]
    idle = [table(f"b.t{i:04d}", steps=(), impact=Impact()) for i in range(200)]
    found = plan_markdown(plan(*changing, *idle))

    assert "200 tables unchanged" in found
    assert "<code>b.t0000</code>" in found


def test_a_fence_is_longer_than_any_backticks_inside():
    assert "````diff\na\n```\n````\n" == code_block(["a", "```"], "diff")


def order(found: str, *names: str) -> list[str]:
    """The names in the order of their rows."""
    return sorted(names, key=lambda name: found.index(f"| <code>{name}</code>"))


def losing(name: str, removed: int, whole: int, **fields) -> TablePlan:
    seen = Observed(
        table_version=9,
        table_type="COPY_ON_WRITE",
        last_completed="20260131000000000",
        bytes=whole,
    )
    impact = Impact(files_removed=1, bytes_removed=removed)
    return table(name, **{"observed": seen, "impact": impact, **fields})


def shrinking(name: str, to: str | None) -> TablePlan:
    before = "20260101000000000"
    impact = Impact(
        files_removed=1,
        bytes_removed=100,
        earliest_readable_before=before,
        earliest_readable_after=to,
    )
    return losing(name, 100, 1000, impact=impact)


def test_blocked_tables_come_first_and_then_the_greatest_share_of_removed_bytes():
    tables = (
        losing("half", 50, 100),
        losing("big", 10_000, 1_000_000),
        losing("most", 9, 10),
        losing("blocked", 1, 1000, refusals=(Note("suspend", "stop"),)),
        losing("bigger", 20_000, 1_000_000),
    )
    found = plan_markdown(plan(*tables))

    assert ["blocked", "most", "half", "bigger", "big"] == order(found, *(t.name for t in tables))


def test_at_equal_shares_the_table_whose_time_travel_shrinks_is_first():
    tables = (
        shrinking("a.same", "20260101000000000"),
        shrinking("b.third", "20260111000000000"),
        shrinking("c.half", "20260116000000000"),
        shrinking("d.all", None),
        losing("e.more", 101, 1010),
    )
    found = plan_markdown(plan(*tables))

    assert ["d.all", "c.half", "b.third", "e.more", "a.same"] == order(
        found, *(t.name for t in tables)
    )


def test_that_nothing_is_to_be_cleaned_is_no_warning():
    idle = Note("nothingToDo", "nothing to do: no file slice exceeds 2 commits")
    found = plan_markdown(
        plan(table("b", warnings=(idle,)), table("c", warnings=(idle, Note("x", "y"))))
    )

    assert [" to change |", " to change, 1 warning |"] == [
        line[line.index(" to change") :] for line in found.splitlines() if "</code> |" in line
    ]


def test_verdicts_of_policies_come_first():
    waived = Note("maxFilesRemoved", "waived until 2026-12-31 (backlog): policy floor")
    blocked = Note("minRetention", "policy floor asks for at least 10")
    warned = Note("requireLock", "policy locks asks for a lock")
    found = plan_markdown(
        plan(
            table("b", steps=(), impact=Impact(), warnings=(waived, warned)),
            table("c", refusals=(blocked, Note("suspend", "suspend: true"))),
            table("d", error="nothing is there", steps=(), observed=None),
        )
    )
    lines = [line for line in found.splitlines() if line.startswith(("- **", "**", "| t"))]

    assert [
        "**Policies**",
        "- **blocked** <code>c</code> (minRetention): policy floor asks for at least 10",
        "- **warning** <code>b</code> (requireLock): policy locks asks for a lock",
        "- **waived** <code>b</code> (maxFilesRemoved): until 2026-12-31 (backlog): policy floor",
        "**Needs attention**",
        "- **error** <code>d</code>: nothing is there",
        "- **blocked** <code>c</code> (suspend): suspend: true",
        "| table | removes | frees | of the table | time travel | verdict |",
    ] == lines


def test_a_table_with_a_refused_step_shows_what_is_applied():
    refusal = Note("maxRewrite", "policy floor lets a plan rewrite 1GiB", step="cluster")
    found = plan_markdown(plan(table("t", refusals=(refusal,))))

    assert "1 table: 1 blocked in part\n" in found
    assert "- **cluster refused** <code>t</code> (maxRewrite): policy floor lets" in found
    assert "| **blocked in part** |" in found
    assert "Applying removes **1 file**" in found
    assert "reconciler apply plan.json" in found


def test_owners_have_a_column_if_a_table_has_one():
    found = plan_markdown(plan(table("a", spec={"owner": "@core"}), table("b")))

    assert "| table | owner | removes |" in found
    assert "| <code>a</code> | <code>&#64;&#8288;core</code> | 1 file |" in found
    assert "| <code>b</code> | — | 1 file |" in found
    assert "owner" not in plan_markdown(plan(table("b")))


def test_the_comment_shows_the_number_of_all_tables():
    found = plan_markdown(plan(table("a"), by=("--changed-since origin/main", "--name a|b")))

    assert "### reconciler plan · 1 of 30 tables: 1 to change\n" in found
    assert "Selected by <code>--changed-since origin/main --name 'a&#124;b'</code>." in found


def test_an_applicable_plan_shows_how_and_what_invalidates_it():
    made = plan(table("t"))
    made.keep_digest("sha256:1")
    found = plan_markdown(made, environment="prod")

    assert found.endswith(
        "\n```sh\nreconciler apply plan.json --specs specs --env prod \\\n"
        "  --digest sha256:1\n```\n"
    )
    assert "### reconciler plan · prod · 1 table: 1 to change\n" in found
    assert "A savepoint" in found


@pytest.mark.parametrize(
    "only",
    [
        table("t", steps=(), impact=Impact()),
        table("t", refusals=(Note("suspend", "stop"),)),
        table("t", steps=(), error="nothing is there", observed=None),
    ],
    ids=["unchanged", "blocked", "error"],
)
def test_a_plan_without_changes_shows_neither(only):
    made = plan(only)
    made.keep_digest("sha256:1")
    found = plan_markdown(made)

    assert "reconciler apply" not in found
    assert "stale" not in found
    assert found.endswith("\nDigest <code>sha256:1</code> · made 2026-11-21 09:00 UTC by x\n")


def test_one_long_reason_does_not_push_out_the_others():
    long = "no " * 40_000
    blocked = [table(f"t{i}", refusals=(Note("suspend", long),)) for i in range(5)]
    found = plan_markdown(plan(*blocked, table("z", path=long)))

    assert all(f"**blocked** <code>t{i}</code>" in found for i in range(5))
    assert "<summary><code>z</code></summary>" in found


@pytest.mark.parametrize("letter", [chr(0x1F308), "é", "→", "\x1b", "`", "&"])
def test_a_page_of_the_longest_names_fits_every_code_host(letter):
    note = Note(letter * 300, letter * 900)
    tables = [
        table(
            f"{i}{letter * 300}", says=letter * 300, refusals=(note,), spec={"owner": letter * 300}
        )
        for i in range(300)
    ]
    found = plan_markdown(plan(*tables, by=(f"--name {letter * 300}",)), environment=letter * 300)
    page = Page(found)

    assert utf16_length(found) <= COMMENT_LIMIT < 65_536
    assert len(found.encode()) < 262_144
    assert [] == page.problems
    assert [] == page.open


def test_an_artifact_is_a_link_only_when_it_is_one():
    link = plan_markdown(plan(table("t")), artifact='https://ci/x?a=1&b="2"')
    file = plan_markdown(plan(table("t")), artifact="javascript:alert(1)")

    assert '<a href="https://ci/x?a=1&amp;b=&quot;2&quot;">' in link
    assert "<a" not in file


def test_the_marker_is_the_same_for_the_next_plan():
    first = plan_markdown(plan(table("t")), environment="prod eu-->").splitlines()[0]

    assert "<!-- reconciler:plan:prodeu- -->" == first
    assert plan_markdown(plan(table("t"))).startswith("<!-- reconciler:plan:default -->\n### ")
