"""Compactions that applies plan: the slices and files of real Hudi's, and Hudi after them."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace

import pytest

from reconciler.planners.compact.planner import plan_compaction
from reconciler.planners.picture import TablePicture
from reconciler.spec.compaction import Compaction, CompactionBudget
from reconciler.spec.model import Concurrency, Lock, TableSpec
from reconciler.spec.partition_filter import PartitionFilter
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from tests import our_compaction
from tests.applying import apply_here
from tests.compared_compactions import describe_file, describe_indexes, list_base_files
from tests.oracle.hudi import keep_commits
from tests.oracle.prepared_tables import (
    KINDS,
    assert_hudi_goes_on,
    assert_rows_and_listing,
)
from tests.our_compaction import find_timeline
from tests.scheduled_compactions import read_plan
from tests.selection import EVERY_CASE, long, rounds

pytestmark = pytest.mark.oracle

MOR = [kind for kind in KINDS if kind.merge_on_read]
#: each version once, with and without partitions and indexes
USUAL = {"0.15.0-mor", "1.0.2-mor-nopart", "1.2.0-mor-indexes"}
BLOCK = "  compaction: {afterDeltaCommits: 1}\n"
READ_OPTIMIZED = {"hoodie.datasource.query.type": "read_optimized"}
INCREMENTAL = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.read.begin.instanttime": "0",
}
#: Hudi's names: the plan of each strategy, and what a spec says for the same
_STRATEGY = "org.apache.hudi.table.action.compact.strategy."
STRATEGIES = {
    "LogFileSizeBasedCompactionStrategy": {"hoodie.compaction.target.io": "200"},
    "UnBoundedCompactionStrategy": {},
    "DayBasedCompactionStrategy": {"hoodie.compaction.daybased.target.partitions": "2"},
}
DECLARED = {
    "LogFileSizeBasedCompactionStrategy": Compaction(
        after_delta_commits=1, budget=CompactionBudget(rewrite=200 * 1024 * 1024)
    ),
    "UnBoundedCompactionStrategy": Compaction(after_delta_commits=1),
    "DayBasedCompactionStrategy": Compaction(
        after_delta_commits=1, partitions=PartitionFilter(latest=2)
    ),
}
ROUNDS = rounds("COMPACTION_ROUNDS", few=1, many=12)
DAYS = ("2026/11/20", "2026/11/21", "2026/11/22")


def compact(path):
    """Plan and apply a compaction, and return its instant."""
    plan = our_compaction.make_plan(path, more=BLOCK)
    result = apply_here(plan)
    (table,) = result.tables
    (outcome,) = table.outcomes
    assert (0, "compact", "completed") == (result.exit_code, outcome.kind, outcome.how), table
    assert ((), ()) == (outcome.warnings, outcome.differences)
    return outcome.instant


def list_operations(path, instant):
    """Return the operations of a compaction's plan, without their order."""
    plan = read_plan((find_timeline(path) / f"{instant}.compaction.requested").read_bytes())
    return sorted(plan["operations"], key=lambda one: (one["partitionPath"], one["fileId"]))


def describe(path, instant):
    """Return plan, files and indexes of a compaction."""
    files = list_base_files(path, instant)
    described = {group: describe_file(file) for group, file in files.items()}
    return list_operations(path, instant), described, describe_indexes(path, instant)


@pytest.mark.parametrize(
    "kind", [kind if str(kind) in USUAL else long(kind) for kind in MOR], ids=str
)
def test_our_compaction_is_hudis_and_hudi_goes_on_after_it(library, tmp_path, kind):
    hudi, table = library.table(kind, tmp_path / "t")
    hudi.write(table, [("a2", "a", 9)], "delete")
    rows = hudi.rows(table)
    hudis = table.at(tmp_path / "hudis")
    shutil.copytree(table.path, hudis.path, copy_function=shutil.copy2)
    scheduled = hudi.schedule(hudis, "COMPACT")
    hudi.compact(hudis, scheduled)

    instant = compact(table.path)

    assert describe(hudis.path, scheduled) == describe(table.path, instant)
    for query in (READ_OPTIMIZED, INCREMENTAL):
        assert hudi.rows(hudis, options=query) == hudi.rows(table, options=query)
    assert_rows_and_listing(hudi, table, rows)
    if EVERY_CASE:
        assert_hudi_goes_on(hudi, table, rows, merge_on_read=True)
        return
    hudi.write(table, [("a1", "a", 50)])
    hudi.compact(table, hudi.schedule(table, "COMPACT"))
    hudi.clean(table, keep_commits(1))
    assert_rows_and_listing(hudi, table, [["a1", "a", 50, "v50", 50.0], *rows[1:]])


@pytest.mark.parametrize("version", ["1.2.0", *map(long, ("0.15.0", "1.0.2"))])
def test_real_hudi_executes_a_compaction_that_our_apply_has_only_requested(
    library, tmp_path, version
):
    """Whoever finishes it, every row is there once; what Hudi has finished is not repeated."""
    kind = next(one for one in MOR if one.version == version)
    hudi, table = library.table(kind, tmp_path / "t")
    rows = hudi.rows(table)
    plan = our_compaction.make_plan(table.path, more=BLOCK)
    kept = tmp_path / "kept"
    with pytest.raises(KeyboardInterrupt):
        apply_here(plan, rewriter=CopyBefore(table.path, kept))
    requested = table.at(kept)
    (instant,) = list_pending(kept)
    hudi.compact(requested, instant)

    assert_rows_and_listing(hudi, requested, rows)
    again = our_compaction.make_plan(kept, more=BLOCK)
    assert () == again.tables[0].steps
    assert_rows_and_listing(hudi, table, rows)
    assert [] == list_pending(table.path)


class CopyBefore:
    """Copies a table as it is when the workers begin, and is interrupted."""

    def __init__(self, path, to):
        self.path, self.to = path, to

    def compact(self, *args, **kwargs):
        del args, kwargs
        shutil.copytree(self.path, self.to, copy_function=shutil.copy2)
        (self.to / ".hoodie" / "lock").unlink(missing_ok=True)
        raise KeyboardInterrupt


def list_pending(path):
    names = [file.name for file in find_timeline(path).iterdir()]
    requested = {name.partition(".")[0] for name in names if name.endswith("compaction.requested")}
    done = {name.partition(".")[0].partition("_")[0] for name in names if name.endswith(".commit")}
    return sorted(requested - done)


def write_randomly(hudi, table, draw):
    """Write a few commits, some with a pending compaction between them."""
    keys = [f"k{number}" for number in range(draw.randint(4, 9))]
    day_of = {key: draw.choice(DAYS) for key in keys}
    hudi.write(table, [(key, day_of[key], 1) for key in keys])
    for ts in range(2, draw.randint(3, 6)):
        some = draw.sample(keys, draw.randint(1, len(keys)))
        hudi.write(table, [(key, day_of[key], 10**ts) for key in some])
        if draw.random() < 0.3:
            instant = hudi.schedule(table, "COMPACT")
            if instant and draw.random() < 0.5:
                hudi.compact(table, instant)


def plan_like(path, compaction):
    spec = TableSpec(name="t", path=str(path), timezone="UTC", compaction=compaction)
    spec = replace(spec, concurrency=Concurrency(lock=Lock(provider="filesystem")))
    state = observe(open_storage(str(path)), None, observed_ms=0)
    return plan_compaction(TablePicture(spec, state)).step


@pytest.mark.parametrize("version", ["1.2.0", *map(long, ("0.15.0", "1.0.2"))])
@pytest.mark.parametrize("nth", range(ROUNDS))
def test_on_random_histories_our_slices_are_those_of_hudis_strategies(
    real_hudi, tmp_path, version, nth
):
    """With a bucket index every new row goes to a log file, so slices have no base files too."""
    draw = random.Random(f"{version} {nth}")
    hudi = real_hudi(version)
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    table = hudi.table(
        tmp_path / "t", merge_on_read=True, options=buckets if draw.random() < 0.6 else None
    )
    write_randomly(hudi, table, draw)
    for strategy, options in STRATEGIES.items():
        copy = table.at(tmp_path / strategy)
        shutil.copytree(table.path, copy.path, copy_function=shutil.copy2)
        step = plan_like(copy.path, DECLARED[strategy])
        said = {"hoodie.compaction.strategy": f"{_STRATEGY}{strategy}", **options}
        instant = hudi.schedule(copy, "COMPACT", said)
        hudis = list_operations(copy.path, instant) if instant else []
        ours = [] if step is None else step.groups

        assert (step is None) == (not hudis), strategy
        if step is None:
            continue
        chosen = sorted(zip(ours.partition.to_pylist(), ours.file_id.to_pylist(), strict=True))
        files = [sorted(names) for names in ours.logs.to_pylist()]
        named = [(one["partitionPath"], one["fileId"]) for one in hudis]
        if chosen != named:  # slices with equally big log files: any of them may be the last
            sizes = [sorted(one["metrics"]["TOTAL_LOG_FILES_SIZE"] for one in hudis)]
            assert len(chosen) == len(named), strategy
            assert sizes == [sorted(map(float, sum_logs(copy.path, ours)))], strategy
        else:
            assert files == [sorted(one["deltaFilePaths"]) for one in hudis], strategy


def sum_logs(path, groups):
    """Return the bytes of the log files of each group."""
    rows = zip(groups.partition.to_pylist(), groups.logs.to_pylist(), strict=True)
    return [sum((path / folder / name).stat().st_size for name in names) for folder, names in rows]
