"""``verify`` shows what differs to people, and writes ``schemas/verification.v1.json``."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

from reconciler.plans.model import Selection
from reconciler.render.terminal import Terminal
from reconciler.render.verification import verification_json, verification_text
from reconciler.state.metadata_differences import (
    MetadataDifference,
    MetadataVerification,
    PartitionCheck,
)
from reconciler.verification.table_verification import TableVerification

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "schemas/verification.v1.json").read_text())


def difference(number, **more):
    known = {
        "metadata_partition": "column_stats",
        "kind": "wrong",
        "partition": "p=1",
        "file": f"f{number}.parquet",
        "recorded": "1 to 2",
        "actual": "0 to 2",
        "effect": "readers lose rows",
    }
    return MetadataDifference(**{**known, **more})


def verification(differences, **more):
    check = PartitionCheck(
        metadata_partition="column_stats",
        unit="range",
        compared=9,
        differences=len(differences),
        **more,
    )
    return MetadataVerification(instant="1", checks=(check,), differences=tuple(differences))


DIFFERENT = TableVerification(
    name="t",
    path="/t",
    found=verification([difference(1, column="x"), difference(2, kind="missing", key="k")]),
)
FAILED = TableVerification(name="u", path="/u", error="no table", error_code=1)
EQUAL = TableVerification(name="v", path="/v", found=verification([], not_compared=("logs",)))


def document(tables, **more):
    known = {"created_at": "2026-11-26T00:00:00+00:00", "tool": "reconciler 1", "sample": 0.5}
    return json.loads(verification_json(tables, **known, **more))


def test_a_verification_fits_its_schema():
    selection = Selection(tables=3, total=4, by=("--name t",))

    jsonschema.validate(document([DIFFERENT, FAILED, EQUAL], selection=selection), SCHEMA)


def test_the_schema_names_every_field():
    (table, failed, _) = document([DIFFERENT, FAILED, EQUAL])["tables"]

    assert SCHEMA["$defs"]["table"]["properties"].keys() == table.keys()
    assert {"name", "path", "error"} == failed.keys()
    assert SCHEMA["$defs"]["check"]["properties"].keys() == table["checks"][0].keys()
    fields = {key for one in table["differences"] for key in one}
    assert SCHEMA["$defs"]["difference"]["properties"].keys() == fields


def test_tables_that_differ_come_first_and_like_differences_are_shown_together():
    text = verification_text([EQUAL, DIFFERENT, FAILED], Terminal())

    assert (
        """\
t  2 differences  /t
  ! column_stats  9 ranges compared, 2 differ
      1 missing: readers lose rows
        p=1/f2.parquet, key k: recorded: 1 to 2; actual: 0 to 2
      1 wrong: readers lose rows
        p=1/f1.parquet, column x: recorded: 1 to 2; actual: 0 to 2

u  error  /u
  ! error  no table

v  no differences  /v
  = column_stats  9 ranges compared
      not compared: logs

Verify: 3 tables: 1 not verified, 1 with differences, 1 without differences; 2
  differences
"""
        == text
    )


def test_many_differences_are_shortened_unless_all_are_wanted():
    table = TableVerification(
        name="t", path="/t", found=verification([difference(n) for n in range(20)])
    )

    short = verification_text([table], Terminal())
    full = verification_text([table], Terminal(), full=True)

    assert (5, 20) == (short.count("recorded:"), full.count("recorded:"))
    assert "… and 15 more differences; --full shows all" in short


def test_the_exit_code_is_that_of_the_table():
    assert [3, 1, 0] == [table.exit_code for table in (DIFFERENT, FAILED, EQUAL)]


def test_one_difference_and_a_damaged_file_read_well():
    damage = difference(1, partition="", recorded="is cut", actual="a damaged file")
    table = TableVerification(name="t", path="/t", found=verification([damage]))
    text = verification_text([table], Terminal())

    assert "9 ranges compared, 1 differs\n" in text
    assert ".hoodie/metadata/column_stats/f1.parquet: is cut\n" in text
    assert "actual" not in text


def test_a_table_without_metadata_table_has_nothing_to_compare():
    table = TableVerification(name="t", path="/t", found=MetadataVerification(instant="1"))

    assert "  = nothing to compare  the table has no metadata" in verification_text(
        [table], Terminal()
    )
