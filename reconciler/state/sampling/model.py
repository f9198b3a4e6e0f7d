"""The input of forecasts: statistics of current files and sampled rows of files to rewrite.

It is read only for tables whose spec declares queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from reconciler.arrays import Codes, Floats, Integers, Mask
from reconciler.lazy_dataclass import dataclass
from reconciler.state.clustering_facts import ReadWarning

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reconciler.file_slices.base_file.settings import BaseFileSettings
    from reconciler.index.model import FileIndex


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WholeRows:
    """Rows of a few row groups in all columns, to measure their size in another order.

    ``rows``: a pyarrow table as in the files, without the file name column. ``query_columns``: the
    same rows in the columns of the sample. ``file``: int64 per row, the row of its file in the
    state's files. ``stored_bytes``: float64 per row, its share of the bytes of its row group.
    ``form``: how the rewrite writes them. ``footer``: mean bytes of column metadata in footers.
    """

    rows: Any
    query_columns: Any
    file: Integers
    stored_bytes: Floats
    form: BaseFileSettings
    footer: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowSample:
    """Sampled rows of base files.

    ``rows``: a pyarrow table, columns by their names with dots. ``file``: int64 per row, the row of
    its file in the state's files; rows of a file are adjacent and in its order.
    ``fit_counts``: int8 per row, how often the rewrite uses it to fit its layout; known for files
    whose row groups were all read.
    ``files``: int64, the sampled files, ascending; ``total``: int64, the rows of each;
    ``is_whole``: bool, all its row groups were read.
    ``groups`` row groups were read, of ``total_groups`` in these files. ``column_shares``: share of
    each column in the bytes of these row groups. ``damaged``: why files cannot be read, by row.
    ``whole``: some rows in all columns; None if not requested.
    """

    rows: Any
    file: Integers
    fit_counts: NDArray[np.int8]
    files: Integers
    total: Integers
    is_whole: Mask
    groups: int
    total_groups: int
    column_shares: Mapping[str, float] = field(default_factory=dict)
    damaged: Mapping[int, str] = field(default_factory=dict)
    whole: WholeRows | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampleRequest:
    """Base files that are rewritten together, by their rows of the state's files.

    ``fit_rows``: int64 per file, how many of its rows the rewrite uses to fit its layout; they are
    chosen by the position of the file here.
    """

    files: Integers
    fit_rows: Integers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogRows:
    """The merged rows of the log files of some file groups, to know what a compaction writes.

    ``rows``: a pyarrow table in the columns of queries. ``group``: int32 per row, the file group.
    ``groups``: int32, the file groups whose log files were read.
    """

    rows: Any
    group: Codes
    groups: Codes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogFacts:
    """Facts about the log files that a current read merges, an element each.

    ``files``: int64, their rows of the state's files, ascending. ``statistics``: Hudi's bounds by
    which reads skip log files; None if they skip none. ``indexed``: statistics of the base files of
    ``ForecastInput.rows`` in the table's own index, by which reads skip slices with log files, and
    ``is_indexed``: which files are in it; None without. ``records``, ``inserts``: int64, records
    and deletions in a file, and records of new rows, -1 if unknown. ``sample``: None if no log file
    was read.
    """

    files: Integers
    records: Integers
    inserts: Integers
    statistics: FileIndex | None = None
    indexed: FileIndex | None = None
    is_indexed: Mask | None = None
    sample: LogRows | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ForecastInput:
    """Statistics of current base files, and sampled rows of some.

    ``index``: statistics of the columns that queries name; None if too little is known of the
    files. ``rows``: int64, the row of each file in the state's files, ascending.
    ``schema``: the table's Arrow schema; ``zone``: time zone of the sessions that run the queries.
    ``partition_values``: values from partition paths, per column an Arrow array with one element
    per partition of the state's files. ``columns``: columns that a sample must have. ``source``:
    what the statistics were read from. ``damaged``: why footers cannot be read, by row.
    ``sample`` is None if no rows were read; ``logs`` is None if no slice has log files.
    """

    index: FileIndex | None
    rows: Integers
    schema: Any
    zone: str = "UTC"
    partition_values: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    source: str = ""
    sample: RowSample | None = None
    warnings: tuple[ReadWarning, ...] = ()
    damaged: Mapping[int, str] = field(default_factory=dict)
    logs: LogFacts | None = None
