"""Writer options to paste as Python, properties or SQL, each below its reason; and as JSON."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final, assert_never

from reconciler import canonical_json
from reconciler.hudi_engine.model import WriterEngine, WriterOption, WriterOptions
from reconciler.hudi_engine.table_options import to_hadoop_path
from reconciler.plans import encode
from reconciler.plans.model import Selection
from reconciler.render import words

_STREAMER_CLASS: Final = "org.apache.hudi.utilities.streamer.HoodieStreamer"
#: values that SET of Spark SQL accepts without quotes
_UNQUOTED: Final = re.compile(r"[\w./:,-]+")


def options_text(tables: Sequence[WriterOptions], engine: WriterEngine) -> str:
    """Return the options as text to paste, without the tables that have an error."""
    usable = [table for table in tables if table.error is None]
    match engine:
        case WriterEngine.SPARK:
            lines = _python_lines(usable)
        case WriterEngine.STREAMER:
            lines = _join_tables(usable, _properties_lines)
        case WriterEngine.SQL:
            lines = _join_tables(usable, _spark_sql_lines)
        case WriterEngine.FLINK:
            lines = _join_tables(usable, _flink_sql_lines)
        case _:
            assert_never(engine)
    return "".join(f"{line}\n" for line in lines)


def options_json(
    tables: Sequence[WriterOptions],
    engine: WriterEngine,
    *,
    tool: str,
    selection: Selection | None = None,
) -> bytes:
    """Return the options as canonical JSON and a newline (``schemas/options.v1.json``)."""
    document = {
        "format": 1,
        "tool": tool,
        "for": engine.value,
        "tables": canonical_json.to_document(tables),
        **encode.encode_selection(selection),
    }
    return canonical_json.to_bytes(document) + b"\n"


# --- Text ----------------------------------------------------------------------------------------


def _join_tables(
    tables: Sequence[WriterOptions], lines: Callable[[WriterOptions], Iterable[str]]
) -> Iterator[str]:
    for nth, table in enumerate(tables):
        yield from [""] if nth else []
        yield from lines(table)


def _head_lines(table: WriterOptions, sign: str) -> Iterator[str]:
    releases = [release.value for release in table.releases]
    span = releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"
    yield f"{sign} {words.escape_text(table.name)}, for writers with Hudi {span}"
    for note in table.notes:
        yield f"{sign} note: {note}"


def _group_by_reason(
    options: Iterable[WriterOption], sign: str
) -> Iterator[tuple[str, tuple[WriterOption, ...]]]:
    """Yield the comment of each reason, with the options that have it."""
    for (field, because), some in groupby(
        options, key=lambda option: (option.field, option.because)
    ):
        yield f"{sign} {field}: {because}", tuple(some)


def _python_lines(tables: Sequence[WriterOptions]) -> Iterator[str]:
    """A dict of dicts: df.write.format("hudi").options(**OPTIONS[name])."""
    yield '# df.write.format("hudi").options(**OPTIONS[name]).mode("append").save(path)'
    yield "OPTIONS = {"
    for table in tables:
        yield from (f"    {line}" for line in _head_lines(table, "#"))
        yield f"    {json.dumps(table.name)}: {{"
        for reason, options in _group_by_reason(table.options, "#"):
            yield f"        {reason}"
            for option in options:
                yield f"        {json.dumps(option.key)}: {json.dumps(option.value)},"
        yield "    },"
    yield "}"


def _properties_lines(table: WriterOptions) -> Iterator[str]:
    """A file for --props, and the flags of its command line."""
    yield from _head_lines(table, "#")
    flags = [option for option in table.options if option.key.startswith("--")]
    rest = [option for option in table.options if not option.key.startswith("--")]
    arguments = [f"--target-base-path {shlex.quote(to_hadoop_path(table.path))}"]
    arguments += [f"{flag.key} {shlex.quote(flag.value)}" for flag in flags]
    yield f"# spark-submit --class {_STREAMER_CLASS} … --props THIS_FILE"
    yield f"#   {' '.join(arguments)}"
    for reason, options in _group_by_reason(rest, "#"):
        yield reason
        yield from (f"{option.key}={option.value}" for option in options)


def _spark_sql_lines(table: WriterOptions) -> Iterator[str]:
    """Settings of a session, and a CREATE TABLE in comments."""
    yield from _head_lines(table, "--")
    yield "-- for a session that writes only this table:"
    for reason, options in _group_by_reason(_write_options(table), "--"):
        yield reason
        yield from (f"SET {option.key}={_quote_set(option.value)};" for option in options)
    if made := _format_pairs(_table_options(table), _quote_spark):
        yield from _create_table_lines(table, " USING hudi")
        yield f"--   LOCATION {_quote_spark(to_hadoop_path(table.path))}"
        yield f"--   TBLPROPERTIES ({', '.join(made)});"


def _flink_sql_lines(table: WriterOptions) -> Iterator[str]:
    """Options of a table in a catalog, and a CREATE TABLE in comments."""
    yield from _head_lines(table, "--")
    options = _write_options(table)
    if options:
        yield "-- or the same pairs in the WITH clause of CREATE TABLE:"
        yield f"ALTER TABLE {_quote_identifier(table.name)} SET ("
        yield from _pair_lines(options)
        yield ");"
    if made := _format_pairs(_table_options(table), _quote_flink):
        yield from _create_table_lines(table)
        more = ("'connector' = 'hudi'", f"'path' = {_quote_flink(to_hadoop_path(table.path))}")
        yield f"--   WITH ({', '.join([*more, *made])});"


def _create_table_lines(table: WriterOptions, using: str = "") -> Iterator[str]:
    yield "-- to create the table:"
    yield f"-- CREATE TABLE {_quote_identifier(table.name)} (…){using}"
    if table.partition_by:
        columns = ", ".join(_quote_identifier(column) for column in table.partition_by)
        yield f"--   PARTITIONED BY ({columns})"


def _format_pairs(options: Iterable[WriterOption], quote: Callable[[str], str]) -> list[str]:
    return [f"{quote(option.key)} = {quote(option.value)}" for option in options]


def _table_options(table: WriterOptions) -> list[WriterOption]:
    return [option for option in table.options if option.creates_table]


def _write_options(table: WriterOptions) -> list[WriterOption]:
    return [option for option in table.options if not option.creates_table]


def _pair_lines(options: Sequence[WriterOption]) -> Iterator[str]:
    last = options[-1]
    for reason, some in _group_by_reason(options, "--"):
        yield f"  {reason}"
        for option in some:
            comma = "" if option is last else ","
            yield f"  {_quote_flink(option.key)} = {_quote_flink(option.value)}{comma}"


def _quote_flink(text: str) -> str:
    """Return text as a literal of standard SQL."""
    return "'{}'".format(text.replace("'", "''"))


def _quote_spark(text: str) -> str:
    """Return text as a literal of Spark SQL, where backslashes escape."""
    return "'{}'".format(text.replace("\\", "\\\\").replace("'", "\\'"))


def _quote_set(text: str) -> str:
    """Return a value for SET; Spark accepts any text in backticks.

    >>> _quote_set("120"), _quote_set("a b;c")
    ('120', '`a b;c`')
    """
    return text if _UNQUOTED.fullmatch(text) else "`{}`".format(text.replace("`", "``"))


def _quote_identifier(name: str) -> str:
    """Return a name with quotes around the parts that need them.

    >>> _quote_identifier("sales.orders"), _quote_identifier("sales.or-ders")
    ('sales.orders', 'sales.`or-ders`')
    """
    parts = words.escape_text(name).split(".")
    return ".".join(p if re.fullmatch(r"\w+", p) else f"`{p.replace('`', '``')}`" for p in parts)
