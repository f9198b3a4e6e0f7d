"""Decide what a table would be rewritten for if nothing withheld it: a wait or a budget; pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from reconciler import units
from reconciler.arrays import Mask
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.cluster.after_commits import NOTHING_TO_DO
from reconciler.planners.cluster.planner import ClusteringDecision, decide_clustering
from reconciler.planners.cluster.slice_verdicts import RULES, explain_no_groups
from reconciler.planners.picture import TablePicture
from reconciler.plans.model import Note
from reconciler.spec.model import ClusteringBudget, FileSizes, TableSpec

_BUDGET: Final = RULES.index("budget")
_AFTER_COMMITS: Final = RULES.index("afterCommits")
#: rules of slices that a group of several might rewrite
_UNGROUPED: Final = tuple(RULES.index(rule) for rule in ("noGain", "singleFile", "unmeasured"))
_WHEN: Final = RULES.index("when")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WithheldRewrite:
    """What would be rewritten without ``afterCommits`` and with a larger budget.

    ``named``: the warnings of the first decision with the budget as the reason of slices that only
    it keeps; None if that decision names the reasons.
    """

    due: ClusteringDecision
    named: tuple[Note, ...] | None = None


def decide_withheld(picture: TablePicture, decision: ClusteringDecision) -> WithheldRewrite | None:
    """Return what a table without groups would be rewritten for; None if nothing withholds it."""
    rewriting = picture.spec.rewriting
    if rewriting is None or rewriting.when.always:
        return None
    is_cut = _find_cut(decision, rewriting.budget) | (decision.rule == _BUDGET)
    if not (is_cut.any() or (decision.rule == _AFTER_COMMITS).any()):
        return None
    spec = _lift_waits(picture.spec)
    if spec == picture.spec:
        return None
    due = decide_clustering(replace(picture, spec=spec))
    if not (is_cut & (due.group_of >= 0)).any():
        return WithheldRewrite(due=due)
    return WithheldRewrite(due=due, named=_name_budget(picture.spec, decision, due))


def _find_cut(decision: ClusteringDecision, budget: ClusteringBudget) -> Mask:
    """Return the slices of partitions in which not even the two smallest fit into one group."""
    candidates, rule = decision.candidates, decision.rule
    is_left = np.isin(rule, _UNGROUPED) | ((rule == _WHEN) & ~decision.is_clustered)
    left = np.flatnonzero(is_left)
    order = left[np.lexsort((candidates.bytes[left], candidates.partition[left]))]
    partition, size = candidates.partition[order], candidates.bytes[order]
    is_first = np.diff(partition, prepend=-1) != 0
    # the pair of the two smallest of a partition begins where the partition does
    pairs = np.flatnonzero(is_first[:-1] & ~is_first[1:])
    too_large = partition[pairs[size[pairs] + size[pairs + 1] > budget.max_group_bytes]]
    is_cut: Mask = is_left & np.isin(candidates.partition, too_large)
    return is_cut


def _lift_waits(spec: TableSpec) -> TableSpec:
    """Return a spec whose rewrite waits for no commits and may be of any size."""
    if (clustering := spec.clustering) is not None:
        budget = _lift_limits(clustering.budget)
        return replace(spec, clustering=replace(clustering, after_commits=0, budget=budget))
    files = spec.files or FileSizes()
    budget = _lift_limits(files.budget or ClusteringBudget())
    return replace(spec, files=replace(files, budget=budget))


def _lift_limits(budget: ClusteringBudget) -> ClusteringBudget:
    """Return a budget without a limit of bytes, and with groups of at least the default size."""
    per_group = max(budget.per_group, ClusteringBudget().per_group)
    return replace(budget, rewrite=None, per_group=per_group)


def _name_budget(
    spec: TableSpec, decision: ClusteringDecision, due: ClusteringDecision
) -> tuple[Note, ...]:
    """Return the warnings of a decision with the budget as the reason of what it withholds."""
    rule: NDArray[np.int8] = np.where(due.group_of >= 0, _BUDGET, decision.rule).astype(np.int8)
    block = "files" if spec.clustering is None else "clustering"
    nothing = explain_no_groups(rule, block)
    assert spec.rewriting is not None, "the spec declares a rewrite"
    budget = spec.rewriting.budget
    is_group = budget.rewrite is None or budget.per_group < budget.rewrite
    field = "perGroup" if is_group and not (decision.rule == _BUDGET).any() else "rewrite"
    limit = budget.per_group if field == "perGroup" else budget.rewrite or 0
    because = (
        f"{block}.budget.{field}: {units.format_size(limit)} is too small for any group of file "
        "slices, so nothing is rewritten; raise it"
    )
    others = (note for note in decision.warnings if note.rule not in (NOTHING_TO_DO, "budget"))
    return (*others, Note("budget", because), Note(NOTHING_TO_DO, nothing))
