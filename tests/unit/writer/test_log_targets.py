"""Names and numbers of the log files that a write appends, in a table as it is found."""

from __future__ import annotations

import pytest

from reconciler.file_slices.log_file.write_stat import AppendedSlice
from reconciler.hudi.files.table_files import build_files
from reconciler.hudi.files.view import build_view
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.layout.sizing.file_group_sizes import measure_groups
from reconciler.writer.log_targets import LogTargets

WRITTEN = ("20260101000000000", "20260102000000000", "20260103000000000")
NOW = "20260109000000000"
COMPACTION = "20260104000000000"
BASE = f"f-0_0-1-1_{WRITTEN[0]}.parquet"


def find(names, version, *, is_compacting=False):
    """Return the target of group f-0 in a table with these files."""
    instants = [Instant(time, Action.DELTACOMMIT, State.COMPLETED) for time in WRITTEN]
    if is_compacting:
        instants.append(Instant(COMPACTION, Action.COMPACTION, State.REQUESTED))
    timeline = Timeline.from_files(TimelineFile(i, i.file_name, 1, 0) for i in instants)
    view = build_view(
        build_files([("p", names, [10] * len(names))], ".parquet"),
        timeline,
        table_version=version,
        completions={} if version < 8 else {time: time for time in WRITTEN},
        compactions={("p", "f-0"): COMPACTION} if is_compacting else {},
        replaced={},
    )
    targets = LogTargets(view=view, groups=measure_groups(view), table_version=version)
    return targets.find([0], NOW)[0]


def log(number, instant=WRITTEN[0], suffix=""):
    return f".f-0_{instant}.log.{number}_0-1-{number}{suffix}"


def test_before_version_8_log_files_are_numbered_in_their_slice():
    target = find([BASE, log(1), log(2)], 6)

    assert log(3) == target.make_name("0-1-3")
    assert AppendedSlice(start=WRITTEN[0], base_name=BASE, logs=(log(1), log(2))) == target.appended
    assert target.base_instant is None


def test_change_data_counts_in_the_numbers_but_not_in_the_slice():
    target = find([BASE, log(4, suffix=".cdc")], 6)

    assert (5, ()) == (target.version, target.appended.logs)


def test_before_version_8_updates_beside_a_pending_compaction_go_to_its_slice():
    target = find([BASE, log(1)], 6, is_compacting=True)

    assert log(1, COMPACTION) == target.make_name("0-1-1")
    assert AppendedSlice(start=COMPACTION) == target.appended


def test_the_first_log_file_of_a_new_slice_is_number_one_whatever_the_old_one_has():
    newer = f"f-0_0-1-1_{WRITTEN[2]}.parquet"
    target = find([BASE, log(1), newer], 6)

    assert log(1, WRITTEN[2]) == target.make_name("0-1-1")
    assert newer == target.appended.base_name


@pytest.mark.parametrize("is_compacting", [False, True])
def test_from_version_8_on_a_log_file_has_the_instant_of_its_write(is_compacting):
    target = find([BASE, log(1, WRITTEN[1])], 9, is_compacting=is_compacting)

    assert log(1, NOW) == target.make_name("0-1-1")
    assert AppendedSlice(start=NOW) == target.appended
    assert WRITTEN[0] == target.base_instant
