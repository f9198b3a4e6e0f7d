"""Have Hudi execute a clean that we requested, and check what it did (``--executor hudi``).

Files are chosen, requested and checked again as for our own execution. Hudi deletes them, updates
its metadata table and completes the instant. What it did is then compared with the review.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from reconciler.errors import PartialError, ReconcilerError
from reconciler.executor.clean.execution import CleanWork, check_listing, list_removed_names
from reconciler.executor.clean.payloads import PLACEHOLDER
from reconciler.executor.result import FileReasons, StepOutcome
from reconciler.executor.session import ApplySession
from reconciler.hudi.load import load_properties
from reconciler.hudi.metadata.index_definitions import (
    is_record_index_partitioned,
    read_defined_columns,
)
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.clean import CleanMetadata
from reconciler.hudi.timeline.instant import Action
from reconciler.hudi_engine.bundles import check_bundle
from reconciler.hudi_engine.delegated_lock import check_delegated_lock
from reconciler.hudi_engine.executor import HudiExecutor
from reconciler.hudi_engine.layouts import find_strategy
from reconciler.hudi_engine.table_options import make_index_options, make_table_options
from reconciler.plans.model import ClusterStep, Note
from reconciler.state.clustering_layout import ClusteringLayout
from reconciler.transaction.paths import list_names_of_partitions
from reconciler.transaction.publish import find_completion

_MAX_NAMES: Final = 5
_RULE: Final = "delegated"


def check_delegation(session: ApplySession, hudi: HudiExecutor) -> None:
    """Raise UnsupportedError if Hudi cannot execute the reviewed steps as reviewed."""
    bundle, release = hudi.read_version(), hudi.read_spark_version()
    check_bundle(bundle, session.properties.table_version, release)
    location = session.storage.location
    check_delegated_lock(session.declared_lock, location, bundle, hudi.has_class)
    _make_index_options(session, session.properties)
    for step in session.plan.steps:
        if isinstance(step, ClusterStep):
            find_strategy(
                ClusteringLayout(columns=step.columns, curve=step.curve, mapping=step.mapping)
            )


def make_hudi_options(
    session: ApplySession, hudi: HudiExecutor, *, schema: str | None = None
) -> dict[str, str]:
    """Return the options by which Hudi knows a table as it is now."""
    properties = load_properties(session.storage)
    return make_table_options(
        properties,
        location=session.storage.location,
        lock=session.declared_lock,
        bundle=hudi.read_version(),
        schema=schema,
        indexes=_make_index_options(session, properties),
    )


def execute_clean_by_hudi(
    session: ApplySession, hudi: HudiExecutor, work: CleanWork
) -> StepOutcome:
    """Have Hudi execute a clean that was just requested, and check what it did.

    Raises PartialError when Hudi does not complete it: it stays pending for the next apply.
    """
    planned = list_removed_names(work)
    before = list_names_of_partitions(session.storage, planned, files=len(work.listed))
    with session.phase("delete", len(work.files)) as advance:
        try:
            hudi.clean(session.storage.ref, work.instant, make_hudi_options(session, hudi))
        except ReconcilerError as error:
            if _read_completed(session, work.instant) is None:
                raise PartialError(
                    f"{error}; clean {work.instant} stays pending, run apply again to finish it"
                ) from error
        advance(len(work.files))
    done = _read_completed(session, work.instant)
    if done is None:
        raise PartialError(
            f"Hudi has executed clean {work.instant} and not completed it; run apply again to "
            "finish it"
        )
    after = list_names_of_partitions(session.storage, planned, files=len(work.listed))
    outcome = _summarize(work, before, after)
    reported = {path: set(found.deleted) for path, found in done.partitions.items()}
    notes = [
        *_describe_unplanned(planned, reported, before, after),
        *describe_changed_indexes(session),
    ]
    return add_differences(check_listing(session, work, outcome, after.__getitem__), notes)


def add_differences(outcome: StepOutcome, notes: Collection[Note]) -> StepOutcome:
    return replace(outcome, differences=(*outcome.differences, *notes))


def describe_changed_indexes(session: ApplySession) -> list[Note]:
    """Return a note if the table's metadata partitions are not those from before."""
    before = set(session.properties.metadata_partitions)
    now = set(load_properties(session.storage).metadata_partitions)
    if before == now:
        return []
    changed = ", ".join(sorted(before ^ now))
    return [Note(_RULE, f"Hudi has changed which indexes the table has: {changed}")]


def _make_index_options(session: ApplySession, properties: TableProperties) -> dict[str, str]:
    return make_index_options(
        properties.metadata_partitions,
        read_defined_columns(session.storage),
        by_partition=is_record_index_partitioned(session.storage),
    )


def _read_completed(session: ApplySession, instant: str) -> CleanMetadata | None:
    timeline = session.reload_timeline()
    completed = find_completion(timeline, instant, Action.CLEAN)
    if completed is None:
        return None
    [file] = [file for file in timeline.files if file.instant == completed]
    return CleanMetadata.parse(*session.read_instant(file))


def _summarize(
    work: CleanWork, before: Mapping[str, Collection[str]], after: Mapping[str, Collection[str]]
) -> StepOutcome:
    """Return the outcome, from what is on disk."""
    paths, names = work.files.partition.to_pylist(), work.files.name.to_pylist()
    rows = list(zip(paths, names, work.files.bytes.tolist(), strict=True))
    sizes = [size for path, name, size in rows if name in before[path] and name not in after[path]]
    why = "Hudi says the clean is complete and the file is there"
    left = [(path, name, why) for path, name, _size in rows if name in after[path]]
    return StepOutcome(
        kind="clean",
        how="completed",
        instant=work.instant,
        removed=len(sizes),
        bytes=sum(sizes),
        gone=sum(name not in before[path] for path, name, _size in rows),
        failed=FileReasons.from_rows(left),
        partitions_left=tuple(
            Note(path, "Hudi removes folders with all that is in them, so it was not asked to")
            for path in work.delete_partitions
        ),
        earliest_instant_to_retain=work.earliest,
    )


def _describe_unplanned(
    planned: Mapping[str, Collection[str]],
    reported: Mapping[str, Collection[str]],
    before: Mapping[str, Collection[str]],
    after: Mapping[str, Collection[str]],
) -> list[Note]:
    """Return a note for every partition in which Hudi deleted more than was reviewed."""
    notes = []
    for path in sorted({*planned, *reported}):
        removed = {*reported.get(path, ()), *(set(before.get(path, ())) - set(after.get(path, ())))}
        more = sorted(removed - set(planned.get(path, ())) - {PLACEHOLDER})
        if more:
            named = ", ".join(more[:_MAX_NAMES])
            text = (
                f"Hudi removed {len(more)} files of partition {path!r} that no plan names: {named}"
            )
            notes.append(Note(_RULE, text))
    return notes
