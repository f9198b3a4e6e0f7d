"""What a clustering is judged by, beside the listing: past writes, past clusterings, statistics.

Loaded only for tables whose spec has a clustering block.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from reconciler.layout.sizing.write_history import FooterSizes, PastWrite
    from reconciler.state.clustering_layout import PastClustering


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadWarning:
    """Something that could not be found out: what is not judged for want of it, and what to do.

    ``rule`` and ``because`` are those of a plan's warning.
    """

    rule: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecentWrites:
    """The ``newest`` completed writes, oldest first; ``warning``: why there are none to look at.

    ``footers``: of a few files, where they are to tell of rows and past writes do not.
    """

    newest: tuple[PastWrite, ...] = ()
    warning: ReadWarning | None = None
    footers: FooterSizes | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusteringFacts:
    """What was read of a table for its clustering.

    ``written``: the newest completed writes, oldest first; ``clusterings``: all completed ones of
    the active timeline, likewise. ``footers``: of some base files, None where none were read.
    ``bounds``: per declared column the least and the greatest values, two Arrow arrays of one type
    with an order and one element a file of the state's ``files``, null where nothing is known (of
    log files nothing is); None where no overlap is to be judged, or nothing is known of any file.
    ``rows``: int64 per file, records; estimated from its size where nothing tells, 0 for log files.
    ``columns``: those of the table by name, each with ``struct``, ``list`` or ``map``, else empty;
    None where the newest writes don't say. ``warnings``: what a plan has to warn of.
    ``is_consistently_hashed``: a consistent hashing says in which file group a key is. ``damaged``: why base files
    cannot be read, by their rows of the state's files.
    """

    written: tuple[PastWrite, ...]
    clusterings: tuple[PastClustering, ...]
    footers: FooterSizes | None
    bounds: tuple[tuple[Any, Any], ...] | None
    rows: NDArray[np.int64]
    columns: Mapping[str, str] | None = None
    warnings: tuple[ReadWarning, ...] = ()
    is_consistently_hashed: bool = False
    damaged: Mapping[int, str] = field(default_factory=dict)
