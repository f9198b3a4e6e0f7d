"""No file in which Spark finds a row is left out, whoever wrote it and whatever is asked.

``INDEX_TABLES=200`` tries so many random tables, a hundred predicates each, instead of a few.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from reconciler.reader.session import read_session_zone
from tests.oracle.random_predicates import COLUMNS, SCHEMA, ZONES, Predicates
from tests.oracle.skipping_tables import (
    build_folder_index,
    ddl,
    find_files_with_spark,
    list_kept_files,
    use_settings,
    write_with_arrow,
    write_with_spark,
)
from tests.selection import rounds

pytestmark = pytest.mark.oracle
TABLES = rounds("INDEX_TABLES", few=2, many=40)
PREDICATES = 140
#: a seed cannot be made smaller
SEEDS = settings(max_examples=TABLES, deadline=None, phases=[Phase.explicit, Phase.generate])


def session_settings(chance: Random) -> dict[str, str]:
    """What may change an answer of Spark's."""
    said = {
        "spark.sql.session.timeZone": ZONES,
        "spark.sql.ansi.enabled": ("false", "false", "false", "true"),
        "spark.sql.parquet.datetimeRebaseModeInRead": ("CORRECTED", "LEGACY"),
        "spark.sql.parquet.int96RebaseModeInRead": ("CORRECTED", "LEGACY"),
        "spark.sql.parquet.enableVectorizedReader": ("true", "false"),
        "spark.sql.codegen.factoryMode": ("NO_CODEGEN", "NO_CODEGEN", "FALLBACK"),
        "spark.sql.codegen.wholeStage": ("false",),
        "spark.sql.shuffle.partitions": ("1",),
    }
    return {key: chance.choice(values) for key, values in said.items()}


def test_no_file_in_which_spark_finds_a_row_is_left_out(spark):
    left_out = tried = 0

    @SEEDS
    @given(seed=st.integers(0, 1 << 40))
    def holds(seed: int) -> None:
        nonlocal left_out, tried
        chance = Random(seed)
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "table"
            if chance.randrange(2):
                write_with_arrow(chance, folder)
            else:
                write_with_spark(spark, chance, folder)
            said = session_settings(chance)
            is_ansi = said["spark.sql.ansi.enabled"] == "true"
            asked = Predicates(chance, tuple(COLUMNS), is_plain=is_ansi).make(PREDICATES)
            with use_settings(spark, said):
                frame = spark.read.schema(ddl(SCHEMA)).parquet(str(folder))
                truth = find_files_with_spark(frame, asked)
                clocks = read_session_zone(spark)
            index = build_folder_index(folder, tuple(COLUMNS), SCHEMA)
            ours = {text: list_kept_files(text, index, SCHEMA, clocks) for text in truth}

        lost = {text: needed - ours[text] for text, needed in truth.items()}
        assert {} == {text: files for text, files in lost.items() if files}, said
        left_out += sum(len(index) - len(files) for files in ours.values())
        tried += len(index) * len(ours)

    holds()

    assert left_out > tried / 5  # or nothing was shown


def test_a_list_with_a_zero_matches_both_zeros(spark):
    """Also a long one, of which Spark makes a set of hashes."""
    zeros = spark.range(2).selectExpr("0.0D * (1 - 2 * id) d").selectExpr("d", "float(d) f")
    others = [", ".join(map(str, range(1, count))) for count in (1, 2, 11, 40)]
    lists = [f"{zero}, {other}".rstrip(", ") for zero in ("0.0D", "-0.0D", "0") for other in others]
    wheres = [f"{name} NOT IN ({listed})" for name in ("d", "f") for listed in lists]

    assert {"0.0", "-0.0"} == {row[0] for row in zeros.selectExpr("string(f)").collect()}
    assert 0 == zeros.where(" OR ".join(wheres)).count()
    assert 2 == zeros.where("d NOT IN (1, 2)").count()
