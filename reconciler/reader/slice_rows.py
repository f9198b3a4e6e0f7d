"""Read the rows of a scan's slices as Arrow batches; Python workers run this."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Mask
from reconciler.errors import UnsupportedError
from reconciler.file_slices.merge.slice_reader import (
    SliceFiles,
    SliceReadOptions,
    SliceSource,
    read_slice,
)
from reconciler.reader.model import Scan
from reconciler.reader.skipping import RowGroupTest

COMMIT_TIME: Final = "_hoodie_commit_time"
#: the end of base file names of a metadata-only bootstrap, whose data are elsewhere
_SKELETON: Final = "_00000000000001.parquet"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SliceRowReader:
    """Turns slices of a scan into rows of its result; the same for all slices, picklable.

    ``schema``: of the result. ``restored``: its columns that folder names hold. ``commit_times``:
    the writes whose rows count, None for all. ``groups``: which row groups of base files may match.
    """

    slices: SliceReadOptions
    schema: pa.Schema
    restored: frozenset[str]
    commit_times: tuple[str, ...] | None
    groups: RowGroupTest | None = None

    @classmethod
    def from_scan(cls, scan: Scan) -> Self:
        from_folder = frozenset(scan.partition_schema.names)
        columns = [name for name in scan.schema.names if name not in from_folder]
        if scan.commit_times is not None and COMMIT_TIME not in columns:
            columns.append(COMMIT_TIME)
        return cls(
            slices=SliceReadOptions(
                rules=scan.rules,
                schema=scan.table_schema,
                committed=scan.committed,
                columns=tuple(columns),
            ),
            schema=scan.schema,
            restored=from_folder,
            commit_times=scan.commit_times,
            groups=RowGroupTest.from_scan(scan),
        )

    def read(
        self, files: SliceFiles, values: Mapping[str, Any], source: SliceSource
    ) -> Iterator[pa.RecordBatch]:
        """Yield a slice's rows in the columns of ``schema``; ``values``: those of its partition.

        Row groups in which no row can match are skipped. Raises as ``read_slice`` does.
        """
        for batch in read_slice(
            files, self.slices, source, select_row_groups=self._make_row_group_filter(files, values)
        ):
            rows = batch if self.commit_times is None else self._filter_commits(batch)
            if len(rows):
                yield self._add_partition_values(rows, values)

    def _make_row_group_filter(
        self, files: SliceFiles, values: Mapping[str, Any]
    ) -> Callable[[Any], Mask] | None:
        row_groups = self.groups
        if row_groups is None or files.base is None:
            return None
        return lambda footer: row_groups.may_match(files.base or "", footer, values)

    def _filter_commits(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        times = pa.array(self.commit_times, pa.string())
        return batch.filter(pc.is_in(batch.column(COMMIT_TIME), value_set=times))

    def _add_partition_values(
        self, rows: pa.RecordBatch, values: Mapping[str, Any]
    ) -> pa.RecordBatch:
        if not self.schema.names:
            return rows.select([])
        columns = [
            pa.repeat(_to_scalar(values[field.name], field.type), len(rows))
            if field.name in self.restored
            else rows.column(field.name)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def get_slice_files(scan: Scan, row: int) -> SliceFiles:
    """Return the files of a slice by its row in ``Scan.slices``."""
    slices = scan.slices
    return SliceFiles(
        base=slices.column("base")[row].as_py(),
        base_size=slices.column("base_size")[row].as_py(),
        logs=tuple(slices.column("logs")[row].as_py()),
    )


def check_mergeable(scan: Scan) -> None:
    """Raise UnsupportedError naming a slice that cannot be read here.

    Call it after pruning, so that slices that are not read do not count.
    """
    bases = scan.slices.column("base")
    skeletons = bases.filter(pc.fill_null(pc.ends_with(bases, _SKELETON), False))
    if len(skeletons):
        raise UnsupportedError(
            f"{skeletons[0].as_py()}: is a bootstrap skeleton, whose data are in files outside the "
            "table; rewrite its partition with Hudi (for example by clustering)"
        )
    if scan.rules.refusal and scan.has_logs.any():
        raise UnsupportedError(f"{scan.rules.refusal}; its log files cannot be read")


def _to_scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    return value if isinstance(value, pa.Scalar) else pa.scalar(value, kind)
