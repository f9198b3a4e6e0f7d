"""A replacement that is pending while a clean runs, and Hudi's archiver afterwards."""

from __future__ import annotations

import os
import shutil
import time
from datetime import UTC

import pytest

from reconciler import runtime
from reconciler.transaction.instants import format_instant
from tests.oracle import our_clean
from tests.oracle.hudi import keep_commits, keep_versions

pytestmark = pytest.mark.oracle


def hide(table, folder):
    """Make the newest replacement pending again; where its completed file lies now."""
    (done,) = table.instants("replacecommit")
    shutil.move(table.timeline / done, folder / done)
    (table.timeline / f".{done}.crc").unlink(missing_ok=True)
    return folder / done


def complete(table, hidden):
    """Bring the completed file back as a writer would who ends only now."""
    started, layout_2, _ = hidden.stem.partition("_")
    now = format_instant(runtime.to_epoch_ms(runtime.now()), UTC)
    name = f"{started}_{now}.replacecommit" if layout_2 else hidden.name
    shutil.move(hidden, table.timeline / name)
    os.utime(table.timeline / name)


@pytest.mark.parametrize(
    ("retention", "policy"),
    [({"fileVersions": 1}, keep_versions(1)), ({"commits": 1}, keep_commits(1))],
    ids=["fileVersions", "commits"],
)
@pytest.mark.parametrize("version", ["0.15.0", "1.2.0"])
def test_what_it_replaces_stays_replaced(real_hudi, tmp_path, version, retention, policy):
    hudi = real_hudi(version)
    table = hudi.table(tmp_path / "t", options={"hoodie.metadata.enable": "false"})
    hudi.write(table, [("a1", "a", 1), ("b1", "b", 1)])
    for ts in (2, 3, 4):
        hudi.write(table, [("a1", "a", ts)])
    hudi.write(table, [("b9", "b", 4)], "insert_overwrite")
    rows = hudi.rows(table)
    hidden = hide(table, tmp_path)
    result = our_clean.clean(table, retention)
    complete(table, hidden)

    assert result.tables[0].removed > 0
    assert rows == hudi.rows(table)
    for ts in range(60, 64):  # one more than stay in the timeline
        hudi.write(table, [("a1", "a", ts)])
    hudi.archive(table, policy)
    rows = [["a1", "a", 63, "v63", 63.0], *rows[1:]]
    assert rows == hudi.rows(table)
    our_clean.clean(table, retention)
    assert rows == hudi.rows(table)


@pytest.mark.parametrize("version", ["0.15.0", "1.2.0"])
def test_what_it_replaces_stays_replaced_when_we_finish_a_clean_of_hudis(
    real_hudi, tmp_path, version
):
    hudi = real_hudi(version)
    table = hudi.table(tmp_path / "t", options={"hoodie.metadata.enable": "false"})
    hudi.write(table, [("a1", "a", 1), ("b1", "b", 1)])
    for ts in (2, 3, 4):
        hudi.write(table, [("a1", "a", ts)])
    hudi.write(table, [("b9", "b", 4)], "insert_overwrite")
    rows = hudi.rows(table)
    hidden = hide(table, tmp_path)
    assert hudi.schedule(table, "CLEAN", keep_versions(1))
    time.sleep(2)
    result = our_clean.apply_here(our_clean.make_plan(table, {"fileVersions": 1}, stale_after="1s"))
    complete(table, hidden)
    (outcome,) = result.tables[0].outcomes

    assert (outcome.kind, outcome.how) == ("resume", "completed")
    assert rows == hudi.rows(table)
    for ts in range(60, 64):  # one more than stay in the timeline
        hudi.write(table, [("a1", "a", ts)])
    hudi.archive(table, keep_versions(1))
    rows = [["a1", "a", 63, "v63", 63.0], *rows[1:]]
    assert rows == hudi.rows(table)
