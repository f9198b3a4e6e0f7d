"""Build a Plan from a validated document and the columns of its long lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from reconciler.canonical_json import from_document
from reconciler.plans import file_rows, groups
from reconciler.plans.archive_step import ArchiveStep
from reconciler.plans.compact_step import CompactStep
from reconciler.plans.model import (
    CleanStep,
    ClusterStep,
    Impact,
    IndexStep,
    MetadataStep,
    NamedFiles,
    OrphanFiles,
    OrphansStep,
    RemovedFiles,
    ResumeStep,
    RollbackStep,
    Selection,
    Step,
    TablePlan,
)
from reconciler.plans.partition_deletion import DeletePartitionStep
from reconciler.plans.plan import Plan
from reconciler.plans.savepoint_step import SavepointStep

if TYPE_CHECKING:
    from reconciler.plans.file_sizes import FileSizeReport

#: the long lists of one table or step by their keys, as columns; none for an empty list
Lists = Mapping[str, Any]

_LIST_KEYS = ("kept", "partitions", "groups", "files", "attempt")
#: kinds of steps that have short lists under these keys
_WITHOUT_LISTS = ("metadata",)


def take_lists(
    table: Mapping[str, Any], read: Callable[[Mapping[str, Any], str], Any]
) -> tuple[Lists, ...]:
    """Return the long lists of a table and of each of its steps.

    ``read``: returns the columns of a list that is not empty, given its holder and its key.
    """
    holders = (table, *table["steps"])
    return tuple(
        {key: read(holder, key) for key in _LIST_KEYS if _has_columns(holder, key)}
        for holder in holders
    )


def _has_columns(holder: Mapping[str, Any], key: str) -> bool:
    """Return whether a list becomes columns; those of steps that name few things stay lists."""
    return holder.get("kind") not in _PLAIN_STEPS and _is_filled_list(holder.get(key))


def _is_filled_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def empty_removed_files() -> RemovedFiles:
    """Return the columns of a step that removes no file."""
    return file_rows.removed_from_json(())[0]


def empty_named_files() -> NamedFiles:
    """Return the columns of a rollback of a write that wrote no file."""
    return file_rows.named_from_json(())


def empty_orphan_files() -> OrphanFiles:
    """Return the columns of no orphan file."""
    return file_rows.orphans_from_json(())


def decode_plan(document: Mapping[str, Any], lists: Sequence[tuple[Lists, ...]]) -> Plan:
    """Return the plan of a valid document. Long lists come from ``lists``, not the document."""
    selection = document.get("selection")
    return Plan(
        created_at=document["createdAt"],
        tool=document["tool"],
        tables=tuple(map(_decode_table, document["tables"], lists)),
        selection=None if selection is None else from_document(Selection, selection),
    )


def _decode_table(table: Mapping[str, Any], lists: tuple[Lists, ...]) -> TablePlan:
    return from_document(
        TablePlan,
        table,
        steps=tuple(map(_decode_step, table["steps"], lists[1:])),
        kept=lists[0].get("kept"),
        impact=_decode_impact(table["impact"]),
        file_sizes=_decode_file_sizes(table.get("fileSizes")),
    )


def _decode_file_sizes(document: Mapping[str, Any] | None) -> FileSizeReport | None:
    if document is None:
        return None
    from reconciler.plans.file_sizes import decode_file_sizes  # noqa: PLC0415 - few specs declare file sizes

    return decode_file_sizes(document)


def _decode_impact(impact: Mapping[str, Any]) -> Impact:
    earliest = impact["earliestReadable"]
    return from_document(
        Impact,
        impact,
        earliest_readable_before=earliest["before"],
        earliest_readable_after=earliest["after"],
    )


#: kinds of steps without long lists
_PLAIN_STEPS: Final[Mapping[str, type[Any]]] = {
    "index": IndexStep,
    "metadata": MetadataStep,
    "savepoint": SavepointStep,
    "deletePartition": DeletePartitionStep,
    "archive": ArchiveStep,
}


def _decode_step(step: Mapping[str, Any], lists: Lists) -> Step:
    kind = step["kind"]
    if kind in _PLAIN_STEPS:
        plain: Step = from_document(_PLAIN_STEPS[kind], step)
        return plain
    if kind == "rollback":
        files = lists.get("files") or empty_named_files()
        return from_document(RollbackStep, step, files=files)
    if kind in ("cluster", "compact"):
        rewriting: type[Any] = ClusterStep if kind == "cluster" else CompactStep
        made: Step = from_document(
            rewriting, step, groups=lists.get("groups", groups.empty_rewrites())
        )
        return made
    if kind == "orphans":
        orphans = lists.get("partitions") or empty_orphan_files()
        return from_document(OrphansStep, step, files=orphans)
    removed, deleted = lists.get("partitions", (empty_removed_files(), ()))
    if kind == "clean":
        return from_document(CleanStep, step, files=removed, delete_partitions=deleted)
    return from_document(
        ResumeStep,
        step,
        files=removed,
        delete_partitions=deleted,
        groups=lists.get("groups"),
        attempt=lists.get("attempt"),
    )
