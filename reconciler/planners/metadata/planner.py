"""Plan the repair of Hudi's metadata table where it differs from the table's files; pure.

A partition that depends on another one is repaired with it: partition_stats is computed from
column_stats, and a secondary index finds rows by the record index.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final

from reconciler.hudi.metadata.first_groups import BUILT
from reconciler.hudi.metadata.sync_decisions import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    PARTITION_STATS,
    RECORD_INDEX,
)
from reconciler.hudi.metadata.table import FILES
from reconciler.hudi.table.properties import parse_rebuilt_partitions
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.busy_instant import find_busy_instant
from reconciler.plans.model import MetadataStep, Note
from reconciler.spec.model import TableSpec
from reconciler.state.metadata_differences import (
    DAMAGED_FILE,
    LOST_FILE,
    OWN_INDEX,
    MetadataVerification,
    describe_difference,
)
from reconciler.state.model import TableState

RULE: Final = "metadata"
_INFLIGHT: Final = "hoodie.table.metadata.partitions.inflight"
#: metadata partitions that are repaired together
_GROUPS: Final = (
    (COLUMN_STATS, PARTITION_STATS),
    (BLOOM_FILTERS,),
    (RECORD_INDEX,),
)
#: prefixes of indexes that no writer builds anew by itself
_DEFINED_BY_USERS: Final = {"secondary_index_": "secondary", "expr_index_": "expression"}
#: what to do about a partition that cannot be built anew
LET_HUDI: Final = (
    "declare metadata.repair: drop, and a Hudi writer that has the index switched on builds it anew"
)
#: part of a warning about differences that a plan does not repair
NOT_DONE: Final = "it is not"
_REPORT: Final = "reconciler verify names each; declare metadata.repair: rebuild or drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataDecision:
    """The repairs of a plan, and warnings about what is not repaired."""

    steps: tuple[MetadataStep, ...] = ()
    warnings: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Repair:
    """Partitions that are repaired together.

    ``lost_file``: what to do about a file of which nothing but them tells that it is gone.
    ``obstacle``: why they cannot be dropped. ``is_unread``: nobody reads what is left of them.
    ``unbuildable``: partitions that cannot be built anew, and why.
    """

    partitions: tuple[str, ...]
    differences: int
    because: str
    lost_file: str | None = None
    obstacle: str | None = None
    is_unread: bool = False
    unbuildable: Mapping[str, str] = field(default_factory=dict)

    def find_obstacle(self, repair: str) -> str | None:
        """Return why nothing can be done; the whole metadata table is built as far as it can be."""
        if self.lost_file is not None:
            return self.lost_file
        if self.obstacle is None and repair == "rebuild" and FILES not in self.partitions:
            why = next(iter(self.unbuildable.values()), None)
            return None if self.is_unread or why is None else f"{why}; {LET_HUDI}"
        return self.obstacle

    def explain(self, repair: str) -> str:
        """Return the reason of the step, with what becomes of partitions that cannot be built."""
        if repair != "rebuild" or self.is_unread:
            return self.because
        return "; ".join([self.because, *_explain_drops(self.unbuildable)])


def _explain_drops(unbuildable: Mapping[str, str]) -> Iterator[str]:
    """Yield a clause per reason."""
    for why in dict.fromkeys(unbuildable.values()):
        names = [name for name, reason in unbuildable.items() if reason == why]
        yield f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} dropped: {why}"


def plan_metadata(spec: TableSpec, state: TableState) -> MetadataDecision:
    """Return what becomes of the differences that were found; nothing without the spec's block."""
    found = state.metadata_verification
    if spec.metadata is None or found is None:
        return MetadataDecision()
    busy = _find_busy_work(state)
    unfinished = _find_unfinished(state) if spec.metadata.repair == "rebuild" else ()
    live = state.metadata_partitions
    repairs = _find_repairs(found, live, unfinished, is_busy=busy is not None)
    warnings = list(_warn_of_own_index(found))
    steps = []
    for repair in repairs:
        obstacle = repair.find_obstacle(spec.metadata.repair) or busy
        if spec.metadata.repair == "report":
            advice = repair.lost_file or _REPORT
            warnings.append(Note(RULE, f"{repair.because}; {advice}"))
        elif obstacle is not None:
            done = "rebuilt" if spec.metadata.repair == "rebuild" else "dropped"
            warnings.append(Note(RULE, f"{repair.because}; {NOT_DONE} {done}: {obstacle}"))
        else:
            steps.append(
                MetadataStep(
                    change="drop" if repair.is_unread else spec.metadata.repair,
                    partitions=repair.partitions,
                    because=repair.explain(spec.metadata.repair),
                    differences=repair.differences,
                )
            )
    return MetadataDecision(steps=tuple(steps), warnings=tuple(warnings))


def _find_unfinished(state: TableState) -> tuple[str, ...]:
    """Return the partitions whose rebuild was stopped; others may have built them since."""
    live = state.metadata_partitions
    begun = [name for name in parse_rebuilt_partitions(state.properties) if name not in live]
    is_possible = FILES in begun or FILES in live
    return tuple(name for name in begun if name in BUILT) if is_possible else ()


def _find_repairs(
    found: MetadataVerification,
    live: Collection[str],
    unfinished: Sequence[str],
    *,
    is_busy: bool,
) -> Iterator[_Repair]:
    """Yield what must be repaired; a wrong file listing needs the whole metadata table.

    ``unfinished``: partitions whose rebuild was stopped and is to be finished. While a writer is at
    work, folders that are not listed may be its new indexes.
    """
    yield from _end_rebuild(found, unfinished)
    left = tuple(name for name in found.leftovers if name not in unfinished)
    if left and not is_busy:
        where = ".hoodie/metadata" if FILES in left else ", ".join(left)
        yield _Repair(
            partitions=left,
            differences=0,
            because=f"a repair that was stopped has left files of {where}, which nobody reads",
            is_unread=True,
        )
    count = found.count_differences((FILES,))
    if count:
        total = found.difference_count - found.count_differences((OWN_INDEX,))
        yield _Repair(
            partitions=tuple(sorted(live)),
            differences=total,
            because=_explain_listing(found, count),
            lost_file=_find_lost_file(found),
            obstacle=_find_user_index(live),
            unbuildable=_find_unbuildable(found, live),
        )
        return
    for group in _GROUPS:
        names = tuple(name for name in group if name in live)
        count = found.count_differences(names)
        if count:
            yield _Repair(
                partitions=names,
                differences=count,
                because=_explain_index(found, names, count),
                obstacle=_find_dependent(names, live),
                unbuildable=_find_unbuildable(found, names),
            )


def _end_rebuild(found: MetadataVerification, unfinished: Sequence[str]) -> Iterator[_Repair]:
    """Yield the end of a rebuild that was stopped: it is begun again as far as that is possible."""
    why = {name: found.obstacles[name] for name in unfinished if name in found.obstacles}
    again = unfinished if FILES in unfinished else [name for name in unfinished if name not in why]
    if again:
        yield _Repair(
            partitions=tuple(again),
            differences=0,
            because=f"a rebuild of {' and '.join(again)} was stopped, and is begun again",
            unbuildable=why if FILES in again else {},
        )
    given_up = tuple(name for name in unfinished if name not in again)
    if given_up:
        yield _Repair(
            partitions=given_up,
            differences=0,
            because=f"a rebuild of {' and '.join(given_up)} was stopped, and cannot be ended: "
            f"{why[given_up[0]]}; nobody reads what it has left",
            is_unread=True,
        )


def _count_entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def _explain_listing(found: MetadataVerification, count: int) -> str:
    """Return in words how the listing of files differs, with the first difference."""
    example = _give_example(found, (FILES,))
    if _is_damaged(found, (FILES,)):
        return f"the file listing is damaged{example}"
    return f"the file listing differs from the folders in {_count_entries(count)}{example}"


def _explain_index(found: MetadataVerification, names: Collection[str], count: int) -> str:
    """Return in words how indexes that belong together differ, with the first difference."""
    wrong = [name for name in names if found.count_differences((name,))]
    subject, example = " and ".join(wrong), _give_example(found, names)
    if _is_damaged(found, names):
        return f"{subject} {'is' if len(wrong) == 1 else 'are'} damaged{example}"
    verb = "differs" if len(wrong) == 1 else "differ"
    return f"{subject} {verb} from the files in {_count_entries(count)}{example}"


def _is_damaged(found: MetadataVerification, names: Collection[str]) -> bool:
    """Return whether all that differs is files of the metadata table that cannot be read."""
    said = {one.actual for one in found.differences if one.metadata_partition in names}
    return said == {DAMAGED_FILE}


def _give_example(found: MetadataVerification, names: Collection[str]) -> str:
    """Return the first difference in words."""
    first = next((one for one in found.differences if one.metadata_partition in names), None)
    return "" if first is None else f" ({describe_difference(first)})"


def _find_unbuildable(found: MetadataVerification, names: Collection[str]) -> dict[str, str]:
    return {name: found.obstacles[name] for name in sorted(names) if name in found.obstacles}


def _find_lost_file(found: MetadataVerification) -> str | None:
    """Return what to do about the first file that a read of now needs and that is gone."""
    first = next((one for one in found.differences if one.effect == LOST_FILE), None)
    if first is None:
        return None
    where = "/".join(filter(None, (first.partition, first.file)))
    return (
        f"{where} is gone, although a read of now needs it, and without its entry no reader would "
        "notice that rows are lost; restore the file, or, to give its rows up, remove the folder "
        ".hoodie/metadata and plan again"
    )


def _find_user_index(live: Collection[str]) -> str | None:
    """Return why the metadata table cannot be dropped: no writer builds such an index anew."""
    for name in sorted(live):
        for prefix, kind in _DEFINED_BY_USERS.items():
            if name.startswith(prefix):
                return (
                    f"the {kind} index {name.removeprefix(prefix)} would go with it, and no writer "
                    "builds it anew by itself; drop that index, and create it again afterwards"
                )
    return None


def _find_dependent(names: Collection[str], live: Collection[str]) -> str | None:
    if RECORD_INDEX not in names:
        return None
    for name in sorted(live):
        if name.startswith("secondary_index_"):
            return (
                f"the secondary index {name.removeprefix('secondary_index_')} finds rows by it; "
                "drop that index, and create it again afterwards"
            )
    return None


def _find_busy_work(state: TableState) -> str | None:
    """Return whose pending work may rely on the metadata table as it is, None without any."""
    building = state.properties.get(_INFLIGHT, "").strip()
    if building:
        return f"another process is building {building}; plan again when it is done"
    busy = find_busy_instant(state.timeline)
    if busy is None:
        return None
    return (
        f"{busy.file_name} is pending and may rely on it; plan again when it is completed or was "
        "rolled back"
    )


def _warn_of_own_index(found: MetadataVerification) -> Iterator[Note]:
    count = found.count_differences((OWN_INDEX,))
    if count:
        yield Note(
            RULE,
            f"the table's own index differs from the footers in {_count_entries(count)}"
            f"{_give_example(found, (OWN_INDEX,))}; remove the folder .hoodie/.zindex, and the "
            "next apply builds it anew",
        )
