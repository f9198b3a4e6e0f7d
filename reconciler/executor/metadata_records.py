"""Read what new partitions of the metadata table say: folders, footers and keys.

Like Hudi's own initialisation, it covers every file of a completed write, old file slices too,
except for the record index and partition_stats, which cover current ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo
from functools import cached_property
from typing import Any

import numpy as np

from reconciler.arrays import Integers
from reconciler.errors import FormatError, UnsupportedError
from reconciler.executor.footer_batches import ColumnBytes, read_footer_batches
from reconciler.executor.index.column_ranges import make_file_ranges, make_unknown_ranges
from reconciler.hudi.codecs.bloom import infer_type_code
from reconciler.hudi.files.names import make_file_path
from reconciler.hudi.files.table_files import FileKind
from reconciler.hudi.metadata.bound_encoding import BoundEncoding, find_bound_encoding
from reconciler.hudi.metadata.deltacommit import NewFileGroup
from reconciler.hudi.metadata.first_groups import (
    BUILT,
    build_groups,
    build_listing_group,
    choose_group_count,
    count_groups,
)
from reconciler.hudi.metadata.index_build import CellBuffer, DataFileRanges
from reconciler.hudi.metadata.listing import partition_key, read_metadata_listing
from reconciler.hudi.metadata.new_metadata_table import load_record_schema
from reconciler.hudi.metadata.own_timeline import ROOT, VERSION_8
from reconciler.hudi.metadata.record_encoder import ColumnRange, RecordEncoder
from reconciler.hudi.metadata.record_locations import build_first_locations
from reconciler.hudi.metadata.sync_decisions import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    MAX_RECORDS,
    PARTITION_STATS,
    RECORD_INDEX,
)
from reconciler.hudi.metadata.table import FILES
from reconciler.hudi.timeline.instant import Action
from reconciler.index.build import IndexRequest
from reconciler.lazy_dataclass import dataclass
from reconciler.state.current_files import find_newest_bases, find_newest_logs
from reconciler.storage.paths import list_if_exists
from reconciler.transaction.instants import parse_instant_ms
from reconciler.transaction.metadata.rebuild import NewPartitions
from reconciler.verification.checked_table import CheckedTable
from reconciler.verification.footer_filters import (
    FILTERS_AT_ONCE,
    UnreadFilter,
    read_footer_filters,
)
from reconciler.verification.rebuild_obstacles import (
    MAX_FILTER_BYTES,
    TOO_MANY_FILTERS,
    TOO_MANY_ROWS,
    UNKNOWN_INDEX,
    check_base_format,
    check_record_index_kind,
    check_stats,
    list_stats_columns,
    make_stats_definitions,
)
from reconciler.verification.slice_keys import SliceKeys


def read_new_partitions(table: CheckedTable, names: Collection[str], zone: tzinfo) -> NewPartitions:
    """Return the content of metadata partitions of a table as it is now.

    ``zone``: that of the timeline. What only Hudi can build is an obstacle in the result. Raises
    FormatError, UnsupportedError if nothing can be built, StorageError, and NotFoundError if the
    table has changed meanwhile.
    """
    return _RecordReader(table=table, names=frozenset(names), zone=zone).read()


@dataclass(frozen=True, kw_only=True, eq=False)
class _RecordReader:
    table: CheckedTable
    names: frozenset[str]
    zone: tzinfo

    def read(self) -> NewPartitions:
        groups: dict[str, Sequence[NewFileGroup]] = {}
        if FILES in self.names:
            groups[FILES] = [build_listing_group(self._list_sizes(), self.schema)]
        obstacles = dict.fromkeys(self.names - BUILT, UNKNOWN_INDEX)
        for names, build in self._list_builders():
            wanted = self.names.intersection(names)
            try:
                if wanted:
                    groups |= build()
            except (FormatError, UnsupportedError) as problem:
                obstacles |= dict.fromkeys(wanted, str(problem))
        has_stats = COLUMN_STATS in groups
        return NewPartitions(
            groups=groups,
            newest=self.newest,
            schema=self.schema,
            columns=tuple(self.columns) if has_stats else (),
            definitions=self._make_definitions() if has_stats else None,
            obstacles=obstacles,
        )

    def _list_builders(
        self,
    ) -> tuple[tuple[tuple[str, ...], Callable[[], dict[str, Sequence[NewFileGroup]]]], ...]:
        """Return how to build partitions; those that are built together fail together."""
        return (
            ((COLUMN_STATS, PARTITION_STATS), self._build_stats),
            ((BLOOM_FILTERS,), lambda: {BLOOM_FILTERS: self._build_filters()}),
            ((RECORD_INDEX,), lambda: {RECORD_INDEX: self._build_locations()}),
        )

    @cached_property
    def version(self) -> int:
        return self.table.properties.table_version

    @cached_property
    def schema(self) -> str:
        if FILES in self.names:
            return load_record_schema(self.version)
        return read_metadata_listing(self.table.metadata).schema

    @cached_property
    def records(self) -> RecordEncoder:
        return RecordEncoder(schema=self.schema, path=ROOT)

    @cached_property
    def newest(self) -> str | None:
        """The newest completed instant of any action."""
        done = (i.requested for i in self.table.state.timeline.instants if i.is_completed)
        return max(done, default=None)

    @cached_property
    def listed(self) -> Integers:
        """The files that are listed, as rows: those of no pending write, as in Hudi.

        In version 6, log files are named after a compaction that has not run, too.
        """
        files, instants = self.table.state.files, self.table.state.timeline.instants
        pending = {i.requested: i.action for i in instants if not i.is_completed}
        is_done = np.array(
            [t not in pending and t <= (self.newest or "") for t in files.instants], np.bool_
        )
        compacted = self.version < VERSION_8
        is_base = np.array(
            [compacted and pending.get(t) == Action.COMPACTION for t in files.instants], np.bool_
        )
        if not len(files):
            return np.zeros(0, np.int64)
        is_log = files.kind != FileKind.BASE
        return np.flatnonzero(is_done[files.instant] | (is_log & is_base[files.instant]))

    @cached_property
    def current(self) -> frozenset[int]:
        """The files of a read of now, as rows."""
        view = self.table.state.view
        return frozenset([*find_newest_bases(view).tolist(), *find_newest_logs(view).tolist()])

    @cached_property
    def bases(self) -> Integers:
        """The listed base files, as rows."""
        rows: Integers = self.listed[self.table.state.files.kind[self.listed] == FileKind.BASE]
        return rows

    def _list_sizes(self) -> dict[str, dict[str, int | None]]:
        """Return names and sizes of the listed files of every partition."""
        state = self.table.state
        sizes: dict[str, dict[str, int | None]] = {
            path: {} for path in state.files.partitions if path in state.metafile_partitions
        }
        for row in self.listed.tolist():
            partition, name = self.table.name_file(row)
            sizes.setdefault(partition, {})[name] = int(state.files.size[row])
        return sizes

    # --- column_stats and partition_stats ---------------------------------------------------------

    @cached_property
    def columns(self) -> Mapping[str, Any]:
        """The columns of column_stats, with their Arrow types."""
        if not self.names & {COLUMN_STATS, PARTITION_STATS}:
            return {}
        return list_stats_columns(self.table)

    @cached_property
    def _encodings(self) -> dict[str, BoundEncoding]:
        encodings = {}
        for column, kind in self.columns.items():
            encoding = find_bound_encoding(kind, self.version)
            assert encoding is not None, "list_indexed_columns gives none without"
            encodings[column] = encoding
        return encodings

    def _build_stats(self) -> dict[str, Sequence[NewFileGroup]]:
        """Build column_stats of every listed file, and partition_stats of current ones."""
        check_stats(self.table)
        wrappers = {column: encoding.wrapper for column, encoding in self._encodings.items()}
        cells, merged = CellBuffer(), CellBuffer()
        whole: dict[str, Sequence[ColumnRange]] = {}
        for row, file in self._list_ranges():
            path = partition_key(file.partition)
            cells.add(self.records.encode_column_stats(path, file.name, file.ranges, wrappers))
            if row in self.current:
                earlier = whole.get(path)
                whole[path] = (
                    file.ranges
                    if earlier is None
                    else [a.merge(b) for a, b in zip(earlier, file.ranges, strict=True)]
                )
        groups = {COLUMN_STATS: self._spread(COLUMN_STATS, cells)}
        if PARTITION_STATS in self.names:
            for path, ranges in whole.items():
                merged.add(self.records.encode_partition_stats(path, ranges, wrappers))
            groups[PARTITION_STATS] = self._spread(PARTITION_STATS, merged)
        return {name: group for name, group in groups.items() if name in self.names}

    def _list_ranges(self) -> Iterator[tuple[int, DataFileRanges]]:
        """Yield the ranges of listed files; those of log files are unknown.

        As by Hudi, a file without rows has none, nor has an old one whose footer is damaged: no
        reader looks them up.
        """
        columns, files = self.table.columns, self.table.state.files
        request = IndexRequest(
            columns=tuple(self.columns),
            schema=columns.schema,
            supplied=columns.find_supplied(self.columns, self.table.properties),
        )
        for batch in read_footer_batches(self.table, self.bases.tolist(), request):
            ranges = make_file_ranges(batch.index, self._encodings)
            counts = batch.index.rows.tolist()
            parts = zip(batch.rows, batch.problems, batch.bytes, counts, ranges, strict=True)
            for row, problem, sizes, count, file in parts:
                if problem is not None and row in self.current:
                    raise UnsupportedError(problem)
                if count > 0:
                    yield row, replace(file, ranges=_add_bytes(file.ranges, sizes))
        if self.version < VERSION_8:
            return
        for row in self.listed[files.kind[self.listed] == FileKind.LOG].tolist():
            yield row, make_unknown_ranges(*self.table.name_file(row), self._encodings)

    def _make_definitions(self) -> bytes | None:
        return make_stats_definitions(self.table, self.columns)

    # --- bloom_filters and record_index -----------------------------------------------------------

    def _build_filters(self) -> Sequence[NewFileGroup]:
        """Build the filters of listed base files; a file without one has no record."""
        check_base_format(self.table)
        cells, total = CellBuffer(), 0
        for row, text in self._list_filters():
            total += len(text)
            if total > MAX_FILTER_BYTES:
                raise UnsupportedError(TOO_MANY_FILTERS)
            partition, name = self.table.name_file(row)
            code = infer_type_code(text, make_file_path(partition, name))
            cell = self.records.encode_bloom_filter(
                partition_key(partition), name, self.newest or "", code, text
            )
            cells.add([cell])
        return self._spread(BLOOM_FILTERS, cells)

    def _list_filters(self) -> Iterator[tuple[int, str]]:
        """Yield the filters of base files, without old files whose footer is damaged."""
        rows = self.bases.tolist()
        for start in range(0, len(rows), FILTERS_AT_ONCE):
            batch = rows[start : start + FILTERS_AT_ONCE]
            for row, text in zip(batch, read_footer_filters(self.table, batch), strict=True):
                if isinstance(text, UnreadFilter):
                    if row in self.current:
                        raise UnsupportedError(text.because)
                elif text is not None:
                    yield row, text.decode("latin-1")  # other text is no filter

    def _build_locations(self) -> Sequence[NewFileGroup]:
        """Build the location of every key of current file slices."""
        check_record_index_kind(self.table)
        slices = SliceKeys.open(self.table)
        count = 0

        def read(_path: str, at: int) -> Iterator[Any]:
            nonlocal count
            for keys in slices.read(at):
                count += len(keys)
                if count > MAX_RECORDS:
                    raise UnsupportedError(TOO_MANY_ROWS)
                yield keys.cast("string")

        locations = [
            (*self._locate_slice(slices, at), self._encode_slice(slices, at))
            for at in range(len(slices))
        ]
        groups = self._choose_count(RECORD_INDEX)
        return list(build_first_locations(locations, read, self.schema, count=groups))

    @staticmethod
    def _locate_slice(slices: SliceKeys, at: int) -> tuple[str, int]:
        """Return a path for messages, and the slice's number in place of a size."""
        return make_file_path(*slices.locate(at)), at

    def _encode_slice(self, slices: SliceKeys, at: int) -> bytes:
        """Return the record of every key of a slice, which has the slice's instant."""
        files, picked = slices.picked.files, slices.picked
        base = int(picked.base[at])
        row = base if base >= 0 else int(picked.logs[picked.ends[at]])
        instant = files.instants[files.instant[row]]
        partition, file_id = slices.locate(at)
        return self.records.encode_record_location(
            partition, file_id, parse_instant_ms(instant, self.zone)
        )

    def _spread(self, partition: str, cells: CellBuffer) -> list[NewFileGroup]:
        count = self._choose_count(partition)
        return list(build_groups(partition, count, *cells.to_arrays(), self.schema))

    def _choose_count(self, partition: str) -> int:
        """Return the number of file groups: as many as there are, which its writer chose."""
        if partition not in self.table.properties.metadata_partitions:
            return choose_group_count(partition, 0)  # what there is may be incomplete
        entries = list_if_exists(self.table.storage, f"{ROOT}/{partition}")
        known = count_groups(partition, (entry.name for entry in entries))
        return choose_group_count(partition, 0) if known is None else known


def _add_bytes(ranges: Sequence[ColumnRange], sizes: ColumnBytes) -> list[ColumnRange]:
    """Return ranges with the bytes of their columns."""
    found = [(one, *sizes.get(one.column, (0, 0))) for one in ranges]
    return [replace(one, size=size, plain_size=plain) for one, size, plain in found]
