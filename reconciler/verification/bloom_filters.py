"""Compare bloom_filters with the filters in the footers of base files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from reconciler.hudi.codecs.avro_binary import decode_record, decoding, parse_schema
from reconciler.hudi.codecs.hfile_reader import HFile
from reconciler.hudi.metadata.column_stats import check_log_sizes, read_newest_first
from reconciler.hudi.metadata.index_keys import build_bloom_keys
from reconciler.hudi.metadata.listing import partition_key
from reconciler.hudi.metadata.sync_decisions import BLOOM_FILTERS
from reconciler.hudi.metadata.table import group_by_slice
from reconciler.lazy_dataclass import dataclass
from reconciler.state.current_files import group_by_partition
from reconciler.state.metadata_differences import CheckBuilder
from reconciler.verification.checked_table import Advance, CheckedTable
from reconciler.verification.footer_filters import (
    FILTERS_AT_ONCE,
    UnreadFilter,
    read_footer_filters,
)
from reconciler.verification.rebuild_obstacles import MAX_FILTER_BYTES, TOO_MANY_FILTERS

_OTHER: Final = "writers that look up keys in this index miss rows of the file and write them twice"
_MISSING: Final = "writers that look up keys in this index fail"


def check_bloom_filters(table: CheckedTable, advance: Advance) -> CheckBuilder:
    """Compare the filter of every chosen base file, byte by byte.

    Raises FormatError, UnsupportedError, StorageError.
    """
    check = CheckBuilder(metadata_partition=BLOOM_FILTERS, unit="filter")
    check_log_sizes(table.metadata, BLOOM_FILTERS)
    rows = {key: int(table.bases[file]) for file, key in enumerate(_list_keys(table))}
    unread: list[str] = []
    total = 0
    for file_slice, keys in group_by_slice(table.metadata, BLOOM_FILTERS, list(rows)):
        parts = list(read_newest_first(table.metadata, file_slice))
        lookup = _FilterLookup(parts=parts)
        for start in range(0, len(keys), FILTERS_AT_ONCE):
            batch = keys[start : start + FILTERS_AT_ONCE]
            stored = lookup.read(batch)
            actual = read_footer_filters(table, [rows[key] for key in batch])
            for key, found in zip(batch, actual, strict=True):
                if isinstance(found, UnreadFilter):
                    unread.append(found.because)
                    continue
                total += len(found or b"")
                _compare(check, table, rows[key], stored.get(key.encode()), found)
            advance(len(batch))
    if unread:
        check.not_compared.append(f"files whose footer cannot be read: {unread[0]}")
        check.obstacle = unread[0]
    elif total > MAX_FILTER_BYTES:
        check.obstacle = TOO_MANY_FILTERS
    return check


def _list_keys(table: CheckedTable) -> Iterator[str]:
    for path, names in group_by_partition(table.state.files, table.bases):
        yield from build_bloom_keys(partition_key(path), names)


@dataclass(frozen=True, slots=True)
class _FilterLookup:
    """Looks filters up in one file group. ``parts``: newest first."""

    parts: Sequence[tuple[HFile | None, str, list[bytes]]]

    def read(self, keys: Sequence[str]) -> Mapping[bytes, bytes]:
        """Return the stored text of each key that has a filter."""
        missing = {key.encode() for key in keys}
        found: dict[bytes, bytes] = {}
        for source, schema, deleted in self.parts:
            missing.difference_update(deleted)
            if source is None or not missing:
                continue
            for key, value in source.get(missing).items():
                missing.discard(key)
                text = _decode_filter(value, schema, source.path)
                if text is not None:
                    found[key] = text
        return found


def _decode_filter(value: bytes, schema: str, path: str) -> bytes | None:
    """Return the base64 text of a record; None if it is a deletion."""
    record = decode_record(value, parse_schema(schema, path), path)
    with decoding(path, "an entry of bloom_filters"):
        stored = record["BloomFilterMetadata"]
        return None if stored["isDeleted"] else bytes(stored["bloomFilter"])


def _compare(
    check: CheckBuilder, table: CheckedTable, row: int, stored: bytes | None, found: bytes | None
) -> None:
    check.compared += 1
    if stored == found:
        return
    partition, name = table.name_file(row)
    if stored is None:
        actual, recorded, effect = "a filter in the footer", "no entry", _MISSING
    elif found is None:
        actual, recorded, effect = "no filter in the footer", _size(stored), _OTHER
    else:
        actual, recorded, effect = f"another filter, of {_size(found)}", _size(stored), _OTHER
    check.add(
        "missing" if stored is None else "wrong",
        partition,
        name,
        recorded=recorded,
        actual=actual,
        effect=effect,
    )


def _size(text: bytes) -> str:
    return f"a filter of {len(text)} bytes"
