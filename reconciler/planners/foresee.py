"""What the declared queries read today and after a clustering, and what follows for it; pure.

A query that reads more than its ``maxScan`` makes groups of file slices worth rewriting, where the
rewrite in miniature says that it reads less of them then (``gains``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from reconciler.curves.drawn import wanted_rows
from reconciler.curves.layout import sample_rows
from reconciler.hudi.view import View
from reconciler.plan.model import Finding, Note, Sampled
from reconciler.planners.advice import of_unknown_columns
from reconciler.planners.afterwards import After, Look, Miniatures, groups_of
from reconciler.planners.candidates import candidates
from reconciler.planners.clustering import ClusteringDecision
from reconciler.planners.decide import Known, decide, known_of
from reconciler.planners.drawn import Group
from reconciler.planners.foretold import Foretold, predictions
from reconciler.planners.gains import Judge, memory_of
from reconciler.planners.scans import Scans, Today, scans_of, today
from reconciler.planners.slices import view_of
from reconciler.spec.model import TableSpec
from reconciler.state.foresight import ToSample
from reconciler.state.model import TableState

#: rule of the plan's warning about predictions
_RULE: Final = "predictions"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Foreseen:
    """``predictions``: as the plan has them; ``unchanged``: those of a plan without clustering.

    ``decision``: None without a clustering block. ``findings``: queries that read more than their
    ``maxScan``. ``of_sample``: warnings of a plan with clustering alone. ``sampled``: what the
    figures after a clustering come from, None where there is none.
    """

    decision: ClusteringDecision | None = None
    predictions: tuple[dict[str, Any], ...] = ()
    unchanged: tuple[dict[str, Any], ...] = ()
    findings: tuple[Finding, ...] = ()
    warnings: tuple[Note, ...] = ()
    of_sample: tuple[Note, ...] = ()
    sampled: Sampled | None = None


def to_sample(
    spec: TableSpec, state: TableState, *, only_max_scan: bool = False
) -> tuple[ToSample, ...]:
    """The base files to sample, group by group.

    ``only_max_scan``: no more than what decides about steps.
    """
    if spec.clustering is None or state.foresight is None or state.foresight.index is None:
        return ()
    view = view_of(state)
    now = today(spec, state.foresight, candidates(state, view))
    if now is None:
        return ()
    known = known_of(spec, state)
    scans = _scans(spec, now)
    if only_max_scan and scans is None:
        return ()
    decision = decide(spec, state, view, known, scans)
    look = Look(spec, state, state.foresight, known, now, view)
    return tuple(_to_sample(group) for group in groups_of(look, decision) if len(group.members))


def _to_sample(group: Group) -> ToSample:
    total = float(group.sizes.sum()) or 1.0
    rows = sample_rows(group.outputs)
    wanted = [wanted_rows(rows, size, total) for size in group.sizes.tolist()]
    return ToSample(files=group.members, fitted=np.array(wanted, np.int64))


def foresee(spec: TableSpec, state: TableState, view: View, known: Known | None) -> Foreseen:
    """The decision about a clustering with regard to the queries, and what these read then.

    ``known`` is None where the spec has no clustering block.
    """
    foresight = state.foresight
    decision = None if known is None else decide(spec, state, view, known)
    if foresight is None:
        return Foreseen(decision=decision)
    found = candidates(state, view) if decision is None else decision.found
    doubts = tuple(Note(doubt.rule, doubt.because) for doubt in foresight.doubts)
    if foresight.schema.names:
        doubts = (*of_unknown_columns(spec.queries, foresight.schema), *doubts)
    now = today(spec, foresight, found)
    if now is None:
        return Foreseen(decision=decision, warnings=doubts)
    if decision is None or known is None:
        same = predictions(now, None)
        notes = (*doubts, *Foretold(now=now, foresight=foresight).unreached())
        return Foreseen(predictions=same, unchanged=same, warnings=notes)
    return _with_clustering(Look(spec, state, foresight, known, now, view), decision, doubts)


def _with_clustering(look: Look, first: ClusteringDecision, doubts: tuple[Note, ...]) -> Foreseen:
    miniatures = Miniatures(look.ask(first.layout))
    scans = _scans(look.spec, look.now)
    decision, tried = first, None
    if scans is not None:
        trial = look.decide(scans)
        tried = After.of(look, trial, miniatures)
        judge = Judge.of(look, miniatures, trial.found, tried)
        decision = look.decide(replace(scans, gains=judge))
    after = After.of(look, decision, miniatures)
    says = Foretold(
        now=look.now,
        foresight=look.foresight,
        decision=decision,
        after=after,
        tried=tried,
        memory=memory_of(look, first.layout),
    )
    is_rewritten, sampled = bool(after.new), look.foresight.sample
    same = predictions(look.now, None)
    then = predictions(look.now, after) if is_rewritten else same
    return Foreseen(
        decision=decision,
        predictions=() if after.is_unknown else then,
        unchanged=same,
        findings=tuple(says.findings()),
        warnings=(*doubts, *says.unreached()),
        of_sample=tuple(_notes(after)),
        sampled=Sampled(row_groups=sampled.groups, of=sampled.of, rows=len(sampled.rows))
        if is_rewritten and sampled is not None
        else None,
    )


def _notes(after: After) -> Iterator[Note]:
    if after.is_unknown:
        yield Note(
            _RULE,
            "what the queries read after the clustering is not predicted: no row of the files that "
            "it rewrites could be sampled",
        )
    elif after.has_logs:
        yield Note(
            _RULE,
            "of file slices with log files the base rows alone were sampled: what the log files "
            "change is not in the predictions",
        )


def _scans(spec: TableSpec, now: Today) -> Scans | None:
    """What may be rewritten for a query; nothing where Hudi's own eligibility is asked for."""
    clustering = spec.clustering
    if clustering is None or clustering.when.always or not clustering.columns:
        return None
    return scans_of(now)
