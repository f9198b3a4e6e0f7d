"""Whether Hudi's own index column_stats must be built for the declared columns, and whether we can.

Pure. It is built of the columns that writers keep, not of the declared ones alone: readers of
version 6 believe that every column has its entries, and a writer of a later version writes its own
columns down as the index's, whatever older files have entries of. A file without an entry of a
column then loses its rows, and a column of which no writer makes entries goes with the next write.
Source: HoodieTableMetadataUtil.getColumnsToIndex, ColumnStatsIndexSupport,
PartitionStatsIndexSupport (0.15 to 1.2).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from reconciler.hudi.instant import WRITES, Action, Instant, State
from reconciler.hudi.metadata_keeping import MOST_ENTRIES, is_indexed_by_hudi, keeping
from reconciler.hudi.metadata_table import FILES
from reconciler.hudi.metadata_timeline import EIGHT, KNOWN_VERSIONS
from reconciler.planners.phrases import plural

if TYPE_CHECKING:
    from reconciler.hudi.timeline import Timeline
    from reconciler.state.index import KnownIndex
    from reconciler.state.model import TableState

__all__ = ["MOST_COLUMNS", "Verdict", "busy_with", "columns_of", "is_kept", "verdict"]

_INFLIGHT: Final = "hoodie.table.metadata.partitions.inflight"
_BOOTSTRAP: Final = "hoodie.bootstrap.base.path"
#: from version 8 on, a writer's own columns (HoodieTableMetadataUtil.META_COLS_TO_ALWAYS_INDEX)
_ALWAYS: Final = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")
_META: Final = frozenset(
    {*_ALWAYS, "_hoodie_commit_seqno", "_hoodie_file_name", "_hoodie_operation"}
)
#: and how many more by itself (hoodie.metadata.index.column.stats.max.columns.to.index)
MOST_COLUMNS: Final = 32
#: plans that may wait for ever; who carries one out reads the table's properties first
_WAITING: Final = frozenset(
    {Action.COMPACTION, Action.LOGCOMPACTION, Action.CLUSTERING, Action.CLEAN, Action.ROLLBACK}
)
_COUNTING: Final = WRITES | {Action.INDEXING, Action.ROLLBACK, Action.RESTORE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``missing``: declared columns that the index has not. ``gaps``: base files that it lacks.

    Of the missing it has no place for those of ``beyond``, which no writer indexes by itself, and
    writers have taken those of ``unkept`` out of it again. ``columns``: all that it is built of,
    declared or not; ``files``: how many base files get entries. ``because``: why it cannot be built
    here, None where it can or there is nothing to do.
    """

    missing: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()
    unkept: tuple[str, ...] = ()
    gaps: int = 0
    columns: tuple[str, ...] = ()
    files: int = 0
    because: str | None = None

    @property
    def lacks(self) -> tuple[str, ...]:
        """The declared columns for which it is worth to be built."""
        never = {*self.beyond, *self.unkept}
        return tuple(column for column in self.missing if column not in never)

    @property
    def is_due(self) -> bool:
        """Whether a step of it belongs into a plan."""
        return self.because is None and bool(self.lacks or self.gaps)


def verdict(state: TableState, columns: Sequence[str]) -> Verdict:
    """What the declared columns ask of Hudi's index, of a state with ``state.index``.

    ``columns``: those of them that can be indexed at all.
    """
    known = state.index
    assert known is not None, "a spec with an index block has one"
    if known.hudi_problem is not None:
        return Verdict(missing=tuple(columns), because=_not(known.hudi_problem))
    have = known.hudi_columns or ()
    every = columns_of(known.schema, state.table_version, known.hudi_defined)
    missing = tuple(column for column in columns if column not in have)
    found = Verdict(
        missing=missing,
        beyond=tuple(column for column in missing if column not in every),
        unkept=tuple(c for c in missing if c in every and c in known.hudi_unkept),
        gaps=known.hudi_gaps,
        columns=tuple(every),
        files=len(known.files),
    )
    if not found.is_due:
        return found if missing else Verdict()
    why = next(_obstacles(state), None)
    logs = len(state.files) if state.is_merge_on_read else 0
    files = max(len(known.files), logs)
    if why is None and files * len(every) > MOST_ENTRIES:
        why = (
            f"{files} files with {len(every)} columns are more than {MOST_ENTRIES} entries; "
            "let a Hudi writer build it"
        )
    return found if why is None else replace(found, because=_not(why, found.gaps))


def columns_of(schema: Any, table_version: int, defined: Collection[str] = ()) -> dict[str, Any]:
    """Every column that the index is built of: by name, with dots into structs, its Arrow type.

    ``defined``: those that writers have written down as the index's, which stay in it.
    """
    return {
        name: kind
        for name, kind in _kept_by_writers(schema, table_version, defined)
        if keeping(kind, table_version) is not None
    }


def is_kept(state: TableState, column: str) -> bool:
    """Whether the index has entries of a column where a writer names it."""
    assert state.index is not None, "a spec with an index block has one"
    return column in columns_of(state.index.schema, state.table_version, (column,))


def _kept_by_writers(
    schema: Any, table_version: int, defined: Collection[str]
) -> Iterator[tuple[str, Any]]:
    """The columns of which writers make entries, as far as that can be known."""
    top = {part.name: _plain(part.type) for part in schema}
    if table_version < EIGHT:
        yield from top.items()
        return
    others = (
        name
        for name, kind in top.items()
        if name not in _META and is_indexed_by_hudi(kind, table_version)
    )
    by_itself = [*(name for name in _ALWAYS if name in top), *islice(others, MOST_COLUMNS)]
    yield from ((name, top[name]) for name in by_itself)
    if not set(defined) <= set(by_itself):
        every = dict(_leaves(schema))
        more = dict.fromkeys(name for name in defined if name in every)
        yield from ((name, every[name]) for name in more if name not in by_itself)


def busy_with(timeline: Timeline) -> Instant | None:
    """A pending instant of somebody who may be counting on the indexes as they were.

    None where there is none: plans that nobody has begun don't count.
    """
    for instant in timeline.instants:
        is_waiting = instant.state is State.REQUESTED and instant.action in _WAITING
        if not instant.is_completed and instant.action in _COUNTING and not is_waiting:
            return instant
    return None


def _not(why: str, gaps: int = 0) -> str:
    said = f"index.hudi: build: column_stats cannot be built here: {why}"
    if not gaps:
        return said
    files = plural(gaps, "base file")
    return f"{said}; it has not all entries of {files}, whose rows Hudi's readers may lose"


def _obstacles(state: TableState) -> Iterator[str]:
    """Why not, the first reason first."""
    if state.table_version not in KNOWN_VERSIONS:
        versions = ", ".join(map(str, KNOWN_VERSIONS))
        yield f"the table is of version {state.table_version}, and only {versions} are known"
    if not state.metadata_partitions:
        yield ("the table has no metadata table; write to it once with hoodie.metadata.enable=true")
    elif FILES not in state.metadata_partitions:
        yield f"its metadata table does not list the {FILES}"
    building = state.properties.get(_INFLIGHT, "").strip()
    if building:
        yield f"the metadata partitions {building} are being built by another"
    if state.properties.get(_BOOTSTRAP):
        yield "the table was bootstrapped, so columns of its files lie in others"
    busy = busy_with(state.timeline)
    if busy is not None:
        yield f"{busy.file_name} is pending and may be counting on the indexes as they are"
    assert state.index is not None, "a spec with an index block has one"
    if state.index.renamed:
        yield (
            f"older files hold column {min(state.index.renamed)} under another name; rewrite them "
            "with Hudi, for example by clustering"
        )
    yield from _strange(state.index, state.table_version)


def _strange(known: KnownIndex, table_version: int) -> Iterator[str]:
    """Columns that Hudi indexes and we cannot: files would lack entries of them."""
    for name, kind in _kept_by_writers(known.schema, table_version, known.hudi_defined):
        if keeping(kind, table_version) is None:
            yield (
                f"its readers count on entries of column {name}, of type {kind}, and how they are "
                "kept is not known; let a Hudi writer build the index"
            )


def _leaves(schema: Any) -> Iterator[tuple[str, Any]]:
    """Columns and, for structs, their fields with dots; a struct itself comes before them."""
    import pyarrow as pa  # noqa: PLC0415

    for part in schema:
        kind = _plain(part.type)
        yield part.name, kind
        if pa.types.is_struct(kind):
            for name, below in _leaves(kind):
                yield f"{part.name}.{name}", below


def _plain(kind: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    return kind.value_type if pa.types.is_dictionary(kind) else kind
