"""The index of column statistics as a table has it; one frozen value that planners read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from reconciler.index.codec import Provenance
    from reconciler.index.model import FileIndex
    from reconciler.index.versions import IndexVersion, IndexVersions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IndexState:
    """The index as it is, and what an index of the declared columns needs.

    ``versions``: all that are listed. ``version``, ``index``, ``provenance``: the newest that can be
    read, with the statistics of ``wanted`` columns that it has; None where none can. ``damaged``:
    newer ones that cannot be read, a sentence each; ``newer``: those that a later version of
    reconciler wrote.
    ``schema``: the table's columns as readers see them. ``wanted``: by declared column that can be
    indexed the type of its bounds, in the order of the spec; ``problems``: by any other column why
    it cannot be. ``supplied``: of the wanted, those that readers fill in where a file lacks them,
    as ``index_of`` asks for them.
    ``files``: int64, rows of the state's files: the base files of newest slices. ``missing``: those
    whose footers must be read; of these the last version has not ``unindexed`` ones at all, and of
    ``unreadable`` ones it knows that their footers could not be read.
    ``renamed``: columns and fields that files may hold under another name, or another column under
    theirs.
    ``hudi_columns``: what Hudi's own column_stats has, None where it is not live or the spec does
    not ask to build it; ``hudi_problem`` says why it cannot be known. ``hudi_defined``: what is
    written down of it, live or not. ``hudi_files_without_entries``: how many of ``files`` lack an entry of a column
    that it has. ``hudi_removed_by_writers``: wanted columns that a build of ours gave it and writers took out.
    """

    versions: IndexVersions
    version: IndexVersion | None
    index: FileIndex | None
    provenance: Provenance | None
    damaged: tuple[str, ...]
    schema: Any
    wanted: Mapping[str, Any]
    problems: Mapping[str, str]
    supplied: frozenset[str]
    files: NDArray[np.int64]
    missing: NDArray[np.int64]
    unindexed: NDArray[np.int64]
    unreadable: NDArray[np.int64]
    hudi_columns: tuple[str, ...] | None
    hudi_problem: str | None = None
    hudi_defined: tuple[str, ...] = ()
    hudi_files_without_entries: int = 0
    hudi_removed_by_writers: tuple[str, ...] = ()
    newer: tuple[str, ...] = ()
    renamed: frozenset[str] = frozenset()
