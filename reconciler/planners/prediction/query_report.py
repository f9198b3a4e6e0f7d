"""Report on the declared queries: predictions, drift and limits out of reach; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np

from reconciler.index.predicate_columns import find_unknown_names
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.cluster.planner import ClusteringDecision
from reconciler.planners.cluster.slice_verdicts import RULES
from reconciler.planners.prediction.current_reads import (
    MIN_GAIN,
    WARNING_RULE,
    CurrentReads,
    format_percent,
)
from reconciler.planners.prediction.group_benefit import PastResult, find_helped
from reconciler.planners.prediction.layout_candidates import find_query_columns
from reconciler.planners.prediction.predicted_reads import PredictedReads
from reconciler.planners.reasons import format_bytes, pluralize
from reconciler.plans.model import Finding, Note
from reconciler.state.sampling.model import ForecastInput

#: rule of the warning that a query will read more bytes
MORE_BYTES_RULE: Final = "moreBytes"
_BUDGET: Final = RULES.index("budget")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueryReport:
    """The report on the queries that read more than their ``maxScan``.

    ``decision``: what is rewritten; None if no rewrite is declared. ``is_for_sizes``: it is one for
    file sizes alone. ``predicted``: the reads after it. ``predicted_if_all``: the reads if
    everything possible were rewritten; None if no query needs it. ``forecast_input``: facts about
    the columns. ``compacts``: the spec declares a compaction.
    """

    current: CurrentReads
    forecast_input: ForecastInput
    decision: ClusteringDecision | None = None
    is_for_sizes: bool = False
    predicted: PredictedReads | None = None
    predicted_if_all: PredictedReads | None = None
    memory: PastResult = field(default_factory=PastResult)
    compacts: bool = False

    def find_drift(self) -> Iterator[Finding]:
        """Yield the queries that the rewrite brings below their limit or 10 % nearer to it."""
        now, after = self.current, self.predicted
        if after is None or not after.by_group or after.is_unknown:
            return
        limits = np.array([query.max_scan or 0.0 for query in now.queries])
        shares = now.reads.bytes / max(now.table_bytes, 1)
        is_helped = find_helped(shares, after.bytes / max(after.table_bytes, 1.0), limits)
        for nth in now.exceeding.tolist():
            if is_helped[nth]:
                yield Finding(
                    f"queries.{now.queries[nth].name}.maxScan",
                    now.queries[nth].max_scan,
                    round(now.share(nth), 4),
                    f"it reads {pluralize(int(now.reads.files[nth]), 'file')} and "
                    f"{format_percent(now.share(nth))} of the table's bytes: "
                    f"{now.queries[nth].where}",
                )

    def warn_of_unreached(self) -> Iterator[Note]:
        """Warn of queries that stay above their ``maxScan``, with the best result and a remedy."""
        for nth in self.current.exceeding.tolist():
            is_reached = self.is_for_sizes and self._is_reached(nth)
            sentence = "" if is_reached else self._explain_unreached(nth)
            if sentence:
                yield Note(WARNING_RULE, sentence)

    def warn_of_more_bytes(self) -> Iterator[Note]:
        """Warn of queries that are predicted to read clearly more bytes."""
        now, after = self.current, self.predicted
        if after is None or not after.by_group or after.is_unknown:
            return
        for nth, query in enumerate(now.queries):
            before, then = int(now.reads.bytes[nth]), round(float(after.bytes[nth]))
            if then > (1 + MIN_GAIN) * before:
                step, remedy = "the clustering", "add its columns to clustering.columns"
                if self.is_for_sizes:
                    step = "the rewrite for file sizes"
                    remedy = "declare a clustering with its columns, or a smaller files.target"
                yield Note(
                    MORE_BYTES_RULE,
                    f"query {query.name!r} is predicted to read more bytes after {step}: "
                    f"{format_bytes(before)} today, {format_bytes(then)} then "
                    f"±{format_percent(float(after.error[nth]))}; {remedy}, or remove it if it "
                    "matters less than the others",
                )

    def _explain_unreached(self, nth: int) -> str:
        now, decision, tried = self.current, self.decision, self.predicted_if_all
        name, limit = now.queries[nth].name, format_percent(now.queries[nth].max_scan or 0.0)
        reads = f"it reads {format_percent(now.share(nth))} of the table's bytes today"
        if decision is None or self.is_for_sizes:
            return (
                f"query {name!r} should read at most {limit} (maxScan), but {reads}; add a "
                f"clustering block to the spec{self._describe_logs(nth)}"
            )
        goal = f"{name!r} below {limit} (maxScan)"
        after = self.predicted
        best = after if after is not None and after.by_group else tried
        if best is None or not best.by_group or best.is_unknown:
            is_read = now.reads.kept[nth]
            if decision.is_clustered[is_read].all() and decision.layout.columns:
                return self._explain(nth, goal, "all files are clustered as declared", reads)
            if best is not None and best.is_unknown:
                return (
                    f"query {name!r} should read at most {limit} (maxScan), but {reads}; the "
                    "effect of a clustering is unknown, because no row of the files could be "
                    "sampled"
                )
            return (
                f"query {name!r} stays above {limit} (maxScan), and {reads}; nothing can be "
                "rewritten for it, see the reasons of the untouched slices"
            )
        share = float(best.bytes[nth]) / max(best.table_bytes, 1.0)
        if best is after and share <= (now.queries[nth].max_scan or 0.0):
            return ""
        wide = format_percent(float(best.error[nth]) * share)
        return self._explain(nth, goal, f"predicted {format_percent(share)} ±{wide}", reads)

    def _is_reached(self, nth: int) -> bool:
        """Return whether the rewrite brings a query below its limit."""
        after, limit = self.predicted, self.current.queries[nth].max_scan or 0.0
        if after is None or not after.by_group or after.is_unknown:
            return False
        return bool(after.bytes[nth] <= limit * max(after.table_bytes, 1.0))

    def _explain(self, nth: int, goal: str, predicted: str, reads: str) -> str:
        decision = self.decision
        assert decision is not None, "a clustering was tried"
        waits = int((decision.rule == _BUDGET).sum())
        if waits and len(decision.groups):
            return (
                f"this clustering does not bring query {goal} yet: {predicted}; {reads}; "
                f"clustering.budget leaves {pluralize(waits, 'file slice')} to another run"
            )
        columns = decision.layout.columns
        layout = f"no layout on {', '.join(columns)}" if columns else "packing small files never"
        return (
            f"{layout} brings query {goal}: {predicted}; "
            f"{reads}{self._describe_measured(nth)}{self._describe_logs(nth)}; "
            f"{self._suggest_remedy(nth, columns)}"
        )

    def _suggest_remedy(self, nth: int, declared: Sequence[str]) -> str:
        """Return what would help the query."""
        query, forecast_input = self.current.queries[nth], self.forecast_input
        if find_unknown_names(query.where, forecast_input.schema):
            return "correct the names in its predicate first"
        bounded = find_query_columns(
            (query,), forecast_input.schema, tuple(forecast_input.partition_values)
        ).columns
        clustered = {name.lower() for name in declared}
        more = [name for name in bounded if name.lower() not in clustered]
        if more:
            too = " too" if len(more) < len(bounded) else ""
            return f"raise its maxScan, or declare {', '.join(more)} under clustering.columns{too}"
        if bounded:
            return "the query's columns are already clustered; raise its maxScan"
        return "raise its maxScan; every OR branch must filter on a clustering column"

    def _describe_measured(self, nth: int) -> str:
        """Return what was measured after the last clustering with this layout, if anything."""
        memory, where = self.memory, self.current.queries[nth].where
        if memory.clustering is None or where not in (memory.shares or {}):
            return ""
        share = (memory.shares or {})[where]
        return (
            f", and {format_percent(share)} was measured after clustering "
            f"{memory.clustering.instant}"
        )

    def _describe_logs(self, nth: int) -> str:
        """Return the remedy for slices that the query reads only because of their log files."""
        more = int((self.current.reads.kept[nth] & ~self.current.kept_by_base[nth]).sum())
        if not more:
            return ""
        remedy = "the declared compaction merges them" if self.compacts else "compact them"
        return f"; it reads {pluralize(more, 'file slice')} only because of log files: {remedy}"


def build_predictions(
    current: CurrentReads, predicted: PredictedReads | None
) -> tuple[dict[str, Any], ...]:
    """Return predictions as in the plan document; without a clustering nothing changes."""
    predictions = []
    for nth, query in enumerate(current.queries):
        files, size = int(current.reads.files[nth]), int(current.reads.bytes[nth])
        predictions.append(
            {
                "query": query.name,
                "filesBefore": files,
                "filesAfter": files if predicted is None else round(float(predicted.files[nth])),
                "bytesBefore": size,
                "bytesAfter": size if predicted is None else round(float(predicted.bytes[nth])),
                "error": 0.0 if predicted is None else round(float(predicted.error[nth]), 3),
            }
        )
    return tuple(predictions)
