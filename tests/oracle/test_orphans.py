"""Real Hudi leaves orphan files, misses none that we remove, and reads some that we leave."""

from __future__ import annotations

import os
import time

import pytest

import reconciler
from reconciler import api
from reconciler.plans.model import OrphansStep
from tests.oracle import our_clean
from tests.oracle.hudi import COMPACT_METADATA, data_files, directory_listing, keep_commits
from tests.oracle.prepared_tables import (
    PLAIN,
    TableKind,
    assert_hudi_goes_on,
    assert_rows_and_listing,
)
from tests.selection import EVERY_CASE, long

pytestmark = pytest.mark.oracle
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  timezone: UTC
  orphans: {{olderThan: 3d}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""
#: every version, and both types; ``./ci/test --all`` takes all
USUAL = [
    TableKind(version="0.15.0"),
    TableKind(version="1.0.2", merge_on_read=True),
    TableKind(version="1.2.0", merge_on_read=True),
]
KINDS = [*USUAL, *(long(kind) for kind in PLAIN if kind not in USUAL)]


def make_spec(table):
    file = table.path.parent / "t.yaml"
    file.write_text(SPEC.format(path=table.path))
    (spec,) = reconciler.load_specs(file)
    return spec


def leave_orphans(hudi, table, rows):
    """Let a write of Hudi die before it completes, and Hudi roll it back without its markers.

    Returns its files, which are ten days old.
    """
    before = set(data_files(table.path))
    instant = hudi.write(table, rows)
    for name in table.instants():
        if name.startswith(instant) and name.partition(".")[2] in ("commit", "deltacommit"):
            (table.timeline / name).unlink()
            (table.timeline / f".{name}.crc").unlink(missing_ok=True)
    hudi.rollback(table, instant)
    left = sorted(set(data_files(table.path)) - before)
    for path in left:
        os.utime(table.path / path, (time.time() - 10 * 86400,) * 2)
    return left


def get_files(plan):
    (step,) = plan.tables[0].steps
    assert isinstance(step, OrphansStep)
    paths = zip(step.files.partition.to_pylist(), step.files.name.to_pylist(), strict=True)
    return [f"{partition}/{name}" for partition, name in paths]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_hudi_misses_no_file_that_no_write_knows(library, tmp_path, kind):
    hudi, table = library.table(kind, tmp_path / "t")
    rows = hudi.rows(table)
    # the log files of version 6 hold blocks of several writes, so they stay
    updates = [] if kind.version == "0.15.0" and kind.merge_on_read else [("a2", "a", 40)]
    left = leave_orphans(hudi, table, [("o1", "a", 40), *updates])
    spec = make_spec(table)
    plan = reconciler.plan(spec)

    assert left == get_files(plan)
    assert rows == hudi.rows(table)
    result = our_clean.apply_here(plan)
    assert (0, len(left)) == (result.exit_code, result.tables[0].removed)
    assert not set(left) & set(data_files(table.path))
    assert_rows_and_listing(hudi, table, rows)
    assert () == reconciler.plan(spec).tables[0].steps
    last = hudi.write(table, [("a1", "a", 45)])
    hudi.rollback(table, last)
    if EVERY_CASE or kind == USUAL[-1]:
        assert_hudi_goes_on(hudi, table, rows, merge_on_read=kind.merge_on_read)


@pytest.mark.parametrize(
    "kind", [USUAL[0], *(long(kind) for kind in PLAIN if kind != USUAL[0])], ids=str
)
def test_hudi_reads_an_orphan_once_its_timeline_begins_later_and_we_only_say_so(
    library, tmp_path, kind
):
    """Hudi cannot tell such rows from those of a write that it has archived."""
    hudi, table = library.table(kind, tmp_path / "t")
    before = hudi.rows(table)
    left = leave_orphans(hudi, table, [("o1", "a", 40)])
    for ts in range(60, 66):
        # the archiver goes no further than the last compaction of the metadata table
        hudi.write(table, [("b1", "b", ts)], options=COMPACT_METADATA)
        hudi.clean(table, keep_commits(1))
    hudi.archive(table)
    rows = hudi.rows(table)
    spec = make_spec(table)
    plan = reconciler.plan(spec)
    (status,) = api.status(spec)

    assert "o1" not in {row[0] for row in before}
    assert "o1" in {row[0] for row in rows}
    assert () == plan.tables[0].steps
    assert left == [f"{one.partition}/{one.name}" for one in status.orphans.listed]
    assert 0 == status.orphans.removable_files
    assert any("read it now" in note.because for note in plan.tables[0].warnings)
    assert directory_listing(table.path)
