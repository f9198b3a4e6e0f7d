"""After an archival of ours real Hudi reads the same, and writes, cleans and archives on."""

from __future__ import annotations

import random
import shutil

import pytest

import reconciler
from reconciler.hudi.load import load_archived_instants, load_properties
from reconciler.spec.active_timeline import ActiveTimeline
from reconciler.spec.model import Policy, Retention, TableSpec
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from tests.archival_choice import list_kept_cleans, select_as_hudi
from tests.oracle import our_clean
from tests.oracle.hudi import COMPACT_METADATA, keep_commits
from tests.oracle.prepared_tables import (
    PLAIN,
    assert_hudi_goes_on,
    assert_rows_and_listing,
    assert_still_correct,
)
from tests.selection import EVERY_CASE, long

pytestmark = pytest.mark.oracle
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: "{path}"
  timezone: UTC
  timeline: {{keep: 2..3}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""


def archive_here(table):
    """Plan and apply an archival, and return the step and the result."""
    file = table.path.parent / "archival.yaml"
    file.write_text(SPEC.format(path=table.path))
    plan = reconciler.plan(reconciler.load_specs(file))
    (one,) = plan.tables
    (step,) = one.steps
    return step, our_clean.apply_here(plan)


#: every version, and both types
USUAL = (PLAIN[0], PLAIN[3], PLAIN[4])
KINDS = [kind if kind in USUAL else long(kind) for kind in PLAIN]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_hudi_goes_on_after_an_archival(library, tmp_path, kind):
    hudi, table = library.table(kind, tmp_path / "t")
    hudi.write(table, [("a1", "a", 7)], options=COMPACT_METADATA)
    hudi.write(table, [("b1", "b", 8)], options=COMPACT_METADATA)
    hudi.clean(table, keep_commits(1))
    rows = hudi.rows(table)
    step, result = archive_here(table)
    storage = open_storage(str(table.path))
    archived = load_archived_instants(storage, load_properties(storage))

    assert 0 == result.exit_code
    assert step.instants
    assert step.metadata_table
    assert {(one.instant, one.action) for one in step.instants} <= {
        (one.requested, one.action.value) for one in archived
    }
    assert_rows_and_listing(hudi, table, rows)
    if EVERY_CASE:
        assert_hudi_goes_on(hudi, table, rows, merge_on_read=kind.merge_on_read)
    else:
        hudi.write(table, [("a1", "a", 9)])
        hudi.archive(table)
        rows = [["a1", "a", 9, "v9", 9.0] if row[0] == "a1" else row for row in rows]
        assert_still_correct(hudi, table, rows)


def write_random_history(hudi, table, chance, *, merge_on_read):
    """Write, replace, cluster, compact and clean at random."""
    hudi.write(table, [(f"{p}{i}", p, 0) for p in "ab" for i in range(3)])
    steps = ["write"] * 6 + ["clean", "cluster", "overwrite"] + ["compact"] * merge_on_read
    for ts in range(1, 13):
        step = chance.choice(steps)
        if step == "write":
            hudi.write(table, [(f"a{chance.randrange(3)}", "a", ts)])
        elif step == "overwrite":
            hudi.write(table, [(f"b{chance.randrange(3)}", "b", ts)], "insert_overwrite")
        elif step == "clean":
            hudi.clean(table, keep_commits(chance.choice([1, 2, 3])))
        elif step == "cluster" and (instant := hudi.schedule(table, "CLUSTER")):
            hudi.cluster(table, instant)
        elif step == "compact" and (instant := hudi.schedule(table, "COMPACT")):
            hudi.compact(table, instant)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", PLAIN, ids=str)
def test_hudi_archives_the_same_instants_of_random_histories(real_hudi, tmp_path, kind, seed):
    hudi, mor = real_hudi(kind.version), kind.merge_on_read
    table = hudi.table(tmp_path / "t", merge_on_read=mor, options=COMPACT_METADATA)
    write_random_history(hudi, table, random.Random(f"{kind}{seed}"), merge_on_read=mor)

    for least, most, commits in [(2, 3, 1), (3, 5, 2), (4, 8, 3), (6, 7, 1)]:
        copy = table.at(tmp_path / f"{least}-{most}")
        shutil.copytree(table.path, copy.path, copy_function=shutil.copy2)
        spec = TableSpec(
            name="t", path=str(copy.path), timezone="UTC", timeline=ActiveTimeline(keep="2..3")
        )
        storage = open_storage(str(copy.path))
        state = observe(storage, spec, observed_ms=0)
        retention = Retention(policy=Policy.COMMITS, keep=commits)
        hudi.archive(
            copy,
            {
                "hoodie.keep.min.commits": least,
                "hoodie.keep.max.commits": most,
                **keep_commits(commits),
            },
        )
        after = observe(storage, spec, observed_ms=0)
        gone = _list_instants(state) - _list_instants(after)

        assert gone - list_kept_cleans(state) == select_as_hudi(state, least, most, retention)


def _list_instants(state):
    return {f"{one.requested}.{one.action}" for one in state.timeline.instants}
