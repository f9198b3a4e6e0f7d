"""Files that were damaged after they were committed: what is lost of them is not made final."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.hudi.load import load_properties
from reconciler.transaction.recovery.damaged_files import explain_lost_files, find_cut_logs
from tests.crash.clustering_drill import make_clustering_drill

TABLES = Path(__file__).parents[1] / "tables"


def shortened(path, size):
    whole = path.read_bytes()
    path.write_bytes(whole[:-size])
    return whole, (
        f"its log file {path.name} has {len(whole) - size} bytes, and its writer says "
        f"{len(whole)}: it is damaged, restore it from a copy"
    )


def test_a_log_file_that_was_cut_off_is_named_and_its_group_stays(tmp_path):
    it = make_clustering_drill(TABLES / "v9_mor_part.zip", tmp_path / "t")
    before = it.copy(tmp_path / "whole")
    plan = it.plan()
    (log,) = it.table.rglob(".e6c3a2d0-*.log.1_0-536-816")
    _, said = shortened(log, 50)

    cut = it.apply(plan).tables[0].outcomes[0].rewritten
    whole = before.apply(before.plan()).tables[0].outcomes[0].rewritten

    assert said in [left.because for left in cut.left]
    assert (cut.groups, len(cut.left)) == (whole.groups - 1, len(whole.left) + 1)


def test_the_log_files_of_version_6_are_compared_with_every_write(tmp_path):
    it = make_clustering_drill(TABLES / "v6_lazy_mor_tls.zip", tmp_path / "t")
    (step,) = it.plan().tables[0].steps
    (first,) = it.table.rglob(".d5140d99-*.log.1_*")
    (second,) = it.table.rglob(".cbb82d13-*.log.2_*")
    _, said = shortened(first, 1)
    second.write_bytes(second.read_bytes() + b"more")

    found = find_cut_logs(it.storage, load_properties(it.storage), it.state(), step.groups)

    assert {(first.parent.relative_to(it.table).as_posix().strip("."), first.name): said} == found


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("clustering/orders", "*_20261121210336964.parquet"),  # newer than others of their groups
        ("v9_mor_part", ".e6c3a2d0-*.log.1_0-536-816"),
    ],
)
def test_a_group_of_which_a_committed_file_is_gone_stays_as_it_is(name, pattern, tmp_path):
    it = make_clustering_drill(TABLES / f"{name}.zip", tmp_path / "t")
    before = it.copy(tmp_path / "whole")
    gone = min(it.table.rglob(pattern))
    gone.unlink()
    found = it.apply(it.plan()).tables[0].outcomes[0].rewritten
    whole = before.apply(before.plan()).tables[0].outcomes[0].rewritten
    (left,) = [one for one in found.left if gone.name in one.because]

    assert left.because == (
        f"its file {gone.name} is gone, which a completed write made: restore it from a copy, or "
        "roll that write back with Hudi"
    )
    assert (found.groups, len(found.left)) == (whole.groups - 1, len(whole.left) + 1)


def test_what_went_away_after_the_review_is_no_newer_file_slice(tmp_path):
    it = make_clustering_drill(TABLES / "clustering/orders.zip", tmp_path / "t")
    plan = it.plan()
    gone = min(it.table.rglob("*_20261121210336964.parquet"))
    gone.unlink()
    (left,) = it.apply(plan).tables[0].outcomes[0].rewritten.left

    assert left.because.startswith(f"its file {gone.name} is gone, which a completed write made")


def test_log_files_of_version_6_are_missed_by_the_slice_that_they_are_of(tmp_path):
    it = make_clustering_drill(TABLES / "v6_lazy_mor_tls.zip", tmp_path / "t")
    (gone,) = it.table.rglob(".d5140d99-*.log.1_*")
    gone.unlink()
    (step,) = it.plan().tables[0].steps
    found = explain_lost_files(it.storage, load_properties(it.storage), it.state(), step.groups)

    folder = gone.parent.relative_to(it.table).as_posix().strip(".")
    assert [(folder, gone.name[1:].partition("_")[0])] == list(found)
