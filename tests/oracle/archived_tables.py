"""Tables whose timeline real Hudi archives, and the same archival by our writers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.hudi.codecs.log_blocks import read_avro_records, read_blocks
from reconciler.hudi.timeline.archivable_instant import ArchivableInstant
from reconciler.hudi.timeline.archive_merge import name_next_archive_file
from reconciler.hudi.timeline.archive_writer_v1 import encode_archive_file
from reconciler.hudi.timeline.archive_writer_v2 import encode_lsm_file, name_lsm_file
from reconciler.hudi.timeline.history_manifest import (
    VERSION_FILE,
    HistoryFile,
    HistoryManifest,
    find_current_version,
    make_manifest_name,
)
from reconciler.hudi.timeline.instant import Instant, State
from tests.archivable import load_archivable
from tests.oracle.hudi import COMPACT_METADATA, HudiTable, RealHudi, keep_commits
from tests.oracle.prepared_tables import TableKind

#: what lets Hudi archive a compaction as soon as another one could be planned
AT_ONCE = {"hoodie.compact.inline.max.delta.commits": "1"}
#: what makes writes archive as early as they can, and merge at once
EARLY = {
    **AT_ONCE,
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.timeline.compaction.batch.size": "2",
    "hoodie.archive.merge.enable": "true",
    "hoodie.archive.merge.files.batch.size": "2",
    **keep_commits(1),
}


def write_archivable_history(hudi: RealHudi, path: Path, kind: TableKind) -> HudiTable:
    """Write a table with every kind of instant that Hudi archives; most are old enough."""
    table = hudi.table(path, merge_on_read=kind.merge_on_read, partitioned=kind.partitioned)
    hudi.write(table, [("a1", "a", 1), ("b1", "b", 1)])
    hudi.write(table, [("a1", "a", 2)])
    hudi.rollback(table, hudi.write(table, [("a1", "a", 3)]))
    hudi.write(table, [("c1", "c", 3)], "insert_overwrite")
    if kind.merge_on_read:
        hudi.write(table, [("a1", "a", 3)])
        _run(hudi, table, "LOG_COMPACT", "logCompact")
        _run(hudi, table, "COMPACT", "compact")
    _run(hudi, table, "CLUSTER", "cluster")
    hudi.clean(table, keep_commits(1))
    for age in (4, 5):
        hudi.write(table, [("a1", "a", age)], options=COMPACT_METADATA)
    hudi.clean(table, keep_commits(1))
    hudi.write(table, [("b1", "b", 6)], options=COMPACT_METADATA)
    return table


def _run(hudi: RealHudi, table: HudiTable, service: str, method: str) -> None:
    instant = hudi.schedule(table, service)
    assert instant
    hudi.ask("call", table=table, method=method, arguments=[instant, True], options=table.options)


def load_active(table: HudiTable) -> dict[tuple[str, str], ArchivableInstant]:
    """Return the instants that an archive can hold, by requested time and action."""
    return {(i.requested, i.action.value): i for i in load_archivable(table.timeline)}


def list_archived(
    before: Mapping[tuple[str, str], ArchivableInstant], table: HudiTable
) -> list[ArchivableInstant]:
    """Return which of the instants that were active are active no more."""
    after = load_active(table)
    return [instant for key, instant in before.items() if key not in after]


def metadata_table(table: HudiTable) -> HudiTable:
    """Return the metadata table of a table."""
    return table.at(table.path / ".hoodie" / "metadata")


def archive_here(table: HudiTable, instants: Iterable[ArchivableInstant]) -> None:
    """Archive as Hudi does: write, then remove active files, the completed ones last."""
    for _call in archive_by_calls(table, instants):
        pass


def archive_by_calls(table: HudiTable, instants: Iterable[ArchivableInstant]) -> Iterator[str]:
    """Archive, and name each call that changes the table after it was made."""
    chosen = list(instants)
    layout2 = table.timeline.name == "timeline"
    if layout2:
        yield from _add_history_file(table.timeline / "history", chosen)
    else:
        folder = table.timeline / "archived"
        folder.mkdir(exist_ok=True)
        name = name_next_archive_file(path.name for path in folder.iterdir())
        (folder / name).write_bytes(encode_archive_file(chosen))
        yield name
    for state in State:
        for instant in chosen:
            path = Path(instant.make_path(state, with_completion=layout2))
            if path.exists():
                _remove(path)
                yield f"without {path.name}"


def _add_history_file(folder: Path, instants: list[ArchivableInstant]) -> Iterator[str]:
    folder.mkdir(exist_ok=True)
    names = [path.name for path in folder.iterdir()]
    version_file = folder / VERSION_FILE
    written = version_file.read_bytes() if version_file.exists() else None
    current = find_current_version(names, written)
    manifest = HistoryManifest()
    if current:
        path = folder / make_manifest_name(current)
        manifest = HistoryManifest.parse(path.read_bytes(), str(path))
    data, name = encode_lsm_file(instants), name_lsm_file(instants)
    (folder / name).write_bytes(data)
    yield name
    _remove(version_file)
    yield "without a version"
    added = manifest.add(HistoryFile(name=name, size=len(data)))
    (folder / make_manifest_name(current + 1)).write_bytes(added.encode())
    yield "manifest"
    version_file.write_bytes(str(current + 1).encode())
    yield "version"


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def read_records(table: HudiTable) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return all records of a table's archive by time, action and, in layout 1, state."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for path in table.timeline.glob("history/*.parquet"):
        for row in pq.read_table(path).to_pylist():
            found[row["instantTime"], row["action"]] = row
    for path in table.timeline.glob("archived/.commits_.archive.*"):
        found |= decode_archive_file(path.read_bytes())
    return found


def decode_archive_file(data: bytes) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return the records of a file of layout 1."""
    return {
        (record["commitTime"], record["actionType"], record["actionState"]): record
        for block in read_blocks(data, "archive")
        for record in read_avro_records(block)
    }


def encode_records(
    table: HudiTable, instants: list[ArchivableInstant]
) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return what our writers archive of the instants, as ``read_records`` does."""
    if table.timeline.name != "timeline":
        return decode_archive_file(encode_archive_file(instants))
    rows = pq.read_table(pa.BufferReader(encode_lsm_file(instants))).to_pylist()
    return {(row["instantTime"], row["action"]): row for row in rows}


def list_active(table: HudiTable) -> list[Instant]:
    """Return every active state of every instant."""
    found = (Instant.parse(name) for name in table.instants())
    return sorted(instant for instant in found if instant is not None)
