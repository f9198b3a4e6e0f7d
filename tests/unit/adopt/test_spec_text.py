"""A first spec says what was seen, loads, and lets no text of the table's be more than text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.adopt.observed_retention import ObservedRetention, RetentionCandidate
from reconciler.adopt.observed_settings import ObservedClustering, ObservedLogs, ObservedSizes
from reconciler.adopt.spec_text import SKELETON, Findings, ProposedRetention, write_spec_text
from reconciler.spec.load import read_specs
from reconciler.spec.model import Policy, Retention
from tests.unit.planners import cow

BARE = Findings(
    name="sales.orders",
    path="/lake/orders",
    timezone=None,
    refused=None,
    retention=None,
    proposed=ProposedRetention(),
    clustering=None,
    sizes=None,
    offsets=(),
)
SEEN = ObservedRetention(
    policy="KEEP_LATEST_COMMITS",
    field="commits",
    findings=("The 2 cleans kept 2 to 3 commits.",),
    candidates=(RetentionCandidate(keep=3, because="The widest is declared."),),
)


def text(state=None, **found):
    return write_spec_text(state or cow.upserts(1), replace(BARE, **found))


def loaded(written: str, folder: Path):
    path = folder / "spec.yaml"
    path.write_text(written)
    found = read_specs([path])
    assert [] == [str(problem) for problem in found.problems]
    return found.tables[0]


def test_a_table_that_tells_nothing(tmp_path):
    written = text()

    assert loaded(written, tmp_path).retention is None
    assert written == (
        """\
# Written by `reconciler init` from the table at /t
# (COPY_ON_WRITE, table version 9). As it stands, its plan is empty.
# Its hoodie.table.name is "t".
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: "sales.orders"}
spec:
  path: "/lake/orders"
  # the timeline's zone is UTC, recorded by the table
  # No completed clean on the active timeline shows the retention, so none is declared. Declare one
  # of commits, hours, fileVersions:
  # retention:
  #   commits: ...
  #   hours: ...
  #   fileVersions: ...
  # concurrency:              # required by apply: how writers are kept apart
  #   lock: {provider: filesystem, path: .hoodie, expire: 0}
  #   # equal to the writers' hoodie.write.lock.filesystem.*; or {provider: none} if nothing
  #   # else writes to the table while apply runs
"""
    )


def test_a_retention_that_holds_is_declared_with_its_evidence(tmp_path):
    written = text(retention=SEEN, proposed=ProposedRetention(candidate=SEEN.candidates[0]))

    assert loaded(written, tmp_path).retention == Retention(policy=Policy.COMMITS, keep=3)
    assert (
        "  # The 2 cleans kept 2 to 3 commits. The widest is declared.\n  retention:\n" in written
    )


def test_a_retention_in_doubt_is_a_comment_that_becomes_one_by_uncommenting(tmp_path):
    doubt = ProposedRetention(
        candidate=SEEN.candidates[0], doubt="the next plan would remove 1 file"
    )
    written = text(retention=SEEN, proposed=doubt)
    decided = written.replace("  # retention:\n  #   commits", "  retention:\n    commits")

    assert loaded(written, tmp_path).retention is None
    assert "The widest is declared" not in written
    assert "  # If this was declared, the next plan would remove 1 file. So decide" in written
    assert loaded(decided, tmp_path).retention == Retention(policy=Policy.COMMITS, keep=3)


def test_a_number_that_cannot_be_told_is_asked_for(tmp_path):
    seen = ObservedRetention(
        policy="KEEP_LATEST_BY_HOURS", field="hours", findings=("A clean followed it.",)
    )
    written = text(retention=seen)

    assert loaded(written, tmp_path).retention is None
    assert "A clean followed it. See the writers' hoodie.clean.* settings." in written
    assert "  # retention:\n  #   hours: ...\n  # concurrency" in written


def test_clustering_and_sizes_are_said_and_never_declared(tmp_path):
    clustering = ObservedClustering(
        instant="20240101", columns=("a", "b"), curve=None, equal_plans=2, plans=3
    )
    written = text(
        clustering=clustering, sizes=ObservedSizes(files=1234, common_size=2**20, largest=2**21)
    )
    spec = loaded(written, tmp_path)

    assert (spec.clustering, spec.files) == (None, None)
    said = " ".join(written.replace("#", "").split())
    assert 'The clustering 20240101 sorts by ["a", "b"] (so do 2 of the 3 such plans on the' in said
    assert '  #   columns: ["a", "b"]\n  #   curve: ...   ' in written
    assert "Of the 1 234 base files in the newest slices 95 % are at most 1.0 MiB" in written


def test_a_clustering_that_records_its_layout_is_proposed_as_it_is():
    ours = ObservedClustering(
        instant="1", columns=("a",), curve="kd-tree", mapping="rank", equal_plans=1, plans=1
    )
    packed = replace(ours, columns=(), curve=None, mapping=None)

    assert '  #   columns: ["a"]\n  #   curve: kd-tree\n  #   mapping: rank\n' in text(
        clustering=ours
    )
    assert "not recorded" not in text(clustering=packed)
    assert "curve" not in text(clustering=packed)


def test_log_files_are_told_beside_a_compaction_that_is_not_declared(tmp_path):
    seen = ObservedLogs(slices=2, of_slices=3, files=7, bytes=2048, base_bytes=1024)
    written = text(logs=seen)

    assert loaded(written, tmp_path).compaction is None
    assert (
        "  # 7 log files of 2.0 KiB in 2 of 3 newest file slices wait for a compaction, beside base"
    ) in written
    assert "\n  # compaction:\n  #   afterDeltaCommits: ..." in written
    assert "compaction" not in text()


def test_an_unknown_zone_is_asked_for_and_a_given_one_written(tmp_path):
    state = cow.upserts(1, timezone=None)
    asked = text(state, offsets=(-18000, -14400))
    given = text(state, timezone="America/New_York", offsets=(-18000,))

    assert loaded(asked, tmp_path).timezone is None
    assert "(its files' times suggest UTC-05:00 and UTC-04:00)" in asked
    assert loaded(given, tmp_path).timezone == "America/New_York"
    assert "suggest" not in given


@pytest.mark.parametrize(
    "hostile", ["a\nspec: {suspend: true}", "\x1b[2J", "\u2028x", "'\"", "a: b # c", "\ufeff\u202e"]
)
def test_text_of_the_table_stays_text(hostile, tmp_path):
    seen = ObservedClustering(instant="1", columns=(hostile,), curve=None, equal_plans=1, plans=1)
    state = cow.upserts(1, table_name=hostile, location=f"/t/{hostile}")
    written = text(
        state, clustering=seen, refused=hostile, proposed=ProposedRetention(doubt=hostile)
    )
    spec = loaded(written, tmp_path)

    assert (spec.name, spec.suspend) == ("sales.orders", False)
    assert all(line.isprintable() for line in written.split("\n"))


def test_the_form_is_a_spec(tmp_path):
    assert loaded(SKELETON, tmp_path).name == "sales.orders"
