"""Whether Hudi's own index column_stats must be built for the declared columns, and whether we can.

Pure. What it is built of is every column that a writer of Hudi could index, not the declared ones
alone: readers of version 6 believe that every column has its entries, and a writer of a later
version writes its own columns down as the index's, whatever older files have entries of. A file
without an entry of a column then loses its rows. Source: ColumnStatsIndexSupport,
PartitionStatsIndexSupport (0.15 to 1.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reconciler.hudi.instant import WRITES, Action, Instant, State
from reconciler.hudi.metadata_keeping import is_indexed_by_hudi, keeping
from reconciler.hudi.metadata_table import FILES
from reconciler.hudi.metadata_timeline import EIGHT, KNOWN_VERSIONS

if TYPE_CHECKING:
    from reconciler.hudi.timeline import Timeline
    from reconciler.state.model import TableState

__all__ = ["Verdict", "busy_with", "columns_of", "verdict"]

_INFLIGHT: Final = "hoodie.table.metadata.partitions.inflight"
_BOOTSTRAP: Final = "hoodie.bootstrap.base.path"
#: meta columns that writers leave out (HoodieTableMetadataUtil.META_COLS_TO_ALWAYS_INDEX)
_NEVER: Final = frozenset({"_hoodie_commit_seqno", "_hoodie_file_name", "_hoodie_operation"})
#: more entries are not written here: of each, the driver has some hundred bytes in memory
_MOST_ENTRIES: Final = 2_000_000
#: plans that may wait for ever; who carries one out reads the table's properties first
_WAITING: Final = frozenset(
    {Action.COMPACTION, Action.LOGCOMPACTION, Action.CLUSTERING, Action.CLEAN, Action.ROLLBACK}
)
_COUNTING: Final = WRITES | {Action.INDEXING, Action.ROLLBACK, Action.RESTORE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``missing``: declared columns that the index has not; none: there is nothing to do.

    ``columns``: all that it is built of then, declared or not, in the table's order: a missing one
    that is not among them it has no place for. ``files``: how many base files get entries.
    ``because``: why it cannot be built here, None where it can.
    """

    missing: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    files: int = 0
    because: str | None = None

    @property
    def is_due(self) -> bool:
        """Whether a step of it belongs into a plan."""
        return self.because is None and not set(self.columns).isdisjoint(self.missing)


def verdict(state: TableState, columns: Sequence[str]) -> Verdict:
    """What the declared columns ask of Hudi's index, of a state with ``state.index``.

    ``columns``: those of them that can be indexed at all.
    """
    known = state.index
    assert known is not None, "a spec with an index block has one"
    if known.hudi_problem is not None:
        return Verdict(missing=tuple(columns), because=_not(known.hudi_problem))
    have = known.hudi_columns or ()
    missing = tuple(column for column in columns if column not in have)
    if not missing:
        return Verdict()
    why = next(_obstacles(state), None)
    if why is not None:
        return Verdict(missing=missing, because=_not(why))
    every = columns_of(known.schema, state.table_version)
    logs = len(state.files) if state.is_merge_on_read else 0
    files = max(len(known.files), logs)
    if files * len(every) > _MOST_ENTRIES:
        return Verdict(
            missing=missing,
            because=_not(
                f"{files} files with {len(every)} columns are more than {_MOST_ENTRIES} entries; "
                "let a Hudi writer build it"
            ),
        )
    return Verdict(missing=missing, columns=tuple(every), files=len(known.files))


def columns_of(schema: Any, table_version: int) -> dict[str, Any]:
    """Every column that the index is built of: by name, with dots into structs, its Arrow type."""
    left = _NEVER if table_version >= EIGHT else frozenset()
    return {
        name: kind
        for name, kind in _leaves(schema)
        if name not in left
        and is_indexed_by_hudi(kind, table_version)
        and keeping(kind, table_version) is not None
    }


def busy_with(timeline: Timeline) -> Instant | None:
    """A pending instant of somebody who may be counting on the indexes as they were.

    None where there is none: plans that nobody has begun don't count.
    """
    for instant in timeline.instants:
        is_waiting = instant.state is State.REQUESTED and instant.action in _WAITING
        if not instant.is_completed and instant.action in _COUNTING and not is_waiting:
            return instant
    return None


def _not(why: str) -> str:
    return f"index.hudi: build: column_stats cannot be built here: {why}"


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
    yield from _strange(state.index.schema, state.table_version)


def _strange(schema: Any, table_version: int) -> Iterator[str]:
    """Columns that Hudi would index and we cannot: files would lack entries of them."""
    for name, kind in _leaves(schema):
        if is_indexed_by_hudi(kind, table_version) and keeping(kind, table_version) is None:
            yield (
                f"its readers count on entries of column {name}, of type {kind}, and how they are "
                "kept is not known; let a Hudi writer build the index"
            )


def _leaves(schema: Any) -> Iterator[tuple[str, Any]]:
    """Columns and, for structs, their fields with dots; a struct itself comes before them."""
    import pyarrow as pa  # noqa: PLC0415

    for part in schema:
        kind = part.type.value_type if pa.types.is_dictionary(part.type) else part.type
        yield part.name, kind
        if pa.types.is_struct(kind):
            for name, below in _leaves(kind):
                yield f"{part.name}.{name}", below
