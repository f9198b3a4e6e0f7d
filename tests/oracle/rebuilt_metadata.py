"""Rebuild metadata tables of tables that real Hudi wrote, and compare them with Hudi's own."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reconciler.hudi.codecs import hfile_reader
from reconciler.hudi.codecs.avro_binary import decode_record, parse_schema
from tests.command import run
from tests.metadata_lies import MetadataLiar
from tests.oracle.hudi import HudiTable, RealHudi, directory_listing
from tests.oracle.test_metadata_verification import verify
from tests.selection import EVERY_CASE

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

#: file group, instant of its first base file, key -> record
Records = Mapping[tuple[str, str, str], dict[str, Any]]


def lie_about_files(table: HudiTable) -> None:
    """List a file that is not there."""
    partition = min(directory_listing(table.path))
    name = "0a000000-0000-0000-0000-000000000000-0_0-0-0_20200101000000000.parquet"
    MetadataLiar(table.path).list_file(partition, name, 10)


def write_spec(table: HudiTable, folder: Path) -> Path:
    spec = folder / f"{table.path.name}.yaml"
    spec.write_text(SPEC.format(path=table.path))
    return spec


def repair(table: HudiTable, folder: Path) -> None:
    """Plan and apply; nothing differs then, and nothing is left to do."""
    spec = write_spec(table, folder)
    assert 0 == run("plan", spec, "-o", folder / "plan.json")
    assert 0 == run("apply", folder / "plan.json")
    assert 0 == run("verify", spec)
    assert 0 == run("plan", spec, "--detailed-exitcode")


def remove_metadata_table(table: HudiTable) -> None:
    """Remove the metadata table as if Hudi had never made it."""
    shutil.rmtree(table.path / ".hoodie/metadata")
    file = table.path / ".hoodie/hoodie.properties"
    text = re.sub(r"(?m)^(hoodie.table.metadata.partitions)=.*$", r"\1=", file.read_text())
    file.write_text(text)
    (table.path / ".hoodie/.hoodie.properties.crc").unlink(missing_ok=True)


def read_first_records(table: HudiTable) -> Records:
    """Return the records of the first base files."""
    found = {}
    first: dict[str, tuple[str, Path]] = {}
    for path in sorted((table.path / ".hoodie/metadata").glob("*/*.hfile")):
        match = BASE.fullmatch(path.name)
        assert match is not None
        first.setdefault(match["group"], (match["instant"], path))
    for group, (instant, path) in first.items():
        file = hfile_reader.parse_hfile(path.read_bytes(), path.name)
        schema = parse_schema(file.read_schema(), path.name)
        for key, value in file.scan_all():
            record = decode_record(value, schema, path.name)
            record["_hoodie_file_name"] = None  # 0.15 writes the name of the HFile itself
            found[group, instant, key.decode()] = record
    return found


def is_comparable(record: Mapping[str, Any], with_logs: set[str]) -> bool:
    """Return whether a record has no ranges of log files, which reconciler does not read."""
    stats = record["ColumnStatsMetadata"]
    return not stats or not (stats["fileName"].startswith(".") or stats["fileName"] in with_logs)


def list_groups(table: HudiTable) -> dict[str, set[tuple[str, str]]]:
    """Return the file groups of each metadata partition, with the instants of their first files."""
    names: dict[str, set[tuple[str, str]]] = {}
    for path in (table.path / ".hoodie/metadata").glob("*/.*.log.1_0-0-0"):
        match = re.fullmatch(r"\.(.*)_(\d+)\.log\.1_0-0-0", path.name)
        assert match is not None
        names.setdefault(path.parent.name, set()).add((match[1], match[2]))
    return names


def check_rebuild(
    hudi: RealHudi,
    table: HudiTable,
    folder: Path,
    options: Mapping[str, str],
    row: tuple[Any, ...],
    *,
    has_pending_plan: bool = False,
) -> Records:
    """Rebuild the metadata table; it must be what Hudi bootstraps with the write of a row.

    Returns the records of reconciler that were compared. ``has_pending_plan``: a compaction is
    requested; 0.15 then bootstraps nothing to compare with.
    """
    live = table.metadata_partitions()
    rows = hudi.rows(table)
    other = table.at(folder / "other")
    shutil.copytree(table.path, other.path)
    lie_about_files(table)

    repair(table, folder)

    assert live == table.metadata_partitions()
    assert rows == hudi.rows(table, metadata=False) == hudi.rows(table, metadata=True)
    assert directory_listing(table.path) == hudi.listing(table)
    groups, records = list_groups(table), read_first_records(table)
    remove_metadata_table(other)
    hudi.write(other, [row], options=options)
    if has_pending_plan and hudi.version == "0.15.0":
        assert [] == other.metadata_partitions()
        return {}
    assert list_groups(other) == groups
    expected = read_first_records(other)
    with_logs = {path.parent.name for path in table.path.glob("**/.*.log.*")}
    with_logs |= {str(p.parent.relative_to(table.path)) for p in table.path.glob("**/.*.log.*")}
    keys = {key for key, record in records.items() if is_comparable(record, with_logs)}
    others_than_hudi = [
        (expected.get(k), records[k]) for k in keys if expected.get(k) != records[k]
    ]
    assert [] == others_than_hudi, others_than_hudi
    others = {key for key, record in expected.items() if is_comparable(record, with_logs)}
    assert others == keys
    assert expected.keys() <= records.keys()
    return {key: records[key] for key in keys}


def check_that_hudi_goes_on(
    hudi: RealHudi,
    table: HudiTable,
    options: Mapping[str, str],
    rows: list[tuple[Any, ...]],
    keep: Mapping[str, str],
) -> None:
    """Let Hudi write and clean; metadata table and folders must agree.

    Where every case runs, it rolls a write back and archives too.
    """
    live, groups = table.metadata_partitions(), list_groups(table)
    hudi.write(table, rows, options=options)
    assert live == table.metadata_partitions()
    assert list_groups(table) == groups  # Hudi has built none of them anew
    assert () == verify(table).differences
    hudi.clean(table, {**keep, **options})
    if EVERY_CASE:
        last = hudi.write(table, rows[:1], options=options)
        hudi.rollback(table, last)
        hudi.archive(table, options)
    assert hudi.rows(table, metadata=False) == hudi.rows(table, metadata=True)
    assert directory_listing(table.path) == hudi.listing(table)
    assert () == verify(table).differences
