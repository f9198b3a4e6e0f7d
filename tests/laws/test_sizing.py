"""Laws of the assignment of rows to files, for both rules, every kind of table and any state."""

from __future__ import annotations

from dataclasses import replace
from itertools import count, zip_longest

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.arrays import to_arrow
from reconciler.layout.sizing.assign import Workload, assign_rows, make_insert_workload
from reconciler.layout.sizing.assignment_rules import (
    CopyOnWrite,
    FileSizeLimits,
    HudiRule,
    MergeOnRead,
    RewriteCap,
    SteadyRule,
)
from reconciler.layout.sizing.key_routing import (
    count_hashes,
    find_route_boundaries,
    hash_record_keys,
    route_by_md5,
)
from reconciler.layout.sizing.record_size import RecordSize
from reconciler.layout.sizing.tiers import FileTiers
from tests.selection import examples
from tests.stream_assignment import (
    StreamAssigner,
    StreamTask,
    list_free_space,
    rows_per_new_file,
)
from tests.unit.layout.sizing.exact_routing import find_exact_boundaries
from tests.unit.layout.sizing.file_groups import make_groups

LAW = settings(max_examples=examples(10, many=50), deadline=None)
COW = CopyOnWrite()

sizes = st.builds(
    lambda target, share: FileSizeLimits(target=target, small=round(target * share)),
    st.integers(1_000, 200_000),
    st.sampled_from([0.0, 0.5, 0.8, 100 / 120, 1.0, 1.5]),
)
kinds = st.sampled_from(
    [COW, MergeOnRead(), MergeOnRead(max_candidates=3), MergeOnRead(indexes_logs=True)]
)
caps = st.one_of(
    st.none(), st.builds(RewriteCap, max_ratio=st.floats(0, 50), free_bytes=st.integers(0, 50_000))
)
records = st.builds(
    lambda fixed, per_row: RecordSize(fixed=fixed, per_row=per_row, because=""),
    st.integers(0, 900),
    st.floats(0.5, 400),
)
tiers = st.one_of(
    st.none(),
    st.builds(
        FileTiers,
        free_bytes=st.integers(0, 50_000),
        max_moved=st.one_of(st.none(), st.integers(0, 2_000)),
    ),
)
rules = st.one_of(
    st.builds(SteadyRule, sizes=sizes, record_size=records, tiers=tiers, rewrite_cap=caps),
    st.builds(
        HudiRule,
        sizes=sizes,
        average=st.integers(1, 2_000),
        split_rows=st.one_of(st.none(), st.integers(1, 500)),
    ),
)


@st.composite
def tables(draw):
    """Draw file groups of two partitions, and a write to three."""
    slices = st.one_of(
        st.integers(0, 200_000),
        st.tuples(st.one_of(st.none(), st.integers(1, 200_000)), st.integers(1, 400_000)),
    )
    ids = [f"{partition}{n}" for partition in "pq" for n in range(8)]
    some = st.sets(st.sampled_from(ids), max_size=3)
    held = {
        partition: {
            f"{partition}{n}": size for n, size in enumerate(draw(st.lists(slices, max_size=8)))
        }
        for partition in "pq"
    }
    groups = make_groups(held, compacting=draw(some), clustering=draw(some), replaced=draw(some))
    updated = draw(st.sets(st.integers(0, max(len(groups) - 1, 0)))) if len(groups) else set()
    workload = Workload(
        partitions=("p", "q", "r"),
        inserts=np.array(draw(st.lists(st.integers(0, 5_000), min_size=3, max_size=3)), np.int64),
        group=np.array(sorted(updated), np.int64),
        updates=np.array([draw(st.integers(1, 99)) for _ in updated], np.int64),
        growth=np.array([draw(st.integers(-500, 5_000)) for _ in updated], np.int64),
    )
    return groups, workload


@LAW
@given(tables(), kinds, rules)
def test_every_row_is_in_one_bucket(table, kind, rule):
    groups, workload = table
    found = assign_rows(groups, workload, kind, rule)

    for code, rows in enumerate(workload.inserts.tolist()):
        assert rows == found.inserts[found.partition == code].sum()
        assert rows == found.inserts[found.insert_buckets(code)].sum()
        assert (found.inserts[found.insert_buckets(code)] > 0).all()
    assert dict(zip(workload.group.tolist(), workload.updates.tolist(), strict=True)) == {
        group: rows
        for group, rows in zip(found.group.tolist(), found.updates.tolist(), strict=True)
        if rows
    }
    old = found.group[found.group >= 0]
    assert len(old) == len(set(old.tolist()))


@LAW
@given(tables(), kinds, rules)
def test_new_rows_go_to_small_files_of_their_partition_without_pending_services(table, kind, rule):
    groups, workload = table
    found = assign_rows(groups, workload, kind, rule)
    taking = (found.group >= 0) & (found.inserts > 0)
    at = found.group[taking]

    assert groups.is_live[at].all()
    assert not (groups.is_compacting | groups.is_clustering)[at].any()
    assert [groups.partitions[code] for code in groups.partition[at]] == [
        workload.partitions[code] for code in found.partition[taking]
    ]
    if kind == MergeOnRead(indexes_logs=True):
        assert (groups.size[at] < rule.sizes.target).all()
    else:
        assert (groups.base[at] < rule.sizes.small).all()


@LAW
@given(tables(), kinds, rules.filter(lambda rule: isinstance(rule, SteadyRule)))
def test_no_file_of_a_steady_write_exceeds_the_target_by_15_percent(table, kind, rule):
    """Except a file with a single row that is too large. One byte of tolerance for rounding."""
    found = assign_rows(*table, kind, rule)
    is_filled = (found.inserts > 0) & (~found.is_new | (found.inserts > 1))

    assert (found.expected_size[is_filled] <= 1.15 * rule.sizes.target + 1).all()
    takes_rows = np.isin(np.arange(len(found)), [into for _, into in found.list_moves()])
    assert (found.expected_size[takes_rows] <= 1.15 * rule.sizes.target + 1).all()
    is_old = is_filled & ~found.is_new & ~takes_rows
    assert (found.expected_size[is_old] <= rule.sizes.target + 1).all()


@LAW
@given(tables(), kinds, rules.filter(lambda rule: isinstance(rule, SteadyRule)))
def test_file_is_filled_only_within_the_rewrite_cap(table, kind, rule):
    groups, workload = table
    found = assign_rows(groups, workload, kind, rule)
    old = found.group >= 0
    padded = np.flatnonzero(old & (found.inserts > 0))
    if rule.tiers or rule.rewrite_cap is None or kind == MergeOnRead(indexes_logs=True):
        return
    for at in padded.tolist():
        data = max(int(groups.base[found.group[at]]) - rule.record_size.fixed, 0)
        brought = found.inserts[at] * rule.record_size.per_row
        is_free = kind == COW and found.updates[at] > 0
        assert is_free or data <= max(
            rule.rewrite_cap.max_ratio * brought, rule.rewrite_cap.free_bytes
        )


@LAW
@given(tables(), kinds, rules.filter(lambda rule: isinstance(rule, SteadyRule)), st.randoms())
def test_steady_assignment_does_not_depend_on_the_listing_order(table, kind, rule, random):
    groups, workload = table
    order = [
        at
        for code in range(len(groups.partitions))
        for at in random.sample(
            np.flatnonzero(groups.partition == code).tolist(), int((groups.partition == code).sum())
        )
    ]
    shuffled = replace(
        groups,
        **{
            name: getattr(groups, name)[order]
            for name in (
                "partition",
                "base",
                "logs",
                "log_files",
                "slice_start",
                "is_live",
                "is_compacting",
                "is_clustering",
            )
        },
        file_id=groups.file_id.take(to_arrow(np.array(order, np.int64))),
    )
    same = replace(
        workload, group=np.array([order.index(at) for at in workload.group.tolist()], np.int64)
    )

    def in_words(some, work):
        found = assign_rows(some, work, kind, rule)
        ids = [*some.file_id.to_pylist(), "new"]
        rows = zip(
            found.group.tolist(), found.inserts.tolist(), found.updates.tolist(), strict=True
        )
        return [(ids[at], inserts, updates) for at, inserts, updates in rows if inserts], sorted(
            (ids[at], inserts, updates)
            for at, inserts, updates in zip(
                found.group.tolist(), found.inserts.tolist(), found.updates.tolist(), strict=True
            )
        )

    assert in_words(groups, workload) == in_words(shuffled, same)


#: rows that are small beside the room between a small file and the target, so that room has rows
FINE = st.builds(
    lambda fixed, per_row: SteadyRule(
        sizes=FileSizeLimits(target=1_200, small=1_000),
        record_size=RecordSize(fixed=fixed, per_row=per_row, because=""),
        rewrite_cap=None,
    ),
    st.integers(0, 400),
    st.floats(0.5, 20),
)


@LAW
@given(FINE, st.lists(st.integers(1, 3_000), max_size=12), st.sets(st.integers(0, 30)))
def test_inserts_leave_at_most_one_small_file_besides_pinned_ones(rule, batches, pinned):
    """``pinned``: numbers of files, in order of creation, that always have a pending service."""
    files = {}
    for rows in batches:
        held = [name for nth, name in enumerate(files) if nth in pinned]
        groups = make_groups({"p": files} if files else {}, clustering=held)
        found = assign_rows(groups, make_insert_workload({"p": rows}), COW, rule)
        ids = groups.file_id.to_pylist()
        for at, size in zip(found.group.tolist(), found.expected_size.tolist(), strict=True):
            files[ids[at] if at >= 0 else f"f{len(files):02}"] = size

        free = [size for nth, size in enumerate(files.values()) if nth not in pinned]
        assert sum(size < rule.sizes.small for size in free) <= 1
        assert max(files.values()) <= 1.15 * rule.sizes.target + 1


@LAW
@given(tables(), kinds, rules)
def test_old_rows_move_at_most_once_and_never_with_changes(table, kind, rule):
    """From a file that gets new rows itself to another one, neither with updates in this write."""
    groups, workload = table
    found = assign_rows(groups, workload, kind, rule)
    moves = found.list_moves()

    assert not moves or (isinstance(rule, SteadyRule) and rule.tiers)
    assert not {source for source, _ in moves} & {into for _, into in moves}
    for source, into in moves:
        assert found.inserts[source] > 0
        assert not found.updates[[source, into]].any()
        assert not found.appends[[source, into]].any()
        assert found.partition[source] == found.partition[into]
        for group in found.group[[source, into]].tolist():
            assert group >= 0
            assert groups.base[group] > 0
            assert not groups.log_files[group] or kind == COW
    whole = found.expected_size - found.size - np.rint(found.inserts * rule.record_size.per_row)
    growth = np.zeros(len(groups) + 1, np.int64)
    growth[workload.group] = workload.growth
    changed = whole - growth[found.group] - found.is_new * rule.record_size.fixed
    assert changed.sum() == 0


def insert_batches(rule, batches, updates=()):
    """Insert batches of rows into an empty partition; yield its small files and bytes written.

    ``updates``: for each batch, numbers of the small files that it updates, too.
    """
    files, made = {}, 0
    for rows, updated in zip_longest(batches, updates, fillvalue=()):
        groups = make_groups({"p": files} if files else {})
        group = np.array(sorted(number for number in updated if number < len(files)), np.int64)
        workload = replace(
            make_insert_workload({"p": rows}),
            group=group,
            updates=np.ones_like(group),
            growth=np.zeros_like(group),
        )
        found = assign_rows(groups, workload, COW, rule)
        ids = groups.file_id.to_pylist()
        for at, size in zip(found.group.tolist(), found.expected_size.tolist(), strict=True):
            made += at < 0
            files[ids[at] if at >= 0 else f"f{made:06}"] = size
        assert max(files.values()) <= 1.15 * rule.sizes.target + 1
        files = {name: size for name, size in files.items() if size < rule.sizes.small}
        yield len(files), int(found.expected_size.sum())


#: bytes of rows in a full file of the laws about batches
FULL_FILE = 120_000


def tiered(fixed, free):
    return SteadyRule(
        sizes=FileSizeLimits(target=FULL_FILE, small=100_000),
        record_size=RecordSize(fixed=fixed, per_row=1.0, because=""),
        tiers=FileTiers(free_bytes=free),
    )


@LAW
@given(st.integers(60, 150_000), st.integers(0, 2_000), st.sampled_from([0, 1_000]))
def test_equal_batches_write_each_row_as_often_as_the_cube_root_of_their_number(rows, fixed, free):
    """And leave at most three small files; never more bytes than one file that takes each batch."""
    batches = [rows] * min(max(2 * FULL_FILE // rows, 10), examples(120, many=1_000))
    count, written = zip(*insert_batches(tiered(fixed, free), batches), strict=True)

    assert max(count) <= 3
    per_batch = sum(written) / len(batches)
    cheap = free / 2  # files of so few bytes are rewritten each time
    assert per_batch <= rows * ((6 * FULL_FILE / rows) ** (1 / 3) + 1) + 3 * fixed + cheap
    plain = [
        size
        for _, size in insert_batches(
            replace(tiered(fixed, free), tiers=None, rewrite_cap=None), batches
        )
    ]
    assert sum(written) <= 1.1 * sum(plain) + FULL_FILE


@LAW
@given(
    st.lists(
        st.tuples(st.integers(60, 150_000), st.sets(st.integers(0, 2), max_size=2)), max_size=40
    )
)
def test_upserts_leave_at_most_three_small_files(batches):
    rows, updates = [one for one, _ in batches], [one for _, one in batches]

    assert all(number <= 3 for number, _ in insert_batches(tiered(0, 0), rows, updates))


@LAW
@given(st.lists(st.integers(60, 150_000), max_size=40), st.integers(0, 2_000))
def test_batches_of_any_size_leave_at_most_three_small_files(batches, fixed):
    """They write no more than if all had the size of the smallest, and one file more."""
    count, written = [], []
    for number, size in insert_batches(tiered(fixed, 0), batches):
        count.append(number)
        written.append(size)

    assert max(count, default=0) <= 3
    if batches:
        often = (6 * FULL_FILE / min(batches)) ** (1 / 3) + 1
        assert sum(written) <= often * sum(batches) + 3 * fixed * len(batches) + 2 * FULL_FILE


keys = st.sets(st.text(min_size=1, max_size=12), min_size=1, max_size=300)


@st.composite
def routed(draw):
    """Draw distinct record keys, and buckets that take all of them."""
    some = sorted(draw(keys))
    ends = sorted(draw(st.sets(st.integers(1, len(some)))) | {len(some)})
    inserts = np.diff([0, *ends]).astype(np.int64)
    return pa.array(some, pa.string()), inserts


@LAW
@given(routed(), st.randoms())
def test_routing_keeps_all_rows_and_does_not_depend_on_their_order(case, random):
    column, inserts = case
    order = pa.array(random.sample(range(len(column)), len(column)), pa.int64())
    hashes = hash_record_keys(column)
    for made in (
        find_exact_boundaries(hashes, inserts),
        find_route_boundaries(count_hashes(hashes, 12), inserts),
    ):
        found = made.route(hashes)

        assert set(found.tolist()) <= set(range(len(inserts)))
        assert found[order.to_numpy()].tolist() == (
            made.route(hash_record_keys(column.take(order))).tolist()
        )
    assert inserts.tolist() == (
        np.bincount(
            find_exact_boundaries(hashes, inserts).route(hashes), minlength=len(inserts)
        ).tolist()
    )
    by_hash = route_by_md5(column, inserts)
    assert set(by_hash.tolist()) <= set(range(len(inserts)))
    assert by_hash[order.to_numpy()].tolist() == route_by_md5(column.take(order), inserts).tolist()


@LAW
@given(routed())
def test_histogram_boundaries_are_off_by_at_most_one_bin(case):
    column, inserts = case
    hashes = hash_record_keys(column)
    counts = count_hashes(hashes, 12)
    found = np.bincount(
        find_route_boundaries(counts, inserts).route(hashes), minlength=len(inserts)
    )

    assert np.abs(np.cumsum(found) - np.cumsum(inserts)).max() <= counts.max()


@LAW
@given(
    st.integers(1, 5),
    st.lists(st.one_of(st.integers(1, 400), st.sampled_from(["began", "completed"])), max_size=25),
)
def test_streams_keep_all_rows_and_tasks_share_no_file(tasks, steps):
    rule = SteadyRule(
        sizes=FileSizeLimits(target=120, small=100),
        record_size=RecordSize(fixed=10, per_row=1.0, because=""),
    )
    groups = make_groups({"p": {f"f{n}": 10 * n for n in range(1, 12)}})
    drawn = count()
    files = []
    for number in range(tasks):
        task = StreamTask(number=number, tasks=tasks)
        assigner, mine = StreamAssigner(rows_per_file=rows_per_new_file(rule)), set()
        for step in steps:
            if step == "began":
                assigner = assigner.start_checkpoint()
            elif step == "completed":
                assigner = assigner.complete_checkpoint()
            else:
                assigner, shares = assigner.assign_inserts(
                    "p",
                    step,
                    find_free_space=lambda task=task: list_free_space(groups, "p", COW, rule, task),
                    new_file_id=lambda task=task: task.first_owned(
                        f"new{next(drawn)}" for _ in count()
                    ),
                )
                assert step == sum(share.rows for share in shares)
                assert all(share.rows > 0 for share in shares)
                mine |= {share.file_id for share in shares}
        files += mine

    assert len(files) == len(set(files))
