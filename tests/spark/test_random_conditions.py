"""Random conditions on tables that real Hudi wrote: what is left out holds no row that matches.

``READS_ASKED=300`` asks so many of each table instead of a few, ``READS_SEED=2`` others.
"""

from __future__ import annotations

import os
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest

import reconciler
from reconciler.index.model import indexed_type, list_indexable_fields
from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.reader.slice_rows import SliceRowReader, get_slice_files
from reconciler.storage.open import open_storage
from tests.published_indexes import publish_index
from tests.selection import long, rounds
from tests.spark.frames import PYSPARK, by_text
from tests.spark.test_skipping import lost
from tests.trees import unpack

TABLES = Path(__file__).parents[1] / "tables"
#: each table version, both table types, and all types of columns
NAMES = ("v6_cow_part", "v8_mor_part", "v9_cow_part", "reading/every_type_0.15.0",
         "reading/every_type_1.2.0")  # fmt: skip
OTHERS = ("v6_lazy_mor_tls", "v8_lazy_cow_tls", "v9_mor_part")
ASKED = rounds("READS_ASKED", few=5, many=100)
SEED = os.environ.get("READS_SEED", "1")
#: of these so many are read in whole, with skipping and without
READ = max(3, ASKED // 20)
SIGNS = ("=", "!=", "<", "<=", ">", ">=", "<=>")
pytestmark = PYSPARK


class Conditions:
    """Conditions on columns of a table by values that it holds, and their neighbours."""

    def __init__(self, chance: Random, values: dict[str, list]) -> None:
        self.chance, self.values = chance, values

    def made(self, depth: int) -> str:
        if not depth:
            return self.leaf()
        word = self.chance.choice(("AND", "OR", "AND", "OR", "NOT"))
        if word == "NOT":
            return f"NOT ({self.made(depth - 1)})"
        return f" {word} ".join(f"({self.made(depth - 1)})" for _ in range(2))

    def leaf(self) -> str:
        column = self.chance.choice(list(self.values))
        one, other = (self.literal(column) for _ in range(2))
        text = one.startswith("'") and self.chance.randrange(3) == 0
        forms = (
            f"{column} {self.chance.choice(SIGNS)} {one}",
            f"{one} {self.chance.choice(SIGNS)} {column}",
            f"{column} BETWEEN {one} AND {other}",
            f"{column} {self.chance.choice(('', 'NOT '))}IN ({one}, {other})",
            f"{column} IS {self.chance.choice(('', 'NOT '))}NULL",
        )
        if text:
            prefix = one[1:-1][:2].strip("\\'")
            return f"{column} {self.chance.choice(('', 'NOT '))}LIKE '{prefix}%'"
        return self.chance.choice((*forms[:2], *forms))

    def literal(self, column: str) -> str:
        value = self.chance.choice(self.values[column])
        match value:
            case bool() | Decimal():
                return f"{value}BD" if isinstance(value, Decimal) else str(value)
            case int():
                return str(value + self.chance.choice((0, 0, 0, 1, -1)))
            case float():
                return f"cast('{value}' as double)"
            case datetime():
                kind, zone = ("TIMESTAMP", "Z") if value.tzinfo else ("TIMESTAMP_NTZ", "")
                return f"{kind} '{value:%Y-%m-%d %H:%M:%S.%f}{zone}'"
            case date():
                return f"DATE '{value}'"
            case _:
                return "'" + str(value)[:200].replace("\\", "\\\\").replace("'", "\\'") + "'"


def rows_of(path):
    """All rows of a table, through Python, and its columns."""
    storage = open_storage(str(path))
    scan = open_scan(storage, ReadRequest())
    reading = SliceRowReader.from_scan(scan)
    return scan.schema, [
        row
        for nth, partition in enumerate(scan.slices.column("partition").to_pylist())
        for batch in reading.read(
            get_slice_files(scan, nth), scan.get_partition_values(partition), storage
        )
        for row in batch.to_pylist()
    ]


def value_at(row, name):
    for part in name.split("."):
        row = None if row is None else row[part]
    return row


def values_of(schema, rows):
    """By column that can be asked for, with dots into structs, the values that it has."""
    names = [
        name
        for field in schema
        for name in (
            [field.name]
            if indexed_type(field.type)
            else list_indexable_fields(field.name, field.type)
        )
    ]
    found = {name: [value_at(row, name) for row in rows] for name in names}
    kept = {n: [v for v in values if v is not None] for n, values in found.items()}
    return {name: values for name, values in kept.items() if values and not _is_binary(values)}


def _is_binary(values):
    return isinstance(values[0], bytes)


@pytest.mark.parametrize("name", [*NAMES, *map(long, OTHERS)])
def test_no_row_for_which_a_random_condition_is_true_is_left_out(name, spark, tmp_path):
    unpack(TABLES / f"{name}.zip", tmp_path)
    path = min(tmp_path.rglob("hoodie.properties"), key=lambda found: len(found.parts)).parents[1]
    schema, rows = rows_of(path)
    values = values_of(schema, rows)
    publish_index(path, [one for one in values if schema.get_field_index(one.split(".")[0]) >= 0])
    chance = Random(f"{name} {SEED}")
    asking = Conditions(chance, values)
    left_out = 0
    for _ in range(10):  # a few conditions may each match a row of every file
        if left_out:
            break
        asked = list(dict.fromkeys(asking.made(chance.choice((0, 1, 1, 2))) for _ in range(ASKED)))
        found, left_out = lost(spark, path, asked)
        assert {} == {where: ids for where, ids in found.items() if ids}

    assert left_out
    for where in asked[:READ]:
        few, every = (
            [list(row) for row in reconciler.read(spark, path, where, skipping=skips).collect()]
            for skips in (True, False)
        )
        # as text: NaN is not equal to itself
        assert [*map(repr, by_text(every))] == [*map(repr, by_text(few))], where
