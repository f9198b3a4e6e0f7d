"""Tables that real Hudi made, cleaned by us, in the hands of real Hudi again."""

from __future__ import annotations

import re

import pytest

import reconciler
from tests.oracle import our_clean
from tests.oracle.hudi import data_files, directory_listing, keep_commits, keep_versions
from tests.oracle.prepared_tables import (
    KINDS,
    PLAIN,
    TableKind,
    assert_hudi_goes_on,
    assert_rows_and_listing,
    copy_table,
)
from tests.selection import EVERY_CASE, cover_pairs, long

pytestmark = pytest.mark.oracle
#: after whose clean Hudi does everything: each version, and each type, index and partitioning
#: once; test_partial_clean goes on with PLAIN
WHOLE = {"0.15.0-mor-indexes", "1.0.2-cow-nopart", "1.2.0-cow-indexes"}
OLDER = [kind for kind in PLAIN if kind.version != "1.2.0"]


def completed_cleans(table):
    return [name for name in table.instants(".clean") if re.fullmatch(r"[\d_]+\.clean", name)]


@pytest.mark.parametrize(
    "kind", cover_pairs([(kind,) for kind in KINDS], TableKind.list_values), ids=str
)
def test_after_our_clean_real_hudi_reads_the_same_rows_and_goes_on(library, tmp_path, kind):
    hudi, table = library.table(kind, tmp_path / "t")
    rows = hudi.rows(table)
    before = data_files(table.path)
    plan = our_clean.make_plan(table, {"commits": 1})
    planned = our_clean.list_names(our_clean.get_step(plan))
    result = our_clean.apply_here(plan)
    after = data_files(table.path)

    assert 0 == result.exit_code
    assert len(planned) > 2
    assert set(before) - set(after) == {f"{p}/{n}".lstrip("/") for p, n in planned}
    assert 1 == len(completed_cleans(table))
    assert () == our_clean.make_plan(table, {"commits": 1}).tables[0].steps
    assert_rows_and_listing(hudi, table, rows)
    if str(kind) in WHOLE or EVERY_CASE:
        assert_hudi_goes_on(hudi, table, rows, merge_on_read=kind.merge_on_read)


@pytest.mark.parametrize(
    ("kind", "retention", "policy"),
    cover_pairs(
        [
            *((kind, {"commits": 2}, keep_commits(2)) for kind in KINDS),
            *((kind, {"fileVersions": 1}, keep_versions(1)) for kind in PLAIN),
        ],
        lambda kind, retention, _: (*kind.list_values(), *retention),
    ),
    ids=lambda value: str(value) if isinstance(value, TableKind) else "-".join(value)[:12],
)
def test_we_and_real_hudi_keep_the_same_files(library, tmp_path, kind, retention, policy):
    hudi, table = library.table(kind, tmp_path / "t")
    copy_table(table.path, tmp_path / "hudis")
    theirs = table.at(tmp_path / "hudis")
    cleaned = hudi.clean(theirs, policy)
    our_clean.clean(table, retention)

    assert cleaned is not None
    assert cleaned["deleted"] > 0
    assert directory_listing(theirs.path) == directory_listing(table.path)
    assert hudi.rows(theirs) == hudi.rows(table, metadata=True)
    assert hudi.listing(theirs) == hudi.listing(table)
    assert None is hudi.clean(table, policy)


@pytest.mark.parametrize(
    "kind", [k if k.merge_on_read == (k.version < "1") else long(k) for k in OLDER], ids=str
)
def test_a_newer_hudi_reads_and_upgrades_what_we_cleaned(library, real_hudi, tmp_path, kind):
    hudi, table = library.table(kind, tmp_path / "t")
    rows = hudi.rows(table)
    our_clean.clean(table, {"commits": 1})
    newer = real_hudi("1.2.0")

    assert rows == newer.rows(table) == newer.rows(table, metadata=True)
    newer.write(table, [("a1", "a", 50)])
    upgraded = [["a1", "a", 50, "v50", 50.0] if row[0] == "a1" else row for row in rows]
    assert_rows_and_listing(newer, table, upgraded)


@pytest.mark.spark
@pytest.mark.parametrize("kind", [TableKind(version="1.2.0", indexes=True)], ids=str)
def test_the_same_through_spark_and_the_public_api(library, spark, tmp_path, kind):
    hudi, table = library.table(kind, tmp_path / "t")
    rows = hudi.rows(table)
    plan = our_clean.make_plan(table, {"commits": 1})
    result = reconciler.apply(plan, spark=spark)

    assert 0 == result.exit_code
    assert len(our_clean.list_names(our_clean.get_step(plan))) == result.tables[0].removed
    assert_rows_and_listing(hudi, table, rows)
    if EVERY_CASE:
        assert_hudi_goes_on(hudi, table, rows, merge_on_read=kind.merge_on_read)
