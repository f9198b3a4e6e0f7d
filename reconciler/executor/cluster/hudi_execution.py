"""Have Hudi execute a clustering that we requested, and compare the result with the review.

Before anything is requested the layout is compared with what Hudi can do. What Hudi has done is
visible by the time it is checked, so a difference is reported and not undone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from reconciler.errors import FormatError, PartialError, ReconcilerError
from reconciler.executor.clean.hudi_execution import (
    add_differences,
    describe_changed_indexes,
    make_hudi_options,
)
from reconciler.executor.cluster.leftovers import remove_strays
from reconciler.executor.cluster.publish import adopt_completed, list_file_groups
from reconciler.executor.cluster.query_measurement import ClusteredFile, measure_queries
from reconciler.executor.cluster.rewrite_job import make_groups, make_rewrite
from reconciler.executor.cluster.work import ClusterWork
from reconciler.executor.outcomes import ClusterOutcome
from reconciler.executor.result import StepOutcome
from reconciler.executor.session import ApplySession
from reconciler.file_slices.merge.slice_reader import SliceFiles
from reconciler.hudi.timeline.commit import CommitMetadata, WriteFootprint
from reconciler.hudi_engine.executor import HudiExecutor
from reconciler.hudi_engine.layouts import check_columns, find_strategy
from reconciler.hudi_engine.table_options import add_conflict_check, make_clustering_options
from reconciler.planners.cluster.size_limits import find_split_rule
from reconciler.plans.model import Note
from reconciler.rewrite.facts import TableFacts
from reconciler.rewrite.model import RewriteGroup, Tally
from reconciler.spec.model import FileSizes
from reconciler.state.clustering_layout import EXECUTOR_KEY, HUDI_EXECUTOR, ClusteringLayout
from reconciler.transaction.paths import resolve_path
from reconciler.transaction.publish import find_completion

_RULE: Final = "delegated"
_MAX_NAMES: Final = 5
_REMEDY: Final = "roll the replacecommit back with Hudi before anything is cleaned"


def check_layout(layout: ClusteringLayout, facts: TableFacts) -> None:
    """Raise UnsupportedError for a layout that Hudi cannot make of this table's columns."""
    find_strategy(layout)
    columns = facts.schema.columns
    check_columns(layout, {field.name: field.type for field in columns})


def make_executor_extra(session: ApplySession) -> dict[str, str]:
    """Return the extra metadata by which Hudi is remembered as the executor."""
    return {EXECUTOR_KEY: HUDI_EXECUTOR} if session.context.hudi is not None else {}


def execute_clustering_by_hudi(
    session: ApplySession, hudi: HudiExecutor, work: ClusterWork
) -> StepOutcome:
    """Have Hudi execute a clustering that was just requested, and check what it did.

    Raises ReconcilerError when Hudi does not complete it.
    """
    rewrite = make_rewrite(
        work.facts, session.spec, work.layout, instant=work.instant, attempt=work.attempt
    )
    groups = make_groups(work.facts, work.groups, work.state)
    try:
        before = hudi.tally_groups(session.storage.ref, rewrite, groups)
        _execute(session, hudi, work, groups)
    except PartialError:  # Hudi is still at work
        raise
    except Exception:
        if find_completion(session.reload_timeline(), work.instant, work.action) is None:
            raise
    with session.phase("check"):
        outcome = remove_strays(session, work, _adopt_completed(session, work))
        try:
            after = _make_new_groups(session, work, groups)
            written = hudi.tally_groups(session.storage.ref, rewrite, after)
            notes = [
                *_describe_unplanned(session, work),
                *_describe_unequal(groups, before, after, written),
            ]
        except ReconcilerError as error:
            text = f"Hudi has completed the clustering, and it could not be checked: {error}"
            return add_differences(outcome, [Note(_RULE, text)])
    return replace(
        add_differences(outcome, [*notes, *describe_changed_indexes(session)]),
        warnings=(*outcome.warnings, *_describe_too_large(session, after)),
        rewritten=_add_measurement(session, work, after, outcome.rewritten),
    )


def _add_measurement(
    session: ApplySession,
    work: ClusterWork,
    after: Sequence[RewriteGroup],
    done: ClusterOutcome | None,
) -> ClusterOutcome | None:
    """Add what the declared queries read now; Hudi's instant does not record it."""
    files = [
        ClusteredFile(
            group=0,
            partition=group.partition,
            name=str(part.base).rpartition("/")[2],
            size=part.base_size,
        )
        for group in after
        for part in group.slices
    ]
    measured = measure_queries(session, work, files)
    if measured is None or done is None:
        return done
    every = range(len(work.groups))
    return replace(done, queries=measured.select_groups(every), unmeasured=measured.problem)


def _execute(
    session: ApplySession, hudi: HudiExecutor, work: ClusterWork, groups: Sequence[RewriteGroup]
) -> None:
    outputs = max(group.outputs for group in groups)
    table = make_hudi_options(session, hudi, schema=work.facts.avro)
    options = add_conflict_check(table, session.declared_lock) | make_clustering_options(
        work.layout, target=_get_target(session), outputs=outputs, codec=work.facts.form.codec
    )
    with session.phase("rewrite", sum(group.bytes for group in groups)) as advance:
        hudi.cluster(session.storage.ref, work.instant, options, outputs=outputs)
        advance(sum(group.bytes for group in groups))


def _get_target(session: ApplySession) -> int:
    return (session.spec.files or FileSizes()).target


def _adopt_completed(session: ApplySession, work: ClusterWork) -> StepOutcome:
    timeline = session.reload_timeline()
    done = find_completion(timeline, work.instant, work.action)
    if done is None:
        raise PartialError(
            f"Hudi has executed clustering {work.instant} and not completed it; run apply again"
        )
    return replace(adopt_completed(session, work, timeline, done), how="completed")


def _describe_unplanned(session: ApplySession, work: ClusterWork) -> list[Note]:
    """Return notes for what Hudi replaced without a review.

    ``adopt_completed`` finds what it did not replace.
    """
    replaced = CommitMetadata.parse(*_read_completed(session, work), replaces=True).replaced
    planned = list_file_groups(work.groups)
    notes = []
    for partition, ids in sorted(replaced.items()):
        if more := sorted(file_id for file_id in set(ids) if (partition, file_id) not in planned):
            text = (
                f"Hudi has replaced {len(more)} file groups of partition {partition!r} that were "
                f"not reviewed, for example {', '.join(more[:_MAX_NAMES])}"
            )
            notes.append(Note(_RULE, text))
    return notes


def _read_completed(session: ApplySession, work: ClusterWork) -> tuple[bytes, str]:
    """Return the completed file and its path."""
    timeline = session.reload_timeline()
    done = find_completion(timeline, work.instant, work.action)
    file = next(file for file in timeline.files if file.instant == done)
    return session.read_instant(file)


def _make_new_groups(
    session: ApplySession, work: ClusterWork, groups: Sequence[RewriteGroup]
) -> list[RewriteGroup]:
    """Return Hudi's new files, one group a partition, numbered on from the old groups."""
    values: Mapping[str, Mapping[str, object]] = {group.partition: group.values for group in groups}
    files: dict[str, list[SliceFiles]] = {}
    for partition, name in sorted(WriteFootprint.parse(*_read_completed(session, work)).files):
        path = resolve_path(partition, name)
        entry = session.storage.stat(path)
        if entry is None:
            raise FormatError(
                path, "Hudi says that it has written it, and it is not there", _REMEDY
            )
        size = entry.size
        files.setdefault(partition, []).append(SliceFiles(base=path, base_size=size, logs=()))
    return [
        RewriteGroup(
            number=len(groups) + number,
            partition=partition,
            slices=tuple(found),
            outputs=len(found),
            bytes=sum(part.base_size for part in found),
            values=values.get(partition, {}),
        )
        for number, (partition, found) in enumerate(sorted(files.items()))
    ]


def _describe_unequal(
    before: Sequence[RewriteGroup],
    read: Sequence[Tally],
    after: Sequence[RewriteGroup],
    written: Sequence[Tally],
) -> list[Note]:
    """Return a note for every partition whose rows are not what they were."""
    old, new = _sum_by_partition(before, read), _sum_by_partition(after, written)
    notes = []
    for partition in sorted({*old, *new}):
        was, is_ = old.get(partition, Tally()), new.get(partition, Tally())
        if was == is_:
            continue
        what = f"{was.rows} rows were there and {is_.rows} are there now"
        if was.rows == is_.rows:
            what = f"there are {was.rows} rows as before, and their keys are others"
        text = (
            f"Hudi's rewrite of partition {partition!r} is not what it was made of: {what}; the "
            f"replaced files are still there: {_REMEDY}"
        )
        notes.append(Note(_RULE, text))
    return notes


def _sum_by_partition(groups: Sequence[RewriteGroup], tallies: Sequence[Tally]) -> dict[str, Tally]:
    totals: dict[str, Tally] = {}
    for group, tally in zip(groups, tallies, strict=True):
        totals[group.partition] = totals.get(group.partition, Tally()).add(tally)
    return totals


def _describe_too_large(session: ApplySession, groups: Sequence[RewriteGroup]) -> list[Note]:
    """Return a note on large files: Hudi cuts by a sample, and never between rows of one key."""
    target = _get_target(session)
    most = find_split_rule(session.spec).max_bytes
    files = [file for group in groups for file in group.slices]
    large = [file for file in files if file.base_size > most]
    if not large:
        return []
    greatest = max(file.base_size for file in large)
    text = (
        f"{len(large)} of the {len(files)} files that Hudi has written are larger than the target "
        f"of {target} bytes by more than {most / target - 1:.0%}, the largest has {greatest}"
    ).replace("%,", " %,")
    return [Note("fileSize", text)]
