"""What is said of the declared queries: predictions, drift, limits out of reach; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from reconciler.index.named import unknown_names
from reconciler.plan.model import Finding, Note
from reconciler.planners.advice import wanted
from reconciler.planners.afterwards import After
from reconciler.planners.clustering import ClusteringDecision
from reconciler.planners.gains import Memory, helped
from reconciler.planners.phrases import plural
from reconciler.planners.scans import RULE, Today, percent
from reconciler.planners.standing import RULES
from reconciler.state.foresight import Foresight

_BUDGET: Final = RULES.index("budget")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Foretold:
    """What there is to say of the queries that read more than their ``maxScan``.

    ``decision``: what is rewritten, None without a clustering block, and ``after``: what comes of
    it. ``tried``: what comes of all that may be rewritten, None where nothing was looked for.
    ``foresight``: what is known of the columns.
    """

    now: Today
    foresight: Foresight
    decision: ClusteringDecision | None = None
    after: After | None = None
    tried: After | None = None
    memory: Memory = field(default_factory=Memory)

    def findings(self) -> Iterator[Finding]:
        """Drift: the queries that what is rewritten brings below their limit, or a tenth nearer."""
        now, after = self.now, self.after
        if after is None or not after.new or after.is_unknown:
            return
        limits = np.array([query.max_scan or 0.0 for query in now.queries])
        shares = now.reads.bytes / max(now.total, 1)
        is_helped = helped(shares, after.bytes / max(after.total, 1.0), limits)
        for nth in now.exceeding.tolist():
            if is_helped[nth]:
                yield Finding(
                    f"queries.{now.queries[nth].name}.maxScan",
                    now.queries[nth].max_scan,
                    round(now.share(nth), 4),
                    f"it reads {plural(int(now.reads.files[nth]), 'file')} and "
                    f"{percent(now.share(nth))} of the table's bytes: {now.queries[nth].where}",
                )

    def unreached(self) -> Iterator[Note]:
        """The queries that stay above their ``maxScan``: the best that was tried, and why."""
        for nth in self.now.exceeding.tolist():
            says = self._unreached(nth)
            if says:
                yield Note(RULE, says)

    def _unreached(self, nth: int) -> str:
        now, decision, tried = self.now, self.decision, self.tried
        name, limit = now.queries[nth].name, percent(now.queries[nth].max_scan or 0.0)
        reads = f"it reads {percent(now.share(nth))} of the table's bytes today"
        if decision is None:
            return (
                f"query {name!r} is to read at most {limit} (maxScan), and {reads}: the spec has "
                "no clustering block that could lay the table out for it"
            )
        goal = f"{name!r} below {limit} (maxScan)"
        after = self.after
        best = after if after is not None and after.new else tried
        if best is None or not best.new or best.is_unknown:
            is_read = now.reads.kept[nth]
            if decision.is_laid[is_read].all() and decision.layout.columns:
                return self._explained(nth, goal, "all is laid out as declared", reads)
            if best is not None and best.is_unknown:
                return (
                    f"query {name!r} is to read at most {limit} (maxScan), and {reads}: what a "
                    "clustering makes of that is not known, since no row of the files could be "
                    "sampled"
                )
            return (
                f"query {name!r} stays above {limit} (maxScan), and {reads}: nothing can be "
                "rewritten for it, for the reasons that the slices left as they are have"
            )
        share = float(best.bytes[nth]) / max(best.total, 1.0)
        if best is after and share <= (now.queries[nth].max_scan or 0.0):
            return ""
        wide = percent(float(best.error[nth]) * share)
        return self._explained(nth, goal, f"predicted {percent(share)} ±{wide}", reads)

    def _explained(self, nth: int, goal: str, predicted: str, reads: str) -> str:
        decision = self.decision
        assert decision is not None, "it was tried"
        waits = int((decision.rule == _BUDGET).sum())
        if waits and len(decision.groups):
            return (
                f"this clustering does not yet get query {goal}: {predicted}; {reads}; "
                f"clustering.budget leaves {plural(waits, 'file slice')} to another run"
            )
        columns = decision.layout.columns
        layout = f"no layout on {', '.join(columns)}" if columns else "packing small files never"
        return (
            f"{layout} gets query {goal}: {predicted}; {reads}"
            f"{self._measured(nth)}{self._of_logs(nth)}; {self._remedy(nth, columns)}"
        )

    def _remedy(self, nth: int, declared: Sequence[str]) -> str:
        """What helps the query, and is not there already."""
        query, foresight = self.now.queries[nth], self.foresight
        if unknown_names(query.where, foresight.schema):
            return "put the names of its predicate right first"
        bounded = wanted((query,), foresight.schema, tuple(foresight.values)).columns
        there = {name.lower() for name in declared}
        more = [name for name in bounded if name.lower() not in there]
        if more:
            too = " too" if len(more) < len(bounded) else ""
            return f"raise its maxScan, or declare {', '.join(more)} under clustering.columns{too}"
        if bounded:
            return "raise its maxScan: what its predicate bounds is in clustering.columns already"
        return (
            "raise its maxScan, or compare a column that rows can be ordered by with a value in "
            "every alternative of its predicate"
        )

    def _measured(self, nth: int) -> str:
        """What the last clustering of this declaration came to, where that was looked at."""
        memory, where = self.memory, self.now.queries[nth].where
        if memory.clustering is None or where not in (memory.shares or {}):
            return ""
        share = (memory.shares or {})[where]
        return f", and {percent(share)} was measured after clustering {memory.clustering.instant}"

    def _of_logs(self, nth: int) -> str:
        """Slices that it reads for their log files alone."""
        more = int((self.now.reads.kept[nth] & ~self.now.by_base[nth]).sum())
        if not more:
            return ""
        return f"; it reads {plural(more, 'file slice')} for their log files alone: compact them"


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
