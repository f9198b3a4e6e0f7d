"""Rows of a table, and what a read of them touches, as standard output carries them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from reconciler import canonical
from reconciler.reader.explain import Explained, Stage
from reconciler.reader.row_groups import RowGroups
from reconciler.render import words
from reconciler.render.lines import item, more
from reconciler.render.paint import Paint

#: a cell of a table for people is cut behind so many characters
_WIDEST: Final = 60
_NULL: Final = "null"
_KINDS: Final = {
    "snapshot": "snapshot",
    "readOptimized": "read-optimised (log files are left out)",
    "incremental": "incremental",
}
_RIGHT: Final = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")

_STAGES: Final = {"partitions": "partitions", "index": "the index"}
#: files that are named for people, of those of one fate
_NAMED: Final = 3

Cells = Sequence[str | None]


def explained_json(found: Explained) -> bytes:
    """What a read touches as canonical JSON and a newline."""
    return canonical.dumps(found.document()) + b"\n"


def explained_text(found: Explained, *, color: bool) -> str:
    """What a read touches, for people."""
    paint = Paint(is_on=color)
    lines = [f"{paint.strong(words.plain(found.table))}  {_KINDS[found.kind]}, {_shown(found)}"]
    lines += item("columns", _columns(found))
    if found.where is not None:
        lines += item("where", found.where)
    of = words.count(found.partitions, "partition")
    lines += item("partitions", f"{words.number(found.kept_partitions)} of {of} read")
    lines += item("files", _files(found))
    lines += item("by Spark's reader", words.count(found.direct_slices, "slice"))
    lines += item("through Python", words.count(found.python_slices, "slice"))
    for group in found.through_python:
        lines += more(f"{words.count(group.slices, 'slice')}: {group.because}")
    for said in found.damaged:
        lines += item("damaged", said)
    if found.where is not None:
        lines += _skipping(found)
    return "\n".join(lines) + "\n"


def _skipping(found: Explained) -> list[str]:
    """What is left after each stage, and how every slice was decided."""
    lines = [*item("stages", f"all: {_left(found.stages[0])}")]
    for stage in found.stages[1:]:
        lines += more(f"after {_STAGES[stage.stage]}: {_left(stage)}")
    if found.row_groups is not None:
        lines += more(_row_groups(found.row_groups))
    lines += item("index", "none was asked" if found.index is None else found.index)
    for problem in found.problems:
        lines += more(problem)
    for group in found.decided:
        read = "read" if group.is_read else "left out"
        said = f"{words.count(group.slices, 'slice')} ({words.size(group.bytes)}): {group.because}"
        lines += item(read, said)
        for name in group.files[:_NAMED]:
            lines += more(name)
        if len(group.files) > _NAMED:
            rest = words.number(len(group.files) - _NAMED)
            lines += more(f"and {rest} more, which --format json names")
    return lines


def _left(stage: Stage) -> str:
    base = f"{words.count(stage.base_files, 'base file')} ({words.size(stage.base_bytes)})"
    return f"{base}, {words.count(stage.log_files, 'log file')} ({words.size(stage.log_bytes)})"


def _row_groups(found: RowGroups) -> str:
    kept = f"{words.number(found.kept_groups)} of {words.number(found.groups)}"
    size = f"{words.size(found.kept_bytes)} of {words.size(found.bytes)}"
    files = f"{words.number(found.looked_at)} of {words.count(found.files, 'base file')}"
    return f"row groups: {kept} may match ({size}), by the footers of {files}"


def _shown(found: Explained) -> str:
    if found.as_of is None:
        return "no completed write yet"
    if found.begin is not None:
        return f"writes after {found.begin} up to {found.as_of}"
    return f"as of {found.as_of}"


def _columns(found: Explained) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in found.columns) or "none"


def _files(found: Explained) -> str:
    base = f"{words.count(found.base_files, 'base file')} ({words.size(found.base_bytes)})"
    return f"{base}, {words.count(found.log_files, 'log file')} ({words.size(found.log_bytes)})"


def table_text(names: Sequence[str], kinds: Sequence[str], rows: Sequence[Cells]) -> str:
    """Rows as a table for people; ``kinds``: Spark's names of the types, numbers stand right.

    >>> print(table_text(["id", "name"], ["int", "string"], [["7", None], ["10", "n"]]), end="")
    id  name
    --  ----
     7  null
    10  n
    """
    shown = [[_cell(cell) for cell in row] for row in rows]
    heads = [_cell(name) for name in names]
    widths = [
        max([_width(head), *(_width(row[at]) for row in shown)]) for at, head in enumerate(heads)
    ]
    right = [kind.partition("(")[0] in _RIGHT for kind in kinds]
    lines = [heads, ["-" * width for width in widths], *shown]
    return "".join(_line(line, widths, right) for line in lines)


def _cell(text: str | None) -> str:
    shown = _NULL if text is None else words.plain(text)
    return shown if len(shown) <= _WIDEST else f"{shown[: _WIDEST - 1]}…"


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = []
    for cell, width, is_right in zip(cells, widths, right, strict=True):
        space = " " * (width - _width(cell))
        padded.append(space + cell if is_right else cell + space)
    return "  ".join(padded).rstrip() + "\n"


def _width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(
        0 if unicodedata.combining(sign) else 1 + (unicodedata.east_asian_width(sign) in "WF")
        for sign in text
    )


def csv_lines(rows: Iterable[Cells]) -> Iterator[str]:
    r"""Rows as lines of CSV (RFC 4180 with \n): null is nothing, an empty text two quotes.

    >>> list(csv_lines([["a", None, "", "1,2"]]))
    ['a,,"","1,2"\n']
    """
    for row in rows:
        yield ",".join(map(_field, row)) + "\n"


def _field(text: str | None) -> str:
    if text is None:
        return ""
    if not text or any(sign in text for sign in ',"\r\n') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text
