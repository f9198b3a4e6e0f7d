"""Executor ``hudi``: a plan of ours that is requested is executed by Hudi, and then checked.

What is chosen, requested and looked at again is the same for both executors. Hudi deletes,
rewrites, tells its metadata table and completes the instant; afterwards what it did is held against
what was reviewed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from reconciler.apply.execute import Work, checked, removed_names
from reconciler.apply.payloads import PLACEHOLDER
from reconciler.apply.result import Rows, StepOutcome
from reconciler.apply.table import Table
from reconciler.delegate.bundles import check_bundle
from reconciler.delegate.layouts import strategy
from reconciler.delegate.model import Hudi
from reconciler.delegate.options import index_options, table_options
from reconciler.errors import PartialError, ReconcilerError
from reconciler.hudi.arrow import strings
from reconciler.hudi.clean import CleanMetadata
from reconciler.hudi.instant import Action
from reconciler.hudi.load import instant_path, load_properties, read_instant_file
from reconciler.hudi.metadata_index import defined_columns, is_partitioned
from reconciler.hudi.properties import TableProperties
from reconciler.plan.model import ClusterStep, Note
from reconciler.state.layout import Layout
from reconciler.transaction.paths import names_in
from reconciler.transaction.publish import completion_of

_NAMED: Final = 5
_RULE: Final = "delegated"


def check_delegation(table: Table, hudi: Hudi) -> None:
    """Raises UnsupportedError where Hudi cannot execute what was reviewed as it was reviewed."""
    check_bundle(hudi.version(), table.properties.table_version)
    _indexes(table, table.properties)
    for step in table.plan.steps:
        if isinstance(step, ClusterStep):
            strategy(Layout(columns=step.columns, curve=step.curve, mapping=step.mapping))


def options_of(table: Table, hudi: Hudi, *, schema: str | None = None) -> dict[str, str]:
    """What Hudi has to know of a table as it is now."""
    properties = load_properties(table.storage)
    concurrency = table.spec.concurrency
    return table_options(
        properties,
        location=table.storage.location,
        lock=concurrency.lock if concurrency else None,
        bundle=hudi.version(),
        schema=schema,
        indexes=_indexes(table, properties),
    )


def clean(table: Table, hudi: Hudi, work: Work) -> StepOutcome:
    """Have Hudi execute a clean that was just requested; its heartbeat beats.

    Raises PartialError when Hudi does not complete it: it stays pending for the next apply.
    """
    planned = removed_names(work)
    before = {path: names_in(table.storage, path) for path in planned}
    with table.phase("delete", len(work.files)) as advance:
        try:
            hudi.clean(table.storage.ref, work.instant, options_of(table, hudi))
        except ReconcilerError as error:
            if _completed(table, work.instant) is None:
                raise PartialError(
                    f"{error}; clean {work.instant} stays pending, run apply again to finish it"
                ) from error
        advance(len(work.files))
    done = _completed(table, work.instant)
    if done is None:
        raise PartialError(
            f"Hudi has executed clean {work.instant} and not completed it; run apply again to "
            "finish it"
        )
    after = {path: names_in(table.storage, path) for path in planned}
    outcome = _tally(work, before, after)
    told = {path: set(found.deleted) for path, found in done.partitions.items()}
    notes = [*_beyond(planned, told, before, after), *indexes_gone(table)]
    return with_differences(checked(table, work, outcome), notes)


def with_differences(outcome: StepOutcome, notes: Collection[Note]) -> StepOutcome:
    return replace(outcome, differences=(*outcome.differences, *notes))


def indexes_gone(table: Table) -> list[Note]:
    """A note where the table has fewer metadata partitions than before, or others."""
    before = set(table.properties.metadata_partitions)
    now = set(load_properties(table.storage).metadata_partitions)
    if before == now:
        return []
    changed = ", ".join(sorted(before ^ now))
    return [Note(_RULE, f"Hudi has changed which indexes the table has: {changed}")]


def _indexes(table: Table, properties: TableProperties) -> dict[str, str]:
    return index_options(
        properties.metadata_partitions,
        defined_columns(table.storage),
        by_partition=is_partitioned(table.storage),
    )


def _completed(table: Table, instant: str) -> CleanMetadata | None:
    timeline = table.reread()
    completed = completion_of(timeline, instant, Action.CLEAN)
    if completed is None:
        return None
    [file] = [file for file in timeline.files if file.instant == completed]
    data = read_instant_file(table.storage, table.properties, file)
    return CleanMetadata.parse(data, instant_path(table.properties, file))


def _tally(
    work: Work, before: Mapping[str, Collection[str]], after: Mapping[str, Collection[str]]
) -> StepOutcome:
    """What is gone, by what is on disk."""
    paths, names = work.files.partition.to_pylist(), work.files.name.to_pylist()
    rows = list(zip(paths, names, work.files.bytes.tolist(), strict=True))
    gone = [size for path, name, size in rows if name in before[path] and name not in after[path]]
    left = [(path, name) for path, name, _size in rows if name in after[path]]
    return StepOutcome(
        kind="clean",
        how="completed",
        instant=work.instant,
        removed=len(gone),
        bytes=sum(gone),
        gone=sum(name not in before[path] for path, name, _size in rows),
        failed=_left(left) if left else None,
        partitions_left=tuple(
            Note(path, "Hudi removes folders with all that is in them, so it was not asked to")
            for path in work.delete_partitions
        ),
        earliest_instant_to_retain=work.earliest,
    )


def _left(files: list[tuple[str, str]]) -> Rows:
    partition, name = zip(*sorted(files), strict=True)
    because = strings(["Hudi says the clean is complete and the file is there"] * len(files))
    return Rows(
        partition=strings(partition).dictionary_encode(),
        name=strings(name),
        because=because.dictionary_encode(),
    )


def _beyond(
    planned: Mapping[str, Collection[str]],
    told: Mapping[str, Collection[str]],
    before: Mapping[str, Collection[str]],
    after: Mapping[str, Collection[str]],
) -> list[Note]:
    """A note for every partition in which more is gone than was reviewed."""
    found = []
    for path in sorted({*planned, *told}):
        gone = {*told.get(path, ()), *(set(before.get(path, ())) - set(after.get(path, ())))}
        more = sorted(gone - set(planned.get(path, ())) - {PLACEHOLDER})
        if more:
            named = ", ".join(more[:_NAMED])
            said = (
                f"Hudi removed {len(more)} files of partition {path!r} that no plan names: {named}"
            )
            found.append(Note(_RULE, said))
    return found
