"""A clustering of ours that Hudi executes: one that it can make, and then held against the review.

Before anything is announced the layout is compared with what Hudi can do. What Hudi has done is
visible by the time it is checked, so a difference is reported loudly and not taken back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from reconciler.apply.cluster_publish import abandon, adopt, tidied
from reconciler.apply.cluster_work import ClusterWork
from reconciler.apply.delegate import indexes_gone, options_of, with_differences
from reconciler.apply.measure import NewFile, measure
from reconciler.apply.result import Rewritten as Done
from reconciler.apply.result import StepOutcome
from reconciler.apply.rewriting import groups_of, rewrite_of
from reconciler.apply.table import Table
from reconciler.delegate.layouts import check_columns, strategy
from reconciler.delegate.model import Hudi
from reconciler.delegate.options import checking_conflicts, clustering_options
from reconciler.errors import FormatError, PartialError, ReconcilerError
from reconciler.hudi.commit import CommitMetadata
from reconciler.hudi.load import instant_path, read_instant_file
from reconciler.hudi.touched import Touched
from reconciler.merge.slice import FileSliceRef
from reconciler.plan.model import Note
from reconciler.rewrite.ground import Ground
from reconciler.rewrite.model import Group, Tally
from reconciler.spec.model import FileSizes
from reconciler.state.layout import BY_HUDI, EXECUTOR, Layout
from reconciler.transaction.paths import path_of
from reconciler.transaction.publish import completion_of

_RULE: Final = "delegated"
#: a file this much larger than the target is worth a word
_TOO_LARGE: Final = 1.15
_NAMED: Final = 5
_TAKE_BACK: Final = "roll the replacecommit back with Hudi before anything is cleaned"


def check_layout(layout: Layout, ground: Ground) -> None:
    """Raises UnsupportedError for a layout that Hudi cannot make of this table's columns."""
    strategy(layout)
    columns = ground.schema.columns
    check_columns(layout, {field.name: field.type for field in columns})


def told_of_hudi(table: Table) -> dict[str, str]:
    """What the plan says of who executes it, for the layout to be remembered; see ``state``."""
    return {EXECUTOR: BY_HUDI} if table.tools.hudi is not None else {}


def carry_out_by_hudi(table: Table, hudi: Hudi, work: ClusterWork) -> StepOutcome:
    """Requested to completed by Hudi, and what came of it; its heartbeat beats.

    Raises ReconcilerError when Hudi does not complete it: it is taken back, as far as it can be.
    """
    rewrite = rewrite_of(
        work.ground, table.spec, work.layout, instant=work.instant, attempt=work.attempt
    )
    groups = groups_of(work.ground, work.groups, work.state)
    try:
        before = hudi.tallies(table.storage.ref, rewrite, groups)
        _execute(table, hudi, work, groups)
    except PartialError:  # Hudi is still at it
        raise
    except (Exception, KeyboardInterrupt) as error:
        is_done = completion_of(table.reread(), work.instant, work.action) is not None
        if not is_done:
            with contextlib.suppress(ReconcilerError):  # else it stays pending
                abandon(table, work)
        if not is_done or isinstance(error, KeyboardInterrupt):
            raise
    with table.phase("check"):
        outcome = tidied(table, work, _completed(table, work))
        try:
            after = _new_groups(table, work, groups)
            told = hudi.tallies(table.storage.ref, rewrite, after)
            notes = [*_replaced(table, work), *_unequal(groups, before, after, told)]
        except ReconcilerError as error:
            said = f"Hudi has completed the clustering, and it could not be checked: {error}"
            return with_differences(outcome, [Note(_RULE, said)])
    return replace(
        with_differences(outcome, [*notes, *indexes_gone(table)]),
        warnings=(*outcome.warnings, *_too_large(table, after)),
        rewritten=_measured(table, work, after, outcome.rewritten),
    )


def _measured(
    table: Table, work: ClusterWork, after: Sequence[Group], done: Done | None
) -> Done | None:
    """With what the declared queries read now; the instant is Hudi's, and does not say it."""
    files = [
        NewFile(
            group=0,
            partition=group.partition,
            name=str(one.base).rpartition("/")[2],
            size=one.base_size,
        )
        for group in after
        for one in group.slices
    ]
    found = measure(table, work, files)
    if found is None or done is None:
        return done
    every = range(len(work.groups))
    return replace(done, queries=found.of(every), unmeasured=found.problem)


def _execute(table: Table, hudi: Hudi, work: ClusterWork, groups: Sequence[Group]) -> None:
    outputs = max(group.outputs for group in groups)
    concurrency = table.spec.concurrency
    options = checking_conflicts(
        options_of(table, hudi, schema=work.ground.avro),
        concurrency.lock if concurrency else None,
    ) | clustering_options(
        work.layout, target=_target(table), outputs=outputs, codec=work.ground.form.codec
    )
    with table.phase("rewrite", sum(group.bytes for group in groups)) as advance:
        hudi.cluster(table.storage.ref, work.instant, options, outputs=outputs)
        advance(sum(group.bytes for group in groups))


def _target(table: Table) -> int:
    return (table.spec.files or FileSizes()).target


def _completed(table: Table, work: ClusterWork) -> StepOutcome:
    timeline = table.reread()
    done = completion_of(timeline, work.instant, work.action)
    if done is None:
        raise PartialError(
            f"Hudi has executed clustering {work.instant} and not completed it; run apply again"
        )
    return replace(adopt(table, work, timeline, done), how="completed")


def _replaced(table: Table, work: ClusterWork) -> list[Note]:
    """What Hudi has replaced beyond what was announced; ``adopt`` finds what it has not."""
    data, path = _said(table, work)
    said = CommitMetadata.parse(data, path, replaces=True).replaced
    planned: dict[str, set[str]] = {}
    of = work.groups.partition.to_pylist()
    ids, starts = work.groups.file_id.to_pylist(), work.groups.starts.tolist()
    for number, partition in enumerate(of):
        planned.setdefault(partition, set()).update(ids[starts[number] : starts[number + 1]])
    notes = []
    for partition, found in sorted(said.items()):
        if more := sorted(set(found) - planned.get(partition, set())):
            notes.append(
                Note(
                    _RULE,
                    f"Hudi has replaced {len(more)} file groups of partition {partition!r} that "
                    f"were not reviewed, for example {', '.join(more[:_NAMED])}",
                )
            )
    return notes


def _said(table: Table, work: ClusterWork) -> tuple[bytes, str]:
    """The completed file and its path."""
    timeline = table.reread()
    done = completion_of(timeline, work.instant, work.action)
    file = next(file for file in timeline.files if file.instant == done)
    data = read_instant_file(table.storage, table.properties, file)
    return data, instant_path(table.properties, file)


def _new_groups(table: Table, work: ClusterWork, groups: Sequence[Group]) -> list[Group]:
    """Hudi's new files, a group a partition, numbered on from the old ones."""
    values: Mapping[str, Mapping[str, object]] = {one.partition: one.values for one in groups}
    files: dict[str, list[FileSliceRef]] = {}
    for partition, name in sorted(Touched.parse(*_said(table, work)).files):
        path = path_of(partition, name)
        entry = table.storage.stat(path)
        if entry is None:
            raise FormatError(
                path, "Hudi says that it has written it, and it is not there", _TAKE_BACK
            )
        size = entry.size
        files.setdefault(partition, []).append(FileSliceRef(base=path, base_size=size, logs=()))
    return [
        Group(
            number=len(groups) + number,
            partition=partition,
            slices=tuple(found),
            outputs=len(found),
            bytes=sum(one.base_size for one in found),
            values=values.get(partition, {}),
        )
        for number, (partition, found) in enumerate(sorted(files.items()))
    ]


def _unequal(
    before: Sequence[Group], read: Sequence[Tally], after: Sequence[Group], written: Sequence[Tally]
) -> list[Note]:
    """A note for every partition whose rows are not what they were."""
    old, new = _by_partition(before, read), _by_partition(after, written)
    notes = []
    for partition in sorted({*old, *new}):
        was, is_ = old.get(partition, Tally()), new.get(partition, Tally())
        if was == is_:
            continue
        what = f"{was.rows} rows were there and {is_.rows} are there now"
        if was.rows == is_.rows:
            what = f"there are {was.rows} rows as before, and their keys are others"
        notes.append(
            Note(
                _RULE,
                f"Hudi's rewrite of partition {partition!r} is not what it was made of: {what}; "
                "the replaced files are still there: roll the replacecommit back with Hudi before "
                "anything is cleaned",
            )
        )
    return notes


def _by_partition(groups: Sequence[Group], tallies: Sequence[Tally]) -> dict[str, Tally]:
    found: dict[str, Tally] = {}
    for group, tally in zip(groups, tallies, strict=True):
        found[group.partition] = found.get(group.partition, Tally()).plus(tally)
    return found


def _too_large(table: Table, groups: Sequence[Group]) -> list[Note]:
    """Hudi cuts where its sample says, and never between rows of one key."""
    target = _target(table)
    files = [one for group in groups for one in group.slices]
    large = [one for one in files if one.base_size > target * _TOO_LARGE]
    if not large:
        return []
    most = max(one.base_size for one in large)
    return [
        Note(
            "fileSize",
            f"{len(large)} of the {len(files)} files that Hudi has written are larger than the "
            f"target of {target} bytes by more than 15 %, the largest has {most}",
        )
    ]
