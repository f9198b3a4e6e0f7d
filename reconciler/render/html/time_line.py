"""Draw how far back a table can be read, and what pins older instants; pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from reconciler.hudi.timeline.instant import parse_instant
from reconciler.plans.model import TablePlan
from reconciler.render import words
from reconciler.render.html.model import Column, Drawing, Label, Paint, Rect, Rows
from reconciler.render.savepoints import describe_savepoint
from reconciler.state.model import TableState
from reconciler.status.model import TableStatus

_ROW: Final = 44.0
_BAR: Final = 12.0
#: width of a mark of one instant, per cent
_MARK: Final = 0.45
#: room at both ends, per cent
_EDGE: Final = 1.0
_MAX_MARKS: Final = 400
#: commits in the table of the drawing
_MAX_ROWS: Final = 100
#: below it the ends of the line have seconds
_SHORT: Final = timedelta(hours=1)


def draw_time_line(
    plan: TablePlan, status: TableStatus | None, state: TableState | None
) -> Drawing | None:
    """Return commits, the readable window before and after the plan, and savepoints over time.

    None if no instant of the table is a time.
    """
    marks = _collect_marks(plan, status, state)
    shown = [instant for _, _, instant, _ in marks] + [start for _, start, _ in _list_windows(plan)]
    times = [time for instant in shown if (time := parse_instant(instant)) is not None]
    if not times:
        return None
    scale = _TimeScale(min(times), max(times))
    rects: list[Rect] = []
    labels: list[Label] = []
    height = 8.0
    for title, paint in _LANES:
        lane = [(instant, hint) for name, _, instant, hint in marks if name == title]
        if not lane:
            continue
        labels.append(Label(x=0, y=height + 10, text=_name_lane(title, lane)))
        rects += _mark_instants(lane, scale, height + 18, paint)
        height += _ROW
    for title, start, paint in _list_windows(plan):
        rects.append(_draw_window(start, _find_end(plan), scale, height + 18, paint))
        labels.append(
            Label(x=0, y=height + 10, text=f"{title}: {_describe_window(plan, start, scale)}")
        )
        height += _ROW
    labels += scale.list_ends(height + 16)
    return Drawing(
        name="time",
        title="Time travel",
        description=_describe(plan),
        height=height + 26,
        rects=tuple(rects),
        labels=tuple(labels),
        guides=(height,),
        rows=_list_instants(plan, marks, scale),
    )


def _name_lane(title: str, lane: list[tuple[str, str]]) -> str:
    """Return the title with the number of instants, or with the only one if it is remarkable."""
    if len(lane) == 1 and title == "Pending":
        return f"{title}: {lane[0][1]}"
    return f"{title} ({words.format_number(len(lane))})"


def _find_end(plan: TablePlan) -> str | None:
    return plan.observed.window_end if plan.observed is not None else None


def _describe_window(plan: TablePlan, start: str, scale: _TimeScale) -> str:
    last = _find_end(plan)
    if start == last:
        return "only the newest commit"
    reach = words.format_time_between(start, last)
    return f"back to {scale.format(start)}" + (f", {reach}" if reach else "")


#: rows of the drawing, from top to bottom
_LANES: Final[tuple[tuple[str, Paint], ...]] = (
    ("Commits", "commit"),
    ("Pending", "pending"),
    ("Savepoints", "savepoint"),
)


_SINGULAR: Final = {"Commits": "Commit", "Pending": "Pending", "Savepoints": "Savepoint"}


class _TimeScale:
    """Places of times between the first and the last one, in per cent."""

    def __init__(self, first: datetime, last: datetime) -> None:
        self.first, self.last = first, last
        self.span = (last - first) or timedelta(seconds=1)

    def place(self, instant: str | None) -> float:
        time = parse_instant(instant) if instant is not None else None
        share = 0.0 if time is None else (time - self.first) / self.span
        return _EDGE + min(max(share, 0.0), 1.0) * (100 - 2 * _EDGE)

    def list_ends(self, y: float) -> Iterator[Label]:
        yield Label(x=0, y=y, text=f"{self.first:{self._style}}")
        if self.last != self.first:
            yield Label(x=100, y=y, text=f"{self.last:{self._style}}", anchor="end")

    def format(self, instant: str) -> str:
        """Return an instant with as many digits as tell it from others of the drawing."""
        time = parse_instant(instant)
        return words.format_instant(instant) if time is None else f"{time:{self._style}}"

    @property
    def _style(self) -> str:
        return "%Y-%m-%d %H:%M" if self.span > _SHORT else "%Y-%m-%d %H:%M:%S"


def _collect_marks(
    plan: TablePlan, status: TableStatus | None, state: TableState | None
) -> list[tuple[str, Paint, str, str]]:
    """Return lane, paint, instant and hint of every instant that is drawn."""
    marks: list[tuple[str, Paint, str, str]] = []
    if state is not None:
        for instant in state.timeline.commits:
            hint = f"{instant.action.value} {instant.requested}"
            marks.append(("Commits", "commit", instant.requested, hint))
    observed = plan.observed
    if observed is None:
        return marks
    if state is None and observed.window_end is not None:
        marks.append(("Commits", "commit", observed.window_end, "the newest write"))
    for pending in observed.pending:
        hint = f"{pending.action} {pending.instant}, {pending.state.lower()}"
        marks.append(("Pending", "pending", pending.instant, hint))
    sentences = (
        {one.instant: describe_savepoint(one) for one in status.savepoints} if status else {}
    )
    for instant_ in observed.savepoints:
        hint = sentences.get(instant_, f"savepoint {instant_}")
        marks.append(("Savepoints", "savepoint", instant_, hint))
    return marks


def _mark_instants(
    lane: list[tuple[str, str]], scale: _TimeScale, y: float, paint: Paint
) -> Iterator[Rect]:
    """Yield a mark for each instant; of very many every n-th."""
    step = -(-len(lane) // _MAX_MARKS)
    for instant, hint in lane[::step]:
        x = scale.place(instant) - _MARK / 2
        yield Rect(x=x, y=y, width=_MARK, height=_BAR, paint=paint, hint=hint)


def _list_windows(plan: TablePlan) -> Iterator[tuple[str, str, Paint]]:
    before, after = plan.impact.earliest_readable_before, plan.impact.earliest_readable_after
    if before is not None:
        yield "Readable today", before, "before"
    if after is not None and after != before:
        yield "Readable after the plan", after, "after"


def _draw_window(start: str, end: str | None, scale: _TimeScale, y: float, paint: Paint) -> Rect:
    x = scale.place(start)
    width = max(scale.place(end) - x, _MARK)
    hint = f"readable as of {words.format_instant(start)} and later"
    return Rect(x=x, y=y, width=width, height=_BAR, paint=paint, hint=hint)


def _describe(plan: TablePlan) -> str:
    windows = [
        f"{title.lower()} back to {words.format_instant(start)}"
        for title, start, _ in _list_windows(plan)
    ]
    savepoints = len(plan.observed.savepoints) if plan.observed is not None else 0
    pins = words.format_count(savepoints, "savepoint")
    return f"{'; '.join([*windows, pins])}."


def _list_instants(
    plan: TablePlan, marks: list[tuple[str, Paint, str, str]], scale: _TimeScale
) -> Rows:
    """Return what the drawing shows: the windows, what is pending and pinned, then commits."""
    rows = [
        (title, scale.format(start), _describe_window(plan, start, scale))
        for title, start, _ in _list_windows(plan)
    ]
    commits = [one for one in marks if one[0] == "Commits"]
    named = [one for one in marks if one[0] != "Commits"]
    shown = commits[:: -(-len(commits) // _MAX_ROWS) or 1]
    rows += [
        (_SINGULAR[lane], scale.format(instant), hint) for lane, _, instant, hint in named + shown
    ]
    rest = len(commits) - len(shown)
    return Rows(
        caption="Readable times and instants",
        columns=(Column(title="What"), Column(title="Time"), Column(title="Detail")),
        rows=tuple(rows),
        note=f"{words.format_count(rest, 'other commit')} between these." if rest else "",
    )


def list_savepoints(plan: TablePlan, status: TableStatus | None) -> Rows | None:
    """Return the savepoints with what each pins; None without savepoints."""
    if status is not None:
        rows = [
            (
                words.format_instant(one.instant),
                one.name or one.comment or "",
                one.made_by or "",
                _format_amount(one.pinned_files, one.pinned_bytes),
                "unknown" if one.freed_files is None
                else _format_amount(one.freed_files, one.freed_bytes or 0),
            )
            for one in status.savepoints
        ]  # fmt: skip
    else:
        instants = plan.observed.savepoints if plan.observed is not None else ()
        rows = [(words.format_instant(one), "", "", "unknown", "unknown") for one in instants]
    if not rows:
        return None
    columns = (
        Column(title="Savepoint of"),
        Column(title="Name"),
        Column(title="Made by"),
        Column(title="Pins", is_number=True),
        Column(title="Freed without it", is_number=True),
    )
    return Rows(
        caption="Savepoints and what each pins",
        columns=columns,
        rows=tuple(rows),
        note="Pins: files besides those of the newest file slices. Freed without it: what a clean "
        "by the declared retention would remove if only this savepoint were gone.",
    )


def _format_amount(files: int, size: int) -> str:
    if not files:
        return "nothing"
    return f"{words.format_count(files, 'file')}, {words.format_size(size)}"
