"""Work of writers on the timeline that contradicts the spec."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reconciler.hudi.timeline.instant import Action
from reconciler.layout.sizing.record_size import PastWrite
from reconciler.spec.model import (
    Clustering,
    FileSizes,
    IndexColumns,
    Policy,
    Retention,
    TableSpec,
)
from reconciler.state.clustering_facts import ClusteringFacts
from reconciler.state.clustering_layout import ClusteringLayout, PastClustering
from reconciler.state.extra_metadata import PLAN_DIGEST
from reconciler.state.model import CompletedClean, TableState
from reconciler.state.observe import observe
from reconciler.status.index import IndexStatus
from reconciler.status.writers import writers_status
from reconciler.storage.open import open_storage
from tests.command import run
from tests.plain_tables import INSTANT, add_commit, make_orders, write_table

#: bytes; the files below are between them
TINY, HUGE = 1_000, 100_000
LATER = [f"202601{day:02d}000000000" for day in range(2, 16)]
BARE = TableSpec(name="orders", path="/lake/orders")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Three small files in each of two partitions by the first commit, one a commit from then."""
    root = tmp_path_factory.mktemp("writers") / "orders"
    write_table(root, {"p=1": make_orders(300, 3), "p=2": make_orders(300, 3)}, by="p")
    for instant in LATER:
        add_commit(root, {"p=1": make_orders(100, 1)}, instant)
    return root


@pytest.fixture(scope="module")
def state(folder) -> TableState:
    return observe(open_storage(str(folder)), None, observed_ms=0)


def written(instant: str = INSTANT, operation: str | None = "INSERT", *, is_ours: bool = False):
    nothing = np.zeros(0, np.int64)
    return PastWrite(
        instant=instant,
        action=Action.COMMIT,
        rows=nothing,
        bytes=nothing,
        is_base=nothing.astype(np.bool_),
        operation=operation,
        is_ours=is_ours,
    )


def facts(spec: TableSpec, state: TableState, *writes: PastWrite, **more):
    found = writers_status(spec, state, writes, **more)
    return [(note.rule, note.because) for note in found]


def sized(*, target: int = HUGE, small: int = TINY) -> TableSpec:
    return replace(BARE, files=FileSizes(target=target, small=small))


# files


def test_files_as_declared_are_no_fact(state):
    assert [] == facts(sized(), state, written())


def test_files_far_above_the_target_name_their_writers(state):
    [(rule, because)] = facts(sized(target=TINY, small=1), state, written(operation="UPSERT"))

    assert "writersFiles" == rule
    assert because.startswith(
        "6 of the newest base files written by upsert are far above files.target"
    )
    assert "hoodie.parquet.max.file.size" in because


def test_files_a_little_above_the_target_are_no_fact(state):
    greatest = int(state.files.size.max())

    assert [] == facts(sized(target=greatest * 2 // 3 + 1, small=1), state, written())
    assert facts(sized(target=greatest * 2 // 3 - 1, small=1), state, written())


def test_small_files_that_inserts_left_in_one_partition_are_a_fact(state):
    [(rule, because)] = facts(sized(small=HUGE), state, written())

    assert "writersFiles" == rule
    assert because.startswith(
        "6 of the newest base files below files.small (100kB) in 2 partitions"
    )
    assert "written by insert" in because
    assert "hoodie.parquet.small.file.limit" in because


def test_small_files_of_a_bulk_insert_are_distinguished_from_those_of_inserts(state):
    [(_, because)] = facts(sized(small=HUGE), state, written(operation="BULK_INSERT"))

    assert "written by bulk_insert, which never fills files" in because
    assert "hoodie.parquet.small.file.limit" not in because


def test_inserts_into_merge_on_read_tables_may_leave_small_files(state):
    """Of files with log files none is filled, and of the others one a write (UpsertPartitioner)."""
    other = replace(state, table_type="MERGE_ON_READ")

    assert [] == facts(sized(small=HUGE), other, written())
    assert facts(sized(small=HUGE), other, written(operation="BULK_INSERT"))


def test_one_or_two_small_files_in_a_partition_are_no_fact(state):
    assert [] == facts(sized(small=HUGE), state, *(written(i) for i in LATER[:2]))
    assert facts(sized(small=HUGE), state, *(written(i) for i in LATER[:3]))


def test_our_own_files_and_those_of_unknown_writes_are_no_fact_about_writers(state):
    assert [] == facts(sized(small=HUGE), state, written(is_ours=True))
    assert [] == facts(sized(small=HUGE), state, written("20250101000000000"))
    assert [] == facts(sized(small=HUGE), state)


def test_replaced_files_are_no_fact(state):
    """Only files that a snapshot reads count."""
    gone = {
        (state.files.partitions[state.files.group_partition[nth]], file_id): LATER[-1]
        for nth, file_id in enumerate(state.files.group_id.to_pylist())
    }

    assert [] == facts(sized(small=HUGE), replace(state, replaced=gone), written())


def test_without_files_or_clustering_in_the_spec_files_are_not_checked(state):
    assert [] == facts(BARE, state, written())
    clustering = replace(BARE, clustering=Clustering(columns=("id",)))
    assert "writersFiles" in dict(facts(clustering, state, written()))


# cleans


def clean(start: str, at: str = LATER[-1], *, policy: Policy = Policy.COMMITS, ours: bool = False):
    return CompletedClean(
        instant=f"{at[:-1]}1",
        is_blank=False,
        policy=policy.value,
        earliest_instant_to_retain=start,
        last_completed_commit=at,
        savepointed=(),
        removed={},
        extra={PLAN_DIGEST: "sha256:1"} if ours else {},
    )


def cleaned(state: TableState, *cleans: CompletedClean) -> TableState:
    return replace(state, cleans=cleans)


def retaining(policy: Policy, keep: int) -> TableSpec:
    return replace(BARE, retention=Retention(policy=policy, keep=keep))


def test_a_clean_that_kept_fewer_commits_is_a_fact(state):
    found = facts(retaining(Policy.COMMITS, 5), cleaned(state, clean(LATER[-4])))

    assert [("writersClean", found[0][1])] == found
    assert "kept 4 commits instead of 5" in found[0][1]


@pytest.mark.parametrize("keep", [1, 4])
def test_a_clean_that_kept_as_much_or_more_is_none(state, keep):
    assert [] == facts(retaining(Policy.COMMITS, keep), cleaned(state, clean(LATER[-4])))


def test_a_clean_by_another_policy_is_a_fact(state):
    versions = clean("", policy=Policy.FILE_VERSIONS)
    [(_, because)] = facts(retaining(Policy.HOURS, 5), cleaned(state, versions))

    assert "used KEEP_LATEST_FILE_VERSIONS instead of KEEP_LATEST_BY_HOURS" in because


@pytest.mark.parametrize(
    ("hours", "is_fact"),
    [(24 * 3, False), (24 * 4, False), (24 * 4 + 1, False), (24 * 4 + 2, True), (1000, True)],
)
def test_hours_are_those_of_the_last_removed_commit(state, hours, is_fact):
    """Four days and no more lie between it and the clean; a change of clocks may hide an hour."""
    by_hours = clean(LATER[-4], policy=Policy.HOURS)
    found = facts(retaining(Policy.HOURS, hours), cleaned(state, by_hours))

    assert is_fact == bool(found)
    if found:
        assert f"removed commit {LATER[-5]} at an age of 4d" in found[0][1]


def test_a_boundary_that_is_archived_proves_nothing(state):
    assert [] == facts(retaining(Policy.COMMITS, 50), cleaned(state, clean("20250101000000000")))


def test_our_cleans_and_empty_ones_are_no_fact(state):
    ours, blank = clean(LATER[-1], ours=True), replace(clean(LATER[-1]), is_blank=True)

    assert [] == facts(retaining(Policy.COMMITS, 5), cleaned(state, ours, blank))


def test_an_old_clean_is_no_evidence_about_todays_writers(state):
    narrow = retaining(Policy.COMMITS, 50)

    assert facts(narrow, cleaned(state, clean(LATER[0], LATER[-10])))
    assert [] == facts(narrow, cleaned(state, clean(LATER[0], LATER[-11])))


# clusterings and indexes


def clustered(
    state: TableState, layout: ClusteringLayout | None, *, ours: bool = False
) -> TableState:
    past = PastClustering(
        instant=LATER[-1], layout=layout, extra={PLAN_DIGEST: "sha256:1"} if ours else {}
    )
    rows = np.zeros(len(state.files), np.int64)
    evidence = ClusteringFacts(
        written=(), clusterings=(past,), footers=None, bounds=None, rows=rows
    )
    return replace(state, clustering_facts=evidence)


@pytest.mark.parametrize(
    ("layout", "ours", "said"),
    [
        (
            ClusteringLayout(columns=("b", "a")),
            False,
            "ordered rows by b, a, but clustering.columns are a, b",
        ),
        (ClusteringLayout(), False, "ordered rows by no column"),
        (ClusteringLayout(columns=("a", "b")), False, None),
        (ClusteringLayout(columns=("b",)), True, None),
        (None, False, None),
    ],
)
def test_a_clustering_of_a_writer_by_other_columns_is_a_fact(state, layout, ours, said):
    spec = replace(BARE, clustering=Clustering(columns=("a", "b")))
    found = dict(facts(spec, clustered(state, layout, ours=ours)))

    assert (said or "") in found.get("writersClustering", "")
    assert (said is None) == ("writersClustering" not in found)


def test_an_index_of_hudi_that_lacks_a_declared_column_is_a_fact(state):
    spec = replace(BARE, index=IndexColumns(columns=("a", "b"), hudi="build"))

    assert [] == facts(spec, state)
    [(rule, because)] = facts(spec, state, missed_by_hudi=("a",))
    assert "writersIndex" == rule
    assert because.startswith("Hudi's column_stats lacks a:")


@pytest.mark.parametrize(
    ("has", "missed"),
    [(None, ()), ((), ("a", "b")), (("b", "c"), ("a",)), (("b", "a"), ())],
)
def test_only_columns_that_a_live_index_of_hudi_can_have_are_missing_there(has, missed):
    """That a column is none of the table's, or of no type to index, is said by the plan."""
    index = IndexStatus(declared=("a", "b", "tags"), unindexable=("tags",), hudi_columns=has)

    assert missed == index.missed_by_hudi


# the command

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: orders}}
spec:
  path: orders
  timezone: UTC
{block}
"""


def said_of(folder: Path, tmp_path: Path, block: str, capsys) -> tuple[str, list[str]]:
    """The text of a status, and the rules of its document."""
    (tmp_path / "orders").symlink_to(folder)
    (tmp_path / "orders.yaml").write_text(SPEC.format(block=block))
    now = ("--now", "2026-02-01T00:00:00+00:00")
    assert 0 == run("status", tmp_path, *now)
    text = " ".join(capsys.readouterr().out.split())
    assert 0 == run("status", tmp_path, *now, "--format", "json")
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    return text, [note["rule"] for note in table["writers"]]


@pytest.mark.parametrize(
    ("more", "files"),
    [
        ("", "20 of the newest base files below files.small (90kB) in 2 partitions"),
        (
            "\n  clustering: {columns: [customer], when: always}",
            "20 of the newest base files below files.small (90kB) in 2 partitions",
        ),
    ],
)
def test_status_shows_the_fact_and_still_exits_with_0(folder, tmp_path, capsys, more, files):
    block = "  files: {target: 100kB, small: 90kB}" + more
    text, rules = said_of(folder, tmp_path, block, capsys)

    assert ["writersFiles"] == rules
    assert f"! writers {files} written by insert" in text


def test_status_shows_no_writers_if_the_spec_declares_nothing_for_them(folder, tmp_path, capsys):
    text, rules = said_of(folder, tmp_path, "  retention: {commits: 3}", capsys)

    assert [] == rules
    assert "! writers" not in text


def test_a_write_that_cannot_be_read_is_no_fact_and_no_error(folder, tmp_path, capsys):
    import shutil  # noqa: PLC0415

    copy = shutil.copytree(folder, tmp_path / "copy" / "orders")
    (copy / ".hoodie" / f"{LATER[-1]}.commit").write_text("{")
    text, rules = said_of(copy, tmp_path, "  files: {target: 100kB, small: 90kB}", capsys)

    assert [] == rules
    assert "error" not in text


def test_lint_warns_at_the_field_and_exits_with_0(folder, tmp_path, monkeypatch, capsys):
    (tmp_path / "orders").symlink_to(folder)
    (tmp_path / "orders.yaml").write_text(
        SPEC.format(block="  files: {target: 100kB, small: 90kB}")
    )
    monkeypatch.chdir(tmp_path)

    assert 0 == run("lint", "orders.yaml", "--tables")
    said = capsys.readouterr()
    assert said.out == "1 table, 1 warning about recent writes\n"
    warning = "orders.yaml:7:1: warning: spec.files: 20 of the newest base files below files.small"
    assert any(line.startswith(warning) for line in said.err.splitlines()), said.err

    assert 0 == run("lint", "orders.yaml")
    assert capsys.readouterr().out == "1 table, no problems\n"


def test_lint_of_an_unreadable_table_exits_with_1(tmp_path, monkeypatch, capsys):
    (tmp_path / "orders.yaml").write_text(SPEC.format(block="  retention: {commits: 3}"))
    monkeypatch.chdir(tmp_path)

    assert 1 == run("lint", "orders.yaml", "--tables")
    said = capsys.readouterr()
    assert said.out == "1 table, no warnings about recent writes, 1 table not read\n"
    assert "orders: error: " in said.err
    assert "no Hudi table here" in said.err


def test_a_warning_is_at_the_spec_where_a_default_declares_the_field(folder, tmp_path, capsys):
    (tmp_path / "orders").symlink_to(folder)
    (tmp_path / "orders.yaml").write_text(SPEC.format(block=""))
    (tmp_path / "defaults.yaml").write_text(
        "apiVersion: reconciler/v1\nkind: TableDefaults\nmetadata: {name: all}\n"
        "spec:\n  files:\n    target: 100kB\n    small: 90kB\n"
    )

    assert 0 == run("lint", tmp_path, "--tables")
    assert "defaults.yaml:6:1: warning: spec.files: " in capsys.readouterr().err
