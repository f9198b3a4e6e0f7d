"""Writer options to paste, each below the reason for it: Python, properties or SQL; and JSON."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, assert_never

from reconciler import canonical
from reconciler.bridge.model import Engine, WriterOption, WriterOptions
from reconciler.delegate.options import hadoop_path
from reconciler.plan import encode
from reconciler.plan.model import Selection
from reconciler.render import words

_STREAMER: Final = "org.apache.hudi.utilities.streamer.HoodieStreamer"
#: what a SET of Spark SQL takes without quotes
_BARE: Final = re.compile(r"[\w./:,-]+")


def options_text(tables: Sequence[WriterOptions], engine: Engine) -> str:
    """The options for people to paste; tables with an error are left to standard error."""
    found = [table for table in tables if table.error is None]
    match engine:
        case Engine.SPARK:
            lines = _python(found)
        case Engine.STREAMER:
            lines = _each(found, _properties)
        case Engine.SQL:
            lines = _each(found, _spark_sql)
        case Engine.FLINK:
            lines = _each(found, _flink_sql)
        case _:
            assert_never(engine)
    return "".join(f"{line}\n" for line in lines)


def options_json(
    tables: Sequence[WriterOptions],
    engine: Engine,
    *,
    tool: str,
    selection: Selection | None = None,
) -> bytes:
    """The options as canonical JSON and a newline (``schemas/options.v1.json``)."""
    document = {
        "format": 1,
        "tool": tool,
        "for": engine.value,
        "tables": [_document(table) for table in tables],
        **encode.selected(selection),
    }
    return canonical.dumps(document) + b"\n"


def _document(table: WriterOptions) -> Mapping[str, Any]:
    return {
        "name": table.name,
        "path": table.path,
        "error": table.error,
        "hudi": [release.value for release in table.releases],
        "options": [
            {
                "key": option.key,
                "value": option.value,
                "field": option.field,
                "because": option.because,
                "makesTable": option.makes,
            }
            for option in table.options
        ],
        "notes": list(table.notes),
    }


# --- Text ----------------------------------------------------------------------------------------


def _each(
    tables: Sequence[WriterOptions], lines: Callable[[WriterOptions], Iterable[str]]
) -> Iterator[str]:
    for nth, table in enumerate(tables):
        yield from [""] if nth else []
        yield from lines(table)


def _head(table: WriterOptions, sign: str) -> Iterator[str]:
    releases = [release.value for release in table.releases]
    span = releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"
    yield f"{sign} {words.plain(table.name)}, for writers with Hudi {span}"
    for note in table.notes:
        yield f"{sign} note: {note}"


def _reasoned(
    options: Iterable[WriterOption], sign: str
) -> Iterator[tuple[str, tuple[WriterOption, ...]]]:
    """Options with one reason, and the comment that says it."""
    for (field, because), some in groupby(options, key=lambda one: (one.field, one.because)):
        yield f"{sign} {field}: {because}", tuple(some)


def _python(tables: Sequence[WriterOptions]) -> Iterator[str]:
    """A dict of dicts: df.write.format("hudi").options(**OPTIONS[name])."""
    yield '# df.write.format("hudi").options(**OPTIONS[name]).mode("append").save(path)'
    yield "OPTIONS = {"
    for table in tables:
        yield from (f"    {line}" for line in _head(table, "#"))
        yield f"    {json.dumps(table.name)}: {{"
        for reason, options in _reasoned(table.options, "#"):
            yield f"        {reason}"
            for option in options:
                yield f"        {json.dumps(option.key)}: {json.dumps(option.value)},"
        yield "    },"
    yield "}"


def _properties(table: WriterOptions) -> Iterator[str]:
    """A file for --props, with the flags that go beside it."""
    yield from _head(table, "#")
    flags = [option for option in table.options if option.key.startswith("--")]
    rest = [option for option in table.options if not option.key.startswith("--")]
    said = [f"--target-base-path {shlex.quote(hadoop_path(table.path))}"]
    said += [f"{flag.key} {shlex.quote(flag.value)}" for flag in flags]
    yield f"# spark-submit --class {_STREAMER} … --props THIS_FILE"
    yield f"#   {' '.join(said)}"
    for reason, options in _reasoned(rest, "#"):
        yield reason
        yield from (f"{option.key}={option.value}" for option in options)


def _spark_sql(table: WriterOptions) -> Iterator[str]:
    """Settings of a session, and in comments what a CREATE TABLE has to say."""
    yield from _head(table, "--")
    yield "-- for a session that writes this table and no other:"
    for reason, options in _reasoned(_of_writes(table), "--"):
        yield reason
        yield from (f"SET {option.key}={_set(option.value)};" for option in options)
    made = [f"{_spark(option.key)} = {_spark(option.value)}" for option in _of_making(table)]
    if made:
        yield from _create(table, " USING hudi")
        yield f"--   LOCATION {_spark(hadoop_path(table.path))}"
        yield f"--   TBLPROPERTIES ({', '.join(made)});"


def _flink_sql(table: WriterOptions) -> Iterator[str]:
    """Options of a table in a catalog, and in comments what a CREATE TABLE has to say."""
    yield from _head(table, "--")
    options = _of_writes(table)
    if options:
        yield "-- or the same pairs in the WITH clause of CREATE TABLE:"
        yield f"ALTER TABLE {_identifier(table.name)} SET ("
        yield from _pairs(options)
        yield ");"
    made = [f"{_flink(option.key)} = {_flink(option.value)}" for option in _of_making(table)]
    if made:
        yield from _create(table)
        more = ("'connector' = 'hudi'", f"'path' = {_flink(hadoop_path(table.path))}")
        yield f"--   WITH ({', '.join([*more, *made])});"


def _create(table: WriterOptions, using: str = "") -> Iterator[str]:
    yield "-- where the table is made:"
    yield f"-- CREATE TABLE {_identifier(table.name)} (…){using}"
    if table.partition_by:
        columns = ", ".join(_identifier(column) for column in table.partition_by)
        yield f"--   PARTITIONED BY ({columns})"


def _of_making(table: WriterOptions) -> list[WriterOption]:
    return [option for option in table.options if option.makes]


def _of_writes(table: WriterOptions) -> list[WriterOption]:
    return [option for option in table.options if not option.makes]


def _pairs(options: Sequence[WriterOption]) -> Iterator[str]:
    last = options[-1]
    for reason, some in _reasoned(options, "--"):
        yield f"  {reason}"
        for option in some:
            comma = "" if option is last else ","
            yield f"  {_flink(option.key)} = {_flink(option.value)}{comma}"


def _flink(text: str) -> str:
    """A text of standard SQL."""
    return "'{}'".format(text.replace("'", "''"))


def _spark(text: str) -> str:
    """A text of Spark SQL, where backslashes escape."""
    return "'{}'".format(text.replace("\\", "\\\\").replace("'", "\\'"))


def _set(text: str) -> str:
    """A value of SET; Spark takes one in backticks as it stands.

    >>> _set("120"), _set("a b;c")
    ('120', '`a b;c`')
    """
    return text if _BARE.fullmatch(text) else "`{}`".format(text.replace("`", "``"))


def _identifier(name: str) -> str:
    """A name whose parts are quoted where they are no plain words.

    >>> _identifier("sales.orders"), _identifier("sales.or-ders")
    ('sales.orders', 'sales.`or-ders`')
    """
    parts = words.plain(name).split(".")
    return ".".join(p if re.fullmatch(r"\w+", p) else f"`{p.replace('`', '``')}`" for p in parts)
