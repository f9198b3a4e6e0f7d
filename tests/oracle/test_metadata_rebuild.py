"""Metadata partitions that reconciler builds anew are those that real Hudi builds anew."""

from __future__ import annotations

import re
import shutil

import pytest

from reconciler.hudi.codecs import hfile_reader
from reconciler.hudi.codecs.avro_binary import decode_record, parse_schema
from tests.command import run
from tests.metadata_lies import MetadataLiar
from tests.oracle.hudi import INDEXES, SMALL_FILTERS, directory_listing, keep_commits
from tests.oracle.test_metadata_verification import verify
from tests.selection import long

pytestmark = pytest.mark.oracle
#: with the default numbers of file groups
OPTIONS = {**INDEXES, **SMALL_FILTERS}
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  timezone: UTC
  metadata: {{verify: each-apply, repair: rebuild}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""
BASE = re.compile(r"(?P<group>.*)_\d+-\d+-\d+_(?P<instant>\d+)\.hfile")


def write_history(hudi, table):
    """Write, update and delete rows in three partitions, and clean old files."""
    hudi.write(table, [(f"{p}{n}", p, 1) for p in "abc" for n in range(4)], options=OPTIONS)
    hudi.write(table, [("a1", "a", 2), ("b1", "b", 2), ("d1", "d", 2)], options=OPTIONS)
    hudi.write(table, [("a2", "a", 3)], "delete", options=OPTIONS)
    hudi.clean(table, {**keep_commits(1), **OPTIONS})
    hudi.write(table, [("a3", "a", 4), ("c1", "c", 4)], options=OPTIONS)


def remove_metadata_table(table):
    """Remove the metadata table as if Hudi had never made it."""
    shutil.rmtree(table.path / ".hoodie/metadata")
    file = table.path / ".hoodie/hoodie.properties"
    text = re.sub(r"(?m)^(hoodie.table.metadata.partitions)=.*$", r"\1=", file.read_text())
    file.write_text(text)
    (table.path / ".hoodie/.hoodie.properties.crc").unlink(missing_ok=True)


def read_first_records(table):
    """Return the records of the first base files: (file group, instant, key) -> record."""
    found = {}
    first = {}
    for path in sorted((table.path / ".hoodie/metadata").glob("*/*.hfile")):
        match = BASE.fullmatch(path.name)
        first.setdefault(match["group"], (match["instant"], path))
    for group, (instant, path) in first.items():
        file = hfile_reader.parse_hfile(path.read_bytes(), path.name)
        schema = parse_schema(file.read_schema(), path.name)
        for key, value in file.scan_all():
            record = decode_record(value, schema, path.name)
            record["_hoodie_file_name"] = None  # 0.15 writes the name of the HFile itself
            found[group, instant, key.decode()] = record
    return found


def is_comparable(record, with_logs):
    """Return whether a record has no ranges of log files, which reconciler does not read."""
    stats = record["ColumnStatsMetadata"]
    return not stats or not (stats["fileName"].startswith(".") or stats["fileName"] in with_logs)


def list_groups(table):
    """Return the file groups of each metadata partition, with the instants of their first files."""
    names = {}
    for path in (table.path / ".hoodie/metadata").glob("*/.*.log.1_0-0-0"):
        group, instant = re.fullmatch(r"\.(.*)_(\d+)\.log\.1_0-0-0", path.name).groups()
        names.setdefault(path.parent.name, set()).add((group, instant))
    return names


def rebuild(table, tmp_path):
    """Make the listing wrong, and let an apply build the metadata table anew."""
    liar = MetadataLiar(table.path)
    base = max(table.path.glob("a/*.parquet"))
    liar.list_file("a", base.name.replace("-0_", "-9_", 1), 10)
    spec = tmp_path / f"{table.path.name}.yaml"
    spec.write_text(SPEC.format(path=table.path))
    assert 0 == run("plan", spec, "-o", tmp_path / "plan.json")
    assert 0 == run("apply", tmp_path / "plan.json")
    assert 0 == run("verify", spec)


@pytest.mark.parametrize(
    ("version", "merge_on_read"),
    [
        ("1.2.0", True),
        long("0.15.0", False),
        long("0.15.0", True),
        long("1.0.2", False),
        long("1.0.2", True),
        long("1.2.0", False),
    ],
)
def test_a_rebuilt_metadata_table_has_the_records_of_real_hudi(
    version, merge_on_read, real_hudi, tmp_path
):
    hudi = real_hudi(version)
    table = hudi.table(tmp_path / "t", merge_on_read=merge_on_read)
    write_history(hudi, table)
    live = table.metadata_partitions()
    rows = hudi.rows(table)
    other = table.at(tmp_path / "other")
    shutil.copytree(table.path, other.path)

    rebuild(table, tmp_path)

    assert live == table.metadata_partitions()
    assert rows == hudi.rows(table, metadata=False) == hudi.rows(table, metadata=True)
    assert directory_listing(table.path) == hudi.listing(table)
    groups, records = list_groups(table), read_first_records(table)
    remove_metadata_table(other)
    hudi.write(other, [("e1", "e", 9)], options=OPTIONS)
    assert list_groups(other) == groups
    expected = read_first_records(other)
    with_logs = {path.parent.name for path in table.path.glob("*/.*.log.*")}
    assert bool(with_logs) == merge_on_read
    keys = [key for key, record in records.items() if is_comparable(record, with_logs)]
    assert len(keys) > 40  # of every kind
    assert [expected.get(key) for key in keys] == [records[key] for key in keys]
    others = {key for key, record in expected.items() if is_comparable(record, with_logs)}
    assert others == set(keys)
    assert expected.keys() <= records.keys()

    hudi.write(table, [("a1", "a", 9), ("e1", "e", 9)], options=OPTIONS)
    assert live == table.metadata_partitions()
    assert list_groups(table) == groups  # Hudi has built none of them anew
    assert () == verify(table).differences
    hudi.clean(table, {**keep_commits(1), **OPTIONS})
    last = hudi.write(table, [("b2", "b", 10)], options=OPTIONS)
    hudi.rollback(table, last)
    hudi.archive(table, OPTIONS)
    assert hudi.rows(table, metadata=False) == hudi.rows(table, metadata=True)
    assert directory_listing(table.path) == hudi.listing(table)
    assert () == verify(table).differences


@pytest.mark.parametrize("version", [long("0.15.0"), long("1.0.2"), long("1.2.0")])
def test_hudi_goes_on_with_a_table_whose_rebuild_was_stopped(
    version, real_hudi, tmp_path, monkeypatch
):
    hudi = real_hudi(version)
    table = hudi.table(tmp_path / "t", merge_on_read=False)
    write_history(hudi, table)
    live, rows = table.metadata_partitions(), hudi.rows(table)
    base = max(table.path.glob("a/*.parquet"), key=lambda path: path.name.split("_")[-1])
    MetadataLiar(table.path).set_range("a", base.name, "ts", 5000, 6000)
    spec = tmp_path / "t.yaml"
    spec.write_text(SPEC.format(path=table.path))
    assert 0 == run("plan", spec, "-o", tmp_path / "plan.json")

    def stop(*_args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("reconciler.executor.metadata_repair.list_partitions", stop)
        assert 0 != run("apply", tmp_path / "plan.json")

    assert "column_stats" not in table.metadata_partitions()
    assert "reconciler.metadata.rebuild" in (table.path / ".hoodie/hoodie.properties").read_text()
    assert rows == hudi.rows(table, metadata=False) == hudi.rows(table, metadata=True)
    hudi.write(table, [("a1", "a", 9), ("e1", "e", 9)], options=OPTIONS)
    assert live == table.metadata_partitions()  # Hudi has built it anew
    assert hudi.rows(table, metadata=False) == hudi.rows(table, metadata=True)
    if version != "0.15.0":  # what it adds to an existing metadata table lacks old files
        assert () == verify(table).differences
