"""Two concurrent writes leave the same table as the two writes one after the other.

The second runs as a whole just before one of the calls by which the first changes the table.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from reconciler.errors import BusyError
from reconciler.writer.request import WriteMode
from tests.crash.write_drill import list_leftovers
from tests.selection import rounds
from tests.storage_wrappers import RecordingStorage
from tests.table_sessions import write_spec
from tests.write_runs import WriteRuns, make_rows

LAW = settings(
    max_examples=rounds("TWO_WRITES", few=4, many=250),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
FIRST = [(1, "a", 1, "one"), (2, "b", 1, "two"), (3, "b", 1, "three")]


def unique_by_key(found):
    return {(row[1], row[0]): row for row in found}.values()


writes = st.tuples(
    st.sampled_from([WriteMode.UPSERT, WriteMode.UPSERT, *WriteMode]),
    st.lists(
        st.tuples(
            st.integers(1, 5), st.sampled_from("abc"), st.integers(1, 4), st.sampled_from("xy")
        ),
        min_size=1,
        max_size=4,
    ).map(unique_by_key),
)


#: a row in a partition that has none
NEW = (WriteMode.UPSERT, [(4, "c", 1, "x")])


def rows_after(table, write, who):
    """Return the rows of a table after a write; each row names its writer."""
    way, found = write
    new = {(p, key): (key, p, ts, f"{x}{who}") for key, p, ts, x in found}
    folders = {p for _, p, _, _ in found}
    others = [row for row in table if (row[1], row[0]) not in new]
    match way:
        case WriteMode.UPSERT:
            same = {(row[1], row[0]) for row in table} & new.keys()
            changed = [
                max(new[row[1], row[0]], row, key=lambda one: one[2])
                for row in table
                if (row[1], row[0]) in same
            ]
            return [*others, *changed, *(row for key, row in new.items() if key not in same)]
        case WriteMode.DELETE:
            return others
        case WriteMode.INSERT | WriteMode.BULK_INSERT:
            return [*table, *new.values()]
        case WriteMode.INSERT_OVERWRITE:
            return [*(row for row in table if row[1] not in folders), *new.values()]
        case WriteMode.INSERT_OVERWRITE_TABLE:
            return [*new.values()]
        case WriteMode.DELETE_PARTITION:
            return [row for row in table if row[1] not in folders]


def run_and_check(it, write, who, **how):
    """Run a write and return whether it completed."""
    way, found = write
    if way is WriteMode.DELETE_PARTITION:
        how["partitions"] = sorted({f"p={p}" for _, p, _, _ in found})
    batch = make_rows(*[(key, p, ts, f"{x}{who}") for key, p, ts, x in found])
    try:
        it.write(batch, way, **how)
    except BusyError:
        return False
    return True


def act_before(number, act):
    """Return a storage wrapper that calls ``act`` just before the given change."""
    seen = []

    class Before(RecordingStorage):
        def _intercept(self, call, what, torn=None):
            if call.mutates:
                seen.append(call)
                if len(seen) == number:
                    act()
            return super()._intercept(call, what, torn)

    return Before


@LAW
@given(one=writes, other=writes, number=st.integers(1, 30), version=st.sampled_from([6, 9]))
@example(one=NEW, other=NEW, number=6, version=9)
@example(one=(WriteMode.INSERT_OVERWRITE, NEW[1]), other=NEW, number=6, version=6)
def test_two_concurrent_writes_equal_two_sequential_ones(one, other, number, version):
    with tempfile.TemporaryDirectory() as folder:
        it = WriteRuns(write_spec(Path(folder), version=version))
        it.write(make_rows(*FIRST))
        second = WriteRuns(it.spec)
        second.clock, second.count = it.clock, 50
        done = []

        def act():
            done.append(run_and_check(second, other, "B", living=frozenset({it.count})))

        is_first = run_and_check(
            it, one, "A", around=act_before(number, act), living=frozenset({51})
        )
        is_second = any(done)

        event(f"{is_first}, {is_second}")
        orders = []
        if is_first and is_second:
            orders = [
                rows_after(rows_after(FIRST, one, "A"), other, "B"),
                rows_after(rows_after(FIRST, other, "B"), one, "A"),
            ]
        elif is_first:
            orders = [rows_after(FIRST, one, "A")]
        elif is_second:
            orders = [rows_after(FIRST, other, "B")]
        else:
            orders = [FIRST]
        assert it.read_rows() in [sorted(found, key=str) for found in orders]
        assert [] == list_leftovers(it)
