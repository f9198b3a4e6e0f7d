"""What a plan predicts from: statistics of today's files, and sampled rows of those it rewrites.

Loaded only for tables whose spec declares queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from reconciler.state.clustering_facts import ReadWarning

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reconciler.file_slices.base_file.settings import BaseFileSettings
    from reconciler.index.model import FileIndex


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WholeRows:
    """Rows in all columns, stretches of a few row groups: to see what they take in another order.

    ``rows``: a pyarrow table as the files have it, without their own names; ``query_columns``: the same
    rows in the columns of the sample. ``file``: int64 per row, the row of its file in the state's
    files; ``stored_bytes``: float64 per row, the bytes that it takes today, those of its row group shared
    out. ``form``: how the rewrite will write them. ``footer``: what the columns take of the footers
    of their files, on average.
    """

    rows: Any
    query_columns: Any
    file: NDArray[np.int64]
    stored_bytes: NDArray[np.float64]
    form: BaseFileSettings
    footer: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowSample:
    """Some rows of base files, read row group by row group.

    ``rows``: a pyarrow table, columns by their names with dots. ``file``: int64 per row, the row of
    its file in the state's files; the rows of a file are together and in the file's order.
    ``fitted``: int8 per row, how often it is among those that the rewrite will fit its layout to;
    known of files of which all row groups were read.
    ``files``: int64, the files that were looked into, ascending; ``total``: int64, the rows that
    each of them has; ``is_whole``: bool, whether all its row groups were read.
    ``groups``: row groups that were read; ``total_groups``: how many those files have. ``column_shares``: by column
    what it takes of the bytes of these row groups. ``damaged``: why files cannot be read, by their
    rows of the state's files. ``whole``: some rows in all columns, None where none were asked for.
    """

    rows: Any
    file: NDArray[np.int64]
    fit_counts: NDArray[np.int8]
    files: NDArray[np.int64]
    total: NDArray[np.int64]
    is_whole: NDArray[np.bool_]
    groups: int
    total_groups: int
    column_shares: Mapping[str, float] = field(default_factory=dict)
    damaged: Mapping[int, str] = field(default_factory=dict)
    whole: WholeRows | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampleRequest:
    """Base files that are rewritten together, by their rows of the state's files.

    ``fitted``: int64 per file, the rows of it that the rewrite fits its layout to, if it has as
    many; they are drawn by the file's place here (``curves.drawn.spread``).
    """

    files: NDArray[np.int64]
    fit_rows: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ForecastInput:
    """Statistics of today's base files, and rows of some.

    ``index``: on the columns that queries name; None where not enough is known of the files to say
    what is read. ``rows``: int64, the row of each of them in the state's files, ascending.
    ``schema``: the table's columns as Arrow has them; ``zone``: of the session that queries are
    asked in. ``partition_values``: what the folders of partitions say, per column an Arrow array with an
    element a partition of the state's files. ``columns``: what a sample has to hold. ``source``:
    what the statistics were read from. ``damaged``: why footers of them cannot be read, by the row
    in the state's files. ``sample`` is None where no rows were read.
    """

    index: FileIndex | None
    rows: NDArray[np.int64]
    schema: Any
    zone: str
    partition_values: Mapping[str, Any]
    columns: tuple[str, ...]
    source: str
    sample: RowSample | None = None
    warnings: tuple[ReadWarning, ...] = ()
    damaged: Mapping[int, str] = field(default_factory=dict)
