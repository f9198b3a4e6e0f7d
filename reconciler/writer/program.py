"""A write from rows to files, stage by stage, whoever runs the stages.

Rows come to places, keys are looked for, all is counted and assigned, and every bucket is written.
What each stage saw is compared with what the next one got: no row is lost or doubled unnoticed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from reconciler.errors import ReconcilerError, UnsupportedError
from reconciler.exchange.held import Brought, Held
from reconciler.merge.slice import FileSliceRef
from reconciler.rewrite.model import Tally
from reconciler.rewrite.names import output_id
from reconciler.sizing.assign import assign
from reconciler.sizing.buckets import Assignment
from reconciler.sizing.rules import CopyOnWrite, Rule, Steady
from reconciler.writer.arrived import changed
from reconciler.writer.bucket import Bucket
from reconciler.writer.counting import CountingRows, CountingWork, Totalled
from reconciler.writer.filling import Filled, Filling
from reconciler.writer.indexed import AskingIndex, LookingUp, Lookup
from reconciler.writer.judging import AskingMoved, FindingTwice, Judging
from reconciler.writer.prepare import Preparing
from reconciler.writer.request import (
    Assigned,
    Engine,
    Operation,
    Standing,
    Totals,
    WriteDone,
    WriteWork,
)
from reconciler.writer.routes import Binning, Cutting, Routes, Routing
from reconciler.writer.searching import Asking, Search, Searching
from reconciler.writer.weighing import sample_of


def written(
    rows: Brought, work: WriteWork, engine: Engine, *, assigned: Callable[[Assigned], None]
) -> WriteDone:
    """The new files of a write; contract and errors are those of ``Writer``."""
    _refuse(work)
    recipe = engine.shared(work.recipe)
    held = rows.sent(Preparing(recipe, engine.places), engine.places)
    if work.recipe.operation.looks_up:
        held = _tagged(held, work, engine, recipe)
    weighed = sample_of(engine.places) if _weighs(work.rule) else 0
    total = Totalled.of(held.collected(CountingWork(recipe, weighed)))
    _check_moves(held, total, work, engine, recipe)
    found = _assigned(total, work)
    assigned(found)
    if not len(found.assignment):
        return _done([], total, found)
    routes = _routes(held, found.assignment, work, engine, recipe)
    buckets = engine.shared(_buckets(found.assignment, work))
    filled = held.sent(Routing(recipe, engine.shared(routes)), len(found.assignment)).collected(
        Filling(recipe, buckets, engine.bench, work.blooms)
    )
    _check(filled, total, found.assignment)
    return _done(filled, total, found)


def _refuse(work: WriteWork) -> None:
    """What is not written here."""
    groups = work.standing.groups
    if (groups.is_live & (groups.log_files > 0)).any():
        raise UnsupportedError(
            "the table has log files: only tables that are copied on write are written here"
        )
    if work.recipe.operation.looks_up and not work.recipe.work.form.has_keys:
        raise UnsupportedError(
            "the table's files hold no record keys (hoodie.populate.meta.fields is false), so that "
            f"there is no {work.recipe.operation.value}; insert into it, or write it with Hudi"
        )


def _tagged(held: Held, work: WriteWork, engine: Engine, recipe: Any) -> Held:
    """The rows beside what is known of where their keys are."""
    if work.index is not None:
        lookup = Lookup.of(work.index, work.standing, engine.searches)
        shared = engine.shared(lookup)
        asked = held.sent(AskingIndex(recipe, shared), lookup.readers)
        told = asked.sent(LookingUp(shared, engine.bench), lookup.lookers)
        return held.beside(told.sent(Judging(recipe, shared, engine.bench), engine.places))
    rows: Counter[str] = Counter()
    for found in held.collected(CountingRows()):
        rows.update(found)
    search = Search.of(work.standing, rows, engine.searches)
    if not search.files:
        return held
    shared = engine.shared(search)
    asked = held.sent(Asking(recipe, shared), len(search.files))
    return held.beside(asked.sent(Searching(shared, engine.bench), engine.places))


def _check_moves(held: Held, total: Totalled, work: WriteWork, engine: Engine, recipe: Any) -> None:
    """Rows that leave a partition are not in the one that they come to, too; few are asked for."""
    search = Search.of(work.standing, total.moves, engine.searches)
    if search.files:
        shared = engine.shared(search)
        asked = held.sent(AskingMoved(recipe, shared), len(search.files))
        asked.collected(FindingTwice(shared, engine.bench))


def _assigned(total: Totalled, work: WriteWork) -> Assigned:
    groups, rule = work.standing.groups, _rule(total, work)
    _refuse_pending(total, work.standing)
    per_row = rule.record.per_row if isinstance(rule, Steady) else 0.0
    codes = groups.partition.tolist() if total.changes else []
    workload = total.workload([groups.partitions[code] for code in codes], per_row)
    fills = work.has_commits and work.recipe.operation is not Operation.BULK_INSERT
    assignment = assign(
        groups, workload, CopyOnWrite(), rule, has_commits=fills, streams=work.streams
    )
    return Assigned(workload=workload, assignment=assignment)


def _rule(total: Totalled, work: WriteWork) -> Rule:
    """By what these rows weigh, where fewer were known of before."""
    match work.rule:
        case Steady(record=known) as rule if total.weight.rows > known.rows:
            return replace(rule, record=total.weight.record)
        case rule:
            return rule


def _weighs(rule: Rule) -> bool:
    return isinstance(rule, Steady) and rule.weighs


def _refuse_pending(total: Totalled, standing: Standing) -> None:
    """As Hudi's SparkRejectUpdateStrategy: a clustering would lose the updates."""
    groups = standing.groups
    held = [file for file in sorted(total.changes) if groups.is_clustering[file]]
    if held:
        at = held[0]
        raise ReconcilerError(
            f"partition {groups.partitions[groups.partition[at]]!r}, file group "
            f"{groups.file_id[at].as_py()}: a pending clustering is going to rewrite it"
            + (f", as {len(held) - 1} more with rows of this write" if len(held) > 1 else "")
            + "; let it be completed or rolled back, then write again"
        )


def _routes(
    held: Held, assignment: Assignment, work: WriteWork, engine: Engine, recipe: Any
) -> Routes:
    routes = Routes.of(assignment, len(work.standing.groups))
    if not routes.shared or not (isinstance(work.rule, Steady) or work.streams):
        return routes
    shared = engine.shared(routes)
    places = min(engine.places, len(routes.shared))
    return routes.cut(held.sent(Binning(recipe, shared, places), places).collected(Cutting(shared)))


def _buckets(assignment: Assignment, work: WriteWork) -> tuple[Bucket, ...]:
    groups = work.standing.groups
    buckets = []
    for number, group in enumerate(assignment.group.tolist()):
        partition = assignment.partitions[assignment.partition[number]]
        base = None
        if group >= 0:
            name = work.standing.bases[group].as_py()
            path = f"{partition}/{name}" if partition else name
            base = FileSliceRef(base=path, base_size=int(groups.base[group]))
        prefix = output_id(work.seed, 0, number)
        buckets.append(Bucket(number=number, partition=partition, prefix=prefix, base=base))
    return tuple(buckets)


def _check(filled: Sequence[Filled], total: Totalled, assignment: Assignment) -> None:
    """All rows that were counted have come to files, and no others.

    Raises ReconcilerError where they have not.
    """
    inserts: dict[str, Tally] = {}
    changes: dict[int, Tally] = {}
    for one in filled:
        path = assignment.partitions[assignment.partition[one.bucket]]
        inserts[path] = inserts.get(path, Tally()).plus(one.inserts)
        if one.changes.rows:
            changes[int(assignment.group[one.bucket])] = one.changes
        # a change may be a new row, of a key that is gone since it was looked for
        own = sum(made.counts.inserts for made in one.files)
        begun = sum(made.file.rows - made.counts.inserts for made in one.files if not made.before)
        if begun or not 0 <= own - one.inserts.rows <= one.changes.rows:
            raise ReconcilerError(
                f"partition {path!r}: of {one.inserts.rows} new rows that were brought to files, "
                f"these count {own}; nothing is published"
            )
    expected = {path: tally for path, tally in total.inserts.items() if tally.rows}
    if {p: tally for p, tally in inserts.items() if tally.rows} != expected:
        raise changed()
    if changes != total.changes:
        raise changed()


def _done(filled: Sequence[Filled], total: Totalled, found: Assigned) -> WriteDone:
    in_order = sorted(filled, key=lambda one: one.bucket)
    files = tuple(file for one in in_order for file in one.files)
    return WriteDone(
        files=files,
        totals=Totals(
            brought=total.brought,
            dropped=total.dropped,
            idle=total.idle,
            inserts=sum(file.counts.inserts for file in files),
            updates=sum(file.counts.updates for file in files),
            deletes=sum(file.counts.deletes for file in files),
        ),
        assigned=found,
    )
