"""What a page shows, as values: facts, notices, tables and drawings, ready for the templates.

Drawings are wide as the page: places from left to right are per cent, from top to bottom pixels.
So text keeps its size on a narrow screen.
"""

from __future__ import annotations

from typing import Literal

from reconciler.lazy_dataclass import dataclass
from reconciler.status.model import StorageCosts

#: meaning of a colour; each is said in words too
Tone = Literal["", "good", "warn", "bad"]
#: what a shape stands for, which the style sheet paints
Paint = Literal[
    "before",
    "after",
    "retention",
    "replaced",
    "orphan",
    "deleted",
    "savepoint",
    "commit",
    "pending",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A figure with its label; ``note``: a sentence below it."""

    label: str
    value: str
    note: str = ""
    tone: Tone = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A sentence that a reader must see; ``label``: the rule, field or condition it is about."""

    label: str
    text: str
    tone: Tone = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table; numbers stand at the right."""

    title: str
    is_number: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A table of texts with its caption."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rect:
    """A filled area; ``hint`` is shown under the pointer. ``is_thin``: too thin for an edge."""

    x: float
    y: float
    width: float
    height: float
    paint: Paint
    hint: str = ""
    is_thin: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A text; ``anchor``: which end of it is at ``x``."""

    x: float
    y: float
    text: str
    anchor: Literal["start", "middle", "end"] = "start"
    is_strong: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Shapes and texts; ``description`` says what they show to who does not see them.

    ``legend``: the paints with their meanings. ``guides``: heights of horizontal lines. ``rows``:
    the same as a table.
    """

    name: str
    title: str
    description: str
    height: float
    rects: tuple[Rect, ...]
    labels: tuple[Label, ...] = ()
    guides: tuple[float, ...] = ()
    legend: tuple[tuple[Paint, str], ...] = ()
    rows: Rows | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A part of a bar in a row, in per cent of the bar's room."""

    start: float
    width: float
    paint: Paint


@dataclass(frozen=True, slots=True, kw_only=True)
class BarRow:
    """A row of a table with bars: a name, figures, and bars one below the other."""

    name: str
    figures: tuple[str, ...]
    bars: tuple[tuple[Segment, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BarTable:
    """A table whose rows are drawn as bars, too."""

    caption: str
    name: str
    figures: tuple[str, ...]
    rows: tuple[BarRow, ...]
    legend: tuple[tuple[Paint, str], ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """A step of a plan: what it does in one line, and its details.

    A detail is a line: texts, and the runs of spaces between them that align columns.
    """

    kind: str
    summary: str
    details: tuple[tuple[str, ...], ...]
    tone: Tone


@dataclass(frozen=True, slots=True, kw_only=True)
class FileList:
    """The files of a table as JSON columns, which is safe inside a script element."""

    count: int
    data: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePage:
    """All that a page says of one table. ``anchor``: its name in links.

    ``effect``: what an apply does. ``summary``: that, or why there is nothing to apply. ``alerts``:
    what somebody must look into. ``differences``: from the spec.
    """

    name: str
    anchor: str
    path: str
    kind: str
    badges: tuple[Notice, ...] = ()
    effect: str = ""
    summary: str = ""
    costs: str = ""
    alerts: tuple[Notice, ...] = ()
    facts: tuple[Fact, ...] = ()
    differences: tuple[Notice, ...] = ()
    notices: tuple[Notice, ...] = ()
    steps: tuple[StepView, ...] = ()
    drawings: tuple[Drawing, ...] = ()
    layouts: tuple[Drawing, ...] = ()
    layout_note: str = ""
    time_line: Drawing | None = None
    savepoints: Rows | None = None
    removals: BarTable | None = None
    reasons: tuple[Rows, ...] = ()
    queries: BarTable | None = None
    files: FileList | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetCell:
    """A cell of the table of tables; ``order``: what sorting compares, a number or a text."""

    text: str
    order: str | float
    tone: Tone = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRow:
    """A table in the table of tables; ``bytes`` and so on: what the totals add up.

    ``sync``, ``health``: the reasons of its conditions.
    """

    name: str
    href: str
    cells: tuple[FleetCell, ...]
    sync: str
    health: str
    bytes: int
    files: int
    small_files: int
    sized_files: int
    reclaimable: int
    costs: StorageCosts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The table of tables with its totals. ``title``: what it says in a few words.

    ``sorted_by``: place of the column that the rows are sorted by, upwards. ``marked``: number of
    columns after the name that are conditions. ``blanks``: texts of cells that say nothing.
    """

    title: str
    facts: tuple[Fact, ...]
    columns: tuple[Column, ...]
    rows: tuple[FleetRow, ...]
    sorted_by: int
    marked: int
    blanks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageHead:
    """The head of a document. ``made``: when and by what; ``lead``: a sentence on its content."""

    title: str
    kicker: str
    made: str
    lead: str = ""
    costs: str = ""
    digest: str = ""
    home: str = ""
