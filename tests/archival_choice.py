"""The choice of an archival by Hudi's rules alone, to compare it with Hudi's."""

from __future__ import annotations

from dataclasses import replace

from reconciler.planners.archive.bounds import find_bounds, raise_limits
from reconciler.planners.archive.selection import CommitLimits, list_commits, select_instants
from reconciler.spec.model import Retention
from reconciler.state.model import TableState

#: bounds that Hudi does not have
OWN_RULES = {"newestClean", "unknownFiles", "schemaHistory"}


def select_as_hudi(state: TableState, least: int, most: int, retention: Retention) -> set[str]:
    """Return the instants that are archived without our own bounds, as time and action."""
    facts, mor = state.archival, state.is_merge_on_read
    assert facts is not None
    facts = replace(facts, replacing_instant=None)  # Hudi trusts its cleans
    bounds = find_bounds(state.timeline, facts, layout=state.layout, is_merge_on_read=mor)
    commits = list_commits(state.timeline, is_merge_on_read=mor)
    found = select_instants(
        state.timeline,
        raise_limits(CommitLimits(least=least, most=most), retention, commits),
        [bound for bound in bounds if bound.rule not in OWN_RULES],
        layout=state.layout,
        is_merge_on_read=mor,
    )
    return {f"{one.requested}.{one.action}" for one in found.instants}


def list_kept_cleans(state: TableState) -> set[str]:
    """Return the newest clean, which stays active in layout 2 although Hudi archives it."""
    clean = state.archival and state.archival.clean
    return {f"{clean.instant}.clean"} if clean and state.layout > 1 else set()
