"""Compare the table's own index of column statistics with the footers of base files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any, Final

import numpy as np

from reconciler.errors import FormatError, NotFoundError
from reconciler.hudi.metadata.stored_ranges import StoredRange
from reconciler.index.codec import NewerFormatError, decode_index
from reconciler.index.file_keys import find_rows
from reconciler.index.model import FileIndex
from reconciler.index.version_store import list_versions
from reconciler.index.versions import IndexVersion
from reconciler.lazy_dataclass import dataclass
from reconciler.state.index_state_reader import build_file_keys
from reconciler.state.metadata_differences import OWN_INDEX, CheckBuilder
from reconciler.verification.checked_table import CheckedTable
from reconciler.verification.footer_ranges import (
    ColumnValues,
    FooterRanges,
    FoundRange,
    list_found_ranges,
)
from reconciler.verification.range_comparison import (
    RangeVerdict,
    compare_ranges,
    describe_both,
)

_UNUSED: Final = "reads do not use this version and open every file that it would skip"
_NARROW: Final = "reads that skip files by this column lose rows of the file"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnIndex:
    """The newest readable version of the table's own index, and problems of newer ones."""

    version: IndexVersion | None = None
    index: FileIndex | None = None
    damaged: tuple[tuple[str, str], ...] = ()
    newer: tuple[str, ...] = ()


def read_own_index(table: CheckedTable) -> OwnIndex:
    """Read the table's own index. Raises StorageError; NotFoundError if it was just replaced."""
    damaged: list[tuple[str, str]] = []
    newer: list[str] = []
    for version in reversed(list_versions(table.storage).valid):
        try:
            index, _provenance = decode_index(table.storage.read(version.path), version.path)
        except NewerFormatError as problem:
            newer.append(str(problem))
        except NotFoundError:
            raise
        except FormatError as problem:
            damaged.append((version.path, problem.problem))
        else:
            return OwnIndex(
                version=version, index=index, damaged=tuple(damaged), newer=tuple(newer)
            )
    return OwnIndex(damaged=tuple(damaged), newer=tuple(newer))


def check_own_index(
    table: CheckedTable, own: OwnIndex, footers: FooterRanges, values: ColumnValues
) -> CheckBuilder:
    """Compare the statistics of every chosen base file that the index has.

    A file that it lacks is read, so that is no difference. Raises FormatError, StorageError.
    """
    check = CheckBuilder(metadata_partition=OWN_INDEX, unit="range")
    check.not_compared += own.newer
    for path, problem in own.damaged:
        check.add("wrong", "", path, recorded=problem, actual="a damaged file", effect=_UNUSED)
    if own.index is not None:
        _Comparison(table=table, footers=footers, values=values, check=check).run(own.index)
    return check


@dataclass(kw_only=True, eq=False)
class _Comparison:
    table: CheckedTable
    footers: FooterRanges
    values: ColumnValues
    check: CheckBuilder
    doubts: list[tuple[int, str, StoredRange]] = field(default_factory=list)

    def run(self, index: FileIndex) -> None:
        keys = build_file_keys(self.table.state, self.table.bases)
        rows = find_rows(index, keys)
        files = np.flatnonzero((rows >= 0) & ~self.footers.unread)
        for column, stats in index.columns.items():
            if column not in self.footers.types or stats.type != self.footers.types[column]:
                self.check.not_compared.append(f"column {column}, whose type has changed")
                continue
            stored = list_found_ranges(stats.take(rows[files]))
            found = self.footers.list_ranges(column, files.tolist())
            for file, one, other in zip(files.tolist(), stored, found, strict=True):
                self._compare(file, column, one, other)
        self.values.read(_group_by_file(self.doubts))
        for file, column, claimed in self.doubts:
            found_range = self.values.get(file, column)
            if compare_ranges(claimed, found_range, self.footers.types[column]) is (
                RangeVerdict.NARROW
            ):
                self._add(file, column, claimed, found_range)

    def _compare(self, file: int, column: str, stored: FoundRange, found: FoundRange) -> None:
        """Compare what the index claims; what it does not know is no claim."""
        self.check.compared += 1
        claimed = _to_claim(stored, found)
        if claimed is None:
            return
        match compare_ranges(claimed, found, self.footers.types[column]):
            case RangeVerdict.NARROW:
                self._add(file, column, claimed, found)
            case RangeVerdict.DOUBTFUL:
                self.doubts.append((file, column, claimed))
            case _:
                pass

    def _add(self, file: int, column: str, claimed: StoredRange, found: FoundRange) -> None:
        place = self.table.name_file(int(self.table.bases[file]))
        described = describe_both(claimed, found, self.footers.types[column])
        self.check.add("wrong", *place, column=column, **described, effect=_NARROW)


def _to_claim(stored: FoundRange, found: FoundRange) -> StoredRange | None:
    """Return what the index claims as a stored range; None if it claims nothing.

    A bound that the index does not know takes the place of the footer's, which it allows.
    """
    if stored.is_all_null:
        return StoredRange(least=None, greatest=None, nulls=stored.nulls, values=stored.values)
    least: Any = found.least if stored.least is None else stored.least
    greatest: Any = found.greatest if stored.greatest is None else stored.greatest
    if least is None or greatest is None:
        return None
    return StoredRange(least=least, greatest=greatest, nulls=stored.nulls, values=-1)


def _group_by_file(doubts: list[tuple[int, str, StoredRange]]) -> dict[int, list[str]]:
    columns: dict[int, list[str]] = {}
    for file, column, _claimed in doubts:
        columns.setdefault(file, []).append(column)
    return columns


def list_own_columns(own: OwnIndex) -> Iterator[str]:
    """Yield the columns of the table's own index."""
    yield from () if own.index is None else own.index.columns
