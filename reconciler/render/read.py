"""Rows of a table, and what a read of them touches, as standard output carries them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from reconciler import canonical_json
from reconciler.reader.read_report import ReadReport, ReadStage
from reconciler.reader.row_group_counts import RowGroupCounts
from reconciler.render import words
from reconciler.render.paint import Paint
from reconciler.render.wrapping import wrap_detail, wrap_item

#: a cell of a table for people is cut behind so many characters
_MAX_CELL_WIDTH: Final = 60
_NULL_TEXT: Final = "null"
_READ_KINDS: Final = {
    "snapshot": "snapshot",
    "readOptimized": "read-optimised (log files are left out)",
    "incremental": "incremental",
}
_RIGHT_ALIGNED: Final = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")

_STAGE_NAMES: Final = {"partitions": "partitions", "index": "the index"}
#: files that are named for people, of those of one fate
_MAX_FILES: Final = 3

Cells = Sequence[str | None]


def explanation_json(found: ReadReport) -> bytes:
    """What a read touches as canonical JSON and a newline."""
    return canonical_json.to_canonical_bytes(found.to_document()) + b"\n"


def explanation_text(found: ReadReport, *, color: bool) -> str:
    """What a read touches, for people."""
    paint = Paint(is_on=color)
    lines = [
        f"{paint.strong(words.escape_text(found.table))}  {_READ_KINDS[found.kind]}, {_describe_view(found)}"
    ]
    lines += wrap_item("columns", _describe_columns(found))
    if found.where is not None:
        lines += wrap_item("where", found.where)
    of = words.format_count(found.partitions, "partition")
    lines += wrap_item("partitions", f"{words.format_number(found.kept_partitions)} of {of} read")
    lines += wrap_item("files", _describe_files(found))
    lines += wrap_item("by Spark's reader", words.format_count(found.direct_slices, "slice"))
    lines += wrap_item("through Python", words.format_count(found.python_slices, "slice"))
    for group in found.through_python:
        lines += wrap_detail(f"{words.format_count(group.slices, 'slice')}: {group.because}")
    for said in found.damaged:
        lines += wrap_item("damaged", said)
    if found.where is not None:
        lines += _skipping_lines(found)
    return "\n".join(lines) + "\n"


def _skipping_lines(found: ReadReport) -> list[str]:
    """What is left after each stage, and how every slice was decided."""
    lines = [*wrap_item("stages", f"all: {_describe_stage(found.stages[0])}")]
    for stage in found.stages[1:]:
        lines += wrap_detail(f"after {_STAGE_NAMES[stage.stage]}: {_describe_stage(stage)}")
    if found.row_groups is not None:
        lines += wrap_detail(_describe_row_groups(found.row_groups))
    lines += wrap_item("index", "none was asked" if found.index is None else found.index)
    for problem in found.problems:
        lines += wrap_detail(problem)
    for group in found.decided:
        read = "read" if group.is_read else "left out"
        said = f"{words.format_count(group.slices, 'slice')} ({words.format_size(group.bytes)}): {group.because}"
        lines += wrap_item(read, said)
        for name in group.files[:_MAX_FILES]:
            lines += wrap_detail(name)
        if len(group.files) > _MAX_FILES:
            rest = words.format_number(len(group.files) - _MAX_FILES)
            lines += wrap_detail(f"and {rest} more, which --format json names")
    return lines


def _describe_stage(stage: ReadStage) -> str:
    base = f"{words.format_count(stage.base_files, 'base file')} ({words.format_size(stage.base_bytes)})"
    return f"{base}, {words.format_count(stage.log_files, 'log file')} ({words.format_size(stage.log_bytes)})"


def _describe_row_groups(found: RowGroupCounts) -> str:
    kept = f"{words.format_number(found.kept_groups)} of {words.format_number(found.groups)}"
    size = f"{words.format_size(found.kept_bytes)} of {words.format_size(found.bytes)}"
    files = (
        f"{words.format_number(found.looked_at)} of {words.format_count(found.files, 'base file')}"
    )
    return f"row groups: {kept} may match ({size}), by the footers of {files}"


def _describe_view(found: ReadReport) -> str:
    if found.as_of is None:
        return "no completed write yet"
    if found.begin is not None:
        return f"writes after {found.begin} up to {found.as_of}"
    return f"as of {found.as_of}"


def _describe_columns(found: ReadReport) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in found.columns) or "none"


def _describe_files(found: ReadReport) -> str:
    base = f"{words.format_count(found.base_files, 'base file')} ({words.format_size(found.base_bytes)})"
    return f"{base}, {words.format_count(found.log_files, 'log file')} ({words.format_size(found.log_bytes)})"


def rows_text(names: Sequence[str], kinds: Sequence[str], rows: Sequence[Cells]) -> str:
    """Rows as a table for people; ``kinds``: Spark's names of the types, numbers stand right.

    >>> print(table_text(["id", "name"], ["int", "string"], [["7", None], ["10", "n"]]), end="")
    id  name
    --  ----
     7  null
    10  n
    """
    shown = [[_format_cell(cell) for cell in row] for row in rows]
    heads = [_format_cell(name) for name in names]
    widths = [
        max([_display_width(head), *(_display_width(row[at]) for row in shown)])
        for at, head in enumerate(heads)
    ]
    right = [kind.partition("(")[0] in _RIGHT_ALIGNED for kind in kinds]
    lines = [heads, ["-" * width for width in widths], *shown]
    return "".join(_format_row(line, widths, right) for line in lines)


def _format_cell(text: str | None) -> str:
    shown = _NULL_TEXT if text is None else words.escape_text(text)
    return shown if len(shown) <= _MAX_CELL_WIDTH else f"{shown[: _MAX_CELL_WIDTH - 1]}…"


def _format_row(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = []
    for cell, width, is_right in zip(cells, widths, right, strict=True):
        space = " " * (width - _display_width(cell))
        padded.append(space + cell if is_right else cell + space)
    return "  ".join(padded).rstrip() + "\n"


def _display_width(text: str) -> int:
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
        yield ",".join(map(_csv_field, row)) + "\n"


def _csv_field(text: str | None) -> str:
    if text is None:
        return ""
    if not text or any(sign in text for sign in ',"\r\n') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text
