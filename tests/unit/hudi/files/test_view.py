"""Assign log files to slices and decide which slices are visible."""

from __future__ import annotations

import pytest

from reconciler.hudi.files.table_files import build_files
from reconciler.hudi.files.view import build_view, find_group_codes
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.instant import Action, Instant, State

T = [f"202401010{n}0000000" for n in range(10)]


def base(instant):
    return f"g_0-0-0_{instant}.parquet"


def log(instant, version=1):
    return f".g_{instant}.log.{version}_0-0-0"


def done(instant, action=Action.DELTACOMMIT, end=None):
    return Instant(instant, action, State.COMPLETED, end or f"{instant[:-1]}5")


def view_of(names, instants, *, version=9, compactions=None, replaced=None, v6=None):
    timeline = Timeline.from_files(TimelineFile(i, i.file_name, 1, 0) for i in instants)
    ended = {i.requested: i.completed for i in instants if i.completed}
    return build_view(
        build_files([("a", names, [1] * len(names))], ".parquet"),
        timeline,
        table_version=version,
        completions=ended if version >= 8 else v6 or {},
        compactions=compactions or {},
        replaced=replaced or {},
    )


def slices(view, row_slice=None):
    """Return key -> names of its files."""
    names = view.files.name.to_pylist()
    found = {view.times[key]: [] for key in view.key}
    for name, index in zip(names, view.row_slice if row_slice is None else row_slice, strict=True):
        found[view.times[view.key[index]]].append(name)
    return found


def visible(view):
    return [view.times[key] for key, seen in zip(view.key, view.is_visible, strict=True) if seen]


def test_version_6_logs_belong_to_the_base_in_their_name():
    view = view_of(
        [base(T[0]), log(T[0], 1), log(T[0], 2), base(T[3]), log(T[3])],
        [done(t) for t in T[:5]],
        version=6,
    )

    assert {T[0]: [log(T[0], 1), log(T[0], 2), base(T[0])], T[3]: [log(T[3]), base(T[3])]} == (
        slices(view)
    )
    assert view.row_slice_1x is None


def test_later_logs_belong_to_the_newest_slice_that_began_before_they_ended():
    overlapping = done(T[2], end=T[4])  # requested before the compaction, completed after it
    view = view_of(
        [base(T[0]), log(T[1]), log(T[2]), base(T[3]), log(T[5])],
        [
            done(T[0]),
            done(T[1]),
            overlapping,
            done(T[3], Action.COMMIT),
            done(T[5]),
        ],
    )

    assert {
        T[0]: [log(T[1]), base(T[0])],
        T[3]: [log(T[2]), log(T[5]), base(T[3])],
    } == slices(view)


def test_a_pending_log_belongs_to_the_newest_slice():
    view = view_of(
        [base(T[0]), log(T[1]), base(T[3])],
        [done(T[0]), Instant(T[1], Action.DELTACOMMIT, State.INFLIGHT), done(T[3], Action.COMMIT)],
    )

    assert {T[0]: [base(T[0])], T[3]: [log(T[1]), base(T[3])]} == slices(view)


def test_logs_without_a_base_make_one_slice():
    view = view_of([log(T[0]), log(T[1]), log(T[2])], [done(t) for t in T[:3]])

    assert {T[0]: [log(T[0]), log(T[1]), log(T[2])]} == slices(view)


def test_logs_that_ended_before_any_base_make_a_slice_of_their_own():
    view = view_of([log(T[0]), log(T[1]), base(T[3])], [done(t) for t in T[:4]])

    assert {T[0]: [log(T[0]), log(T[1])], T[3]: [base(T[3])]} == slices(view)


def test_an_archived_log_ended_when_it_began():
    view = view_of([base(T[0]), log(T[1]), base(T[2])], [done(T[5])])

    assert {T[0]: [log(T[1]), base(T[0])], T[2]: [base(T[2])]} == slices(view)


def test_a_pending_compaction_begins_a_slice_that_takes_the_later_logs():
    view = view_of(
        [base(T[0]), log(T[1]), log(T[4])],
        [
            done(T[0]),
            done(T[1]),
            Instant(T[3], Action.COMPACTION, State.REQUESTED),
            done(T[4]),
        ],
        compactions={("a", "g"): T[3]},
    )

    assert {T[0]: [log(T[1]), base(T[0])], T[3]: [log(T[4])]} == slices(view)
    assert [False, True] == view.is_phantom.tolist()
    assert [T[0], T[3]] == visible(view)
    assert [False, True] == view.is_newest.tolist()


def test_the_newest_slice_with_files_is_newest_beside_an_empty_phantom():
    view = view_of(
        [base(T[0])],
        [done(T[0]), Instant(T[3], Action.COMPACTION, State.REQUESTED)],
        compactions={("a", "g"): T[3]},
    )

    assert [True, True] == view.is_newest.tolist()


@pytest.mark.parametrize(
    ("instant", "is_visible"),
    [
        (T[0], True),  # older than the timeline: archived
        (T[2], True),
        (T[3], False),  # of no instant, in between
        (T[4], False),  # pending
        (T[6], False),  # of no instant, after the end
    ],
)
def test_only_completed_and_archived_writes_are_visible(instant, is_visible):
    instants = [done(T[2]), Instant(T[4], Action.COMMIT, State.INFLIGHT), done(T[5])]
    view = view_of([base(instant)], instants)

    assert [is_visible] == view.is_visible.tolist()


def test_without_a_completed_write_nothing_is_visible():
    view = view_of([base(T[0])], [Instant(T[4], Action.COMMIT, State.INFLIGHT)])

    assert [False] == view.is_visible.tolist()


def test_the_next_newer_slice_is_a_visible_one():
    instants = [done(T[0]), Instant(T[1], Action.COMMIT, State.INFLIGHT), done(T[2])]
    view = view_of([base(T[0]), base(T[1]), base(T[2])], instants)

    assert [T[2], T[2], None] == [
        view.times[code] if code < view.never_code else None for code in view.newer
    ]
    assert [1, 1, 0] == view.rank.tolist()


def test_hudi_1_reads_version_6_logs_by_completion_time():
    touched = dict.fromkeys((T[0], T[3]), T[9])  # the timeline was copied
    view = view_of(
        [base(T[0]), log(T[0]), base(T[3])],
        [done(T[0]), done(T[3], Action.COMMIT)],
        version=6,
        v6=touched,
    )

    assert {T[0]: [log(T[0]), base(T[0])], T[3]: [base(T[3])]} == slices(view)
    assert {T[0]: [base(T[0])], T[3]: [log(T[0]), base(T[3])]} == slices(view, view.row_slice_1x)


def test_replaced_groups_have_their_time():
    view = view_of(
        [base(T[0])], [done(T[0]), done(T[1], Action.REPLACECOMMIT)], replaced={("a", "g"): T[1]}
    )

    assert [T[1]] == [view.times[code] for code in view.replaced]
    assert [False] == view.is_live.tolist()


def test_groups_are_found_by_partition_and_file_id():
    files = build_files([("a", [base(T[0])], [1]), ("b", [base(T[0])], [1])], ".parquet")

    assert [1, -1, -1, 0] == find_group_codes(
        files, [("b", "g"), ("c", "g"), ("a", "h"), ("a", "g")]
    ).tolist()
    assert [-1] == find_group_codes(build_files([], ".parquet"), [("a", "g")]).tolist()
