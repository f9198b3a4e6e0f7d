"""How files are grouped before their entries are looked for."""

from __future__ import annotations

import numpy as np

from reconciler.hudi.files.table_files import build_files
from reconciler.hudi.files.view import build_view
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.layout.sizing.file_group_sizes import measure_groups
from reconciler.state.current_files import find_newest_bases, group_by_partition

FOLDERS = [
    ("a", ["2_0-0-0_1.parquet"], [1]),
    ("b", ["1_0-0-0_1.parquet", "3_0-0-0_1.parquet"], [1, 1]),
]


def test_files_come_by_partition():
    files = build_files(FOLDERS, ".parquet")

    found = list(group_by_partition(files, np.arange(3)))

    assert [(path, names) for path, names, _ in FOLDERS] == found


def test_no_files_have_no_partitions():
    files = build_files(FOLDERS, ".parquet")

    assert [] == list(group_by_partition(files, np.zeros(0, np.int64)))


def test_readers_do_not_open_what_a_pending_compaction_has_written():
    instants = [
        Instant("1", Action.DELTACOMMIT, State.COMPLETED, "2"),
        Instant("3", Action.COMPACTION, State.INFLIGHT),
    ]
    view = build_view(
        build_files([("a", ["g_0-0-0_1.parquet", "g_0-0-0_3.parquet"], [5, 7])], ".parquet"),
        Timeline.from_files(TimelineFile(one, one.file_name, 1, 0) for one in instants),
        table_version=9,
        completions={"1": "2"},
        compactions={("a", "g"): "3"},
        replaced={},
    )

    assert ["g_0-0-0_1.parquet"] == view.files.name.take(find_newest_bases(view)).to_pylist()
    assert ["g_0-0-0_1.parquet"] == measure_groups(view).base_name.to_pylist()
