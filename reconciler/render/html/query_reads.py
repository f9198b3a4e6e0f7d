"""Show what declared queries read before and after a plan; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.plans.compact_step import CompactStep
from reconciler.plans.model import TablePlan
from reconciler.plans.refused_steps import find_refused_kinds
from reconciler.render import words
from reconciler.render.html.model import BarRow, BarTable, Paint, Segment
from reconciler.render.query_predictions import describe_merging, describe_source


def show_queries(plan: TablePlan) -> BarTable | None:
    """Return the declared queries with their reads; None if the plan predicts none."""
    predictions = plan.predictions
    if not predictions:
        return None
    declared = _list_declared(plan.spec)
    longest = max(max(one["bytesBefore"], one["bytesAfter"]) for one in predictions) or 1
    ordered = sorted(predictions, key=lambda one: (-one["bytesBefore"], one["query"]))
    is_changed = any(map(_has_change, predictions))
    legend: list[tuple[Paint, str]] = [("before", "today")]
    if is_changed:
        is_refused = bool({"cluster", "compact"} & find_refused_kinds(plan.refusals))
        then = "after, if it were applied" if is_refused else "after (predicted)"
        legend.append(("after", then))
    return BarTable(
        caption="What each reads",
        name="Query",
        figures=("Files", "Bytes"),
        rows=tuple(_make_row(one, declared, longest) for one in ordered),
        legend=tuple(legend),
        note=_describe_source(plan, is_changed=is_changed),
    )


def _list_declared(spec: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    queries = spec.get("queries") or ()
    return {str(one.get("name")): one for one in queries if isinstance(one, Mapping)}


def _make_row(
    prediction: Mapping[str, Any], declared: Mapping[str, Mapping[str, Any]], longest: int
) -> BarRow:
    before, after = prediction["bytesBefore"], prediction["bytesAfter"]
    files = words.format_number(prediction["filesBefore"])
    size = words.format_size(before)
    bars = [(Segment(start=0, width=100 * before / longest, paint="before"),)]
    if _has_change(prediction):
        files += f" → {words.format_number(prediction['filesAfter'])}"
        size += f" → {words.format_size(after)} ±{prediction['error'] * 100:.0f} %"
        bars.append((Segment(start=0, width=100 * after / longest, paint="after"),))
    query = declared.get(prediction["query"], {})
    return BarRow(
        name=prediction["query"],
        figures=(files, size),
        bars=tuple(bars),
        note="; ".join(_describe_query(query, prediction)),
    )


def _describe_query(query: Mapping[str, Any], prediction: Mapping[str, Any]) -> Iterator[str]:
    if query.get("where"):
        yield str(query["where"])
    if query.get("maxScan") is not None:
        yield f"declared to read at most {_format_limit(query['maxScan'])}"
    if (merging := prediction.get("merging")) is not None:
        yield describe_merging(merging)


def _format_limit(limit: Any) -> str:
    if isinstance(limit, int | float):
        return f"{100 * limit:g} %"
    return str(limit)


def _has_change(one: Mapping[str, Any]) -> bool:
    same = all(one[f"{what}Before"] == one[f"{what}After"] for what in ("files", "bytes"))
    return not same or bool(one["error"] > 0)


def _describe_source(plan: TablePlan, *, is_changed: bool) -> str:
    if not is_changed:
        return ""
    sampled = plan.layout.sampled if plan.layout is not None else None
    compacts = any(isinstance(step, CompactStep) for step in plan.steps)
    text = describe_source(sampled, compacts=compacts).removeprefix("today → ")
    return f"{words.capitalize(text)}."
