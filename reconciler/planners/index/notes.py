"""What a plan says of a table's index beside the step: what is in the way, and what to do; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from reconciler.index.versions import describe_nested
from reconciler.planners.index.column_stats import (
    MAX_COLUMNS,
    ColumnStatsNeed,
    is_indexed_when_named,
)
from reconciler.planners.reasons import pluralize
from reconciler.plans.model import Note

if TYPE_CHECKING:
    from reconciler.state.index_state import IndexState
    from reconciler.state.model import TableState

_LIST: Final = "hoodie.metadata.index.column.stats.column.list"
#: files that a sentence names
_NAMED: Final = 5


def warn_of_index(state: TableState, known: IndexState) -> Iterator[Note]:
    """Columns that cannot be indexed, versions that are left alone, files that tell nothing."""
    for problem in known.problems.values():
        yield Note("indexColumn", problem)
    for problem in known.newer:
        yield Note("newerIndex", problem)
    for path in known.versions.nested_folders:
        yield Note("indexFolder", describe_nested(path))
    if len(known.unreadable):
        yield Note("damagedFile", _describe_unreadable(state, known))


def _describe_unreadable(state: TableState, known: IndexState) -> str:
    files, count = state.files, len(known.unreadable)
    rows = known.unreadable[:_NAMED].tolist()
    folders = (files.partitions[files.partition[row]] for row in rows)
    paths = [
        f"{folder}/{files.name[row].as_py()}" if folder else files.name[row].as_py()
        for folder, row in zip(folders, rows, strict=True)
    ]
    footers, them, copies = "footers", "them", "them from copies"
    if count == 1:
        footers, them, copies = "footer", "it", "it from a copy"
    more = f" (and {count - _NAMED} more)" if count > _NAMED else ""
    return (
        f"nothing is known of {pluralize(count, 'base file')} whose {footers} could not be read when "
        f"the index was made, so every read opens {them}: {', '.join(paths)}{more}; restore "
        f"{copies}"
    )


def explain_column_stats(need: ColumnStatsNeed, state: TableState) -> Iterator[str]:
    """Why declared columns are not in Hudi's index, nor will be."""
    if need.because is not None:
        yield need.because
        return
    names = dict.fromkeys(need.unsupported)
    listed = [c for c in names if is_indexed_when_named(state, c)]
    never = ", ".join(column for column in names if column not in listed)
    if never:
        yield (
            f"index.hudi: build: Hudi's column_stats has no place for {never}; the index of the "
            "table itself has them"
        )
    if listed:
        yield (
            f"index.hudi: build: writers of Hudi index the first {MAX_COLUMNS} columns by "
            f"themselves and not {', '.join(listed)}; name all that are wanted in {_LIST} of every "
            "writer, and they are built in"
        )
    if need.removed_by_writers:
        yield (
            f"index.hudi: build: a writer has taken {', '.join(need.removed_by_writers)} out of column_stats "
            f"since they were built in; add them to {_LIST} of every writer, or set it nowhere"
        )
