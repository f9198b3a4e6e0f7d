"""What is said of the declared queries: predictions, drift, limits out of reach; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reconciler.plan.model import Finding, Note
from reconciler.planners.afterwards import After
from reconciler.planners.clustering import ClusteringDecision
from reconciler.planners.phrases import plural
from reconciler.planners.scans import RULE, Today, percent
from reconciler.planners.standing import RULES

_BUDGET: Final = RULES.index("budget")


def unreached(
    now: Today, decision: ClusteringDecision | None, tried: After | None, *, is_done: bool
) -> Iterator[Note]:
    """The queries that stay above their ``maxScan``, each with the reason.

    ``tried``: what the best that could be rewritten comes to, None where nothing may be;
    ``is_done``: it is what the plan does. ``decision`` is None without a clustering block.
    """
    for nth in now.exceeding.tolist():
        name, limit = now.queries[nth].name, percent(now.queries[nth].max_scan or 0.0)
        reads = f"it reads {percent(now.share(nth))} of the table's bytes today"
        if decision is None:
            says = (
                f"query {name!r} is to read at most {limit} (maxScan), and {reads}: the spec has "
                "no clustering block that could lay the table out for it"
            )
        elif tried is None or not tried.new or tried.is_unknown:
            is_read = now.reads.kept[nth]
            if decision.is_settled[is_read].all() and decision.layout.columns:
                goal = f"{name!r} below {limit} (maxScan)"
                yield Note(RULE, _explained(decision, goal, "all is laid out as declared", reads))
                continue
            says = (
                f"query {name!r} stays above {limit} (maxScan), and {reads}: nothing can be "
                "rewritten for it, for the reasons that the slices left as they are have"
            )
        else:
            share = float(tried.bytes[nth]) / max(tried.total, 1.0)
            if is_done and share <= (now.queries[nth].max_scan or 0.0):
                continue
            wide = percent(float(tried.error[nth]) * share)
            predicted = f"predicted {percent(share)} ±{wide}"
            says = _explained(decision, f"{name!r} below {limit} (maxScan)", predicted, reads)
        yield Note(RULE, says)


def _explained(decision: ClusteringDecision, goal: str, predicted: str, reads: str) -> str:
    waits = int((decision.rule == _BUDGET).sum())
    if waits and len(decision.groups):
        return (
            f"this clustering does not yet get query {goal}: {predicted}; {reads}; "
            f"clustering.budget leaves {plural(waits, 'file slice')} to another run"
        )
    columns = ", ".join(decision.layout.columns)
    return (
        f"no layout on {columns} gets query {goal}: {predicted}; {reads}; raise its maxScan, or "
        "declare columns under clustering.columns that its predicate bounds"
    )


def findings(now: Today) -> tuple[Finding, ...]:
    """The queries that read more than their ``maxScan``."""
    return tuple(
        Finding(
            f"queries.{now.queries[nth].name}.maxScan",
            now.queries[nth].max_scan,
            round(now.share(nth), 4),
            f"it reads {plural(int(now.reads.files[nth]), 'file')} and "
            f"{percent(now.share(nth))} of the table's bytes: {now.queries[nth].where}",
        )
        for nth in now.exceeding.tolist()
    )


def predictions(now: Today, after: After | None) -> tuple[dict[str, Any], ...]:
    """As the plan document has them; without a clustering nothing changes."""
    found = []
    for nth, query in enumerate(now.queries):
        files, size = int(now.reads.files[nth]), int(now.reads.bytes[nth])
        found.append(
            {
                "query": query.name,
                "filesBefore": files,
                "filesAfter": files if after is None else round(float(after.files[nth])),
                "bytesBefore": size,
                "bytesAfter": size if after is None else round(float(after.bytes[nth])),
                "error": 0.0 if after is None else round(float(after.error[nth]), 3),
            }
        )
    return tuple(found)
