"""What Spark gives for a table is what our reader gives without it: rows, values and types.

`tests/oracle/test_read.py` holds the reader without Spark to real Hudi, on these tables and others.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

import reconciler
from reconciler.errors import ReconcilerError
from tests.oracle.answers import Answer, find_differences, list_types
from tests.oracle.our_reader import read_our_answers
from tests.oracle.read_queries import list_queries, table_folder
from tests.oracle.stored_tables import TABLES
from tests.spark.frames import PYSPARK

pytestmark = PYSPARK
#: of every kind one: base files alone, log files of each content, evolution, values of folders
CHOSEN = (
    "v6_cow_part",
    "v6_keygen",
    "v6_mor_overlap",
    "v9_mor_part",
    "columns_added_1.2.0",
    "every_type_1.2.0",
    "evol_1.2.0",
    "odec_0.15.0",
    "parq_1.2.0",
    "virt_1.2.0",
)


def answered(spark, table, request):
    try:
        frame = reconciler.read(spark, table, kind=request.kind, as_of=request.as_of)
        schema = to_arrow_schema(frame.schema)
        rows = pa.Table.from_batches(frame._collect_as_arrow(), schema)
    except ReconcilerError as refusal:
        return Answer(refusal=(str(refusal),))
    return Answer(types=list_types(frame.schema.jsonValue()), rows=rows)


@pytest.mark.parametrize("name", CHOSEN)
def test_spark_gives_what_the_reader_gives_without_it(name, spark, tmp_path):
    table = table_folder(TABLES[name], tmp_path)
    asked = [query for query in list_queries(table) if query.name != "snapshot by listing"]
    without = read_our_answers(table, asked)

    for query in asked:
        found = answered(spark, str(table), query.request)
        assert [] == find_differences(without[query.name], found), query.name
