"""Measuring the file groups of a file view for the assignment of rows."""

from __future__ import annotations

from reconciler.hudi.files.table_files import build_files
from reconciler.hudi.files.view import build_view
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.layout.sizing.file_group_sizes import measure_groups

T = [f"202401010{n}0000000" for n in range(10)]


def base(group, instant, size):
    return f"{group}_0-0-0_{instant}.parquet", size


def log(group, instant, size, version=1):
    return f".{group}_{instant}.log.{version}_0-0-0", size


def done(instant, action=Action.DELTACOMMIT):
    return Instant(instant, action, State.COMPLETED, f"{instant[:-1]}5")


def groups(folders, instants, **more):
    view, pending = view_of(folders, instants, **more)
    return measure_groups(view, **pending)


def view_of(folders, instants, *, replaced=None, compactions=None, **pending):
    timeline = Timeline.from_files(TimelineFile(i, i.file_name, 1, 0) for i in instants)
    triples = [
        (path, [name for name, _ in files], [size for _, size in files])
        for path, files in folders.items()
    ]
    view = build_view(
        build_files(triples, ".parquet"),
        timeline,
        table_version=9,
        completions={i.requested: i.completed for i in instants if i.completed},
        compactions=compactions or {},
        replaced=replaced or {},
    )
    return view, pending


def rows(found):
    return list(
        zip(
            found.partition.tolist(),
            found.file_id.to_pylist(),
            found.base.tolist(),
            found.logs.tolist(),
            found.log_files.tolist(),
            strict=True,
        )
    )


def test_newest_slice_includes_its_logs():
    found = groups(
        {"p": [base("a", T[0], 10), log("a", T[1], 3), base("a", T[2], 20), log("a", T[3], 5)]},
        [done(T[0]), done(T[1]), done(T[2], Action.COMMIT), done(T[3])],
    )

    assert [(0, "a", 20, 5, 1)] == rows(found)
    assert [T[2]] == [found.instants[code] for code in found.slice_start]


def test_slice_with_only_logs_has_no_base():
    found = groups({"p": [log("a", T[0], 3), log("a", T[1], 4)]}, [done(T[0]), done(T[1])])

    assert [(0, "a", -1, 7, 2)] == rows(found)


def test_slice_of_a_pending_compaction_includes_the_one_before():
    planned = Instant(T[2], Action.COMPACTION, State.REQUESTED)
    for later in ([], [log("a", T[3], 5)]):
        found = groups(
            {"p": [base("a", T[0], 10), log("a", T[1], 3), *later]},
            [done(T[0]), done(T[1]), planned, done(T[3])],
            compactions={("p", "a"): T[2]},
            compacting=[("p", "a")],
        )

        assert [(0, "a", 10, 8 if later else 3, 2 if later else 1)] == rows(found)
        assert [T[0]] == [found.instants[code] for code in found.slice_start]
        assert [True] == found.is_live.tolist() == found.is_compacting.tolist()


def test_uncommitted_and_replaced_groups_are_not_live():
    found = groups(
        {"p": [base("a", T[1], 1), base("b", T[1], 2), base("c", T[2], 3)]},
        [done(T[1]), Instant(T[2], Action.DELTACOMMIT, State.INFLIGHT)],
        replaced={("p", "b"): T[3]},
    )

    assert [True, False, False] == found.is_live.tolist()


def test_pending_services_are_matched_by_partition_and_file_id():
    found = groups(
        {"p": [base("a", T[0], 1), base("b", T[0], 2)], "q": [base("a", T[0], 3)]},
        [done(T[0])],
        compacting=[("q", "a"), ("q", "gone")],
        clustering=[("p", "b")],
    )

    assert [False, False, True] == found.is_compacting.tolist()
    assert [False, True, False] == found.is_clustering.tolist()


def test_groups_are_in_listing_order():
    found = groups(
        {"q": [base("b", T[0], 1), base("a", T[0], 2)], "p": [base("z", T[0], 3)], "r": []},
        [done(T[0])],
    )

    assert ["z", "a", "b"] == found.file_id.to_pylist()
    assert slice(1, 3) == found.partition_range("q")
    assert slice(3, 3) == found.partition_range("r")
    assert slice(0, 0) == found.partition_range("nowhere")


def test_an_empty_table_has_no_groups():

    assert 0 == len(groups({}, []))


def test_newest_base_name_of_each_group():
    folders = {
        "p": [base("b", T[0], 10), base("b", T[2], 20), base("b", T[9], 99), base("a", T[0], 7)],
        "q": [log("c", T[1], 3)],
    }
    instants = [done(T[n], Action.COMMIT) for n in range(3)]
    view, _ = view_of(folders, instants)

    found = measure_groups(view)
    names = dict(zip(found.file_id.to_pylist(), found.base_name.to_pylist(), strict=True))
    assert names == {"a": base("a", T[0], 7)[0], "b": base("b", T[2], 20)[0], "c": None}
