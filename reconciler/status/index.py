"""The status of a table's index of column statistics; pure.

Only tables with an index block in their spec have one.
"""

from __future__ import annotations

from reconciler.lazy_dataclass import dataclass
from reconciler.state.model import TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatus:
    """The newest readable version of the index; None and empty values if there is none.

    ``declared``: columns of the spec; ``unindexable``: those of them that cannot be indexed.
    ``file``: path below the table; ``bytes``: its length. ``instant``: the newest instant that it
    covers; ``commits_since``: writes completed after it. ``columns``: its columns. ``files``: base
    files of newest slices; ``files_covered``: those of them with every declared column that can be
    indexed. ``damaged``: newer versions that cannot be read, one sentence each. ``hudi_columns``:
    columns of Hudi's column_stats; None if it is not live or not declared.
    """

    declared: tuple[str, ...]
    unindexable: tuple[str, ...] = ()
    file: str | None = None
    bytes: int = 0
    instant: str | None = None
    commits_since: int | None = None
    columns: tuple[str, ...] = ()
    files: int = 0
    files_covered: int = 0
    damaged: tuple[str, ...] = ()
    hudi_columns: tuple[str, ...] | None = None

    @property
    def missed_by_hudi(self) -> tuple[str, ...]:
        """Declared columns that Hudi's live column_stats lacks and could have.

        >>> IndexStatus(declared=("a", "b"), hudi_columns=("a",)).missed_by_hudi
        ('b',)
        """
        if self.hudi_columns is None:
            return ()
        done_with = {*self.hudi_columns, *self.unindexable}
        return tuple(column for column in self.declared if column not in done_with)


def index_status(state: TableState) -> IndexStatus | None:
    """Return the status of a table's index; None if its spec has no index block."""
    known = state.index_state
    if known is None:
        return None
    last, provenance = known.version, known.provenance
    covered = len(known.files) - len(known.missing) if known.wanted else 0
    return IndexStatus(
        declared=(*known.wanted, *known.problems),
        unindexable=tuple(known.problems),
        file=None if last is None else last.path,
        bytes=0 if last is None else last.size,
        instant=None if last is None else last.name.instant,
        commits_since=None
        if last is None
        else sum(i.requested > last.name.instant for i in state.timeline.commits),
        columns=() if provenance is None else tuple(provenance.columns),
        files=len(known.files),
        files_covered=covered,
        damaged=(*known.newer, *known.damaged),
        hudi_columns=known.hudi_columns,
    )
