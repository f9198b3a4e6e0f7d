"""Which slices a clustering rewrites together, into how many files, and why the others stay; pure.

With ``when: always`` the groups are those of Hudi 1.2.0 (PartitionAwareClusteringPlanStrategy).
Else a partition has to need it, and what is clustered the declared way stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from reconciler import units
from reconciler.hudi.view import View
from reconciler.plan.model import Note, Rewrites
from reconciler.planners.benefit import Need, by_benefit
from reconciler.planners.candidates import Candidates, candidates
from reconciler.planners.caveats import awaited, left_out_damaged, refused
from reconciler.planners.grouping import Groups, at_most_in_each, next_fit
from reconciler.planners.laid import is_laid, is_light, layout_of
from reconciler.planners.overlap import Ranges
from reconciler.planners.passes import passes
from reconciler.planners.phrases import amount_of, plural
from reconciler.planners.rewrites import rewrites
from reconciler.planners.slices import view_of
from reconciler.planners.standing import RULES, Standing, nothing, of_slices
from reconciler.planners.triggers import Triggers, triggers
from reconciler.sizing.estimate import RecordSize
from reconciler.spec.model import Clustering, FileSizes, TableSpec
from reconciler.spec.partitions import left_out
from reconciler.state.layout import Layout, PastClustering
from reconciler.state.measured import Circumstances
from reconciler.state.model import PLAN_DIGEST, TableState

if TYPE_CHECKING:
    from reconciler.planners.scans import Scans

NOTHING: Final = "nothingToDo"
_WORDS: Final = {
    "pendingCompaction": "compaction {} is going to rewrite its file group",
    "pendingLogCompaction": "log compaction {} is going to rewrite its log files",
    "pendingClustering": "clustering {} is going to rewrite its file group",
    "pendingWrite": "{} has written to its file group and is still pending",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusteringDecision:
    """What is rewritten, and the verdict on every candidate.

    ``layout``: how rows will be ordered. ``groups``: in the order of partitions.
    ``rule``: int8 per slice of ``found``, into RULES; ``because``: a dictionary array of sentences,
    one a slice. ``group_of``: int64 per slice, its group, -1 for none.
    ``triggers``: what was measured in the partitions; None under ``when: always``.
    ``members``: int64, the slices of the groups, group by group in the order of their rows.
    ``is_laid``: bool per slice, an earlier clustering laid its base file out as declared.
    """

    layout: Layout
    groups: Rewrites
    found: Candidates
    rule: NDArray[np.int8]
    because: Any
    group_of: NDArray[np.int64]
    triggers: Triggers | None
    members: NDArray[np.int64]
    is_laid: NDArray[np.bool_]
    refusals: tuple[Note, ...]
    warnings: tuple[Note, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Table:
    """One planning: what is asked for, what there is, and what is decided so far."""

    spec: TableSpec
    asked: Clustering
    files: FileSizes
    state: TableState
    found: Candidates
    standing: Standing
    sizes: RecordSize
    past: tuple[PastClustering, ...]
    ranges: Ranges | None
    scans: Scans | None
    damaged: Mapping[int, str]


def plan_clustering(  # noqa: PLR0913
    spec: TableSpec,
    state: TableState,
    *,
    sizes: RecordSize | None = None,
    past: tuple[PastClustering, ...] = (),
    ranges: Ranges | None = None,
    view: View | None = None,
    scans: Scans | None = None,
    damaged: Mapping[int, str] = MappingProxyType({}),
) -> ClusteringDecision:
    """Decide about the newest slice of every file group.

    The spec has a clustering block. ``sizes``: the table's record sizes (None: files have no fixed
    cost). ``past``: completed clusterings of the active timeline. ``ranges``: statistics of base
    files on the clustering columns, without which no overlap is measured. ``view`` is the state's,
    where the caller has it. ``scans``: what is to be rewritten for a query's ``maxScan``; nothing
    under ``when: always``. ``damaged``: why base files cannot be read, by their rows of the state's
    files: no rewrite of them comes to an end, so they stay.
    """
    if spec.clustering is None:
        raise ValueError("the spec has no clustering block")
    found = candidates(state, view_of(state) if view is None else view)
    files = spec.files or FileSizes()
    table = _Table(
        spec=spec,
        asked=spec.clustering,
        files=files,
        state=state,
        found=found,
        standing=Standing(len(found)),
        sizes=sizes or RecordSize(fixed=0, per_row=float(files.record_size), because="declared"),
        past=past,
        ranges=ranges if spec.clustering.columns else None,
        scans=scans if spec.clustering.columns else None,
        damaged=damaged,
    )
    _leave_out_held(table)
    _leave_out_partitions(table)
    _leave_out_damaged(table)
    gate = _closed_gate(table)
    if spec.clustering.when.always:
        groups, weight = _as_hudi(table), _hudi_weight(table)
        outputs = np.maximum(-(-groups.sums(weight) // files.target), 1)
        chosen = _within_budget(table, groups)
        why = ["whatever is small is rewritten (when: always)"] * len(chosen)
        return _decided(table, None, groups.take(chosen), outputs[chosen], why, gate)
    need = _need(table)
    worth = by_benefit(need, table.standing)
    chosen = _within_budget(table, worth.groups)
    groups, outputs = worth.groups.take(chosen), need.outputs(worth.groups)[chosen]
    query = scans.says if scans is not None else ""
    why = [
        need.triggers.says(partition, query if is_asked else "")
        for partition, is_asked in zip(
            found.partition[groups.first].tolist(), worth.is_asked[chosen].tolist(), strict=True
        )
    ]
    return _decided(table, need.triggers, groups, outputs, why, gate)


def _leave_out_held(table: _Table) -> None:
    """Groups of pending services; of pending writes too, where Hudi's own rule is not asked for."""
    found = table.found
    is_held = found.holder >= 0
    for rule, word in _WORDS.items():
        if rule == "pendingWrite" and table.asked.when.always:
            continue
        codes = [code for code, (by, _) in enumerate(found.holders) if by == rule]
        table.standing.decide(
            rule,
            is_held & np.isin(found.holder, codes),
            found.holder,
            lambda code, word=word: word.format(found.holders[code][1]),  # type: ignore[misc]
        )


def _leave_out_partitions(table: _Table) -> None:
    files = table.found.view.files
    reasons = left_out(table.state.partitions, table.asked.partitions)
    texts = [reasons.get(path, "") for path in files.partitions]
    is_out = np.array([bool(text) for text in texts], np.bool_)
    known = set(table.state.partitions)
    for code, path in enumerate(files.partitions):
        if path not in known:
            is_out[code], texts[code] = True, "its folder is no partition of the table"
    partition = table.found.partition
    table.standing.decide("partition", is_out[partition], partition, texts.__getitem__)


def _leave_out_damaged(table: _Table) -> None:
    if table.damaged:
        rows = np.array(sorted(table.damaged), np.int64)
        table.standing.decide(
            "damaged",
            np.isin(table.found.base_row, rows),
            table.found.base_row,
            table.damaged.__getitem__,
        )


def _closed_gate(table: _Table) -> Note | None:
    """The trigger that is not met; then nothing that is still open is rewritten.

    Commits count after the newest clustering, a pending one included. Source: Hudi's
    ClusteringPlanActionExecutor (1.2.0). Where more than Hudi's own rule is asked for, one of ours
    with which what is declared is not yet done does not count.
    """
    always, declared = table.asked.when.always, layout_of(table.asked)
    times = [past.instant for past in table.past if always or not _goes_on(past, declared)]
    times += [given.instant for given in table.state.clusterings]
    last = max(times, default=None)
    commits = table.state.timeline.commits
    done = sum(last is None or i.requested > last for i in commits)
    if done >= table.asked.after_commits:
        return None
    since = f"since clustering {last}" if last else "yet"
    says = (
        f"only {plural(done, 'completed commit')} {since}, and clustering.afterCommits waits for "
        f"{table.asked.after_commits}"
    )
    table.standing.decide("afterCommits", table.standing.is_open, 0, lambda _: says)
    return Note(NOTHING, f"no clustering: {says}")


def _goes_on(past: PastClustering, declared: Layout) -> bool:
    """Whether a clustering of ours left slices to another run, or was declared otherwise."""
    if PLAN_DIGEST not in past.extra:
        return False
    how = Circumstances.read(past.extra)
    return past.layout != declared or (how is not None and how.waiting > 0)


def _hudi_weight(table: _Table) -> NDArray[np.int64]:
    """What Hudi takes slices to weigh: base files alone, the target for a slice of logs alone."""
    found = table.found
    weight: NDArray[np.int64] = np.where(found.has_base, found.base, table.files.target)
    return weight


def _as_hudi(table: _Table) -> Groups:
    """The groups of Hudi 1.2.0, in its order: small base files, the biggest first."""
    found, asked, standing = table.found, table.asked, table.standing
    limit = units.format_size(table.files.small)
    standing.decide(
        "large",
        found.base >= table.files.small,
        0,
        lambda _: f"its base file is not below files.small ({limit})",
    )
    slices, weight = np.flatnonzero(standing.is_open), _hudi_weight(table)
    order = slices[np.lexsort((slices, -weight[slices], found.partition[slices]))]
    groups = next_fit(order, found.partition, weight, asked.budget.per_group)
    among = at_most_in_each(groups, found.partition, asked.budget.groups)
    _over_budget(table, groups.take(np.flatnonzero(~among)))
    groups = groups.take(np.flatnonzero(among))
    if asked.single_file:
        return groups
    is_single = (groups.sizes == 1) & (groups.sums(weight) <= table.files.target)
    standing.decide(
        "singleFile",
        groups.take(np.flatnonzero(is_single)).members,
        0,
        lambda _: "nothing else of its partition is rewritten with it (clustering.singleFile)",
    )
    return groups.take(np.flatnonzero(~is_single))


def _need(table: _Table) -> Need:
    found, asked = table.found, table.asked
    laid = is_laid(found, table.past, layout_of(asked))
    settled = laid & is_light(found)
    return Need(
        clustering=asked,
        target=table.files.target,
        found=found,
        triggers=triggers(found, table.files.small, asked.when, table.ranges),
        is_laid=laid,
        is_settled=settled,
        passes=passes(found, table.spec, asked, settled, table.past),
        data=table.sizes.data_of(found.base, found.logs),
        sizes=table.sizes,
        ranges=table.ranges,
        scans=table.scans,
    )


def _within_budget(table: _Table, groups: Groups) -> NDArray[np.int64]:
    """As many of the groups as one run may rewrite, the first ones first; then by partition."""
    budget = table.asked.budget
    left = np.inf if budget.rewrite is None else budget.rewrite
    taken: list[int] = []
    for number, size in enumerate(groups.sums(table.found.bytes).tolist()):
        if len(taken) == budget.groups:
            break
        if size <= left:
            taken.append(number)
            left -= size
    is_taken = np.zeros(len(groups), np.bool_)
    is_taken[taken] = True
    _over_budget(table, groups.take(np.flatnonzero(~is_taken)))
    chosen = np.array(taken, np.int64)
    found: NDArray[np.int64] = chosen[
        np.argsort(table.found.partition[groups.first[chosen]], kind="stable")
    ]
    return found


def _over_budget(table: _Table, groups: Groups) -> None:
    budget = table.asked.budget
    rewrite = "" if budget.rewrite is None else f", {units.format_size(budget.rewrite)} of them"
    says = f"one run rewrites {plural(budget.groups, 'group')} at most{rewrite} (clustering.budget)"
    table.standing.decide("budget", groups.members, 0, lambda _: says)


def _decided(
    table: _Table,
    fired: Triggers | None,
    groups: Groups,
    outputs: NDArray[np.int64],
    why: list[str],
    gate: Note | None,
) -> ClusteringDecision:
    found, standing = table.found, table.standing
    because = _reasons(table, groups, outputs, why)
    group_of = np.full(len(found), -1, np.int64)
    group_of[groups.members] = groups.numbers()
    standing.decide("group", groups.members, group_of, because.__getitem__)
    return ClusteringDecision(
        layout=layout_of(table.asked),
        groups=rewrites(found, groups, outputs, because),
        found=found,
        rule=standing.rule,
        because=standing.because,
        group_of=group_of,
        triggers=fired,
        members=groups.members,
        is_laid=is_laid(found, table.past, layout_of(table.asked)),
        refusals=tuple(refused(found)),
        warnings=tuple(_warnings(table, groups, gate)),
    )


def _reasons(
    table: _Table, groups: Groups, outputs: NDArray[np.int64], why: list[str]
) -> list[str]:
    sums = groups.sums(table.found.bytes).tolist()
    found = []
    for slices, size, files, reason in zip(
        groups.sizes.tolist(), sums, outputs.tolist(), why, strict=True
    ):
        become = f"{plural(slices, 'file slice')} of {amount_of(size)} become" + (
            "s" if slices == 1 else ""
        )
        found.append(f"{become} {plural(files, 'file')}: {reason}")
    return found


def _warnings(table: _Table, groups: Groups, gate: Note | None) -> Iterable[Note]:
    asked, rule = table.asked, table.standing.rule
    yield from left_out_damaged(table.found, rule, table.damaged)
    if gate is not None:
        yield gate
        return
    if _lacks_ranges(table):
        yield Note(
            "overlap",
            "clustering.when.overlapAbove is not judged: the statistics of the base files on "
            f"{', '.join(asked.columns)} are not known",
        )
    over = int((rule == RULES.index("budget")).sum())
    if over:
        yield Note(
            "budget",
            of_slices("{} wait for another run: clustering.budget ends this one", over),
        )
    yield from awaited(table.found, groups)
    if not len(groups):
        yield Note(NOTHING, f"no clustering: {nothing(rule)}")


def _lacks_ranges(table: _Table) -> bool:
    """Whether a partition has so many base files that too many may overlap, and nothing tells."""
    asked, found, above = table.asked, table.found, table.asked.when.overlap_above
    if not asked.columns or asked.when.always or above is None or table.ranges is not None:
        return False
    is_in = found.has_base & (table.standing.rule != RULES.index("partition"))
    return bool(np.bincount(found.partition[is_in], minlength=1).max() > above)
