"""The rows of a part, their key hashes, and the columns they are ordered by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from reconciler.basefile.stamp import FILE_NAME, RECORD_KEY
from reconciler.curves.lanes import Lane
from reconciler.curves.ties import ties
from reconciler.errors import NotFoundError, StorageError, UnsupportedError
from reconciler.merge.avro_schema import META_COLUMNS
from reconciler.merge.ordering import column_at
from reconciler.merge.slice import SliceReading, Source, read_slice
from reconciler.rewrite.model import Group, Rewrite, Tally
from reconciler.rewrite.parts import Part

_WRAP: Final = (1 << 64) - 1
_ODD: Final = np.uint64(0x9E37_79B9_7F4A_7C15)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns:
    """What is read of the files of a group, and what of it means what.

    ``reading``: of the columns that new files hold or that order their rows. ``key``: the columns
    that rows are told apart by; empty: by all that can be hashed.
    """

    reading: SliceReading
    ordered: tuple[str, ...]
    key: tuple[str, ...]

    @classmethod
    def of(cls, work: Rewrite, group: Group, *, only_ordered: bool = False) -> Self:
        """Of a group, whose folder says the values of columns that files lack.

        ``only_ordered``: nothing but what orders the rows, for a sample.
        """
        known = work.reading.schema.names
        ordered = work.ordering.columns
        if only_ordered:
            names = [name.partition(".")[0] for name in ordered]
        else:
            has_keys = work.form.has_keys
            ours = {FILE_NAME} if has_keys else {*META_COLUMNS}
            stored = [name for name in work.schema.columns.names if name not in ours]
            key = () if has_keys else work.key_fields
            names = [*stored, *(name.partition(".")[0] for name in (*ordered, *key))]
        columns = tuple(dict.fromkeys(name for name in names if name in known))
        missing = {**work.reading.missing, **group.values}
        return cls(
            reading=replace(work.reading, columns=columns, missing=missing),
            ordered=ordered,
            key=(RECORD_KEY,) if work.form.has_keys else work.key_fields,
        )

    def read(
        self, part: Part, source: Source, on_footer: Callable[[Any], None]
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a part. Raises as ``read_slice`` does, StorageError for a file that went."""
        try:
            yield from read_slice(
                part.files, self.reading, source, share=part.share, on_footer=on_footer
            )
        except NotFoundError as gone:
            raise StorageError(
                gone.path, "went away after the clustering was planned; plan it again"
            ) from None

    def hashes(self, rows: Any) -> Lane:
        """64 bits a row, of all of its key: to tally rows by, and to part rows that are alike."""
        found: Lane = np.zeros(len(rows), np.uint64)
        for name in self.key or rows.schema.names:
            column = column_at(rows, name)
            try:
                lane = ties(column, name)
            except UnsupportedError:
                if self.key:
                    raise
                continue  # without keys: a column that has no order tells nothing
            found = found * _ODD + lane
        return found

    def by_order(self, rows: Any, group: Group) -> pa.RecordBatch:
        """The columns that order the rows, by the names declared."""
        columns = [self._column(rows, name, group) for name in self.ordered]
        return pa.RecordBatch.from_arrays(columns, names=list(self.ordered))

    @staticmethod
    def _column(rows: Any, name: str, group: Group) -> Any:
        column = column_at(rows, name)
        if column is not None:
            return column
        if name in group.values:
            value = group.values[name]
            scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value)
            return pa.repeat(scalar, len(rows))
        raise UnsupportedError(f"rows cannot be clustered by {name}: there is no such column")


def tally_of(hashes: Lane) -> Tally:
    return Tally(rows=len(hashes), keys=int(hashes.sum(dtype=np.uint64)) & _WRAP)
