"""What a condition means is said by the session that is asked, and by its Java."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.cli.spark import open_spark_session
from reconciler.index.footers import index_row_groups
from reconciler.index.may_match import may_match
from reconciler.index.predicates.functions import KNOWN_FUNCTIONS
from reconciler.index.predicates.parse import parse
from reconciler.index.temporal import day_start, find_days_around, parse_micros
from reconciler.reader import spark as reader
from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.reader.session import (
    find_replaced_functions,
    find_unusual_settings,
    read_session_zone,
)
from reconciler.storage.open import open_storage
from tests.oracle.skipping_tables import use_settings
from tests.spark.frames import PYSPARK
from tests.spark.test_skipping import PLAIN, TYPED, fates, table

pytestmark = PYSPARK
ZONES = (
    "UTC", "Z", "GMT+8", "UTC+3", "UTC+03:00", "+05:30", "-18:00", "PST", "EST", "MST", "ACT",
    "SystemV/AST4ADT", "EST5EDT", "WET", "Asia/Tehran", "Europe/Prague", "America/Toronto",
    "Pacific/Apia", "Africa/Monrovia", "Africa/Cairo", "Australia/Lord_Howe", "America/St_Johns",
)  # fmt: skip
TIMES = (
    "0001-01-01 00:00:00", "1582-10-10 12:00:00", "1883-11-18 12:03:57", "1891-10-01 00:01:00",
    "1900-01-01 00:00:00", "1919-03-31 00:00:00", "1935-06-13 00:00:00", "1969-12-31 23:59:59",
    "1972-01-07 00:30:00", "1979-01-01 00:15:00", "2006-04-02 00:01:30", "2011-12-30 12:00:00",
    "2024-03-10 02:30:00", "2024-03-31 02:30:00", "2024-10-27 02:30:00", "2024-11-03 01:30:00",
    "2024-04-26 00:00:00", "2399-07-01 00:00:00", "9999-07-31 23:59:59.999999",
)  # fmt: skip


@contextmanager
def active(session):
    """Another session than the one that is asked, as notebooks leave it."""
    java = session._jvm.org.apache.spark.sql.SparkSession
    before = java.getActiveSession()
    java.setActiveSession(session._jsparkSession)
    try:
        yield
    finally:
        java.setActiveSession(before.get()) if before.isDefined() else java.clearActiveSession()


# The session that is asked.


@pytest.mark.parametrize(
    ("setting", "source", "where"),
    [
        (("spark.sql.session.timeZone", "America/New_York"), ("reading/every_type_1.2.0", TYPED),
         "t < TIMESTAMP '2024-01-01 00:00:02'"),
        (("spark.sql.parser.escapedStringLiterals", "true"), ("v9_cow_part", PLAIN),
         r"p = 'p\u0030' AND name >= 'v\u0030'"),
        (("spark.sql.ansi.enabled", "true"), ("v9_cow_part", PLAIN),
         "coalesce(cast('x' as int), id) = 400"),
    ],
)  # fmt: skip
def test_a_condition_is_read_as_the_asked_session_reads_it(setting, source, where, spark, tmp_path):
    storage = open_storage(str(table(source[0], tmp_path, source[1])))
    scan = open_scan(storage, ReadRequest())
    other = spark.newSession()
    other.conf.set(*setting)

    def rows():
        frame = reader.make_data_frame(spark, scan, storage.ref, where, index=storage)
        return sorted(row["id"] for row in frame.select("id").collect())

    with use_settings(spark, {"spark.sql.ansi.enabled": "false"}):  # true from Spark 4 on
        with active(spark):
            expected = rows()
        with active(other):
            assert expected == rows()
            now = spark._jvm.org.apache.spark.sql.SparkSession.getActiveSession().get()
            assert now.equals(other._jsparkSession)
    assert expected


def test_what_a_setting_is_by_default_changes_nothing(spark):
    with use_settings(spark, {"spark.sql.timestampType": "TIMESTAMP_LTZ",
                              "spark.sql.ansi.enabled": "true",
                      "spark.sql.parser.escapedStringLiterals": "false"}):  # fmt: skip
        assert [] == find_unusual_settings(spark)
    with use_settings(spark, {"spark.sql.ansi.enforceReservedKeywords": "true"}):
        assert ["spark.sql.ansi.enforceReservedKeywords"] == find_unusual_settings(spark)


@pytest.mark.parametrize(
    "setting", ["spark.sql.ansi.doubleQuotedIdentifiers", "spark.sql.ansi.enforceReservedKeywords"]
)
def test_where_words_mean_something_else_a_session_decides_alone(setting, spark, tmp_path):
    """A text in double quotes, or a column of the name, would be a function's name."""
    storage = open_storage(str(table("v9_cow_part", tmp_path, PLAIN)))
    scan = open_scan(storage, ReadRequest())
    with use_settings(spark, {"spark.sql.ansi.enabled": "true", setting: "true"}):
        found = reader.prune_by_condition(spark, scan, "name < current_user AND id > 1000", storage)

    assert ["notUnderstood"] * 4 == fates(found)


def test_a_function_in_the_place_of_sparks_own_means_what_its_session_says(spark, tmp_path):
    storage = open_storage(str(table("v9_cow_part", tmp_path, PLAIN)))
    scan = open_scan(storage, ReadRequest())
    where = "startswith(name, 'no name') AND id > 1000"
    other = spark.newSession()
    other.udf.register("startsWith", lambda *_: True, "boolean")

    assert "notUnderstood" not in fates(reader.prune_by_condition(spark, scan, where, storage))
    found = reader.prune_by_condition(other, scan, where, storage)
    assert ["notUnderstood"] * 4 == fates(found)
    assert ["its own startswith()" in problem for problem in found.problems] == [True]


def test_sparks_own_functions_are_known_by_their_class(spark):
    assert [] == find_replaced_functions(spark, sorted(KNOWN_FUNCTIONS))
    assert ["no_such_function"] == find_replaced_functions(spark, ["no_such_function"])


# Its clocks.


def test_times_and_days_are_those_of_java_in_every_zone(spark):
    days = [text[:10] for text in TIMES]
    wrong = {}
    for zone in ZONES:
        with use_settings(spark, QUICK | {"spark.sql.session.timeZone": zone}):
            said = [f"unix_micros(timestamp'{time}')" for time in TIMES]
            said += [f"unix_micros(cast(date'{day}' as timestamp))" for day in days]
            said += [f"unix_date(cast(timestamp'{time}' as date))" for time in TIMES]
            row = list(spark.sql(f"select {', '.join(said)}").collect()[0])
            clocks = read_session_zone(spark)
        instants = [parse_micros(time, clocks) for time in TIMES]
        begins = [
            day_start(int((np.datetime64(day) - np.datetime64("1970-01-01")).astype(int)), clocks)
            for day in days
        ]
        inside = [find_days_around(instant, clocks)[1] - 1 for instant in instants]
        ours = [*instants, *begins, *inside]
        wrong |= {(zone, what): (it, our) for what, it, our in zip(said, row, ours, strict=True)
                  if it != our}  # fmt: skip

    assert {} == wrong


# Texts.


PIECES = ("a", "\\", "\\\\", "\\'", "%", "\\%", "_", "\\_", "\\u0061", "\\101", "\\n", "n", "''",
          "' '", '"', "r", "é", "\\U0001f600", "101")  # fmt: skip
#: nothing is compiled that runs once
QUICK = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
}
VALUES = ("a", "aa", "\\", "\\\\", "'", "%", "\\%", "\\_", "\\u0061", "A", "n", "\n", '"', "é",
          "a'a", "r", "\\101", "\\n", "😀", "", "a%", "ra", " ", None)  # fmt: skip


def texts(chance):
    """A quoted text, well made or not."""
    inside = "".join(chance.choices(PIECES, k=chance.choice((0, 1, 1, 2, 3))))
    quote = chance.choice("'''\"")
    return f"{chance.choice(('', '', 'r', 'R'))}{quote}{inside}{quote}"


def true_for(frame, where):
    """Of a frame without files the numbers of the rows that it is true for; None if it fails."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - needs Java

    try:
        return {row["n"] for row in frame.filter(where).collect()}
    except PySparkException:
        return None


def test_texts_are_those_that_spark_reads(spark, tmp_path):
    """Raw or not, escaped or not, one behind the other; and what follows them."""
    rows = pa.table({"s": pa.array(VALUES, pa.string()), "n": pa.array(range(len(VALUES)))})
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=1, write_page_index=True)
    footer = pq.read_metadata(tmp_path / "rows.parquet")
    index = index_row_groups("rows.parquet", footer, ("s", "n"), rows.schema)
    frame = reader._make_local_frame(spark, rows)
    chance = Random(20260301)
    signs = ("=", "<=>", "!=", "<", "LIKE", "NOT LIKE", "IN")

    def said():
        sign, text = chance.choice(signs), texts(chance)
        return f"s {sign} {f'({text}, {texts(chance)})' if sign == 'IN' else text}"

    def asked():
        more = f" {chance.choice(('OR', 'AND'))} n = 3 OR {said()}"
        return said() + (more if chance.randrange(3) else "")

    wheres = [asked() for _ in range(300)]
    found = {where: true_for(frame, where) for where in wheres}
    truth = {where: needed for where, needed in found.items() if needed is not None}
    ours = {
        where: set(
            np.flatnonzero(may_match(parse(where), index, schema=rows.schema, zone="")).tolist()
        )
        for where in truth
    }

    assert {} == {where: needed - ours[where] for where, needed in truth.items()
                  if needed - ours[where]}  # fmt: skip
    assert len(truth) > 100
    assert sum(len(VALUES) - len(kept) for kept in ours.values()) > 5 * len(truth)


def test_a_thread_without_an_active_session_uses_that_of_the_process(spark):
    """So it is after Ctrl-C, too; a new session would be the same one, and stop it at its end."""

    def open_one():
        with open_spark_session("local[2]", {}) as found:
            return found

    with ThreadPoolExecutor(1) as thread:
        assert spark is thread.submit(open_one).result()
    assert 1 == spark.range(1).count()
