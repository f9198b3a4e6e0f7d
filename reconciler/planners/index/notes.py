"""Warnings about a table's indexes: what prevents a step and what to do; pure."""

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
_MAX_NAMES: Final = 5


def warn_of_index(state: TableState, known: IndexState) -> Iterator[Note]:
    """Warn of columns that cannot be indexed, foreign versions, and files without statistics."""
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
    rows = known.unreadable[:_MAX_NAMES].tolist()
    paths = [files.locate_file(row)[0] for row in rows]
    footers, them, copies = "footers", "them", "them from copies"
    if count == 1:
        footers, them, copies = "footer", "it", "it from a copy"
    more = f" (and {count - _MAX_NAMES} more)" if count > _MAX_NAMES else ""
    return (
        f"the index has no statistics of {pluralize(count, 'base file')} whose {footers} could "
        f"not be read, so every read opens {them}: {', '.join(paths)}{more}; restore {copies}"
    )


def explain_column_stats(need: ColumnStatsNeed, state: TableState) -> Iterator[str]:
    """Yield why declared columns are not and will not be in Hudi's index."""
    if need.because is not None:
        yield need.because
        return
    names = dict.fromkeys(need.unsupported)
    listed = [c for c in names if is_indexed_when_named(state, c)]
    never = ", ".join(column for column in names if column not in listed)
    if never:
        yield (
            f"index.hudi: build: Hudi's column_stats cannot hold {never}; reconciler's own index "
            "has them"
        )
    if listed:
        yield (
            f"index.hudi: build: Hudi writers index only the first {MAX_COLUMNS} columns by "
            f"default, so not {', '.join(listed)}; list all wanted columns in {_LIST} of every "
            "writer"
        )
    if need.removed_by_writers:
        yield (
            f"index.hudi: build: a writer has removed {', '.join(need.removed_by_writers)} from "
            f"column_stats since they were built; add them to {_LIST} of every writer, or remove "
            "that option"
        )
