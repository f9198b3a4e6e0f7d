"""The facts a clustering is planned from: past writes, past clusterings and statistics.

They are read only for tables whose spec declares a rewrite: a clustering, or file sizes.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from reconciler.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconciler.arrays import Integers
    from reconciler.layout.sizing.record_size import FooterSizes, PastWrite
    from reconciler.state.clustering_layout import PastClustering

#: what to do about files without statistics, whose gain and overlap are unknown
UNMEASURED_REMEDY: Final = (
    "name columns with statistics in clustering.columns, or declare clustering.when: always, which "
    "needs none"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadWarning:
    """Something that could not be read, what is skipped because of it, and what to do.

    ``rule`` and ``because`` become those of a plan's warning.
    """

    rule: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecentWrites:
    """The ``newest`` completed writes, oldest first; ``warning``: why they could not be read.

    ``footers``: sizes from a few footers, if past writes do not show record sizes.
    ``has_flink_writers``: a Flink job writes the table, as far as it was asked for.
    """

    newest: tuple[PastWrite, ...] = ()
    warning: ReadWarning | None = None
    footers: FooterSizes | None = None
    has_flink_writers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusteringFacts:
    """The facts of a table that planning its clustering needs.

    ``written``: the newest completed writes, oldest first. ``clusterings``: all completed ones of
    the active timeline, oldest first. ``footers``: sizes from footers of some base files; None if
    none were read. ``bounds``: per declared column, the least and greatest values as two Arrow
    arrays of one ordered type, with one element per file of the state's ``files``, null if unknown;
    None if overlap is not needed or nothing is known. ``rows``: int64 per file, estimated from its
    size if unknown, 0 for log files. ``columns``: the table's columns by name, with ``struct``,
    ``list`` or ``map`` for nested ones, else ``""``; None if no recent write has a schema.
    ``warnings``: what a plan must warn of. ``is_consistently_hashed``: the table has a
    consistent-hashing bucket index. ``damaged``: why base files cannot be read, by their rows.
    """

    written: tuple[PastWrite, ...]
    clusterings: tuple[PastClustering, ...]
    footers: FooterSizes | None
    bounds: tuple[tuple[Any, Any], ...] | None
    rows: Integers
    columns: Mapping[str, str] | None = None
    warnings: tuple[ReadWarning, ...] = ()
    is_consistently_hashed: bool = False
    damaged: Mapping[int, str] = field(default_factory=dict)
