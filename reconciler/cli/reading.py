"""Reading a table from a command: a Spark session where there is work, and rows as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, assert_never

from reconciler import api
from reconciler.cli import interruption
from reconciler.cli.spark import spark_session
from reconciler.cli.terminal import emit, say, wants_color
from reconciler.cli.wanted import SHOWN, Reading, RowFormat
from reconciler.reader.arrow_spark import spark_name
from reconciler.reader.cells import json_row, text_cells
from reconciler.reader.explain import explained
from reconciler.reader.pruning import unpruned
from reconciler.reader.row_groups import measured
from reconciler.reader.short_logs import short_logs
from reconciler.render import read as render
from reconciler.render import words

if TYPE_CHECKING:
    from reconciler.reader.model import Scan

#: lines that are written at once
_TOGETHER: Final = 1000


def say_what_is_read(reading: Reading) -> None:
    """Write what a read would touch; Spark starts only where a condition is to be understood."""
    scan = api.open_scan(reading.storage, reading.asked, zone=reading.zone)
    found, reaches, groups = unpruned(scan), True, None
    if reading.where is not None:
        from reconciler.reader import spark  # noqa: PLC0415 (heavy)

        with _session(reading) as session, spark.reading(reading.storage.ref):
            found = spark.pruned(session, scan, reading.where, reading.index)
            reaches = spark.reaches(session, scan.location)
        groups = measured(reading.storage, found.kept)
    said = explained(
        found,
        reading.asked,
        where=reading.where,
        spark_reaches=reaches,
        row_groups=groups,
        damaged=short_logs(reading.storage, found.kept),
    )
    if reading.format is RowFormat.JSON:
        emit(render.explained_json(said))
    else:
        emit(render.explained_text(said, color=wants_color()))


def write_rows(reading: Reading) -> None:
    """Write the rows of a read."""
    from reconciler.reader import spark  # noqa: PLC0415 (heavy)

    scan = api.open_scan(reading.storage, reading.asked, zone=reading.zone)
    ref = reading.storage.ref
    with _session(reading) as session, spark.reading(ref):
        found = spark.left(session, scan, reading.where, reading.index)
        for damaged in short_logs(reading.storage, found.kept):
            say(f"warning: {damaged}", level="warning")
        frame = spark.frame_of(session, found, ref, reading.where)
        _write(frame, scan, reading)


@contextmanager
def _session(reading: Reading) -> Iterator[Any]:
    """A session; an error after an interruption is the interruption."""
    with spark_session(reading.master, reading.settings) as session:
        try:
            yield session
        except Exception:
            interruption.check()
            raise


def _write(frame: Any, scan: Scan, reading: Reading) -> None:
    match reading.format:
        case RowFormat.JSON:
            rows = _rows(frame.selectExpr(json_row(scan.schema)), reading.limit)
            _emit(f"{row[0]}\n" for row in rows)
        case RowFormat.CSV:
            emit("".join(render.csv_lines([scan.schema.names])))
            rows = _rows(frame.selectExpr(*text_cells(scan.schema)), reading.limit)
            _emit(render.csv_lines(rows))
        case RowFormat.TEXT:
            limit = SHOWN if reading.limit is None else reading.limit
            cells = list(_rows(frame.selectExpr(*text_cells(scan.schema)), limit + 1))
            kinds = [spark_name(field.type) for field in scan.schema]
            emit(render.table_text(scan.schema.names, kinds, cells[:limit]))
            _say_how_many(cells, limit)
        case _:
            assert_never(reading.format)


def _say_how_many(rows: Sequence[Any], limit: int) -> None:
    if len(rows) > limit:
        say(f"the first {words.count(limit, 'row')}; --limit N shows more, "
            "and --format csv or json writes all")  # fmt: skip
    else:
        say(words.count(len(rows), "row"))


def _rows(frame: Any, limit: int | None) -> Iterator[Any]:
    """The rows of a frame, a part at a time; few at once."""
    if limit is not None:
        return iter(frame.limit(limit).collect())
    found: Iterator[Any] = frame.toLocalIterator(prefetchPartitions=True)
    return found


def _emit(lines: Iterable[str]) -> None:
    rest = iter(lines)
    while some := list(islice(rest, _TOGETHER)):
        emit("".join(some))
