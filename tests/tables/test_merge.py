"""Compare the rows of real tables with those that Hudi reads."""

from __future__ import annotations

import json
import subprocess
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from reconciler.errors import UnsupportedError
from reconciler.file_slices.merge.avro_schema import add_meta_columns, to_arrow_schema
from reconciler.file_slices.merge.committed_blocks import CommittedInstants
from reconciler.file_slices.merge.rules import MergeRules
from reconciler.file_slices.merge.slice_reader import SliceFiles, SliceReadOptions, read_slice
from reconciler.hudi.load import load_properties, read_instant_file
from reconciler.hudi.timeline.commit import CommitMetadata
from reconciler.hudi.timeline.instant import COMMITS, Action
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from tests.file_slices import (
    keep_completed_slices,
    list_slice_files,
    list_slices,
    select_latest_slices,
    select_merged_slices,
)

TABLES = Path(__file__).parent
#: tables made for merging, with the rows that readers of several Hudi versions return
MERGING = TABLES / "merging"
MADE = [
    (path.name.removesuffix(".expected.json"), version)
    for path in sorted(MERGING.glob("*.expected.json"))
    for version in json.loads(path.read_text())["readers"]
]
ALL = sorted(path.name.removesuffix(".expected.json") for path in TABLES.glob("*.expected.json"))
READ = [table for table in ALL if table != "v8_mor_partial"]
#: tables where Hudi takes an empty partition value from the folder's name, as null
BY_FOLDER = {"v6_keygen": ("p", "q"), "v9_keygen": ("p", "q")}


class Table:
    """A table, opened as a reader opens one."""

    precombines = False

    def __init__(self, name, folder, tables=TABLES):
        subprocess.run(["unzip", "-qo", tables / f"{name}.zip", "-d", folder], check=True)
        self.storage = open_storage(str(folder / name))
        self.state = observe(self.storage, None, observed_ms=0)
        self.properties = load_properties(self.storage)
        self.view = self.state.view

    def schema(self):
        for entry in reversed(self.state.timeline.entries):
            if entry.instant.is_completed and entry.instant.action in COMMITS:
                data, _ = read_instant_file(self.storage, self.properties, entry)
                replaces = entry.instant.action is Action.REPLACECOMMIT
                found = CommitMetadata.parse(data, entry.name, replaces=replaces).extra
                if found.get("schema"):
                    schema = to_arrow_schema(found["schema"], entry.name)
                    stored = self.properties.raw.get("hoodie.populate.meta.fields") != "false"
                    return add_meta_columns(schema) if stored else schema
        raise AssertionError("no commit names a schema")

    def slices(self, *, optimised):
        for partition in self.state.partitions:
            every = list_slices(self.view, partition)
            version = self.state.table_version
            done = keep_completed_slices(every, self.state.timeline, table_version=version)
            if optimised:
                with_base = tuple(s for s in done if s.base)
                found = select_latest_slices(with_base)
            else:
                found = select_merged_slices(done)
            for one in found:
                path = f"{partition}/{one.base}".lstrip("/") if one.base else ""
                size = self.storage.stat(path).size if path else 0
                ref = list_slice_files(partition, one, size)
                yield SliceFiles(base=ref.base, base_size=size) if optimised else ref

    def rows(self, *, optimised=False):
        return self.read(self.slices(optimised=optimised))

    def read(self, slices):
        reading = SliceReadOptions(
            rules=MergeRules.from_properties(self.properties, precombines=self.precombines),
            schema=self.schema(),
            committed=CommittedInstants.from_timeline(
                self.state.timeline, table_version=self.state.table_version
            ),
        )
        found = []
        for files in slices:
            for batch in read_slice(files, reading, self.storage):
                assert batch.schema == reading.wanted.columns
                found += batch.to_pylist()
        return reading.schema.names, found


def by_key(rows):
    return sorted(rows, key=lambda row: [str(value) for value in row])


@pytest.mark.parametrize("name", READ)
def test_the_rows_are_those_that_hudi_reads(name, tmp_path):
    expected = json.loads((TABLES / f"{name}.expected.json").read_text())
    table = Table(name, tmp_path)

    for query in ("snapshot", "read_optimized"):
        answer = expected.get(query)
        if answer is None:
            continue
        names, rows = table.rows(optimised=query == "read_optimized")
        for row in rows:
            row.update({c: row[c] or None for c in BY_FOLDER.get(name, ())})
        assert set(answer["cols"]) == set(names)
        assert by_key(answer["rows"]) == by_key([[row[c] for c in answer["cols"]] for row in rows])


def test_a_partial_update_is_refused_by_name(tmp_path):
    table = Table("v8_mor_partial", tmp_path)

    with pytest.raises(UnsupportedError, match="partial update"):
        table.rows()


def test_a_bootstrap_skeleton_is_refused_by_name(tmp_path):
    table = Table("v6_bootstrap", tmp_path)
    (skeleton,) = [s for s in list_slices(table.view, "p=p0") if s.key == "00000000000001"]

    with pytest.raises(UnsupportedError, match="bootstrap skeleton"):
        table.read([list_slice_files("p=p0", skeleton, 1)])


def plain(value):
    """Return a value in the form of the recorded rows of Hudi."""
    match value:
        case bytes():
            return value.hex()
        case datetime():
            return str(value.replace(tzinfo=None))
        case date() | Decimal():
            return str(value)
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return value


@pytest.mark.parametrize(("name", "version"), MADE)
def test_records_merge_as_readers_of_each_version_merge_them(name, version, tmp_path):
    expected = json.loads((MERGING / f"{name}.expected.json").read_text())
    table = Table(name, tmp_path, MERGING)
    table.precombines = version.startswith("0.")
    names, rows = table.rows()
    for row in rows:
        if "m" in row:
            row["m"] = dict(row["m"])

    assert expected["cols"] == names
    found = [[plain(row[name]) for name in names] for row in rows]
    assert sorted(expected["readers"][version], key=str) == sorted(found, key=str)


def test_readers_of_two_versions_differ_on_some_tables():
    by_version = [
        json.loads(path.read_text())["readers"] for path in sorted(MERGING.glob("*.expected.json"))
    ]

    assert any(len({str(sorted(map(str, rows))) for rows in r.values()}) > 1 for r in by_version)
