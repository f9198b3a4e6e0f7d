from __future__ import annotations

import pytest

from reconciler.errors import BusyError, UnsupportedError
from reconciler.hudi.metadata.sync_decisions import (
    MAX_RECORDS,
    NewFilesFacts,
    SyncEffect,
    decide_compaction_sync,
    decide_rewrite_sync,
    decide_sync,
    decide_write_sync,
)
from reconciler.hudi.timeline.instant import Action

EVERYTHING = ("bloom_filters", "column_stats", "files", "partition_stats", "record_index")
SYNC, LEAVE, DROP = SyncEffect.SYNC, SyncEffect.LEAVE, SyncEffect.DROP


def decisions(live=EVERYTHING, *, rows=1, version=9, action=Action.CLUSTERING, **obstacles):
    facts = NewFilesFacts(table_version=version, rows=rows, obstacles=obstacles)
    return {name: v.effect for name, v in decide_sync(action, live, (), facts).items()}


@pytest.mark.parametrize("action", [Action.CLUSTERING, Action.REPLACECOMMIT])
def test_a_rewrite_syncs_everything_except_partition_stats(action):
    assert {
        "bloom_filters": SYNC,
        "column_stats": SYNC,
        "files": SYNC,
        "partition_stats": LEAVE,
        "record_index": SYNC,
    } == decisions(action=action)


def test_partition_stats_are_dropped_with_column_stats():
    verdicts = decide_sync(
        Action.CLUSTERING,
        EVERYTHING,
        (),
        NewFilesFacts(table_version=9, rows=1, obstacles={"column_stats": "x is unknown"}),
    )

    assert (DROP, "x is unknown") == (
        verdicts["column_stats"].effect,
        verdicts["column_stats"].because,
    )
    assert (DROP, "it is computed from column_stats, which is dropped: x is unknown") == (
        verdicts["partition_stats"].effect,
        verdicts["partition_stats"].because,
    )
    assert {"bloom_filters", "files", "record_index"} == {
        name for name, verdict in verdicts.items() if verdict.effect is SYNC
    }


def test_partition_stats_without_column_stats_are_dropped():
    # the next write would recompute them from statistics that the new files lack
    assert {"files": SYNC, "partition_stats": DROP} == decisions(("files", "partition_stats"))


@pytest.mark.parametrize("name", ["bloom_filters", "record_index"])
def test_only_the_partition_with_an_obstacle_is_dropped(name):
    found = decisions(**{name: "why"})

    assert [name] == [one for one, decision in found.items() if decision is DROP]


def test_the_record_index_is_dropped_above_the_row_limit():
    assert SYNC is decisions(rows=MAX_RECORDS)["record_index"]
    assert DROP is decisions(rows=MAX_RECORDS + 1)["record_index"]


def test_the_planner_knows_drops_before_a_file_is_written():
    verdicts = decide_rewrite_sync(EVERYTHING, table_version=9, rows=5_000_000)

    assert "5000000 rows move, more than the 4000000 that are written" == (
        verdicts["record_index"].because
    )
    assert {"record_index"} == {n for n, v in verdicts.items() if v.effect is DROP}


def test_without_a_metadata_table_there_are_no_decisions():
    assert {} == decide_rewrite_sync((), table_version=7, rows=1)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("expr_index_day", "has the expression index day, which would miss the rows"),
        ("vector_index_v", "partition 'vector_index_v' is unknown"),
    ],
)
def test_an_index_that_no_writer_rebuilds_stops_the_rewrite(name, message):
    with pytest.raises(UnsupportedError, match=message) as problem:
        decide_rewrite_sync(("files", name), table_version=9, rows=1)

    assert "let Hudi cluster the table" in str(problem.value)


def test_a_secondary_index_is_left_where_the_record_index_locates_the_rows():
    found = decisions((*EVERYTHING, "secondary_index_n"))

    assert LEAVE is found["secondary_index_n"]
    assert SYNC is found["record_index"]


@pytest.mark.parametrize(
    ("live", "rows", "obstacles", "reason"),
    [
        (("files",), 1, {}, "by the record index, but the table has none"),
        (EVERYTHING, 1, {"record_index": "no keys"}, "this would be dropped, because no keys"),
        (EVERYTHING, MAX_RECORDS + 1, {}, "would be dropped, because 4000001 rows move"),
    ],
)
def test_a_secondary_index_stops_a_rewrite_that_the_record_index_does_not_follow(
    live, rows, obstacles, reason
):
    live = (*live, "secondary_index_n")
    with pytest.raises(UnsupportedError, match=f"has the secondary index n, .*{reason}") as problem:
        decisions(live, rows=rows, **obstacles)

    assert "rewrite fewer rows at once (files.budget, clustering.budget)" in str(problem.value)


def test_a_metadata_table_of_an_unknown_version_stops_the_rewrite():
    with pytest.raises(UnsupportedError, match="of table version 7 is not supported"):
        decide_rewrite_sync(EVERYTHING, table_version=7, rows=1)


def test_a_rewrite_waits_for_an_index_build():
    with pytest.raises(BusyError, match="record_index are being built"):
        decide_rewrite_sync(("files",), table_version=9, rows=1, inflight=["record_index"])


def test_a_write_syncs_everything_with_partition_stats():
    verdicts = decide_write_sync(EVERYTHING, table_version=9)

    assert dict.fromkeys(EVERYTHING, SYNC) == {n: v.effect for n, v in verdicts.items()}


@pytest.mark.parametrize(
    ("obstacles", "dropped"),
    [
        ({"partition_stats": "why"}, {"partition_stats": "why"}),
        (
            {"column_stats": "x", "partition_stats": "why"},
            {
                "column_stats": "x",
                "partition_stats": "it is computed from column_stats, which is dropped: x",
            },
        ),
    ],
)
def test_partition_stats_with_an_obstacle_are_dropped_by_a_write(obstacles, dropped):
    facts = NewFilesFacts(table_version=9, rows=1, obstacles=obstacles, adds_values=True)
    verdicts = decide_sync(Action.COMMIT, EVERYTHING, (), facts)

    assert dropped == {n: v.because for n, v in verdicts.items() if v.effect is DROP}


def test_a_write_stops_at_an_index_that_no_writer_rebuilds():
    with pytest.raises(UnsupportedError, match=r"secondary index i, .*let Hudi write the rows"):
        decide_write_sync(("files", "secondary_index_i"), table_version=9)
    with pytest.raises(UnsupportedError, match="a write cannot update it; let Hudi write"):
        decide_write_sync(("files", "vector_index_v"), table_version=9)


def test_other_actions_are_refused():
    with pytest.raises(UnsupportedError, match="after a restore"):
        decisions(action=Action.RESTORE)


def test_a_compaction_leaves_indexes_of_keys_as_they_are():
    live = (*EVERYTHING, "secondary_index_x")
    verdicts = decide_compaction_sync(live, table_version=9)

    assert {
        "bloom_filters": SYNC,
        "column_stats": SYNC,
        "files": SYNC,
        "partition_stats": LEAVE,
        "record_index": LEAVE,
        "secondary_index_x": LEAVE,
    } == {name: verdict.effect for name, verdict in verdicts.items()}


def test_a_compaction_is_refused_for_an_index_that_would_miss_its_files():
    with pytest.raises(UnsupportedError, match=r"expression index x.*let Hudi compact the table"):
        decide_compaction_sync(("files", "expr_index_x"), table_version=9)
