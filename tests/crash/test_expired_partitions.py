"""A deletion of partitions that dies, is overtaken, or is forbidden."""

from __future__ import annotations

import random
import shutil
import tempfile
from copy import copy
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from reconciler.errors import FormatError, UnsupportedError
from reconciler.executor.expiry.dead_deletions import find_dead_deletions
from reconciler.hudi.timeline.write_commit import COUNTS, WriteCommit
from reconciler.plans.document import dump_plan, load_plan
from reconciler.render.result import result_document, result_text
from reconciler.render.result_markdown import result_markdown
from reconciler.render.terminal import Terminal
from reconciler.spec.document import spec_to_document
from reconciler.spec.guard_policy import GuardPolicy
from reconciler.spec.model import CatalogTable, Concurrency, Lock
from reconciler.state.catalogs.api import CatalogPartition
from reconciler.state.model import Savepoint
from reconciler.state.timeline_reader import TimelineReader
from reconciler.writer.request import WriteMode
from tests.crash.clustering_drill import PlannedDrill, make_drill_of
from tests.crash.drill import Killed
from tests.crash.write_drill import (
    get_timeline_folder,
    make_completed_name,
    make_shared_folder,
    put_timeline_file,
)
from tests.memory_catalog import MemoryCatalog, make_entry
from tests.selection import examples, long, take_turn
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageFault
from tests.table_sessions import open_test_session
from tests.write_runs import WriteRuns, make_rows

TABLES = Path(__file__).parents[1] / "tables"
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: {name}}}
spec:
  path: {path}
  timezone: UTC
  retention: {{RETENTION}}
  concurrency: {{lock: {{provider: {lock}}}, staleAfter: 1h}}
  table:
    {{type: COPY_ON_WRITE, version: VERSION, recordKey: [id], partitionBy: [p], ordering: [ts]}}
"""
BY_DATE = 'commits: 1, partitions: {{olderThan: 400d, by: "p=%Y-%m-%d"}}'
OLD, OLDER, YOUNG = "2024-01-01", "2024-02-29", "2026-11-20"
#: the instant of another writer
OTHER = "20261130000000000"
ROWS = [(1, OLD, 1, "one"), (2, OLDER, 1, "two"), (3, YOUNG, 1, "three"), (4, OLD, 1, "four")]
LEFT = [ROWS[2]]


class Drill(PlannedDrill):
    """A table of three days, of which two are past retention."""

    @property
    def runs_of_writes(self) -> WriteRuns:
        runs = WriteRuns(self.spec)
        runs.clock, runs.count = self.clock, 70 + self.runs
        return runs

    def write(self, *rows, way=WriteMode.UPSERT, **more):
        return self.runs_of_writes.write(make_rows(*rows), way, **more)

    def read(self):
        return self.runs_of_writes.read_rows()

    def copy(self, folder):
        shutil.copytree(self.folder, folder)
        made = type(self)(folder, self.said)
        made.clock = self.clock
        return made

    def leftovers(self):
        """Return pending instants, heartbeats and locks."""
        timeline = self.state().timeline
        found = [one.file_name for one in timeline.instants if not one.is_completed]
        hoodie = self.table / ".hoodie"
        return [*found, *hoodie.glob(".heartbeat/*"), *hoodie.glob("lock")]

    def move_to(self, **changes):
        self.spec = replace(self.spec, **changes)


def make(folder, version=9, retention=BY_DATE):
    written = _write_table(version, retention)
    it = written.copy(folder)
    it.clock = copy(written.clock)
    return it


@cache
def _write_table(version, retention):
    """Write a table once for all tests of this process, which copy it."""
    text = SPEC.replace("RETENTION", retention).replace("VERSION", str(version))
    folder = Path(tempfile.mkdtemp(dir=make_shared_folder()))
    it = type("DrillOfVersion", (Drill,), {"SPEC_TEXT": text})(folder, {})
    it.write(*ROWS)
    it.write((1, OLD, 2, "ONE"))
    it.write((1, OLD, 3, "one"))
    return it


ALL = sorted([(1, OLD, 3, "one"), *ROWS[1:]], key=str)


def paths(plan):
    steps = (step for step in plan.tables[0].steps if step.kind == "deletePartition")
    return [partition.path for step in steps for partition in step.partitions]


def deletion(result):
    [found] = [o.deletion for o in result.tables[0].outcomes if o.kind == "deletePartition"]
    return found


def left(result):
    return {each.path: each.because for each in deletion(result).left}


@pytest.fixture(params=[6, 9])
def it(request, tmp_path):
    return make(tmp_path / "t", request.param)


def test_reviewed_partitions_go_and_their_files_stay_until_a_clean(it):
    plan = load_plan(dump_plan(it.plan()), "plan.json")
    [table] = plan.tables
    step = next(step for step in table.steps if step.kind == "deletePartition")

    assert [f"p={OLD}", f"p={OLDER}"] == paths(plan)
    assert [(2, OLD), (1, OLDER)] == [(part.rows, part.date) for part in step.partitions]
    assert ["deletePartition", "clean"] == [step.kind for step in table.steps]

    result = it.apply(plan)

    assert (0, LEFT) == (result.exit_code, it.read())
    assert (f"p={OLD}", f"p={OLDER}") == deletion(result).partitions
    # of the three versions that there were, the clean removes the one that no read needs
    assert 2 == len(list(it.table.glob(f"p={OLD}/*.parquet")))
    assert 1 == len(list(it.table.glob(f"p={OLDER}/*.parquet")))
    assert [] == it.leftovers()
    assert ((), ()) == (it.plan().tables[0].steps, it.plan().tables[0].drift)
    for ts in (7, 8):
        it.write((3, YOUNG, ts, "three"))
    it.apply(it.plan())
    assert [f"p={YOUNG}"] == sorted({path.parent.name for path in it.table.glob("p=*/*.parquet")})


@pytest.mark.parametrize("how", ["before", long("after")])
def test_wherever_the_apply_stops_the_next_one_ends_it(it, request, tmp_path, how):
    record = []
    plan = it.plan()
    it.copy(tmp_path / "calls").apply(
        plan_at(plan, tmp_path / "calls"),
        around=lambda s: record.append(RecordingStorage(s)) or record[-1],
    )
    calls = sum(len(one.mutations) for one in record)
    assert calls >= 12
    for at in take_turn(range(1, calls + 1), of=13, turn=request.node.callspec.params["it"]):
        copy = it.copy(tmp_path / f"{at}")
        there = plan_at(plan, copy.folder)
        with pytest.raises(Killed):
            copy.apply(
                there,
                around=lambda s, at=at: FaultyStorage(s, StorageFault(at=at, mode=how), Killed()),
            )
        assert copy.read() in (ALL, LEFT), at
        by_plan = copy.copy(tmp_path / f"{at}-planned")
        by_plan.runs = copy.runs

        result = copy.apply(there)

        assert (LEFT, []) == (copy.read(), copy.leftovers()), at
        assert (at, 0) == (at, result.exit_code)
        assert [] == paths(copy.plan()), at
        result = by_plan.apply(by_plan.plan())
        assert (0, LEFT, []) == (result.exit_code, by_plan.read(), by_plan.leftovers()), at
        shutil.rmtree(tmp_path / f"{at}")
        shutil.rmtree(tmp_path / f"{at}-planned")


def plan_at(plan, folder):
    """Return the plan for a copy of the table."""
    [table] = plan.tables
    path = str(folder / "table")
    moved = replace(table, path=path, spec={**table.spec, "path": path})
    return replace(plan, tables=(moved,))


def test_a_partition_that_was_written_since_the_review_stays(it):
    plan = it.plan()
    it.write((9, OLDER, 9, "nine"))

    result = it.apply(plan)

    assert {f"p={OLDER}": "it was written after the review: plan again"} == left(result)
    assert (4, (f"p={OLD}",)) == (result.exit_code, deletion(result).partitions)
    assert [(2, OLDER, 1, "two"), ROWS[2], (9, OLDER, 9, "nine")] == it.read()


def test_a_partition_that_is_written_while_the_apply_runs_stays(it):
    plan, written = it.plan(), []
    stat = {"fileId": "new", "path": f"p={OLDER}/new_0-0-0_{OTHER}.parquet", "numInserts": 1}
    commit = WriteCommit(
        stats_by_partition={f"p={OLDER}": [{**dict.fromkeys(COUNTS, 0), **stat}]},
        operation="UPSERT",
    )

    class Between(RecordingStorage):
        def create(self, path, data):
            super().create(path, data)
            if path.endswith("replacecommit.inflight") and not written:
                name = make_completed_name(it, OTHER, "commit")
                put_timeline_file(it, name, commit.encode(version=it.spec.table.version))
                written.append(name)

    result = it.apply(plan, around=Between)

    assert {f"p={OLDER}": f"commit {OTHER} has written to it meanwhile"} == left(result)
    assert (4, (f"p={OLD}",)) == (result.exit_code, deletion(result).partitions)
    assert [(2, OLDER, 1, "two"), ROWS[2]] == it.read()
    assert [] == it.leftovers()


def test_pending_writes_of_others_keep_partitions(it):
    plan = it.plan()
    put_timeline_file(it, f"{OTHER}.commit.requested")
    put_timeline_file(it, f"{OTHER}.commit.inflight")

    result = it.apply(plan)

    assert 4 == result.exit_code
    assert {f"commit {OTHER} is pending, and which partitions it writes to is not known"} == set(
        left(result).values()
    )
    assert ALL == it.read()


def test_without_a_lock_a_pending_write_of_another_refuses_the_step(it):
    it.move_to(concurrency=Concurrency(lock=Lock(provider="none")))
    it.spec = replace(
        it.spec,
        document={
            **it.spec.document,
            "concurrency": {
                "lock": {"provider": "none", "expire": 0, "path": ".hoodie"},
                "staleAfter": "1h",
            },
        },
    )
    plan = it.plan()
    put_timeline_file(it, f"{OTHER}.commit.requested")
    put_timeline_file(it, f"{OTHER}.commit.inflight")

    result = it.apply(plan)

    assert (3, ALL) == (result.exit_code, it.read())
    assert "lock" in {note.rule for note in result.tables[0].refusals}


def test_policies_refuse_the_step_and_the_clean_goes_on(it):
    few = GuardPolicy(name="gold", max_partitions_removed=1)
    hold = GuardPolicy(name="legal", protected_partitions=("p=2024-02-*",))
    it.move_to(guarded_by=(few, hold))
    plan = it.plan()

    result = it.apply(plan)

    refused = [(note.rule, note.step) for note in plan.tables[0].refusals]
    assert [
        (r, "deletePartition") for r in ("maxPartitionsRemoved", "protectedPartitions")
    ] == refused
    assert "protects partition p=2024-02-29; raise" in plan.tables[0].refusals[1].because
    assert (3, ALL, ["clean"]) == (
        result.exit_code,
        it.read(),
        [outcome.kind for outcome in result.tables[0].outcomes],
    )


def test_an_index_that_cannot_be_kept_right_refuses_the_step_alone(it, monkeypatch):
    def refuse(*_, **__):
        raise UnsupportedError("the expression index x would be wrong")

    monkeypatch.setattr("reconciler.executor.expiry.run.decide_write_sync", refuse)

    [table] = it.apply(it.plan()).tables

    assert [("metadata", "deletePartition")] == [(n.rule, n.step) for n in table.refusals]
    assert (3, ["clean"], ALL) == (table.exit_code, [o.kind for o in table.outcomes], it.read())


def test_a_savepoint_keeps_the_files_of_a_deleted_partition(it, monkeypatch):
    state = it.state()
    pinned = max(one.requested for one in state.timeline.commits)
    names = {p.name for p in it.table.glob(f"p={OLDER}/*.parquet")}
    saved = Savepoint(instant=pinned, completed=True, files=frozenset(names))
    monkeypatch.setattr(TimelineReader, "read_savepoints", lambda _self: (saved,))
    plan = it.plan()
    step = next(step for step in plan.tables[0].steps if step.kind == "deletePartition")
    assert f"savepoint {pinned} keeps its files" in step.partitions[1].because
    assert "savepoint" not in step.partitions[0].because
    it.apply(plan)
    for ts in (7, 8):
        it.write((3, YOUNG, ts, "three"))

    it.apply(it.plan())

    found = {path.parent.name for path in it.table.glob("p=*/*.parquet")}
    assert {f"p={OLDER}", f"p={YOUNG}"} == found


def test_a_damaged_request_of_a_dead_deletion_is_named(it):
    plan = it.plan()

    class Dying(RecordingStorage):
        def create(self, path, data):
            if path.endswith(".replacecommit.inflight"):
                raise Killed
            super().create(path, data)

        def delete(self, path):
            raise Killed(path)

    with pytest.raises(Killed):
        it.apply(plan, around=Dying)
    [request] = get_timeline_folder(it).glob("*.replacecommit.requested")
    whole, chance = request.read_bytes(), random.Random(5)
    session = open_test_session(it.spec, pid=99)
    timeline = session.reload_timeline()
    assert 1 == len(find_dead_deletions(session, timeline))
    named = 0
    for number in range(examples(6, many=1000)):
        request.write_bytes(damage(whole, number, chance))
        [table] = it.plan().tables
        assert table.error is None or request.name in table.error
        named += request.name in find_problem(session)
    assert named


def find_problem(session):
    """Return what looking for dead deletions says of a damaged file."""
    try:
        find_dead_deletions(session, session.reload_timeline())
    except FormatError as error:
        return str(error)
    return ""


def damage(data, number, chance):
    """Return the bytes cut, emptied, or with a bit flipped."""
    at = chance.randrange(len(data))
    flipped = bytearray(data)
    flipped[at] ^= 1 << chance.randrange(8)
    return [data[:at], b"", bytes(flipped)][number % 3]


def test_the_catalog_drops_deleted_partitions_at_once(it):
    catalog = MemoryCatalog(make_entry("db.orders", str(it.table)))
    listed = {
        (day,): CatalogPartition((day,), f"{it.table}/p={day}") for day in (OLD, OLDER, YOUNG)
    }
    catalog.partitions["db.orders"] = listed
    spec = replace(it.spec, catalog=CatalogTable(type="hive", name="db.orders", uri="thrift://c:1"))
    it.spec = replace(spec, document=spec_to_document(spec))

    result = it.apply(it.plan(), open_catalog=catalog.open)

    assert (0, [(YOUNG,)]) == (result.exit_code, list(catalog.partitions["db.orders"]))
    assert 1 == len(list(it.table.glob(f"p={OLDER}/*.parquet")))


@pytest.mark.parametrize(
    "name",
    ["v6_cow_part", "v9_mor_part", long("v8_mor_part"), long("v9_cow_part")],
)
def test_tables_of_hudi_lose_the_partitions_that_nobody_wrote_lately(tmp_path, name):
    """Of real tables with pending work, savepoints and log files."""
    text = SPEC.replace("RETENTION", "partitions: {{olderThan: 1h, by: lastCommit}}")
    text = text[: text.index("  table:")]
    kind = type("HudiDrill", (Drill,), {"SPEC_TEXT": text})
    it = make_drill_of(kind, TABLES / f"{name}.zip", tmp_path / "t")
    plan = it.plan()
    [table] = plan.tables
    assert (None, ()) == (table.error, table.refusals)
    rows = it.rows()
    gone = set(paths(plan))
    kept = [row for row in rows if row["_hoodie_partition_path"] not in gone]
    assert gone
    assert len(kept) < len(rows)

    result = it.apply(plan)

    assert 0 == result.exit_code, result.tables
    assert kept == it.rows()
    assert [] == paths(it.plan())


def test_what_people_read_of_an_apply(it):
    plan = it.plan()
    it.write((9, OLDER, 9, "nine"))
    result = it.apply(plan)
    text = " ".join(result_text(result, Terminal()).split())

    assert "deleted 1 partition; a clean removes the 1 file, " in text
    assert f"! skipped 1 partition of the plan p={OLDER}: it was written after the review" in text
    assert "1 partition deleted" in text
    page = result_markdown(result)
    assert f"partition p={OLDER} kept: it was written after the review" in page
    [outcome] = [o for o in result_document(result)["tables"][0]["outcomes"] if "deletion" in o]
    assert {
        "partitions": [f"p={OLD}"],
        "fileGroups": 1,
        "rows": 2,
        "partitionsGone": 0,
    }.items() <= outcome["deletion"].items()
