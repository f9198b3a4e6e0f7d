"""Read the facts for a clustering: past writes of the timeline and statistics of base files.

Statistics come from the metadata table in one pass if its column_stats index is live. For files
without entries they come from footers, as long as there are few of these.
"""

from __future__ import annotations

from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow.compute as pc

from reconciler.arrays import Integers, Mask, to_arrow
from reconciler.errors import FormatError, UnsupportedError
from reconciler.hudi.files.table_files import FileKind
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.metadata.sync_decisions import COLUMN_STATS
from reconciler.hudi.timeline.declared_schema import list_top_columns
from reconciler.layout.sizing.record_size import (
    FooterSizes,
    can_fit_size,
    estimate_compacted_bytes,
    estimate_record_size,
)
from reconciler.lazy_dataclass import dataclass
from reconciler.spec.model import Clustering, FileSizes, TableSpec
from reconciler.spec.partition_filter import find_excluded_partitions
from reconciler.state.bounds_builder import BoundsBuilder
from reconciler.state.clustering_facts import UNMEASURED_REMEDY, ClusteringFacts, ReadWarning
from reconciler.state.clustering_layout import declared_layout
from reconciler.state.footers import Footer, choose_by_size, read_footers, sum_footers
from reconciler.state.hudi_column_stats import read_file_bounds
from reconciler.state.write_history import WriteHistory, read_write_history
from reconciler.storage.paths import list_if_exists

if TYPE_CHECKING:
    from reconciler.hudi.table.properties import TableProperties
    from reconciler.state.model import TableState
    from reconciler.storage.api import Storage

#: number of completed writes to read
_NEWEST_WRITES: Final = 20
#: bytes of completed writes that are read for file sizes alone: footers tell the size of rows too
_MAX_HISTORY_BYTES: Final = 2 * 1024 * 1024
#: greatest number of base files whose footers are read for the bounds of columns
MAX_FOOTERS: Final = 5000
#: number of base files whose footers are read for record sizes if past writes lack them
_SAMPLE: Final = 16
#: a folder per partition with the range of hashes of each file group (HoodieTableMetaClient)
_HASHING: Final = ".hoodie/.bucket_index/consistent_hashing_metadata"


def read_clustering_facts(
    storage: Storage, properties: TableProperties, spec: TableSpec, state: TableState
) -> ClusteringFacts:
    """Read the facts for a spec that declares a rewrite, by clustering or file sizes.

    ``state``: the listed table. A footer that cannot be read makes a warning. Raises FormatError
    for damaged files of the timeline, StorageError, and NotFoundError if the timeline has changed
    since it was listed.
    """
    assert spec.rewriting is not None, "the spec declares a rewrite"
    quiet = _count_quiet_writes(spec, state)
    is_for_sizes = spec.clustering is None and not quiet
    history = read_write_history(
        storage,
        properties,
        state.timeline,
        newest=max(_NEWEST_WRITES, quiet),
        max_bytes=_MAX_HISTORY_BYTES if is_for_sizes else None,
    )
    return _FactsReader(storage, properties, spec, spec.rewriting, state, history).read()


def _count_quiet_writes(spec: TableSpec, state: TableState) -> int:
    """Return how many writes to read because only they tell which partitions they wrote to.

    In version 6 log files are named for their base file, not for the write that appended them.
    """
    quiet = spec.files.quiet if spec.files else None
    is_told = state.table_version >= LOGS_BY_COMPLETION or not state.is_merge_on_read
    if quiet is None or is_told:
        return 0
    # instants may be in any zone of the world
    since = datetime.fromtimestamp(state.observed_ms / 1000, UTC) - timedelta(seconds=quiet, days=1)
    return sum(i.requested >= f"{since:%Y%m%d%H%M%S}" for i in state.timeline.commits)


@dataclass(slots=True)
class _FactsReader:
    """Reads the facts. ``rows``: counts by file, -1 if unknown. ``footers``: by row of the file."""

    storage: Storage
    properties: TableProperties
    spec: TableSpec
    clustering: Clustering
    state: TableState
    history: WriteHistory
    rows: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    footers: dict[int, Footer] = field(default_factory=dict)
    warnings: list[ReadWarning] = field(default_factory=list)

    def read(self) -> ClusteringFacts:
        files = self.state.files
        self.rows = np.full(len(files), -1, np.int64)
        candidates = self._find_candidates()
        bounds = self._read_bounds(candidates) if self._needs_overlap else None
        if not can_fit_size(self.history.written) and not self.footers:
            some = candidates[choose_by_size(files.size[candidates], _SAMPLE)]
            self._read_footers(np.sort(some), ())
        self._warn_of_footers()
        footers = sum_footers([f for f in self.footers.values() if f.problem is None])
        return ClusteringFacts(
            written=self.history.written,
            clusterings=self.history.clusterings,
            footers=footers,
            bounds=bounds,
            rows=self._estimate_rows(footers),
            columns=self._find_columns(),
            warnings=tuple(self.warnings),
            is_consistently_hashed=bool(list_if_exists(self.storage, _HASHING)),
            damaged={
                row: footer.problem
                for row, footer in self.footers.items()
                if footer.problem is not None
            },
        )

    def _find_columns(self) -> dict[str, str] | None:
        """Return the table's columns, with partition columns even if files lack them."""
        kinds = list_top_columns(self.history.schema) if self.history.schema else None
        return {**kinds, **dict.fromkeys(self.properties.partition_fields, "")} if kinds else None

    @property
    def _needs_overlap(self) -> bool:
        when = self.clustering.when
        is_used = when.overlap_above is not None or when.gain_above is not None
        return bool(self.clustering.columns) and not when.always and is_used

    def _find_candidates(self) -> Integers:
        """Return the rows of current base files in the partitions that the spec selects.

        What a pending compaction has written so far is not read: it may be half a file.
        """
        files, view = self.state.files, self.state.view
        out = find_excluded_partitions(self.state.partitions, self.clustering.partitions)
        known = set(self.state.partitions)
        is_in = np.array([p in known and p not in out for p in files.partitions], np.bool_)
        is_read = (view.is_newest & view.is_live & ~view.is_phantom)[view.row_slice]
        is_base = is_read & (files.kind == FileKind.BASE)
        return np.flatnonzero(is_base & is_in[files.partition])

    def _read_bounds(self, candidates: Integers) -> tuple[tuple[Any, Any], ...] | None:
        """Return the bounds of the clustering columns; None if none are known."""
        files, columns = self.state.files, self.clustering.columns
        builders = [BoundsBuilder(files=len(files)) for _ in columns]
        is_told = np.zeros((len(columns), len(files)), np.bool_)
        if COLUMN_STATS in self.properties.metadata_partitions:
            try:
                self._read_column_stats(candidates, builders, is_told)
            except (FormatError, UnsupportedError) as problem:
                because = (
                    f"the index column_stats is ignored and footers are read instead: {problem}"
                )
                self.warnings.append(ReadWarning(rule="columnStats", because=because))
        crowded = self._find_crowded(candidates)
        missing = crowded[~is_told[:, crowded].all(axis=0)]
        unjudged = np.zeros(len(files.partitions), np.bool_)
        if len(missing) > MAX_FOOTERS:
            unjudged[files.partition[missing]] = True
            self._warn_of_overlap(missing, int(unjudged.sum()))
        elif len(missing):
            self._read_missing_footers(missing, builders)
        arrays = [builder.build_arrays(files.instant) for builder in builders]
        if unjudged.any():
            arrays = [_clear_bounds(pair, unjudged[files.partition]) for pair in arrays]
        unknown = [
            column
            for column, (low, _) in zip(columns, arrays, strict=True)
            if low.null_count == len(low)
        ]
        is_seen = is_told.any() or any(f.problem is None for f in self.footers.values())
        if unknown and is_seen and len(crowded) and not unjudged.any():
            self._warn_of_columns(unknown)
        return tuple(arrays) if len(unknown) < len(columns) else None

    def _read_column_stats(
        self, candidates: Integers, builders: list[BoundsBuilder], is_told: Mask
    ) -> None:
        """Add what the metadata table knows of the candidates."""
        columns = self.clustering.columns
        for stats, places in read_file_bounds(
            self.storage, self.properties, self.state, columns, candidates
        ):
            rows = candidates[places]
            builders[stats.column].add(rows, stats.least, stats.greatest)
            is_told[stats.column, rows] = True
            self.rows[rows] = np.maximum(self.rows[rows], np.array(stats.values, np.int64))

    def _find_crowded(self, candidates: Integers) -> Integers:
        """Return the candidates in partitions whose statistics can decide about a rewrite.

        They have more files than ``overlapAbove``, or several files that are neither all of one
        group with the declared layout nor all new and small.
        """
        files, when = self.state.files, self.clustering.when
        partition = files.partition[candidates]
        counts = np.bincount(partition, minlength=len(files.partitions))
        is_crowded = np.zeros(len(counts), np.bool_)
        if when.overlap_above is not None:
            is_crowded |= counts > when.overlap_above
        if when.gain_above is not None:
            is_crowded |= (counts > 1) & ~self._find_decided(candidates)
        return candidates[is_crowded[partition]]

    def _find_decided(self, candidates: Integers) -> Mask:
        """Return the partitions whose rewrite does not depend on a gain.

        Files of one group of a clustering with the declared layout stay, and new files are
        rewritten anyway if all are small. In several groups they are ordered by their statistics.
        """
        files, count = self.state.files, len(self.state.files.partitions)
        declared = declared_layout(self.clustering)
        done = {past.instant for past in self.history.clusterings if past.layout == declared}
        is_done = np.array([instant in done for instant in files.instants], np.bool_)
        partition, instant = files.partition[candidates], files.instant[candidates]
        least, most = np.full(count, len(files.instants), np.int64), np.full(count, -1, np.int64)
        np.minimum.at(least, partition, instant)
        np.maximum.at(most, partition, instant)
        size = np.bincount(partition, files.size[candidates], minlength=count)
        is_one_group = size <= self.clustering.budget.max_group_bytes
        is_decided: Mask = (least == most) & is_one_group
        is_decided[is_decided] = is_done[most[is_decided]]
        share = self.clustering.when.small_file_share_above
        if share is not None and share < 1:
            is_other = ~self._find_small(candidates) | is_done[instant]
            others = np.bincount(partition[is_other], minlength=count)
            is_decided |= (others == 0) & is_one_group
        return is_decided

    def _find_small(self, candidates: Integers) -> Mask:
        """Return which candidates are small, with their log files if these count."""
        sizes, files, view = self.spec.files or FileSizes(), self.state.files, self.state.view
        size = files.size[candidates]
        if sizes.when is not None:
            rows = np.flatnonzero(files.kind == FileKind.LOG)
            logs = np.bincount(view.row_slice[rows], files.size[rows], minlength=len(view))
            size = size + estimate_compacted_bytes(logs[view.row_slice[candidates]])
        is_small: Mask = size < sizes.existing_small
        return is_small

    def _read_missing_footers(self, missing: Integers, builders: list[BoundsBuilder]) -> None:
        self._read_footers(missing, self.clustering.columns)
        readable = [
            (row, f) for row in missing.tolist() if (f := self.footers[row]).problem is None
        ]
        rows = np.array([row for row, _ in readable], np.int64)
        for nth, builder in enumerate(builders):
            pairs = [footer.bounds[nth] or (None, None) for _, footer in readable]
            builder.add(rows, [low for low, _ in pairs], [high for _, high in pairs])

    def _read_footers(self, rows: Integers, columns: tuple[str, ...]) -> None:
        files = self.state.files
        wanted = list(map(files.locate_file, rows.tolist()))
        read = read_footers(self.storage, wanted, columns)
        for row, footer in zip(rows.tolist(), read, strict=True):
            self.footers[row] = footer
            if footer.problem is None:
                self.rows[row] = footer.rows

    def _estimate_rows(self, footers: FooterSizes | None) -> Integers:
        """Return the number of rows of every file, estimated from its size if unknown."""
        files = self.state.files
        sizes = self.spec.files or FileSizes()
        size = estimate_record_size(self.history.written, footers, fallback=sizes.record_size)
        guess = size.data_bytes(files.size) / max(size.per_row, 1e-9)
        rows = np.where(self.rows >= 0, self.rows, np.maximum(guess, 1).astype(np.int64))
        return np.where(files.kind == FileKind.BASE, rows, 0)

    def _warn_of_footers(self) -> None:
        damaged = [footer.problem for footer in self.footers.values() if footer.problem is not None]
        if damaged:
            some = f" (and {len(damaged) - 1} more)" if len(damaged) > 1 else ""
            because = f"{damaged[0]}{some}; such files are not clustered until then"
            self.warnings.append(ReadWarning(rule="damagedFile", because=because))

    def _warn_of_overlap(self, missing: Integers, partitions: int) -> None:
        columns = ", ".join(self.clustering.columns)
        because = (
            f"clustering.when.{self._measure}Above is not checked in {partitions} "
            f"{'partition' if partitions == 1 else 'partitions'}: {len(missing)} base files have "
            f"no statistics on {columns} in the metadata table, and at most {MAX_FOOTERS} footers "
            "are read; build Hudi's index (index.hudi: build), let the table's writers maintain it "
            "(hoodie.metadata.index.column.stats.enable), or declare clustering.partitions"
        )
        self.warnings.append(ReadWarning(rule=self._measure, because=because))

    @property
    def _measure(self) -> str:
        """Return what needs the statistics, which is also the rule of its warnings."""
        return "gain" if self.clustering.when.overlap_above is None else "overlap"

    def _warn_of_columns(self, unknown: list[str]) -> None:
        """Warn of clustering columns without statistics; a wrong name has its own warning."""
        known = self._find_columns() or {}
        silent = [column for column in unknown if known.get(column) == ""]
        if silent:
            because = (
                f"the base files have no usable statistics on {', '.join(silent)} (NaN, long text "
                f"and only nulls have none), so {self._measure} in these columns is not measured; "
                f"{UNMEASURED_REMEDY}"
            )
            self.warnings.append(ReadWarning(rule=self._measure, because=because))
        if strange := [column for column in unknown if column not in silent]:
            because = (
                f"no base file has statistics on {', '.join(strange)}, so {self._measure} in these "
                "columns is not measured; check the name and that its type has an order"
            )
            self.warnings.append(ReadWarning(rule=self._measure, because=because))


def _clear_bounds(pair: tuple[Any, Any], is_out: Mask) -> tuple[Any, Any]:
    """Return the bounds with nulls for some files."""
    low, high = pair
    keep = to_arrow(~is_out)
    return pc.if_else(keep, low, None), pc.if_else(keep, high, None)
