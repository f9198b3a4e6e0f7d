"""Draw the sizes of base files before and after a plan as a histogram; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reconciler.plans.model import TablePlan
from reconciler.plans.refused_steps import find_refused_kinds
from reconciler.render import words
from reconciler.render.html.model import Column, Drawing, Label, Paint, Rect, Rows
from reconciler.status.model import TableStatus

_TOP: Final = 18.0
_BARS: Final = 130.0
_HEIGHT: Final = 180.0
#: the share of a class's room that the bars of one and of two series take
_FILLED: Final = (0.4, 0.64)


def draw_file_sizes(plan: TablePlan, status: TableStatus | None) -> Drawing | None:
    """Return the histogram of base files of newest slices; None if nothing is known of them.

    After a clustering they are predicted. Without one only today's files are drawn.
    """
    if (change := plan.layout) is not None:
        then = "after, if it were applied" if "cluster" in find_refused_kinds(plan.refusals) else ""
        ends = (*change.below, None)
        return _draw(ends, change.before.sizes, change.after.sizes, then or "after (predicted)")
    if status is None:
        return None
    sizes = status.layout.sizes if status.layout is not None else status.sizes
    if not any(one.files for one in sizes):
        return None
    return _draw([one.below for one in sizes], [one.files for one in sizes], None, "")


def _draw(
    ends: Sequence[int | None], before: Sequence[int], after: Sequence[int] | None, then: str
) -> Drawing:
    series: list[tuple[Paint, Sequence[int]]] = [("before", before)]
    if after is not None:
        series.append(("after", after))
    most = max(max(counts, default=0) for _, counts in series) or 1
    room = 100 / len(ends)
    filled = _FILLED[len(series) - 1]
    width = room * filled / len(series)
    names = [_name_class(ends, place) for place in range(len(ends))]
    rects, labels = [], []
    for nth, (paint, counts) in enumerate(series):
        for place, count in enumerate(counts):
            x = place * room + room * (1 - filled) / 2 + nth * width
            height = _BARS * count / most
            hint = f"{names[place]}: {words.format_count(count, 'file')}"
            top = _TOP + _BARS - height
            rects.append(Rect(x=x, y=top, width=width, height=height, paint=paint, hint=hint))
            if count:
                text = words.format_number(count)
                labels.append(Label(x=x + width / 2, y=top - 5, text=text, anchor="middle"))
    for place, end in enumerate(ends[:-1], start=1):
        text = words.format_size(end or 0).replace(".0 ", " ")
        labels.append(Label(x=place * room, y=_TOP + _BARS + 18, text=text, anchor="middle"))
    legend: list[tuple[Paint, str]] = []
    if after is not None:
        legend = [("before", "today"), ("after", then)]
    return Drawing(
        name="sizes",
        title="Base files by size",
        description=_describe(before, after, ends),
        height=_HEIGHT,
        rects=tuple(rects),
        labels=tuple(labels),
        guides=(_TOP + _BARS,),
        legend=tuple(legend),
        rows=_make_rows(names, series, then),
    )


def _describe(
    before: Sequence[int], after: Sequence[int] | None, ends: Sequence[int | None]
) -> str:
    files = words.format_count(sum(before), "base file")
    classes = words.format_count(len(ends), "size class")
    if after is None:
        return f"{files} in {classes}."
    return f"{files} today and {words.format_number(sum(after))} afterwards, in {classes}."


def _name_class(ends: Sequence[int | None], place: int) -> str:
    least = ends[place - 1] if place else 0
    return words.format_size_class(least or 0, ends[place])


def _make_rows(
    names: Sequence[str], series: Sequence[tuple[Paint, Sequence[int]]], then: str
) -> Rows:
    titles = [Column(title="Size"), Column(title="Files today", is_number=True)]
    if then:
        titles.append(Column(title=f"Files {then}", is_number=True))
    counts = zip(*(values for _, values in series), strict=True)
    return Rows(
        caption="Base files by size",
        columns=tuple(titles),
        rows=tuple(
            (name, *map(words.format_number, row)) for name, row in zip(names, counts, strict=True)
        ),
    )
