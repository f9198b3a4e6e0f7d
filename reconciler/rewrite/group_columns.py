"""The rows of a part, their key hashes, and the columns they are ordered by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from reconciler.errors import NotFoundError, StorageError, UnsupportedError
from reconciler.file_slices.base_file.meta_columns import FILE_NAME, RECORD_KEY
from reconciler.file_slices.merge.avro_schema import META_COLUMNS
from reconciler.file_slices.merge.ordering import find_column
from reconciler.file_slices.merge.slice_reader import SliceReadOptions, SliceSource, read_slice
from reconciler.layout.curves.lanes import Lane
from reconciler.layout.curves.tie_breakers import make_tie_breakers
from reconciler.rewrite.model import RewriteGroup, RewriteJob, Tally
from reconciler.rewrite.slice_parts import SlicePart

_WRAP: Final = (1 << 64) - 1
_ODD: Final = np.uint64(0x9E37_79B9_7F4A_7C15)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupColumns:
    """What is read of the files of a group, and what of it means what.

    ``reading``: of the columns that new files hold or that order their rows. ``key``: the columns
    that rows are told apart by; empty: by all that can be hashed.
    """

    reading: SliceReadOptions
    ordering: tuple[str, ...]
    key: tuple[str, ...]

    @classmethod
    def from_job(cls, job: RewriteJob, group: RewriteGroup, *, only_ordering: bool = False) -> Self:
        """Of a group, whose folder says the values of columns that files lack.

        ``only_ordering``: nothing but what orders the rows, for a sample.
        """
        known = job.reading.schema.names
        ordered = job.ordering.columns
        if only_ordering:
            names = [name.partition(".")[0] for name in ordered]
        else:
            has_keys = job.form.has_keys
            ours = {FILE_NAME} if has_keys else {*META_COLUMNS}
            stored = [name for name in job.schema.columns.names if name not in ours]
            key = () if has_keys else job.key_fields
            names = [*stored, *(name.partition(".")[0] for name in (*ordered, *key))]
        columns = tuple(dict.fromkeys(name for name in names if name in known))
        missing = {**job.reading.missing, **group.values}
        return cls(
            reading=replace(job.reading, columns=columns, missing=missing),
            ordering=ordered,
            key=(RECORD_KEY,) if job.form.has_keys else job.key_fields,
        )

    def read(
        self, part: SlicePart, source: SliceSource, on_footer: Callable[[Any], None]
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a part. Raises as ``parse_input_slice`` does, StorageError for a file that went."""
        try:
            yield from read_slice(
                part.files, self.reading, source, share=part.share, on_footer=on_footer
            )
        except NotFoundError as gone:
            raise StorageError(
                gone.path, "went away after the clustering was planned; plan it again"
            ) from None

    def hash_keys(self, rows: Any) -> Lane:
        """64 bits a row, of all of its key: to tally rows by, and to part rows that are alike."""
        found: Lane = np.zeros(len(rows), np.uint64)
        for name in self.key or rows.schema.names:
            column = find_column(rows, name)
            try:
                lane = make_tie_breakers(column, name)
            except UnsupportedError:
                if self.key:
                    raise
                continue  # without keys: a column that has no order tells nothing
            found = found * _ODD + lane
        return found

    def select_ordering(self, rows: Any, group: RewriteGroup) -> pa.RecordBatch:
        """The columns that order the rows, by the names declared."""
        columns = [self._column(rows, name, group) for name in self.ordering]
        return pa.RecordBatch.from_arrays(columns, names=list(self.ordering))

    @staticmethod
    def _column(rows: Any, name: str, group: RewriteGroup) -> Any:
        column = find_column(rows, name)
        if column is not None:
            return column
        if name in group.values:
            value = group.values[name]
            scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value)
            return pa.repeat(scalar, len(rows))
        raise UnsupportedError(f"rows cannot be clustered by {name}: there is no such column")


def tally_hashes(hashes: Lane) -> Tally:
    return Tally(rows=len(hashes), keys=int(hashes.sum(dtype=np.uint64)) & _WRAP)
