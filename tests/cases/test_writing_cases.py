"""What real Hudi made of rows and schemas, and what we make of them; see ``writing/make.py``."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

from reconciler.errors import ReconcilerError, RowsError, UnsupportedError
from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.merge.avro_schema import to_arrow_schema
from reconciler.file_slices.merge.schema_evolution import evolve_batch
from reconciler.writer.declared_schema import make_avro_schema
from reconciler.writer.dedupe import DedupeRule, choose_rows
from reconciler.writer.key_text import format_column
from reconciler.writer.partition_paths import PartitionRule, make_partition_paths
from reconciler.writer.record_keys import KeyRule, make_record_keys
from reconciler.writer.schema_evolution import SchemaEvolution
from tests.cases.writing import inputs
from tests.cases.writing.batches import BATCHES
from tests.cases.writing.declared import CHANGES, TABLES, example

FOLDER = Path(__file__).parent / "writing"
VERSIONS = {"0.15.0": 6, "1.0.2": 8, "1.2.0": 9}
#: of no one spelling among Hudi's own writers
REFUSED = {"k_bin"}
#: floating-point numbers that versions of Java spell differently
JAVA_DIFFERS = {
    "k_float": {"1.0E7", "9.999E-4", "1.4E-45"},
    "k_double": {"9.999E-4", "1.0E21", "1.0E-7"},
}


@cache
def golden(version: str, section: str):
    return json.loads((FOLDER / f"{version}.json").read_text()).get(section, {})


def asked(section: str) -> list[tuple[str, str]]:
    """Version and case of all that real Hudi was asked."""
    return [(version, case) for version in VERSIONS for case in golden(version, section)]


def one_by_one(make, batch: pa.RecordBatch):
    """What each row alone becomes, None where it is refused."""
    found = []
    for at in range(len(batch)):
        try:
            found += make(batch.slice(at, 1)).to_pylist()
        except RowsError:
            found.append(None)
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_values_are_spelled_as_hudi_spells_them(version):
    batch = inputs.texts().to_batches()[0]
    for name, expected in golden(version, "texts").items():
        if name in REFUSED:
            with pytest.raises(UnsupportedError, match=name):
                format_column(batch, name)
            continue
        found = one_by_one(lambda row, name=name: format_column(row, name), batch)
        pairs = zip(expected, found, strict=True)
        refused = {theirs for theirs, ours in pairs if ours is None}
        assert refused == JAVA_DIFFERS.get(name, set()), name
        assert [theirs for theirs in expected if theirs not in refused] == [f for f in found if f]


def leads_elsewhere(path):
    """Whether it is no folder below the table, or one by which Hudi cannot open the table."""
    outermost, *below = path.split("/")
    return ":" in outermost or bool({outermost, *below} & {"", ".", ".."})


@pytest.mark.parametrize("version", VERSIONS)
def test_partition_paths_are_those_of_hudi(version):
    batch = inputs.folders().to_batches()[0]
    asked = 0
    for name, expected in golden(version, "folders").items():
        if name == "typed":
            continue
        fields, hive, encoded = name.split(" ")
        rule = PartitionRule(
            fields=tuple(fields.split(",")),
            is_hive=hive == "hive=true",
            is_encoded=encoded == "encoded=true",
        )
        found = one_by_one(lambda rows, rule=rule: make_partition_paths(rows, rule), batch)
        assert [theirs if ours is not None else None
                for ours, theirs in zip(found, expected, strict=True)] == found, name  # fmt: skip
        unsafe = [path for path, ours in zip(expected, found, strict=True) if ours is None]
        assert all(leads_elsewhere(path) for path in unsafe), unsafe
        kept = [i for i, ours in enumerate(found) if ours is not None]
        together = make_partition_paths(batch.take(kept), rule).to_pylist()
        assert [found[i] for i in kept] == together
        asked += len(kept)
    assert asked > 300


@pytest.mark.parametrize("version", VERSIONS)
def test_partition_paths_of_several_types_are_those_of_hudi(version):
    rule = PartitionRule(fields=("k_date", "k_double", "k_bool"), is_hive=True)
    batch = inputs.texts().to_batches()[0]
    found = one_by_one(lambda row: make_partition_paths(row, rule), batch)

    expected = golden(version, "folders")["typed"]
    assert [path for path in found if path] == [
        path for path, ours in zip(expected, found, strict=True) if ours
    ]
    assert 12 <= len([path for path in found if path])


KEYS = {
    "Simple a": {"fields": ("a",)},
    "Nonpartitioned a": {"fields": ("a",)},
    "Complex a,b": {"fields": ("a", "b"), "is_named": True},
    "Nonpartitioned a,b": {"fields": ("a", "b"), "is_named": True},
}


@pytest.mark.parametrize("version", VERSIONS)
def test_keys_are_those_of_hudi_and_refused_where_it_refuses_them(version):
    batch = inputs.empties().to_batches()[0]
    alone = {"fields": ("a",), "is_named": VERSIONS[version] >= 9}
    for name, rule in {**KEYS, "Complex a": alone}.items():
        found = one_by_one(lambda row, rule=rule: make_record_keys(row, KeyRule(**rule)), batch)
        expected = [
            key if isinstance(key, str) else None for key in golden(version, "empties")[name]
        ]
        assert expected == found, name


@pytest.mark.parametrize(
    ("section", "cases"), [("schemas", TABLES), ("batches", BATCHES), ("changes", CHANGES)]
)
def test_the_newest_hudi_was_asked_for_every_case(section, cases):
    assert set(cases) <= set(golden("1.2.0", section))


@pytest.mark.parametrize(("version", "case"), asked("schemas"))
def test_schemas_are_declared_as_hudi_declares_them(version, case):
    name, schema = TABLES[case]
    expected = golden(version, "schemas")[case]
    if isinstance(expected, dict):
        with pytest.raises(ReconcilerError):
            make_avro_schema(schema, name, table_version=VERSIONS[version])
        return
    found = make_avro_schema(schema, name, table_version=VERSIONS[version])

    assert expected == found
    assert FileSchema.from_avro(expected, case) == FileSchema.from_avro(found, case)


@pytest.mark.parametrize(("version", "case"), asked("batches"))
def test_the_row_that_hudi_keeps_of_a_key_is_kept(version, case):
    batch = BATCHES[case]
    expected = golden(version, "batches")[case]
    rows = batch.table.to_batches()[0]
    marker = ("op", "D") if "hoodie.payload.delete.field" in batch.options else None
    ordering = batch.ordering
    if version < "1.0":
        ordering = ordering or ("ts",)  # its own default
    elif batch.mode == "commit":
        ordering = ()
    if batch.mode == "commit" and version < "1.1":
        marker = None
    rule = DedupeRule(ordering=ordering, is_global=batch.is_global, delete_marker=marker)
    paths = rows.column("p").dictionary_encode()
    if batch.operation == "insert" and not batch.options:
        assert len(rows) == len(expected)  # nothing is combined unless it is asked for
        return
    if len(ordering) > 1 and version < "1.1":
        return  # it takes both names for one
    if isinstance(expected, dict) and not ordering:
        return  # Hudi 1.0 asks for event times that it does not look at
    # Hudi 1.2 takes such a row as long as it is the only one of its key
    if isinstance(expected, dict) or (case == "a null alone" and ordering):
        with pytest.raises(RowsError, match="ordering column"):
            choose_rows(rows, rows.column("id"), paths, rule)
        return
    found = choose_rows(rows, rows.column("id"), paths, rule)
    left = rows.take(pa.array(found.rows[~found.is_deletion])).select(["id", "p", "n"])

    assert expected == sorted(list(row.values()) for row in left.to_pylist())


#: what Hudi takes, or one of its versions, and we refuse: values would become others
NOT_TAKEN = {
    "date to int",
    "int to date",
    "timestamp to long",
    "float to string",
    "double to string",
    "string to double",
    "decimal to string",
    "long to timestamp",
}


@pytest.mark.parametrize(("version", "case"), asked("changes"))
def test_the_schema_after_a_write_is_that_of_hudi(version, case):
    expected = golden(version, "changes")[case]
    name, _, filled = case.partition(", null")
    table, rows = CHANGES[name]
    before = make_avro_schema(table, "t", table_version=9)

    def evolve():
        return SchemaEvolution.from_schemas(
            before,
            rows,
            table_name="t",
            table_version=VERSIONS[version],
            fills_missing=bool(filled),
        )

    if "refused" in expected or name in NOT_TAKEN:
        with pytest.raises(RowsError, match="do not fit the schema of table t"):
            evolve()
        return
    found = evolve()
    if version < "1.0":  # columns in the order of the rows
        assert by_name(json.loads(expected["schema"])) == by_name(json.loads(found.avro))
    else:
        assert expected["schema"] == found.avro
    brought = pa.RecordBatch.from_pylist([example(rows, "b")], rows)
    (row,) = found.convert_batch(brought).to_pylist()
    old = evolve_batch(pa.RecordBatch.from_pylist([example(table, "a")], table), found.columns, "x")
    assert set(row) == set(old.schema.names) == {f.name for f in found.columns}


def by_name(schema):
    """A schema with the fields of every record in the order of their names."""
    match schema:
        case list():
            return [by_name(one) for one in schema]
        case {"fields": fields}:
            return {**schema, "fields": sorted(map(by_name, fields), key=lambda one: one["name"])}
        case dict():
            return {key: by_name(value) for key, value in schema.items()}
        case _:
            return schema


def test_what_is_declared_is_read_back():
    name, schema = TABLES["nested"]
    found = to_arrow_schema(make_avro_schema(schema, name, table_version=9), "x")

    assert spelled(schema) == spelled(found)


def spelled(schema: pa.Schema) -> list[str]:
    return [str(field).replace("item: ", "element: ") for field in schema]
