"""Read what a clustering is judged by: the writes of the timeline, and statistics of base files.

Statistics come from the metadata table where its column_stats index is live, in one pass; of the
files that it does not know, from their footers, as long as those are few.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow.compute as pc

from reconciler.errors import FormatError, NotFoundError, UnsupportedError
from reconciler.hudi.arrow import booleans, integers, unique
from reconciler.hudi.declared import top_columns
from reconciler.hudi.files import FileKind
from reconciler.hudi.metadata_partitions import COLUMN_STATS
from reconciler.hudi.metadata_stats import read_column_stats
from reconciler.hudi.metadata_table import open_metadata
from reconciler.sizing.estimate import record_size, tells
from reconciler.sizing.history import Footers
from reconciler.spec.model import Clustering, FileSizes, TableSpec
from reconciler.spec.partitions import left_out
from reconciler.state.bounds import Bounds
from reconciler.state.evidence import Doubt, Evidence
from reconciler.state.footers import Footer, read_footers
from reconciler.state.history import History, read_history
from reconciler.state.view import view_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reconciler.hudi.properties import TableProperties
    from reconciler.state.model import TableState
    from reconciler.storage.api import Storage

#: base files whose footers are read at most for the bounds of columns
MOST_FOOTERS: Final = 5000
#: base files whose footers tell sizes where past writes don't
_SAMPLE: Final = 16
#: a folder a partition, with which file group has which range of hashes (HoodieTableMetaClient)
_HASHING: Final = ".hoodie/.bucket_index/consistent_hashing_metadata"
#: the rule of a plan's warning that an overlap is not judged
_OVERLAP: Final = "overlap"


def gather(
    storage: Storage, properties: TableProperties, spec: TableSpec, state: TableState
) -> Evidence:
    """Everything that is read for a spec with a clustering block.

    ``state`` is the table's, as it was listed. A footer that cannot be read makes a doubt. Raises
    FormatError for damaged files of the timeline, StorageError; NotFoundError where the timeline
    has moved on since it was listed.
    """
    assert spec.clustering is not None, "the spec has a clustering block"
    history = read_history(storage, properties, state.timeline)
    return _Gathering(storage, properties, spec, spec.clustering, state, history).evidence()


@dataclass(slots=True)
class _Gathering:
    """``rows``: per file, -1 as long as nothing tells. ``footers``: by row of the file."""

    storage: Storage
    properties: TableProperties
    spec: TableSpec
    asked: Clustering
    state: TableState
    history: History
    rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    footers: dict[int, Footer] = field(default_factory=dict)
    doubts: list[Doubt] = field(default_factory=list)

    def evidence(self) -> Evidence:
        files = self.state.files
        self.rows = np.full(len(files), -1, np.int64)
        candidates = self._candidates()
        bounds = self._bounds(candidates) if self._judges_overlap else None
        if not tells(self.history.written) and not self.footers:
            self._read_footers(_spread(candidates, files.size), ())
        self._doubt_footers()
        found = [footer for footer in self.footers.values() if footer.problem is None]
        footers = None
        if found:
            footers = Footers(
                rows=np.array([footer.rows for footer in found], np.int64),
                bytes=np.array([footer.bytes for footer in found], np.int64),
                data=np.array([footer.data for footer in found], np.int64),
            )
        return Evidence(
            written=self.history.written,
            clusterings=self.history.clusterings,
            footers=footers,
            bounds=bounds,
            rows=self._all_rows(footers),
            columns=self._columns(),
            doubts=tuple(self.doubts),
            hashed=self._is_hashed(),
            damaged={
                row: footer.problem
                for row, footer in self.footers.items()
                if footer.problem is not None
            },
        )

    def _is_hashed(self) -> bool:
        """Whether the bucket index of some partition hashes consistently."""
        try:
            return bool(self.storage.list(_HASHING))
        except NotFoundError:
            return False

    def _columns(self) -> dict[str, str] | None:
        """The table's; partition columns are some of them, whether files have them or not."""
        found = top_columns(self.history.schema) if self.history.schema else None
        return {**found, **dict.fromkeys(self.properties.partition_fields, "")} if found else None

    @property
    def _judges_overlap(self) -> bool:
        when = self.asked.when
        return bool(self.asked.columns) and not when.always and when.overlap_above is not None

    def _candidates(self) -> NDArray[np.int64]:
        """Rows of the base files of newest slices in the partitions that the filter admits."""
        files, view = self.state.files, view_of(self.state)
        out = left_out(self.state.partitions, self.asked.partitions)
        known = set(self.state.partitions)
        is_in = np.array([p in known and p not in out for p in files.partitions], np.bool_)
        is_base = (view.is_newest & view.is_live)[view.slice_of] & (files.kind == FileKind.BASE)
        rows: NDArray[np.int64] = np.flatnonzero(is_base & is_in[files.partition])
        return rows

    def _bounds(self, candidates: NDArray[np.int64]) -> tuple[tuple[Any, Any], ...] | None:
        """The bounds of the clustering columns, None where there are none at all."""
        files, columns = self.state.files, self.asked.columns
        found = [Bounds(files=len(files)) for _ in columns]
        is_told = np.zeros((len(columns), len(files)), np.bool_)
        if COLUMN_STATS in self.properties.metadata_partitions:
            try:
                self._of_index(candidates, found, is_told)
            except (FormatError, UnsupportedError) as problem:
                said = f"the index column_stats is left aside, footers are read instead: {problem}"
                self.doubts.append(Doubt(rule="columnStats", because=said))
        crowded = self._crowded(candidates)
        missing = crowded[~is_told[:, crowded].all(axis=0)]
        unjudged = np.zeros(len(files.partitions), np.bool_)
        if len(missing) > MOST_FOOTERS:
            unjudged[files.partition[missing]] = True
            self._doubt_overlap(missing, int(unjudged.sum()))
        elif len(missing):
            self._of_footers(missing, found)
        arrays = [one.arrays(files.instant) for one in found]
        if unjudged.any():
            arrays = [_without(pair, unjudged[files.partition]) for pair in arrays]
        unknown = [
            column
            for column, (low, _) in zip(columns, arrays, strict=True)
            if low.null_count == len(low)
        ]
        is_seen = is_told.any() or any(f.problem is None for f in self.footers.values())
        if unknown and is_seen and not unjudged.any():
            self._doubt_columns(unknown)
        return tuple(arrays) if len(unknown) < len(columns) else None

    def _of_index(
        self, candidates: NDArray[np.int64], found: list[Bounds], is_told: NDArray[np.bool_]
    ) -> None:
        """What the metadata table knows of the candidates."""
        table = open_metadata(
            self.storage,
            version=self.properties.table_version,
            data=self.state.timeline,
            live=self.properties.metadata_partitions,
        )
        for stats in read_column_stats(table, self.asked.columns, self._folders(candidates)):
            rows = candidates[np.array(stats.file, np.int64)]
            found[stats.column].add(rows, stats.least, stats.greatest)
            is_told[stats.column, rows] = True
            self.rows[rows] = np.maximum(self.rows[rows], np.array(stats.values, np.int64))

    def _folders(self, candidates: NDArray[np.int64]) -> Iterator[tuple[str, list[str]]]:
        """Partition paths with the names of their candidates, which are sorted by partition."""
        files = self.state.files
        partition = files.partition[candidates]
        for code in unique(partition).tolist():
            start, end = np.searchsorted(partition, [code, code + 1])
            names = files.name.take(integers(candidates[start:end])).to_pylist()
            yield files.partitions[code], names

    def _crowded(self, candidates: NDArray[np.int64]) -> NDArray[np.int64]:
        """Candidates of partitions with so many base files that too many may overlap."""
        partition = self.state.files.partition[candidates]
        counts = np.bincount(partition, minlength=len(self.state.files.partitions))
        is_crowded = counts > (self.asked.when.overlap_above or 0.0)
        return candidates[is_crowded[partition]]

    def _of_footers(self, missing: NDArray[np.int64], found: list[Bounds]) -> None:
        self._read_footers(missing, self.asked.columns)
        told = [(row, f) for row in missing.tolist() if (f := self.footers[row]).problem is None]
        rows = np.array([row for row, _ in told], np.int64)
        for nth, one in enumerate(found):
            pairs = [footer.bounds[nth] or (None, None) for _, footer in told]
            one.add(rows, [low for low, _ in pairs], [high for _, high in pairs])

    def _read_footers(self, rows: NDArray[np.int64], columns: tuple[str, ...]) -> None:
        files = self.state.files
        names = files.name.take(integers(rows)).to_pylist()
        folders = [files.partitions[code] for code in files.partition[rows].tolist()]
        paths = [f"{p}/{name}" if p else name for p, name in zip(folders, names, strict=True)]
        sizes = files.size[rows].tolist()
        read = read_footers(self.storage, list(zip(paths, sizes, strict=True)), columns)
        for row, footer in zip(rows.tolist(), read, strict=True):
            self.footers[row] = footer
            if footer.problem is None:
                self.rows[row] = footer.rows

    def _all_rows(self, footers: Footers | None) -> NDArray[np.int64]:
        """Records of every file, estimated from its size where nothing tells."""
        files = self.state.files
        sizes = self.spec.files or FileSizes()
        size = record_size(self.history.written, footers, fallback=sizes.record_size)
        guess = size.data_of(files.size) / max(size.per_row, 1e-9)
        rows = np.where(self.rows >= 0, self.rows, np.maximum(guess, 1).astype(np.int64))
        found: NDArray[np.int64] = np.where(files.kind == FileKind.BASE, rows, 0)
        return found

    def _doubt_footers(self) -> None:
        damaged = [footer.problem for footer in self.footers.values() if footer.problem is not None]
        if damaged:
            some = f" (and {len(damaged) - 1} more)" if len(damaged) > 1 else ""
            said = (
                f"{damaged[0]}{some}; until then nothing is known of the rows in there, and they "
                "are left out of every clustering"
            )
            self.doubts.append(Doubt(rule="damagedFile", because=said))

    def _doubt_overlap(self, missing: NDArray[np.int64], partitions: int) -> None:
        columns = ", ".join(self.asked.columns)
        said = (
            f"clustering.when.overlapAbove is not judged in {partitions} "
            f"{'partition' if partitions == 1 else 'partitions'}: {len(missing)} base files have "
            f"no statistics on {columns} in the metadata table, and no more than {MOST_FOOTERS} "
            "footers are read; let the table's writers keep the index "
            "(hoodie.metadata.index.column.stats.enable), or declare clustering.partitions"
        )
        self.doubts.append(Doubt(rule=_OVERLAP, because=said))

    def _doubt_columns(self, unknown: list[str]) -> None:
        """Of a column that the table has and that has an order it is not the name."""
        known = self._columns() or {}
        silent = [column for column in unknown if known.get(column) == ""]
        if silent:
            said = (
                f"the statistics of the base files on {', '.join(silent)} tell nothing: where "
                "there is a NaN, text too long for them or nothing but nulls there are none that "
                "count. No overlap is seen in it"
            )
            self.doubts.append(Doubt(rule=_OVERLAP, because=said))
        if strange := [column for column in unknown if column not in silent]:
            said = (
                f"no base file has statistics on {', '.join(strange)}: is the name right, and has "
                "its type an order? No overlap is seen in it"
            )
            self.doubts.append(Doubt(rule=_OVERLAP, because=said))


def _without(pair: tuple[Any, Any], is_out: NDArray[np.bool_]) -> tuple[Any, Any]:
    """The bounds with nulls for some files."""
    low, high = pair
    keep = booleans(~is_out)
    return pc.if_else(keep, low, None), pc.if_else(keep, high, None)


def _spread(candidates: NDArray[np.int64], size: NDArray[np.int64]) -> NDArray[np.int64]:
    """A few files of all sizes, ascending."""
    if len(candidates) <= _SAMPLE:
        return candidates
    by_size = candidates[np.argsort(size[candidates], kind="stable")]
    found: NDArray[np.int64] = np.sort(
        by_size[np.arange(_SAMPLE) * (len(by_size) - 1) // (_SAMPLE - 1)]
    )
    return found
