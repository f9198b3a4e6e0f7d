"""Random tables from a seed, what Spark finds in their files, and what an index keeps.

A table is a folder of small parquet files with few values each, so many can be skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.index.footers import index_footers
from reconciler.index.may_match import may_match
from reconciler.index.parquet_writers import make_nan_free_pair
from reconciler.index.predicates.parse import parse
from reconciler.index.temporal import SessionZone
from tests.oracle.random_predicates import COLUMNS, FILES, LONG, SCHEMA, STRUCT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# tables


def arrow(kind: Any, values: Sequence[Any]) -> Any:
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)


def random_file(chance: Random, schema: Any = SCHEMA, *, is_tame: bool = False) -> pa.Table:
    """A few rows of a few values; a column in nine is all null.

    ``fits_long``: at least a row, no NaN, no long text, no days or times of old.
    """
    rows = chance.choice((1, 2, 3, 5, 8) if is_tame else (0, 1, 2, 3, 5, 8))

    def column(name: str) -> list[Any]:
        kind, usual, rare, _ = COLUMNS[name]
        if is_tame:
            usual = tuple(value for value in usual if value != LONG)
            rare = () if pa.types.is_temporal(kind) else tuple(v for v in rare if v == v)  # noqa: PLR0124
        few = chance.choices([*usual, *chance.sample(rare, min(len(rare), 1)), None], k=2)
        few = [None] if not chance.randrange(9) else few
        return [chance.choice(few) for _ in range(rows)]

    inner = [None if t is None and chance.randrange(2) else {"t": t} for t in column("p.r.t")]
    structs = [
        None if q is None and not chance.randrange(3) else {"q": q, "r": r}
        for q, r in zip(column("p.q"), inner, strict=True)
    ]
    plain = {name: arrow(schema.field(name).type, column(name)) for name in schema.names[:-1]}
    return pa.table(plain | {"p": pa.array(structs, STRUCT)}, schema=schema)


#: names of writers whose statistics are trusted less than pyarrow's
DISGUISES = (
    b"parquet-mr version 1.8.3",
    b"parquet-mr version 1.17.9",
    b"unheard of version 1.13",
)


def write_with_arrow(chance: Random, folder: Path, files: int = FILES) -> None:
    """Write with random row groups, page indexes and versions; some files lack columns."""
    folder.mkdir(parents=True)
    for at in range(files):
        table, path = random_file(chance), folder / f"{at:03d}.parquet"
        if not chance.randrange(4):
            table = table.drop_columns(chance.sample(table.schema.names[:-1], 3))
        if chance.randrange(3):
            pairs = make_nan_free_pair(path.name, list_nan_free_columns(table))
            table = table.replace_schema_metadata(pairs)
        pq.write_table(
            table,
            path,
            row_group_size=chance.choice((1, 2, 100)),
            write_page_index=bool(chance.randrange(2)),
            use_dictionary=bool(chance.randrange(2)),
            version=chance.choice(("1.0", "2.4", "2.6"))
            if "n" not in table.schema.names
            else "2.6",
            store_schema=False,
        )
        if not chance.randrange(3):
            disguise(path, chance.choice(DISGUISES))


def list_nan_free_columns(table: pa.Table) -> list[str]:
    found = []
    flat = table.flatten().flatten()
    for name, column in zip(flat.schema.names, flat.columns, strict=True):
        if pa.types.is_floating(column.type):
            values = column.to_pylist()
            if all(value is None or value == value for value in values):  # noqa: PLR0124
                found.append(name)
    return found


def disguise(path: Path, name: bytes) -> None:
    """Put another program's name of the same length into a footer."""
    data = path.read_bytes()
    found = re.findall(rb"parquet-cpp-arrow version [0-9.]+", data)[-1]
    at = data.rindex(found)
    path.write_bytes(data[:at] + name.ljust(len(found))[: len(found)] + data[at + len(found) :])


WRITER_SETTINGS = {
    "spark.sql.parquet.outputTimestampType": ("INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"),
    "spark.sql.parquet.datetimeRebaseModeInWrite": ("LEGACY", "CORRECTED"),
    "spark.sql.parquet.int96RebaseModeInWrite": ("LEGACY", "CORRECTED"),
    "spark.sql.parquet.writeLegacyFormat": ("false", "true"),
}
PARQUET_SETTINGS = {
    "parquet.statistics.truncate.length": ("2147483647", "2", "5"),
    "parquet.columnindex.truncate.length": ("64", "1"),
    "parquet.block.size": ("134217728", "300"),
    "parquet.block.size.row.check.min": ("100", "1"),
    "parquet.writer.version": ("v1", "v2"),
}


def write_with_spark(spark: SparkSession, chance: Random, folder: Path, files: int = FILES) -> None:
    """Write with Spark, with settings that change footers."""
    source = folder.with_name(f"{folder.name}-source")
    source.mkdir(parents=True)
    for at in range(files):
        pq.write_table(random_file(chance), source / f"{at}.parquet", store_schema=False)
    settings = {key: chance.choice(values) for key, values in WRITER_SETTINGS.items()}
    options = {key: chance.choice(values) for key, values in PARQUET_SETTINGS.items()}
    each = {"spark.sql.files.openCostInBytes": str(1 << 27), "spark.sql.session.timeZone": "UTC"}
    with use_settings(spark, settings | each | READ_AS_IS):
        frame = spark.read.schema(ddl(SCHEMA)).parquet(str(source))
        frame.write.options(**options).parquet(str(folder))


READ_AS_IS = {
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
}


@contextmanager
def use_settings(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, value in before.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)


def ddl(schema: Any) -> str:
    return ", ".join(f"`{field.name}` {spark_type(field.type)}" for field in schema)


def spark_type(kind: Any) -> str:
    types = pa.types
    if types.is_struct(kind):
        return f"struct<{', '.join(f'{f.name}: {spark_type(f.type)}' for f in kind)}>"
    if types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    names = {"int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint"}
    names |= {"bool": "boolean", "date32[day]": "date"}
    return names.get(str(kind), str(kind))


# what Spark finds, and what the index keeps


def find_files_with_spark(frame: DataFrame, predicates: Sequence[str]) -> dict[str, frozenset[str]]:
    """Return per predicate the files with a matching row; without predicates that raise."""
    plain = [text for text in predicates if _is_analysed(frame, text)]
    return _found(frame, plain)


def _is_analysed(frame: DataFrame, text: str) -> bool:
    from pyspark.errors import PySparkException  # noqa: PLC0415 - needs Java

    try:
        frame.selectExpr(f"if({text}, 1, 0)")
    except PySparkException:
        return False
    return True


def _found(frame: DataFrame, predicates: Sequence[str]) -> dict[str, frozenset[str]]:
    """Find all in one job; where it raises, halves of them."""
    if not predicates:
        return {}
    try:
        return _together(frame, predicates)
    except Exception as problem:
        if "cancel" in str(problem):
            raise
        if len(predicates) <= 2:
            return {}
        middle = len(predicates) // 2
        return _found(frame, predicates[:middle]) | _found(frame, predicates[middle:])


def _together(frame: DataFrame, predicates: Sequence[str]) -> dict[str, frozenset[str]]:
    flags = [f"max(if({text}, 1, 0)) as q{at}" for at, text in enumerate(predicates)]
    named = frame.selectExpr("*", "_metadata.file_name as `the file`")
    rows = named.groupBy("the file").agg(*map(expression, flags)).collect()
    return {
        text: frozenset(row[0] for row in rows if row[at + 1] == 1)
        for at, text in enumerate(predicates)
    }


def expression(text: str) -> Any:
    from pyspark.sql import functions  # noqa: PLC0415 - needs Java

    return functions.expr(text)


def build_folder_index(folder: Path, columns: Sequence[str], schema: Any) -> Any:
    paths = sorted(path for path in folder.rglob("*.parquet") if ".hoodie" not in path.parts)
    files = [("", path.name, path.stat().st_size, pq.read_metadata(path)) for path in paths]
    return index_footers(files, columns, schema)


def list_kept_files(text: str, index: Any, schema: Any, zone: SessionZone) -> frozenset[str]:
    mask = may_match(parse(text), index, schema=schema, zone=zone)
    return frozenset(index.name.filter(pa.array(mask)).to_pylist())
