"""Decide whether Hudi's index column_stats must be built for the declared columns; pure.

The index must have all columns that writers index, not only the declared ones. Readers of version 6
assume that every column has entries. A writer of a later version records its own columns as those
of the index, whatever entries older files have. Then readers lose the rows of a file that lacks an
entry, and a column that no writer indexes disappears with the next write.
Source: HoodieTableMetadataUtil.getColumnsToIndex, ColumnStatsIndexSupport,
PartitionStatsIndexSupport (0.15 to 1.2).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from reconciler.hudi.metadata.bound_encoding import (
    MAX_ENTRIES,
    find_bound_encoding,
    is_indexed_by_hudi,
)
from reconciler.hudi.metadata.own_timeline import VERSION_8
from reconciler.hudi.metadata.table import FILES
from reconciler.hudi.table.properties import KNOWN_VERSIONS
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.busy_instant import find_busy_instant
from reconciler.planners.reasons import pluralize

if TYPE_CHECKING:
    from reconciler.state.model import TableState

_INFLIGHT: Final = "hoodie.table.metadata.partitions.inflight"
_BOOTSTRAP: Final = "hoodie.bootstrap.base.path"
#: columns that writers always index from version 8 on (META_COLS_TO_ALWAYS_INDEX)
_ALWAYS: Final = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")
_META: Final = frozenset(
    {*_ALWAYS, "_hoodie_commit_seqno", "_hoodie_file_name", "_hoodie_operation"}
)
#: number of further columns that writers index (…index.column.stats.max.columns.to.index)
MAX_COLUMNS: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnStatsNeed:
    """The gaps of Hudi's column_stats index.

    ``missing``: declared columns that it does not have. Of these, writers do not index the
    ``unsupported`` ones, and writers removed those ``removed_by_writers``.
    ``files_without_entries``: number of base files. ``columns``: all columns to build, declared or
    not; ``files``: number of base files that get entries. ``because``: why the index cannot be
    built here; None if it can or nothing is missing.
    """

    missing: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    removed_by_writers: tuple[str, ...] = ()
    files_without_entries: int = 0
    columns: tuple[str, ...] = ()
    files: int = 0
    because: str | None = None

    @property
    def buildable(self) -> tuple[str, ...]:
        """Return the missing declared columns that a build can add."""
        never = {*self.unsupported, *self.removed_by_writers}
        return tuple(column for column in self.missing if column not in never)

    @property
    def is_due(self) -> bool:
        """Return whether a plan needs a step for the index."""
        return self.because is None and bool(self.buildable or self.files_without_entries)


def assess_column_stats(state: TableState, columns: Sequence[str]) -> ColumnStatsNeed:
    """Return what Hudi's index needs for the declared columns. The state has an index state.

    ``columns``: the declared columns that can be indexed.
    """
    known = state.index_state
    assert known is not None, "a spec with an index block has one"
    if known.hudi_problem is not None:
        return ColumnStatsNeed(
            missing=tuple(columns), because=_explain_unbuildable(known.hudi_problem)
        )
    have = known.hudi_columns or ()
    every = list_indexed_columns(known.schema, state.table_version, known.hudi_defined)
    missing = tuple(column for column in columns if column not in have)
    need = ColumnStatsNeed(
        missing=missing,
        unsupported=tuple(column for column in missing if column not in every),
        removed_by_writers=tuple(
            c for c in missing if c in every and c in known.hudi_removed_by_writers
        ),
        files_without_entries=known.hudi_files_without_entries,
        columns=tuple(every),
        files=len(known.files),
    )
    if not need.is_due:
        return need if missing else ColumnStatsNeed()
    why = next(_find_obstacles(state), None)
    logs = len(state.files) if state.is_merge_on_read else 0
    files = max(len(known.files), logs)
    if why is None and files * len(every) > MAX_ENTRIES:
        why = (
            f"{files} files with {len(every)} columns need more than {MAX_ENTRIES} entries; "
            "let a Hudi writer build it"
        )
    return (
        need
        if why is None
        else replace(need, because=_explain_unbuildable(why, need.files_without_entries))
    )


def list_indexed_columns(
    schema: Any, table_version: int, defined: Collection[str] = ()
) -> dict[str, Any]:
    """Return the Arrow types of all columns of the index by name, with dots into structs.

    ``defined``: columns that writers have recorded as those of the index; they stay.
    """
    return {
        name: kind
        for name, kind in _columns_of_writers(schema, table_version, defined)
        if find_bound_encoding(kind, table_version) is not None
    }


def is_indexed_when_named(state: TableState, column: str) -> bool:
    """Return whether the index has entries of a column if a writer lists it."""
    assert state.index_state is not None, "a spec with an index block has one"
    return column in list_indexed_columns(state.index_state.schema, state.table_version, (column,))


def _columns_of_writers(
    schema: Any, table_version: int, defined: Collection[str]
) -> Iterator[tuple[str, Any]]:
    """Yield the columns that writers index, as far as that is known."""
    top = {part.name: _plain_type(part.type) for part in schema}
    if table_version < VERSION_8:
        yield from top.items()
        return
    others = (
        name
        for name, kind in top.items()
        if name not in _META and is_indexed_by_hudi(kind, table_version)
    )
    by_itself = [*(name for name in _ALWAYS if name in top), *islice(others, MAX_COLUMNS)]
    yield from ((name, top[name]) for name in by_itself)
    if not set(defined) <= set(by_itself):
        every = dict(_list_leaves(schema))
        more = dict.fromkeys(name for name in defined if name in every)
        yield from ((name, every[name]) for name in more if name not in by_itself)


def _explain_unbuildable(why: str, gaps: int = 0) -> str:
    sentence = f"index.hudi: build: column_stats cannot be built: {why}"
    if not gaps:
        return sentence
    files = pluralize(gaps, "base file")
    return f"{sentence}; it lacks entries of {files}, whose rows Hudi's readers may lose"


def _find_obstacles(state: TableState) -> Iterator[str]:
    """Yield the reasons why the index cannot be built."""
    if state.table_version not in KNOWN_VERSIONS:
        versions = ", ".join(map(str, KNOWN_VERSIONS))
        yield f"the table has version {state.table_version}; supported versions are {versions}"
    if not state.metadata_partitions:
        yield "the table has no metadata table; write to it once with hoodie.metadata.enable=true"
    elif FILES not in state.metadata_partitions:
        yield f"its metadata table does not list the {FILES}"
    building = state.properties.get(_INFLIGHT, "").strip()
    if building:
        yield f"another process is building the metadata partitions {building}"
    if state.properties.get(_BOOTSTRAP):
        yield "the table was bootstrapped, so columns of its files are in other files"
    busy = find_busy_instant(state.timeline)
    if busy is not None:
        yield f"{busy.file_name} is pending and may rely on the current indexes"
    assert state.index_state is not None, "a spec with an index block has one"
    if state.index_state.renamed:
        yield (
            f"older files have column {min(state.index_state.renamed)} under another name; "
            "rewrite them with Hudi, for example by clustering"
        )
    known = state.index_state
    unknown = find_unknown_column(known.schema, state.table_version, known.hudi_defined)
    if unknown is not None:
        yield f"{unknown}; let a Hudi writer build the index"


def find_unknown_column(
    schema: Any, table_version: int, defined: Collection[str] = ()
) -> str | None:
    """Return why a column that Hudi indexes cannot be indexed here, so files would lack entries."""
    for name, kind in _columns_of_writers(schema, table_version, defined):
        if find_bound_encoding(kind, table_version) is None:
            return (
                f"readers rely on entries of column {name} of type {kind}, whose encoding is not "
                "supported"
            )
    return None


def _list_leaves(schema: Any) -> Iterator[tuple[str, Any]]:
    """Yield columns and the fields of structs with dots; a struct comes before its fields."""
    import pyarrow as pa  # noqa: PLC0415

    for part in schema:
        kind = _plain_type(part.type)
        yield part.name, kind
        if pa.types.is_struct(kind):
            for name, below in _list_leaves(kind):
                yield f"{part.name}.{name}", below


def _plain_type(kind: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    return kind.value_type if pa.types.is_dictionary(kind) else kind
