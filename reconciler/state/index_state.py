"""The state of a table's indexes of column statistics, as planners need it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reconciler.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from reconciler.arrays import Integers
    from reconciler.index.codec import Provenance
    from reconciler.index.model import FileIndex
    from reconciler.index.versions import IndexVersion, IndexVersions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IndexState:
    """The index as it is, and what an index of the declared columns needs.

    ``versions``: all listed versions. ``version``, ``index``, ``provenance``: the newest readable
    one, with its statistics of ``wanted`` columns; None if there is none. ``damaged``: newer
    versions that cannot be read, one sentence each; ``newer``: versions that a later version of
    reconciler wrote. ``schema``: the table's columns as readers see them. ``wanted``: type of the
    bounds of each declared column that can be indexed, in the order of the spec; ``problems``: why
    other columns cannot. ``supplied``: wanted columns that readers fill in if a file lacks them.
    ``files``: int64, rows of the state's files, the current base files. ``missing``: those whose
    footers must be read; ``unindexed``: those of them that the last version lacks; ``unreadable``:
    those of them whose footers could not be read when it was built. ``renamed``: columns and fields
    that files may have under another name, or whose name another column has in files.
    ``hudi_columns``: columns of Hudi's column_stats; None if it is not live or the spec does not
    build it; ``hudi_problem``: why that is unknown. ``hudi_defined``: its recorded columns, live or
    not. ``hudi_files_without_entries``: number of ``files`` without an entry of one of its columns.
    ``hudi_removed_by_writers``: wanted columns that we built and writers removed.
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
    files: Integers
    missing: Integers
    unindexed: Integers
    unreadable: Integers
    hudi_columns: tuple[str, ...] | None
    hudi_problem: str | None = None
    hudi_defined: tuple[str, ...] = ()
    hudi_files_without_entries: int = 0
    hudi_removed_by_writers: tuple[str, ...] = ()
    newer: tuple[str, ...] = ()
    renamed: frozenset[str] = frozenset()
