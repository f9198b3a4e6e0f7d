"""HTML pages of plans: what they say of a table, and that text of others stays text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest

from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.planners.compose import plan_table
from reconciler.planners.retention_simulation import RetentionChoice, simulate_retentions
from reconciler.plans.model import Note
from reconciler.plans.plan import Plan
from reconciler.plans.table_costs import TableCosts
from reconciler.plans.unreadable_table import make_unreadable_plan
from reconciler.prices import Prices
from reconciler.render.costs import describe_storage
from reconciler.render.html import pages
from reconciler.render.html.file_list import FATES, list_files
from reconciler.render.html.page_names import name_anchors, name_pages
from reconciler.render.html.query_reads import show_queries
from reconciler.render.html.removals import list_reasons, show_removals
from reconciler.render.html.table_page import build_table_page
from reconciler.render.html.time_line import draw_time_line, list_savepoints
from reconciler.render.plan_summary import describe_time_travel
from reconciler.render.status import status_text
from reconciler.render.terminal import Terminal
from reconciler.spec.model import Concurrency, Lock, Policy, Retention, TableSpec
from reconciler.state.model import Savepoint
from reconciler.status.conditions import TableCondition
from reconciler.status.model import StorageCosts
from reconciler.status.orphans import OrphanFile, OrphanStatus
from reconciler.status.table import table_status
from reconciler.status.table_survey import TableSurvey
from tests.unit.planners.cow import base, commit, log, stamp, table, upserts

NOW = datetime(2024, 1, 2, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script>'\"&\u202e{{ 7 * 7 }}"


def survey(state, *, name="t", path="/t", keep=2, **more):
    spec = TableSpec(
        name=name,
        path=path,
        retention=Retention(policy=Policy.COMMITS, keep=keep),
        concurrency=Concurrency(lock=Lock(provider="filesystem")),
        document={"retention": {"policy": "KEEP_LATEST_COMMITS", "commits": keep}},
        **more,
    )
    plan = plan_table(spec, state, NOW)
    return TableSurvey(spec=spec, plan=plan, status=table_status(spec, state, plan), state=state)


def saved(state, hour, *names):
    pin = Savepoint(instant=stamp(hour), completed=True, files=frozenset(names), comment=HOSTILE)
    return replace(state, savepoints=(pin,))


def plan_page(*surveys):
    plan = Plan(created_at=NOW.isoformat(), tool="t 1", tables=tuple(s.plan for s in surveys))
    anchors = name_anchors(one.plan.name for one in surveys)
    shown = [pages.build_surveyed_page(one, anchors[one.plan.name]) for one in surveys]
    rows = [pages.build_surveyed_row(one, f"#{anchors[one.plan.name]}") for one in surveys]
    return pages.render_plan_page(plan, shown, rows).decode()


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the text of its scripts."""

    def __init__(self, page):
        super().__init__()
        self.found, self.scripts = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.found and self.found[-1][0] == "script" and self.cdata_elem == "script":
            self.scripts[-1] += data


def test_text_of_others_becomes_no_element_and_no_attribute():
    folder = "</script><img src=x onerror=alert(2)>"
    state = table({folder: [base("g", 0), base("g", 1)]}, [commit(0), commit(1)])
    one = survey(saved(state, 0, base("g", 0)), name=HOSTILE, path=HOSTILE, keep=1)
    note = Note(HOSTILE, HOSTILE)
    one = replace(one, plan=replace(one.plan, warnings=(note,), refusals=(note,)))
    page = plan_page(one)
    elements = Elements(page)

    assert 2 == sum(tag == "script" for tag, _ in elements.found), "the data and our own"
    assert not any(tag == "img" for tag, _ in elements.found)
    assert [] == [
        name for _, attrs in elements.found for name in attrs if name.startswith("on")
        or name in ("style", "src")
    ]  # fmt: skip
    assert "49" not in re.findall(r"<h1>(.*)</h1>", page)[0], "no template in a text is run"
    assert "\u202e" not in page, "no sign turns the order of others around"


def test_a_page_allows_its_own_script_and_style_and_nothing_else():
    page = plan_page(survey(upserts(3)))
    policy = next(
        attrs["content"] for tag, attrs in Elements(page).found
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )  # fmt: skip

    def source(element):
        text = re.findall(rf"<{element}>(.*?)</{element}>", page, re.DOTALL)[-1]
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    assert policy == (
        f"default-src 'none'; style-src 'sha256-{source('style')}'; "
        f"script-src 'sha256-{source('script')}'; base-uri 'none'; form-action 'none'"
    )
    assert "http://" not in page
    assert "https://" not in page


def test_the_same_plan_gives_the_same_bytes():

    assert plan_page(survey(upserts(5))) == plan_page(survey(upserts(5)))


def test_ids_of_a_page_of_many_tables_are_distinct():
    names = ("t", "t-sizes-h", "T", "content", "fleet", "theme", "tables-h")
    page = plan_page(*(survey(upserts(5), name=name) for name in names))
    ids = [attrs["id"] for _, attrs in Elements(page).found if "id" in attrs]
    named = [name for _, attrs in Elements(page).found
             for name in attrs.get("aria-labelledby", "").split()]  # fmt: skip

    assert len(ids) == len(set(ids))
    assert set(named) <= set(ids)


def read_files(listed):
    data = json.loads(listed.data)
    return {
        name: (FATES[fate], data["reasons"][reason])
        for name, fate, reason in zip(data["name"], data["fate"], data["reason"], strict=True)
    }


def test_every_file_is_listed_with_what_becomes_of_it_and_why():
    one = survey(saved(upserts(5), 1, base("g", 1)))
    found = read_files(list_files(one.plan, one.state))

    assert ["removed", "kept", "older", "older", "current"] == [
        found[base("g", hour)][0] for hour in range(5)
    ]
    assert found[base("g", 0)][1].startswith(f"superseded by {stamp(1)}")
    assert found[base("g", 1)][1] == f"savepoint {stamp(1)} pins its file slice"


def test_files_of_pending_writes_are_no_older_versions():
    instants = [commit(0), commit(1), commit(2, State.INFLIGHT)]
    one = survey(table({"a": [base("g", hour) for hour in range(3)]}, instants))

    assert ["older", "current", "uncommitted"] == [
        read_files(list_files(one.plan, one.state))[base("g", hour)][0] for hour in range(3)
    ]


def test_log_files_of_version_6_are_named_by_another_write_and_are_current():
    pending = Instant(stamp(2), Action.COMPACTION, State.REQUESTED, None)
    names = {"a": [base("g", 0), log("g", 0), log("g", 2)]}
    state = table(
        names,
        [commit(0), commit(1), pending, commit(3)],
        table_version=6,
        table_type="MERGE_ON_READ",
    )
    found = read_files(list_files(survey(state).plan, state))

    assert found[log("g", 2)][0] == "current"


def test_orphans_that_stay_are_no_older_versions():
    one = survey(upserts(5))
    name = base("g", 3)
    orphan = OrphanFile(partition="a", name=name, bytes=10, kind="base", modified_at=None,
                        is_removable=False)  # fmt: skip
    known = OrphanStatus(older_than_seconds=1, files=1, bytes=10, listed=(orphan,))

    assert ("orphan", "no write knows it, and it stays; readers may see it") == (
        read_files(list_files(one.plan, one.state, known))[name]
    )


def test_a_table_of_one_commit_has_no_window():
    one = survey(upserts(1))
    drawn = draw_time_line(one.plan, one.status, one.state)

    assert all(rect.width < 1 for rect in drawn.rects)
    assert "Readable today: only the newest commit" in [label.text for label in drawn.labels]


def test_signs_that_nobody_sees_are_written_out_in_lists_of_files():
    names = [base(f"g{sign}", 0) for sign in "\u061c\u200b\u202e\u2066\ufeff\ufffa\x07"]
    one = survey(table({"a": names}, [commit(0)]))
    shown = read_files(list_files(one.plan, one.state))

    assert all(name.isascii() and name.isprintable() for name in shown)


def test_a_saved_plan_lists_the_files_that_it_names():
    one = survey(saved(upserts(5), 1, base("g", 1)))
    listed = list_files(one.plan, None)

    assert {base("g", 0): "removed", base("g", 1): "kept"} == {
        name: fate for name, (fate, _) in read_files(listed).items()
    }
    assert "names" in listed.note


def test_names_of_partitions_leave_the_script_element_nowhere():
    state = table({"<!--</script>&": [base("g", 0)]}, [commit(0)])
    one = survey(state)
    data = list_files(one.plan, one.state).data

    assert not set("<>&") & set(data)
    assert ["<!--</script>&"] == json.loads(data)["partitions"]


def test_removals_are_summed_by_partition_and_rule():
    names = {p: [base(f"g{p}", hour) for hour in range(4)] for p in ("a", "b")}
    state = table(names, [commit(hour) for hour in range(4)])
    one = survey(state, keep=1)
    shown = show_removals(one.plan)

    assert [("a", ("2", "20 bytes")), ("b", ("2", "20 bytes"))] == [
        (row.name, row.figures) for row in shown.rows
    ]
    assert [(0.0, 100.0, "retention")] == [
        (s.start, s.width, s.paint) for s in shown.rows[0].bars[0]
    ]
    assert [("retention", "4")] == [(r[0], r[2]) for r in list_reasons(one.plan)[0].rows]


def test_a_refused_clean_removes_nothing():
    one = survey(upserts(5))
    refused = replace(one.plan, refusals=(Note("maxFilesRemoved", "too many", "clean"),))

    assert show_removals(refused) is None
    assert () == list_reasons(refused)
    page = build_table_page(refused, anchor="t", status=one.status, state=one.state)
    assert ["bad"] == [step.tone for step in page.steps]
    assert page.steps[0].summary.startswith("not applied (maxFilesRemoved)")


def test_the_time_line_shows_the_window_before_and_after_and_savepoints():
    one = survey(saved(upserts(5), 1, base("g", 1)))
    drawn = draw_time_line(one.plan, one.status, one.state)
    windows = {r.paint: (r.x, r.x + r.width) for r in drawn.rects if r.width > 1}

    assert windows == {"before": (1.0, 99.0), "after": pytest.approx((25.5, 99.0))}
    assert 5 == sum(r.paint == "commit" for r in drawn.rects)
    assert [25.5] == [
        pytest.approx(r.x + r.width / 2) for r in drawn.rects if r.paint == "savepoint"
    ]
    assert list_savepoints(one.plan, one.status).rows[0][3] == "1 file, 10 bytes"
    assert ["Readable today", "Readable after the plan", "Savepoint", "Commit"] == list(
        dict.fromkeys(row[0] for row in drawn.rows.rows)
    )


def test_a_table_without_times_has_no_time_line():
    one = survey(table({}, []))

    assert draw_time_line(one.plan, one.status, one.state) is None


def test_times_that_can_be_read_end_at_the_newest_write_and_not_at_a_later_clean():
    idle = Instant(stamp(20), Action.CLEAN, State.COMPLETED, f"{stamp(20)[:-1]}5")
    waiting = commit(22, State.REQUESTED)
    names = {"a": [base("g", hour) for hour in range(3)]}
    one = survey(table(names, [*map(commit, range(3)), idle, waiting]), keep=1)
    drawn = draw_time_line(one.plan, one.status, one.state)
    before = next(rect for rect in drawn.rects if rect.paint == "before")
    facts = {
        fact.label: fact.value
        for fact in build_table_page(one.plan, anchor="t", status=one.status, state=one.state).facts
    }
    [_, *cells] = pages.build_surveyed_row(one, "#t").cells
    choice = RetentionChoice(policy=Policy.COMMITS, keep=1)

    assert (stamp(20), stamp(2)) == (one.plan.observed.last_completed, one.plan.observed.window_end)
    assert before.x + before.width == pytest.approx(1 + 98 * 2 / 22), "2 of 22 hours"
    assert "Readable today: back to 2024-01-01 00:00, 2 hours" in [one.text for one in drawn.labels]
    assert "2 hours" == facts["Readable"]
    assert "2 hours" in [cell.text for cell in cells]
    assert "2 hours back" in status_text([one.status], Terminal())
    assert "shrinks from 2 hours to 1 hour" in describe_time_travel(one.plan)
    assert 7200 == simulate_retentions(one.spec, one.state, NOW, [choice]).reach_seconds


def test_queries_are_drawn_on_one_scale_with_their_limit():
    prediction = {
        "query": "q", "filesBefore": 8, "filesAfter": 2, "bytesBefore": 400, "bytesAfter": 100,
        "error": 0.05,
    }  # fmt: skip
    spec = {"queries": [{"name": "q", "where": "a = 1", "maxScan": "5%"}]}
    plan = replace(survey(upserts(2)).plan, predictions=(prediction,), spec=spec)
    [row] = show_queries(plan).rows

    assert row.figures == ("8 → 2", "400 bytes → 100 bytes ±5 %")
    assert [[100.0], [25.0]] == [[s.width for s in bar] for bar in row.bars]
    assert row.note == "a = 1; declared to read at most 5%"


def test_an_unreadable_table_says_why():
    spec = TableSpec(name="gone", path="/gone", document={})
    plan = replace(make_unreadable_plan(spec), error="no Hudi table")
    page = pages.render_saved_plan(Plan(created_at=NOW.isoformat(), tool="t", tables=(plan,)))

    assert b"no Hudi table" in page


def test_the_table_of_tables_adds_up_and_sorts_by_what_cells_mean():
    small, large = survey(upserts(2)), survey(upserts(6), name="b")
    rows = [pages.build_surveyed_row(one, "#x") for one in (large, small)]
    fleet = pages.build_fleet(rows)

    assert ["b", "t"] == [row.name for row in fleet.rows]
    assert ["1 of 2", "2 of 2", "80 bytes", "100 %", "30 bytes"] == [
        fact.value for fact in fleet.facts
    ]
    assert ["1 drifted", "all tables"] == [fact.note for fact in fleet.facts[:2]]
    assert [60.0, 20.0] == [row.cells[2].order for row in fleet.rows]


def stuck(one):
    """The table with a write that nobody finishes."""
    condition = TableCondition(
        type="Healthy", status="False", reason="StuckInstant", message="commit 1 is stuck"
    )
    synced = one.status.condition("Synced")
    return replace(one, status=replace(one.status, conditions=(synced, condition)))


def test_the_first_screen_says_what_is_stuck_and_what_is_refused():
    one = stuck(survey(upserts(5)))
    note = Note("maxFilesRemoved", "too many", "clean")
    plan = replace(one.plan, refusals=(note, Note("pendingRestore", "commit 1")))
    page = build_table_page(plan, anchor="t", status=one.status)

    assert [
        ("Stuck instant", "Commit 1 is stuck"),
        ("Clean refused: maxFilesRemoved", "Too many"),
    ] == [(alert.label, alert.text) for alert in page.alerts]


def test_a_page_names_no_option_of_the_command_line():
    names = {f"p{n}": [base("g", hour) for hour in range(3)] for n in range(12)}
    one = survey(table(names, [commit(hour) for hour in range(3)]), keep=1)
    [step] = build_table_page(one.plan, anchor="t").steps
    details = ["".join(line) for line in step.details]

    assert "\N{HORIZONTAL ELLIPSIS} and 4 more partitions (4 files, 40 bytes)" in details
    assert ("p0", "1 file", "10 bytes") in [line[::2] for line in step.details]


def test_costs_of_what_a_plan_frees_are_said_once():
    one = survey(upserts(5))
    storage = StorageCosts(currency="EUR", per_month=1200.0, reclaimable_per_month=400.0)
    prices = Prices(currency="EUR", storage_per_gb_month=1.0)
    plan = replace(one.plan, costs=TableCosts(prices=prices, freed_per_month=400.0))
    page = build_table_page(plan, anchor="t", status=replace(one.status, costs=storage))

    assert page.costs.startswith("storage costs 1 200 EUR a month; the plan frees ")


def test_tables_that_need_somebody_come_first():
    late, good = stuck(survey(upserts(2), name="z")), survey(upserts(2), name="a")
    rows = [pages.build_surveyed_row(one, "#x") for one in (good, late)]
    fleet = pages.build_fleet(rows)

    assert ["z", "a"] == [row.name for row in fleet.rows]
    assert fleet.title == "1 of 2 tables needs attention"
    assert fleet.facts[1].note == "1 with a stuck instant"
    assert pages.build_fleet(rows[:1]).title == "1 table, nothing stuck or blocked"


def test_a_plan_that_only_clusters_says_what_is_not_cleaned():
    one = survey(upserts(5))
    note = Note("nothingToDo", "nothing to do: no file slice exceeds 9 commits")
    page = build_table_page(replace(one.plan, warnings=(note,)), anchor="t", status=one.status)

    assert [("Nothing to clean", "no file slice exceeds 9 commits")] == [
        (notice.label, notice.text) for notice in page.notices
    ]


def test_a_table_without_a_step_says_once_why():
    one = survey(upserts(2), keep=9)
    page = plan_page(one)

    assert "retention keeps 9" in page
    assert 1 == page.count("retention keeps 9")


def test_times_of_a_short_time_line_have_seconds_and_a_saved_plan_its_windows():
    plan = survey(upserts(5)).plan
    before, after, last = (f"202401010000{second:02d}000" for second in (10, 20, 30))
    plan = replace(
        plan,
        impact=replace(plan.impact, earliest_readable_before=before, earliest_readable_after=after),
        observed=replace(plan.observed, last_completed=last),
    )
    drawn = draw_time_line(plan, None, None)

    assert [
        "Readable today: back to 2024-01-01 00:00:10, 20 seconds",
        "Readable after the plan: back to 2024-01-01 00:00:20, 10 seconds",
    ] == [label.text for label in drawn.labels if label.text.startswith("Readable")]
    assert [98.0, 49.0] == [round(r.width, 1) for r in drawn.rects if r.width > 1]


def test_pages_have_distinct_names_on_any_file_system():
    tables = ["a.b", "A.b", "a/b", "a b", "..", "", "\u00e9", "x" * 300, "x" * 301, "aux", "nul.x"]
    tables += name_pages(tables).values()
    names = list(name_pages(tables).values())

    assert len(set(tables)) == len({name.lower() for name in names})
    assert not {"aux", "nul"} & {name.partition(".")[0] for name in names}
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,90}", name) for name in names)


def test_pages_speak_of_money_where_an_environment_has_prices():
    one = survey(upserts(5))
    storage = StorageCosts(currency="EUR", per_month=1200.0, reclaimable_per_month=400.0)
    paid = replace(one, status=replace(one.status, costs=storage))
    free = survey(upserts(5), name="u")
    page = plan_page(paid, free)
    cells = [row.cells[-1].text for row in pages.build_fleet(
        [pages.build_surveyed_row(table, "#x") for table in (paid, free)]
    ).rows]  # fmt: skip

    assert f">{describe_storage(storage)[:1].upper()}{describe_storage(storage)[1:]}.<" in page
    assert [True, False] == ["EUR" in cell for cell in cells]
    assert "Cost a month" not in plan_page(free, survey(upserts(2)))
