"""Many tables in one run: several at a time, and what is wrong with one stays with that one."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
import weakref
from contextlib import contextmanager, nullcontext
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

import reconciler
from reconciler import api, runtime
from reconciler.cli import app, apply_executors, interruption, run_apply, spark_start
from reconciler.errors import ReconcilerError
from reconciler.executor.clean import run as running
from reconciler.executor.deletion import LocalDeleter
from reconciler.executor.progress import Progress
from reconciler.planners import compose
from reconciler.plans.model import Note
from reconciler.plans.plan import Plan
from reconciler.state.model import TableState
from reconciler.status import lock
from tests.applying import admit_and_apply
from tests.bench.many_tables import make_tables
from tests.command import run
from tests.crash.drill import TestClock, process
from tests.storage_wrappers import RecordingStorage
from tests.trees import unpack

CASE = Path(__file__).parents[2] / "cases" / "clean" / "cow_basic__1.2.0" / "table.zip"
WITH_METADATA = CASE.parents[1] / "cow_mdt_incremental__1.2.0" / "table.zip"
RESTORING = Path(__file__).parents[2] / "tables" / "v6_restore_pending.zip"
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: {name}}}
spec:
  path: ../tables/{name}
  timezone: UTC
  retention: {{commits: {commits}}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""
NOW = datetime(2026, 12, 1, tzinfo=UTC)
AT = ("--now", NOW.isoformat())


class Lake:
    """Tables, and a folder of specs for them."""

    def __init__(self, top: Path, first: Path) -> None:
        self.top, self.first = top, first
        self.specs = top / "specs"
        self.specs.mkdir()

    def declare(self, name: str, *, commits: int = 2) -> Path:
        (self.specs / f"{name}.yaml").write_text(SPEC.format(name=name, commits=commits))
        return self.top / "tables" / name

    def add(self, *names: str, commits: int = 2) -> Path:
        """Tables with files to remove, unless many commits are kept; the last one's folder."""
        for name in names:
            table = self.declare(name, commits=commits)
            shutil.copytree(self.first, table, copy_function=os.link)
        return table

    def plan(self) -> Plan:
        return reconciler.plan(reconciler.load_specs(self.specs), now=NOW)

    def locks(self) -> list[Path]:
        return sorted(self.top.glob("tables/*/.hoodie/lock"))


@pytest.fixture(scope="module")
def first(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("first") / "table"
    return unpack(CASE, folder)


@pytest.fixture
def lake(tmp_path, first) -> Lake:
    return Lake(tmp_path, first)


@pytest.fixture
def refused(lake) -> None:
    """A table of which nothing may be believed: a restore is pending."""
    unpack(RESTORING, lake.top / "tables")
    (lake.top / "tables/v6_restore_pending").rename(lake.declare("refused"))


@pytest.fixture
def crash(monkeypatch) -> None:
    """Planning the table of this name ends in an error of this program."""
    planned = compose.plan_table

    def plan_table(spec, *arguments, **more):
        if spec.name == "crashed":
            raise ZeroDivisionError("oops")
        return planned(spec, *arguments, **more)

    monkeypatch.setattr(compose, "plan_table", plan_table)


@pytest.mark.parametrize(
    ("is_near", "options", "expected"),
    [
        (True, (), 1),
        (False, (), 4),
        (True, ("--parallelism", 3), 3),
        (False, ("--parallelism", 1), 1),
    ],
)
def test_tables_elsewhere_are_read_four_at_a_time(lake, monkeypatch, is_near, options, expected):
    lake.add("a", "b", "c", "d", "e")
    asked, threads = [], set()
    monkeypatch.setattr(
        runtime, "are_on_this_machine", lambda paths: asked.extend(paths) or is_near
    )
    started = threading.Barrier(expected, timeout=60)
    planned = compose.plan_table

    def plan_table(spec, *arguments, **more):
        if spec.name < "abcde"[expected]:
            started.wait()
        threads.add(threading.get_ident())
        return planned(spec, *arguments, **more)

    monkeypatch.setattr(compose, "plan_table", plan_table)

    assert run("plan", lake.specs, *AT, *options) == 0
    assert len(threads) == expected
    assert len(asked) == (0 if options else 5)


@pytest.mark.parametrize("at_once", [1, 4])
@pytest.mark.usefixtures("crash", "refused")
def test_what_is_wrong_with_one_table_is_no_matter_of_the_others(at_once, lake, capsys):
    lake.add("changed", "crashed", "z")
    lake.add("same", commits=100)
    lake.declare("gone")

    code = run("plan", lake.specs, *AT, "--format", "json", "--parallelism", at_once)
    said = capsys.readouterr()
    tables = {table["name"]: table for table in json.loads(said.out)["tables"]}

    assert 1 == code
    assert ["changed", "crashed", "gone", "refused", "same", "z"] == list(tables)
    assert "ZeroDivisionError: oops (a bug in reconciler" in tables["crashed"]["error"]
    assert "tables/gone" in tables["gone"]["error"]
    assert ["pendingRestore"] == [note["rule"] for note in tables["refused"]["refusals"]]
    for name in ("changed", "z"):
        assert ["clean"] == [step["kind"] for step in tables[name]["steps"]]
    assert [] == tables["same"]["steps"]
    assert 1 == said.err.count("crashed: ZeroDivisionError: oops; this is a bug in reconciler")


@pytest.mark.parametrize(
    ("kinds", "options", "code"),
    [
        (["same"], ["--detailed-exitcode"], 0),
        (["same", "changed"], [], 0),
        (["same", "changed"], ["--detailed-exitcode"], 2),
        (["refused", "changed"], ["--detailed-exitcode"], 3),
        (["refused", "changed", "gone"], ["--detailed-exitcode"], 1),
    ],
)
def test_the_worst_table_decides_how_a_plan_ends(kinds, options, code, lake, request):
    for kind in kinds:
        match kind:
            case "gone":
                lake.declare("gone")
            case "refused":
                request.getfixturevalue("refused")
            case _:
                lake.add(kind, commits=100 if kind == "same" else 2)

    assert code == run("plan", lake.specs, *AT, *options)


@pytest.mark.parametrize("at_once", [1, 4])
@pytest.mark.usefixtures("crash", "refused")
def test_the_status_of_one_table_is_no_matter_of_the_others(at_once, lake, monkeypatch, capsys):
    lake.add("changed", "crashed", "odd")
    lake.declare("gone")
    read_lock_status = lock.read_lock_status

    def read_status(spec, *arguments, **more):
        if spec.name == "odd":
            raise ZeroDivisionError("odd")
        return read_lock_status(spec, *arguments, **more)

    monkeypatch.setattr(lock, "read_lock_status", read_status)

    assert 1 == run("status", lake.specs, *AT, "--format", "json", "--parallelism", at_once)
    tables = {table["name"]: table for table in json.loads(capsys.readouterr().out)["tables"]}
    assert ["changed", "crashed", "gone", "odd", "refused"] == list(tables)
    assert "ZeroDivisionError: oops" in tables["crashed"]["error"]
    assert "ZeroDivisionError: odd" in tables["odd"]["error"]
    assert tables["changed"]["error"] is None


def applied(plan: Plan, **options):
    return admit_and_apply(
        plan,
        **{
            "open_storage": runtime.open_storage,
            "deleter": LocalDeleter(runtime.open_storage),
            "clock": TestClock(),
            "new_token": runtime.new_token,
            "process": process(1),
            "now": NOW,
            "lock_wait_s": 0,
            **options,
        },
    )


@pytest.mark.parametrize("at_once", [1, 4])
def test_an_apply_goes_on_whatever_happens_to_a_table(at_once, lake, monkeypatch):
    lake.add("busy", "crashed", "done", "refused", "vanished")
    lake.add("same", commits=100)
    plan = lake.plan()
    (lake.top / "tables/busy/.hoodie/lock").write_bytes(b"")
    shutil.rmtree(lake.top / "tables/vanished")
    tables = {table.name: table for table in plan.tables}
    tables["refused"] = replace(tables["refused"], refusals=(Note("protected", "no"),))
    tables["unread"] = replace(tables["same"], name="unread", path="/nowhere", error="gone")
    cleaned, heard = running.run_clean, []

    def run_clean(table, *rest):
        if table.plan.name == "crashed":
            raise ZeroDivisionError("oops")
        return cleaned(table, *rest)

    monkeypatch.setattr(running, "run_clean", run_clean)
    result = applied(
        replace(plan, tables=tuple(tables.values())),
        parallelism=at_once,
        on_crash=lambda table, error: heard.append((table.name, str(error))),
    )

    assert {
        "busy": 6,
        "crashed": 1,
        "done": 0,
        "refused": 3,
        "same": 0,
        "vanished": 1,
        "unread": 1,
    } == {table.name: table.exit_code for table in result.tables}
    assert list(tables) == [table.name for table in result.tables]
    assert 1 == result.exit_code
    assert [("crashed", "oops")] == heard


class Py4JError(Exception):
    """Stands in for an error of Java that Spark's client raises."""


@pytest.mark.parametrize(
    ("error", "says", "is_ours"),
    [
        (
            Py4JError("Traceback (most recent call last):\n  f\nMemoryError: of g\n\n\tat x.Y"),
            "MemoryError: of g",
            False,
        ),
        (
            ZeroDivisionError("oops\n  at f"),
            "ZeroDivisionError: oops (an error of this program, report it)",
            True,
        ),
    ],
)
def test_an_error_of_a_table_is_one_line(error, says, is_ours, lake, monkeypatch):
    lake.add("t")
    plan, heard = lake.plan(), []

    def run_clean(*_):
        raise error

    monkeypatch.setattr(running, "run_clean", run_clean)
    [table] = applied(plan, on_crash=lambda *crash: heard.append(crash)).tables

    assert table.error == says
    assert bool(heard) == is_ours


def test_results_stay_in_the_plans_order(lake):
    lake.add(*(f"t{number}" for number in range(6)))
    result = applied(lake.plan(), parallelism=3)

    assert [f"t{number}" for number in range(6)] == [table.name for table in result.tables]
    assert 0 == result.exit_code
    assert [] == [table.name for table in lake.plan().tables if table.steps]


def test_a_plan_is_the_same_however_many_are_planned_at_a_time(lake):
    lake.add(*(f"t{number}" for number in range(6)))
    specs = reconciler.load_specs(lake.specs)
    heard = []
    one = api.plan(specs, now=NOW)
    several = api.plan(
        specs, now=NOW, parallelism=4, on_table=lambda _: heard.append(threading.current_thread())
    )

    assert [t.name for t in one.tables] == [t.name for t in several.tables]
    assert [t.spec_digest for t in one.tables] == [t.spec_digest for t in several.tables]
    assert [t.impact for t in one.tables] == [t.impact for t in several.tables]
    assert [threading.current_thread()] * 6 == heard


class Places(Progress):
    """Remembers when two phases at one place went on at once, whatever the tables' names."""

    def __init__(self, places: dict[str, str]) -> None:
        self.places, self.busy, self.twice = places, [], []
        self.most = 0

    @contextmanager
    def phase(self, table, phase, total):  # noqa: ARG002 (the protocol's)
        place = self.places[table]
        self.twice += [place] * (place in self.busy)
        self.busy.append(place)
        self.most = max(self.most, len(self.busy))
        time.sleep(0.02)
        yield lambda _count: None
        self.busy.remove(place)


def test_two_tables_of_a_plan_at_one_place_never_run_at_once(lake, tmp_path):
    lake.add("a", "b")
    plan = lake.plan()
    a, b = plan.tables
    (tmp_path / "door").symlink_to(a.path)
    twin = replace(a, name="twin")
    linked = replace(a, name="linked", path=str(tmp_path / "door"))
    linked = replace(linked, spec={**a.spec, "path": linked.path})
    watched = Places({"a": "a", "twin": "a", "linked": "a", "b": "b"})
    result = applied(replace(plan, tables=(a, twin, linked, b)), parallelism=4, progress=watched)

    assert [] == watched.twice
    assert 2 == watched.most
    assert ["a", "twin", "linked", "b"] == [table.name for table in result.tables]


class Stuck(LocalDeleter):
    """Deletes half of what it is given, then waits until it is cancelled, as Spark's jobs do."""

    def __init__(self, many: int) -> None:
        super().__init__(runtime.open_storage)
        object.__setattr__(self, "all_here", threading.Barrier(many + 1))
        object.__setattr__(self, "cancelled", threading.Event())

    def delete_files(self, ref, batches, *, progress):
        super().delete_files(ref, batches[:1], progress=progress)
        self.all_here.wait(20)
        assert self.cancelled.wait(20)
        raise RuntimeError("Job 0 cancelled")


@contextmanager
def signalled(number: int, when: threading.Barrier, handler):
    """The signal comes to this process when everybody waits at the barrier."""

    def send() -> None:
        when.wait(20)
        os.kill(os.getpid(), number)

    before = signal.signal(number, handler)
    try:
        threading.Thread(target=send, daemon=True).start()
        yield
    finally:
        signal.signal(number, before)


def test_an_interruption_ends_every_table_in_good_order(lake):
    lake.add(*(f"t{number}" for number in range(5)))
    plan = lake.plan()
    executor = Stuck(3)
    under_way = []

    def on_stop(many: int) -> None:
        under_way.append(many)
        executor.cancelled.set()

    with (
        signalled(signal.SIGINT, executor.all_here, signal.default_int_handler),
        pytest.raises(KeyboardInterrupt),
    ):
        applied(plan, parallelism=3, deleter=executor, on_stop=on_stop)

    assert [3] == under_way
    assert {"t0", "t1", "t2"} == begun(lake)
    assert [] == lake.locks()
    assert 0 == applied(plan).exit_code
    assert [] == [table.name for table in lake.plan().tables if table.steps]


def begun(lake: Lake) -> set[str]:
    """The tables that have a clean on their timeline; the fixture has none."""
    return {
        table.name
        for table in (lake.top / "tables").iterdir()
        if any(table.glob(".hoodie/**/*.clean.*"))
    }


def test_an_interruption_releases_locks_that_are_held(lake):
    lake.add("a", "b")
    plan = lake.plan()
    holding, told = threading.Barrier(3), threading.Event()

    deleted = []

    class Telling(LocalDeleter):
        def delete_files(self, ref, batches, *, progress):
            deleted.append(ref.location)
            return super().delete_files(ref, batches, progress=progress)

    class Pausing(RecordingStorage):
        def create(self, path: str, data: bytes) -> None:
            super().create(path, data)
            if path.endswith(".clean.requested"):
                assert lake.locks()
                holding.wait(20)
                assert told.wait(20)

    with (
        signalled(signal.SIGINT, holding, signal.default_int_handler),
        pytest.raises(KeyboardInterrupt),
    ):
        applied(
            plan,
            parallelism=2,
            open_storage=lambda *arguments: Pausing(runtime.open_storage(*arguments)),
            deleter=Telling(runtime.open_storage),
            on_stop=lambda _: told.set(),
        )

    assert [] == lake.locks()
    assert [] == deleted
    assert 0 == applied(plan).exit_code


def test_who_waits_for_a_lock_stops_waiting(lake):
    lake.add("a", "b")
    plan = lake.plan()
    for name in "ab":
        (lake.top / "tables" / name / ".hoodie/lock").write_bytes(b"")
    waiting = threading.Barrier(3)

    class Watch(Progress):
        def report_wait(self, table, holder):  # noqa: ARG002 (the protocol's)
            waiting.wait(20)

    class Real(TestClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            time.sleep(0.05)

    started = time.monotonic()
    with (
        signalled(signal.SIGINT, waiting, signal.default_int_handler),
        pytest.raises(KeyboardInterrupt),
    ):
        applied(plan, parallelism=2, progress=Watch(), clock=Real(), lock_wait_s=600)

    assert time.monotonic() - started < 3
    assert 2 == len(lake.locks())  # theirs


INTERRUPTED = (signal.SIGINT, signal.default_int_handler, 130, "interrupted")
TOLD_TO_STOP = (signal.SIGTERM, app._exit_on_signal, 143, "terminated")


@pytest.mark.parametrize("how", [INTERRUPTED, TOLD_TO_STOP], ids=["SIGINT", "SIGTERM"])
def test_people_read_what_is_waited_for_and_what_to_do(how, lake, tmp_path, monkeypatch, capsys):
    number, handler, code, says = how
    lake.add("a", "b", "c")
    assert 0 == run("plan", lake.specs, *AT, "-o", tmp_path / "plan.json")
    capsys.readouterr()
    executor = Stuck(2)
    stuck = apply_executors.InterruptibleWorkers(executor, executor.cancelled.set)
    hands = nullcontext(apply_executors.Executors(stuck))
    monkeypatch.setattr(run_apply, "open_executors", lambda *_, **__: hands)
    try:
        with signalled(number, executor.all_here, handler):
            found = run("apply", tmp_path / "plan.json", *AT, "--parallelism", "2")
    except SystemExit as left:
        found = left.code
    finally:
        interruption.reset()
    err = capsys.readouterr().err

    assert code == found
    assert "waiting for 2 tables to stop cleanly; interrupt again to exit at once\n" in err
    assert f"{says}; run the same apply again: it finishes or undoes the work\n" in err
    assert [] == lake.locks()


class Watched(TableState):
    """A state that can be referred to without keeping it."""


def test_the_state_of_a_table_goes_when_it_is_planned(tmp_path, monkeypatch):
    specs = reconciler.load_specs(make_tables(tmp_path, 40))
    look = api.observe
    heard, alive = [], []
    states = weakref.WeakSet()

    def observe(*arguments, **named) -> TableState:
        state = look(*arguments, **named)
        watched = Watched(**{each.name: getattr(state, each.name) for each in fields(state)})
        states.add(watched)
        return watched

    def on_table(table) -> None:
        heard.append(table)
        if len(heard) % 8 == 0:
            alive.append(len(states))

    monkeypatch.setattr(api, "observe", observe)
    one = api.plan(specs, now=NOW, on_table=on_table)
    several = api.plan(specs, now=NOW, on_table=on_table, parallelism=4)

    assert [0] * 5 == alive[:5]
    assert 5 == len(alive[5:])
    assert max(alive[5:]) <= 4
    assert [None] * 80 == [table.error for table in (*one.tables, *several.tables)]


@pytest.mark.parametrize("provider", ["none", "filesystem"])
def test_a_pending_write_that_needs_a_lock_is_refused_before_spark_starts(
    provider, lake, capsys, monkeypatch
):
    def stop(*_, **__):
        raise ReconcilerError("here Spark would start")

    monkeypatch.setattr(spark_start, "open_spark_session", stop)
    table = unpack(WITH_METADATA, lake.declare("t", commits=1))
    spec = lake.specs / "t.yaml"
    spec.write_text(spec.read_text().replace("provider: filesystem", f"provider: {provider}"))
    for name in ("commit.requested", "inflight"):
        (table / ".hoodie" / "timeline" / f"20261122000000000.{name}").write_bytes(b"")

    code = run("apply", lake.specs, *AT, "--auto-approve", "--executor", "spark")
    said = "".join(capsys.readouterr())

    assert ("here Spark would start" in said) == (provider == "filesystem")
    if provider == "none":
        assert code == 3
        assert "commit 20261122000000000 is pending, the metadata table is live" in " ".join(
            said.split()
        )
        assert "[lock]" in said
