"""Verify a table's metadata: read it, compare it, and look again if the table changed meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from time import sleep
from typing import TYPE_CHECKING, Final

from reconciler.errors import FormatError, NotFoundError, UnsupportedError, VanishingFilesError
from reconciler.hudi.load import load_metadata_properties, load_properties, load_timeline
from reconciler.hudi.metadata.index_definitions import read_defined_columns
from reconciler.hudi.metadata.indexed_columns import read_indexed_columns
from reconciler.hudi.metadata.own_timeline import ROOT
from reconciler.hudi.metadata.sync_decisions import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    DROPPABLE,
    PARTITION_STATS,
    RECORD_INDEX,
)
from reconciler.hudi.metadata.table import FILES
from reconciler.hudi.table.properties import parse_rebuilt_partitions
from reconciler.lazy_dataclass import dataclass
from reconciler.state.metadata_differences import (
    DAMAGED_FILE,
    CheckBuilder,
    MetadataVerification,
)
from reconciler.state.observe import observe
from reconciler.storage.paths import list_if_exists
from reconciler.verification.bloom_filters import check_bloom_filters
from reconciler.verification.checked_table import Advance, CheckedTable
from reconciler.verification.column_stats import check_column_stats
from reconciler.verification.footer_ranges import ColumnValues, FooterRanges, read_footer_ranges
from reconciler.verification.listing import check_listing, has_moved
from reconciler.verification.own_index import check_own_index, list_own_columns, read_own_index
from reconciler.verification.partition_stats import check_partition_stats
from reconciler.verification.rebuild_obstacles import find_rebuild_obstacles
from reconciler.verification.record_index import check_record_index

if TYPE_CHECKING:
    from reconciler.hudi.timeline.active import Timeline
    from reconciler.spec.model import TableSpec
    from reconciler.state.model import TableState
    from reconciler.storage.api import Storage

_ATTEMPTS: Final = 4
#: pause for writers to finish what they do; it grows with every attempt
_PAUSE_S: Final = 0.2
_UNITS: Final = {COLUMN_STATS: "range", PARTITION_STATS: "range", BLOOM_FILTERS: "filter"}


def verify_metadata(
    storage: Storage,
    spec: TableSpec | None,
    *,
    sample: float = 1.0,
    only_listing: bool = False,
    observed_ms: int = 0,
    advance: Advance = lambda _count: None,
) -> MetadataVerification:
    """Return every difference between a table's metadata and its files. Writes nothing.

    ``sample``: the share of the file groups whose footers and keys are read; all files are compared
    with the listing. ``only_listing``: compare nothing else. If something differs or is gone and
    the timeline has moved since, the table is looked at again. Raises FormatError,
    UnsupportedError, StorageError, BlockedError, and VanishingFilesError if the table changes at
    every look.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        before = _load_timeline(storage)
        problem: FormatError | NotFoundError | None = None
        try:
            state = observe(storage, _keep_location(spec), observed_ms=observed_ms)
            table = CheckedTable.open(storage, state, sample)
            repair = spec.metadata.repair if spec and spec.metadata else "report"
            check = _TableCheck(table=table, advance=advance, repair=repair)
            found = check.run(only_listing=only_listing)
            if not found.difference_count:
                return found
        except (NotFoundError, FormatError) as missing:
            problem = missing
        if not has_moved(before, _load_timeline(storage)):
            if problem is None:
                return found
            if not isinstance(problem, NotFoundError) or attempt > 1:
                raise problem
        sleep(_PAUSE_S * attempt)
    raise VanishingFilesError(
        storage.location, "the table changed at every look, because its writers are busy; run again"
    )


def _load_timeline(storage: Storage) -> Timeline:
    return load_timeline(storage, load_properties(storage))


def _keep_location(spec: TableSpec | None) -> TableSpec | None:
    """Return the spec without the blocks for which observing reads more than is needed here."""
    if spec is None:
        return None
    return replace(spec, retention=None, files=None, clustering=None, index=None, queries=())


def add_metadata_verification(
    storage: Storage, spec: TableSpec, state: TableState, *, only_listing: bool = False
) -> TableState:
    """Return the state with the differences that a plan needs to know by the spec's block.

    ``only_listing``: compare nothing else, whatever the spec wants. Raises as ``verify_metadata``.
    """
    if spec.metadata is None:
        return state
    found = verify_metadata(
        storage,
        spec,
        only_listing=only_listing or spec.metadata.verify == "never",
        observed_ms=state.observed_ms,
    )
    return state.with_facts(metadata_verification=found)


@dataclass(frozen=True, kw_only=True, eq=False)
class _TableCheck:
    """Checks every metadata partition of a table; ``repair``: what becomes of what differs."""

    table: CheckedTable
    advance: Advance
    repair: str

    def run(self, *, only_listing: bool) -> MetadataVerification:
        """Return the result of all checks, or of that of the listing."""
        builders = list(self._check_listing() if only_listing else self._check_all())
        parts = [builder.build() for builder in builders]
        completed = [instant.requested for instant in self.table.state.timeline.commits]
        return MetadataVerification(
            instant=max(completed, default=None),
            sample=self.table.sample,
            checks=tuple(check for check, _differences in parts),
            differences=tuple(one for _check, differences in parts for one in differences),
            leftovers=self._find_leftovers(),
            obstacles=self._find_obstacles(builders) if self.repair == "rebuild" else {},
        )

    def _find_obstacles(self, builders: Sequence[CheckBuilder]) -> dict[str, str]:
        """Return why partitions cannot be built anew, if one is to be."""
        properties = self.table.properties
        unfinished = parse_rebuilt_partitions(properties.raw)
        if not unfinished and not any(builder.count for builder in builders):
            return {}
        met = {one.metadata_partition: one.obstacle for one in builders if one.obstacle}
        names = {*properties.metadata_partitions, *unfinished}
        return met | find_rebuild_obstacles(self.table, names)

    def _find_leftovers(self) -> tuple[str, ...]:
        """Return partitions that a stopped drop has left; a writer may be building the others."""
        properties = self.table.properties
        entries = list_if_exists(self.table.storage, ROOT)
        if not properties.metadata_partitions:
            return (FILES,) if entries else ()
        known = {*properties.metadata_partitions, *properties.metadata_partitions_inflight}
        folders = {entry.name for entry in entries if entry.is_folder}
        return tuple(name for name in DROPPABLE if name in folders - known)

    def _check_listing(self) -> Iterator[CheckBuilder]:
        if FILES not in self.table.properties.metadata_partitions:
            return
        try:
            load_metadata_properties(self.table.storage)  # Hudi opens the metadata table by them
            yield check_listing(self.table)
        except FormatError as damage:
            if self.repair == "report" or not damage.path.startswith(ROOT):
                raise
            builder = CheckBuilder(metadata_partition=FILES, unit="file")
            _add_damage(builder, damage, "readers and writers of the metadata table fail")
            yield builder

    def _check_all(self) -> Iterator[CheckBuilder]:
        """Yield the check of each live metadata partition, and of the table's own index."""
        yield from self._check_listing()
        live = self.table.properties.metadata_partitions
        own = read_own_index(self.table)
        has_own = own.index is not None or own.damaged or own.newer
        footers: FooterRanges | None = None
        values = ColumnValues(table=self.table)
        if has_own or {COLUMN_STATS, PARTITION_STATS} & set(live):
            columns = dict.fromkeys([*self._list_columns(), *list_own_columns(own)])
            footers = read_footer_ranges(self.table, columns, self.advance)
        for name in sorted(set(live) - {FILES}):
            builder = self._run_check(name, self._choose_check(name, footers, values))
            if footers is not None and footers.problems and name in (COLUMN_STATS, PARTITION_STATS):
                builder.not_compared += footers.problems
                builder.obstacle = footers.problems[0]
            yield builder
        if has_own and footers is not None:
            yield check_own_index(self.table, own, footers, values)

    def _list_columns(self) -> tuple[str, ...]:
        """Return the columns of column_stats and partition_stats, none if they cannot be read."""
        try:
            live = self.table.metadata.live_partitions
            columns = read_indexed_columns(self.table.metadata)
            if PARTITION_STATS in live and COLUMN_STATS not in live:
                columns = read_defined_columns(self.table.storage)
        except (FormatError, UnsupportedError):
            return ()  # the check of the index meets the same problem and reports it
        return columns

    def _choose_check(
        self, name: str, footers: FooterRanges | None, values: ColumnValues
    ) -> Callable[[], CheckBuilder] | None:
        table, advance = self.table, self.advance
        if table.properties.base_extension != ".parquet":
            return None
        if footers is not None and name == COLUMN_STATS:
            return lambda: check_column_stats(table, footers, values)
        if footers is not None and name == PARTITION_STATS:
            return lambda: check_partition_stats(table, footers, values)
        if name == BLOOM_FILTERS:
            return lambda: check_bloom_filters(table, advance)
        if name == RECORD_INDEX:
            return lambda: check_record_index(table, advance)
        return None

    def _run_check(self, name: str, check: Callable[[], CheckBuilder] | None) -> CheckBuilder:
        """Run the check of a metadata partition; a damaged one differs as a whole."""
        builder = CheckBuilder(metadata_partition=name, unit=_UNITS.get(name, "key"))
        if check is None:
            builder.not_compared.append("reconciler cannot compare this index")
            return builder
        try:
            return check()
        except UnsupportedError as problem:
            builder.not_compared.append(str(problem))
        except FormatError as damage:
            if not damage.path.startswith(ROOT):
                raise
            _add_damage(builder, damage, "readers and writers that use this index fail")
        return builder


def _add_damage(builder: CheckBuilder, damage: FormatError, effect: str) -> None:
    """Add a damaged file of a metadata partition."""
    builder.add(
        "wrong",
        "",
        damage.path.removeprefix(f"{ROOT}/{builder.metadata_partition}/"),
        recorded=damage.problem,
        actual=DAMAGED_FILE,
        effect=effect,
    )
