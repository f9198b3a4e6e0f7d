"""On random histories we would compact the slices that real Hudi's strategies choose."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import pytest

from reconciler.executor.compact.request import list_operations, make_plan
from reconciler.executor.compact.work import measure_inputs
from reconciler.hudi.timeline.instant import Action
from reconciler.planners.compact.planner import plan_compaction
from reconciler.planners.picture import TablePicture
from reconciler.spec.compaction import Compaction, CompactionBudget
from reconciler.spec.model import Concurrency, FileSizes, Lock, TableSpec
from reconciler.spec.partition_filter import PartitionFilter
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from tests.oracle.compaction_histories import ALL_PARTITIONS, make_history
from tests.scheduled_compactions import read_plan
from tests.selection import rounds

pytestmark = pytest.mark.oracle

#: tables; each has three histories, one longer than the other
ROUNDS = rounds("COMPACTION_HISTORIES", few=3, many=36)
#: Hudi, and the version of the tables that it writes; each in the first three rounds once
WRITERS = (("0.15.0", 6), ("1.0.2", 8), ("1.2.0", 9), ("1.2.0", 8), ("0.15.0", 6), ("1.0.2", 8))
_MIB = 1024 * 1024
_STRATEGY = "org.apache.hudi.table.action.compact.strategy."


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """A strategy of Hudi with its options, and what a spec declares for the same.

    ``is_limited``: which slices it takes depends on the others.
    """

    name: str
    options: dict[str, str]
    declared: Compaction
    is_limited: bool = False

    def tell_hudi(self, *, incremental: bool = False) -> dict[str, str]:
        said = {"hoodie.compaction.strategy": f"{_STRATEGY}{self.name}CompactionStrategy"}
        return {**said, **({} if incremental else ALL_PARTITIONS), **self.options}


def draw_strategies(random: Random) -> list[Strategy]:
    """Return every strategy with a random limit."""
    budget, days, writes = random.randint(1, 500), random.randint(1, 3), random.randint(1, 6)
    return [
        Strategy(
            name="UnBounded",
            options={"hoodie.compact.inline.max.delta.commits": str(writes)},
            declared=Compaction(after_delta_commits=writes),
        ),
        Strategy(name="BoundedIO", options={}, declared=Compaction(after_delta_commits=1)),
        Strategy(
            name="DayBased",
            options={"hoodie.compaction.daybased.target.partitions": str(days)},
            declared=Compaction(after_delta_commits=1, partitions=PartitionFilter(latest=days)),
        ),
        Strategy(
            name="LogFileSizeBased",
            options={"hoodie.compaction.target.io": str(budget)},
            declared=Compaction(
                after_delta_commits=1, budget=CompactionBudget(rewrite=budget * _MIB)
            ),
            is_limited=True,
        ),
    ]


class Ours:
    """What we would compact of a table as it is now."""

    def __init__(self, path):
        self.path = path
        self.state = observe(open_storage(str(path)), None, observed_ms=0)

    def plan(self, compaction):
        """Return the operations of the requested file by partition and file id, as Hudi reads them.

        Hudi's target size of a file is 120 MiB.
        """
        spec = TableSpec(name="t", path=str(self.path), timezone="UTC", compaction=compaction)
        spec = replace(spec, concurrency=Concurrency(lock=Lock(provider="filesystem")))
        spec = replace(spec, files=FileSizes(target=120 * _MIB))
        step = plan_compaction(TablePicture(spec, self.state)).step
        if step is None:
            return {}
        operations = list_operations(step.groups)
        sizes = measure_inputs(operations, self.state)
        made = make_plan(operations, sizes, self.state, step.order, {})
        data = made.encode(version=self.state.table_version, target_bytes=spec.files.target)
        return by_group(read_plan(data))

    def list_held_logs(self):
        """Return the file groups of pending log compactions, which Hudi compacts and we leave."""
        return {
            (one.partition, one.file_id)
            for one in self.state.compactions
            if one.action is Action.LOGCOMPACTION
        }


def by_group(plan):
    return {(one["partitionPath"], one["fileId"]): one for one in plan["operations"]}


def list_log_bytes(operations):
    """Return the bytes of log files of each slice, sorted: of equally big ones any may be last."""
    return sorted(one["metrics"]["TOTAL_LOG_FILES_SIZE"] for one in operations.values())


def assert_same(history, strategy, ours, held):
    """Assert that Hudi's strategy chooses our slices; return them."""
    hudis = by_group(history.schedule(strategy.tell_hudi()) or {"operations": []})
    if strategy.is_limited:
        if held & hudis.keys():
            return None
        assert list_log_bytes(hudis) == list_log_bytes(ours), strategy
        hudis = {key: hudis.get(key, one) for key, one in ours.items()}
    else:
        hudis = {key: one for key, one in hudis.items() if key not in held}
    assert hudis == ours, strategy
    return hudis


@pytest.mark.parametrize("nth", range(ROUNDS))
def test_on_random_histories_our_slices_are_those_of_hudis_strategies(real_hudi, tmp_path, nth):
    """Where Hudi looks only at partitions that were written since, it finds some of these."""
    version, table_version = WRITERS[nth % len(WRITERS)]
    random = Random(f"compaction {nth}")
    history = make_history(real_hudi(version), tmp_path, random, table_version)
    try:
        history.begin()
        for steps in (1, 2, 3):
            history.go_on(steps)
            compare_strategies(history, random)
    except Exception as error:
        error.add_note("\n".join([f"round {nth}: {version}", *history.log]))
        raise


def compare_strategies(history, random):
    """Compare what each strategy of Hudi would compact now with what we would."""
    ours = Ours(history.table.path)
    held = ours.list_held_logs()
    for strategy in draw_strategies(random):
        if strategy.name == "DayBased" and history.partitions == ("",):
            continue
        planned = ours.plan(strategy.declared)
        assert_same(history, strategy, planned, held)
        history.log.append(f"  {strategy.name}: {len(planned)} slices, {len(held)} held")
    every = ours.plan(Compaction(after_delta_commits=1))
    usual = history.schedule(strategy.tell_hudi(incremental=True)) or {"operations": []}
    assert every.keys() >= by_group(usual).keys() - held
