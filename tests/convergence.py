"""Random tables with a few files, and plan and apply until no step is left."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import reconciler
from tests.crash.drill import NOW

LATER = "20261201000100000"
#: how many times a table may be rewritten before no step is left; the worst of a thousand random
#: tables, most of them clustered a few files at a time, took 9.8
MAX_REWRITES = 20


def random_rows(rng: np.random.Generator, count: int, ordered: str | None) -> pa.Table:
    table = pa.table(
        {
            "id": rng.permutation(count).astype(np.int64),
            "a": rng.integers(0, 100, count),
            "b": rng.permutation(count).astype(np.int64),
            "c": [f"v{value}" for value in rng.integers(0, 30, count)],
        }
    )
    return table.sort_by(ordered) if ordered else table


def random_partitions(rng, partitions, files, ordered):
    found = {}
    for name in partitions:
        many = int(rng.integers(1, files + 1))
        table = random_rows(rng, 150 * many, ordered)
        table = table.append_column("p", pa.array([name] * len(table)))
        found[name] = [table.slice(at * 150, 150) for at in range(many)]
    return found


def plan_table(it):
    (table,) = reconciler.plan([it.spec], now=NOW).tables
    assert (None, ()) == (table.error, table.refusals)
    return table


def describe_steps(table):
    return [(step.kind, step.groups.because.to_pylist()) for step in table.steps]


def rewritten_share(table):
    """Return the share of a table's bytes that a plan rewrites."""
    sizes = [int(step.groups.bytes.sum()) for step in table.steps if step.kind == "cluster"]
    return sum(sizes) / table.layout.before.bytes if sizes else 0.0


def repairs_sizes(runs):
    """Return whether at most two runs rewrite groups only for sizes that were predicted wrongly."""
    reasons = [because for run in runs for _, group in run for because in group]
    return len(runs) <= 2 and all("above smallFileShareAbove" in because for because in reasons)


def apply_until_done(it, *, one_is_enough):
    """Plan and apply until no step is left, in one run or within ``MAX_REWRITES``.

    Declared sizes of files may take more than the one run, because they are only predicted.

    The limit detects plans without an end, however few groups each run may rewrite.
    """
    done, often = [], 0.0
    while True:
        plan = reconciler.plan([it.spec], now=NOW)
        (table,) = plan.tables
        assert (None, ()) == (table.error, table.refusals), (table.error, table.refusals)
        if not table.steps:
            break
        done.append(describe_steps(table))
        assert len(done) == 1 or not one_is_enough or repairs_sizes(done[1:]), done
        share = rewritten_share(table)
        assert share > 0, done
        often += share
        assert often <= MAX_REWRITES, done
        result = it.apply(plan)
        assert 0 == result.exit_code, result
    assert not [found for found in table.drift if found.field.startswith("queries")]
