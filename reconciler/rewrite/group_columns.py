"""Read the rows of a part: their columns, their key hashes and the columns that order them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from reconciler.errors import NotFoundError, StorageError, UnsupportedError
from reconciler.file_slices.base_file.meta_columns import FILE_NAME, RECORD_KEY
from reconciler.file_slices.merge.avro_schema import META_COLUMNS
from reconciler.file_slices.merge.ordering import find_column
from reconciler.file_slices.merge.slice_reader import SliceReadOptions, SliceSource, read_slice
from reconciler.layout.curves.lanes import Lane
from reconciler.layout.curves.pseudo_random import make_tie_breakers
from reconciler.lazy_dataclass import dataclass
from reconciler.rewrite.model import RewriteGroup, RewriteJob, Tally
from reconciler.rewrite.slice_parts import SlicePart

#: what is wrong with an input file that does not exist
REMOVED: Final = "was removed after the clustering was planned"
_HASH_MASK: Final = (1 << 64) - 1
_HASH_FACTOR: Final = np.uint64(0x9E37_79B9_7F4A_7C15)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupColumns:
    """The columns that are read from a group's files, and their uses.

    ``reading``: the columns that new files hold or that order rows. ``key``: the columns that
    identify rows; empty: all columns that can be hashed.
    """

    reading: SliceReadOptions
    ordering: tuple[str, ...]
    key: tuple[str, ...]

    @classmethod
    def from_job(cls, job: RewriteJob, group: RewriteGroup, *, only_ordering: bool = False) -> Self:
        """Return the columns of a group; its folder supplies values of columns that files lack.

        ``only_ordering``: only the columns that order rows, for a sample.
        """
        known_columns = job.reading.schema.names
        ordered = job.ordering.columns
        if only_ordering:
            names = [name.partition(".")[0] for name in ordered]
        else:
            has_keys = job.form.has_keys
            own_columns = {FILE_NAME} if has_keys else {*META_COLUMNS}
            stored = [name for name in job.schema.columns.names if name not in own_columns]
            key = () if has_keys else job.key_fields
            names = [*stored, *(name.partition(".")[0] for name in (*ordered, *key))]
        columns = tuple(dict.fromkeys(name for name in names if name in known_columns))
        missing = {**job.reading.missing, **group.values}
        return cls(
            reading=replace(
                job.reading, columns=columns, missing=missing, codes_texts=not only_ordering
            ),
            ordering=ordered,
            key=(RECORD_KEY,) if job.form.has_keys else job.key_fields,
        )

    def read(
        self, part: SlicePart, source: SliceSource, on_footer: Callable[[Any], None]
    ) -> Iterator[pa.RecordBatch]:
        """Read the rows of a part.

        Raises as ``read_slice`` does, and StorageError for a missing file.
        """
        try:
            yield from read_slice(
                part.files, self.reading, source, share=part.share, on_footer=on_footer
            )
        except NotFoundError as gone:
            raise StorageError(gone.path, f"{REMOVED}; plan again") from None

    def hash_keys(self, rows: Any) -> Lane:
        """Return a 64-bit hash of each row's key, for tallies and to break ties of equal rows."""
        hashes: Lane = np.zeros(len(rows), np.uint64)
        for name in self.key or rows.schema.names:
            column = find_column(rows, name)
            try:
                lane = make_tie_breakers(column, name)
            except UnsupportedError:
                if self.key:
                    raise
                continue  # without keys, columns that cannot be hashed are skipped
            hashes = hashes * _HASH_FACTOR + lane
        return hashes

    def select_ordering(self, rows: Any, group: RewriteGroup) -> pa.RecordBatch:
        """Return the columns that order the rows, under their declared names."""
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
        raise UnsupportedError(f"cannot cluster by {name}: the table has no such column")


def tally_hashes(hashes: Lane) -> Tally:
    return Tally(rows=len(hashes), keys=int(hashes.sum(dtype=np.uint64)) & _HASH_MASK)
