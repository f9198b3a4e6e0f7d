"""Estimate the bytes of the files that a plan writes."""

from __future__ import annotations

from reconciler.plans.compact_step import CompactStep
from reconciler.plans.model import ClusterStep, TablePlan
from reconciler.plans.refused_steps import list_applied_steps


def estimate_bytes_added(table: TablePlan) -> int:
    """Return the estimated bytes of the files that clusterings and compactions write."""
    layout, applied = table.layout, list_applied_steps(table)
    compactions = [one for one in applied if isinstance(one, CompactStep)]
    compacted = sum(one.expected_bytes for one in compactions)
    rewritten = table.impact.bytes_rewritten - sum(int(s.groups.bytes.sum()) for s in compactions)
    steps = [one for one in applied if isinstance(one, ClusterStep)]
    if layout is None or not steps:
        return compacted + rewritten
    if layout.bytes_written is None:  # a plan of an earlier version
        return compacted + max(0, rewritten + layout.after.bytes - layout.before.bytes)
    replaced = sum(int(step.groups.bytes.sum()) for step in steps)
    return compacted + rewritten - replaced + layout.bytes_written
