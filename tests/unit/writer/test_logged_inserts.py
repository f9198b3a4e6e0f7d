"""Which writes tell what log files hold."""

from __future__ import annotations

import pytest

from reconciler.layout.sizing.file_group_sizes import measure_groups
from reconciler.writer.logged_inserts import count_telling_writes, has_archived_logs
from tests.unit.planners.cow import base, commit, log, table


def make_table(hours, names, **more):
    """Return a table and its file groups; ``hours``: of the active timeline's commits."""
    commits = [commit(hour) for hour in hours]
    state = table({"a": names}, commits, table_type="MERGE_ON_READ", **more)
    return state, measure_groups(state.view)


def test_without_log_files_the_newest_writes_tell():
    assert 20 == count_telling_writes(*make_table(range(24), [base("f", 1)]))


@pytest.mark.parametrize(("version", "expected"), [(6, 23), (9, 21)])
def test_all_writes_since_the_oldest_log_file_tell(version, expected):
    """Before version 8 a log file has the instant that began its slice."""
    names = [base("f", 1), log("f", 1) if version < 8 else log("f", 3)]

    assert expected == count_telling_writes(
        *make_table(range(24), names, table_version=version, layout=1 + (version >= 8))
    )


@pytest.mark.parametrize(
    ("version", "hours", "expected"),
    [(9, (3, 4), True), (9, (2, 3), False), (6, (3, 4), True), (6, (1, 2), False)],
)
def test_log_files_of_archived_writes_are_searched(version, hours, expected):
    names = [base("f", 1), log("f", 1 if version < 8 else 2)]

    assert expected == has_archived_logs(*make_table(hours, names, table_version=version))
