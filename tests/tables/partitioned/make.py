"""Write the tables of this folder with a real Hudi, and what it reads in their partition columns.

    python make.py BUNDLE.jar FOLDER

Every table becomes FOLDER/tables.zip:NAME, its rows FOLDER/expected.json: by id the values of the
partition columns as text, null where Hudi cannot read the table.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
DROPPED = {"hoodie.datasource.write.drop.partition.columns": "true"}
MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
TWO = {"hoodie.datasource.write.partitionpath.field": "p,q"}
EPOCH = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
}
TIMED = EPOCH | {
    "hoodie.datasource.write.keygenerator.class": (
        "org.apache.hudi.keygen.TimestampBasedKeyGenerator"
    ),
}
CUSTOM = EPOCH | {
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
    "hoodie.datasource.write.partitionpath.field": "p:SIMPLE,q:TIMESTAMP",
}
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.metadata.enable": "false",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.index.type": "SIMPLE",
    "hoodie.index.bloom.num_entries": "10",
}
ODD = ("'a%2Fb'", "''", "null", "'x=y'", "'p=1'", "'é ü'")
#: the columns, their values' text, options
TABLES = {
    "plain": ("v p", ODD, {}),
    "hive": ("v p", ODD, HIVE),
    "encoded": ("v p", (*ODD, "'a/b'"), ENCODED),
    "encoded_hive": ("v p", (*ODD, "'a/b'"), HIVE | ENCODED),
    "slashes": ("v p", ("'2024/01/02'", "'2024/01/03'"), {}),
    "slashes_hive": ("v p", ("'a/b'", "'c'"), HIVE),
    "date": ("cast(v as date) p", ("'2024-01-02'", "null"), {}),
    "date_in_logs": ("cast(v as date) p", ("'2024-01-02'",), HIVE | MERGE_ON_READ),
    "whole": ("cast(v as int) p", ("7", "-3", "null"), {}),
    "long": ("cast(v as bigint) p", ("7", "9000000000"), HIVE),
    "boolean": ("cast(v as boolean) p", ("true", "false"), {}),
    "double": ("cast(v as double) p", ("1.5", "1e20"), {}),
    "decimal": ("cast(v as decimal(10, 2)) p", ("1.5", "100"), {}),
    "moment": ("cast(v as timestamp) p", ("'2024-01-02 03:04:05'",), {}),
    "two": ("v p, cast(length(v) as int) q", ("'a'", "'bc'", "null"), TWO),
    "two_slashes": ("v p, concat('q', v) q", ("'a/b'", "'c'"), TWO),
    "two_slashes_hive": ("v p, concat('q', v) q", ("'a/b'", "'c'"), TWO | HIVE),
    "timed": ("cast(v as bigint) p", ("1704164645000",), TIMED),
    "custom": ("concat('c', v) p, cast(v as bigint) q", ("1704164645000",), CUSTOM),
    "dropped": ("v p", ("'a'", "'b'", "null"), DROPPED | HIVE),
    "dropped_whole": ("cast(v as int) p", ("7", "8"), DROPPED),
    "dropped_slashes": ("v p", ("'2024/01/02'",), DROPPED),
    "dropped_two": ("v p, concat('q', v) q", ("'a'", "'b'"), DROPPED | TWO),
}


def session(jar):
    from pyspark.sql import SparkSession  # noqa: PLC0415

    builder = SparkSession.builder.master("local[1]")
    for key, value in {
        "spark.driver.extraClassPath": jar,
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
    }.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def write(spark, path, columns, values, options):
    rows = ", ".join(f"({number}, {value})" for number, value in enumerate(values, 1))
    frame = spark.sql(f"select cast(id as string) id, {columns} from values {rows} as t(id, v)")
    said = OPTIONS | options | {"hoodie.datasource.write.operation": "upsert"}
    frame.coalesce(1).write.format("hudi").options(**said).mode("append").save(path)


def read(spark, path, names):
    try:
        shown = [f"cast({name} as string) {name}" for name in names]
        frame = spark.read.format("hudi").load(path).selectExpr("id", *shown)
        return {row["id"]: [row[name] for name in names] for row in frame.sort("id").collect()}
    except Exception as problem:  # noqa: BLE001 (whatever Hudi raises)
        print(str(problem)[:1000])
        return None


def main(jar, folder):
    spark = session(jar)
    found = {}
    with tempfile.TemporaryDirectory() as place:
        for name, (columns, values, options) in TABLES.items():
            path = f"{place}/{name}"
            write(spark, path, columns, values, options)
            names = ["p", "q"] if " q" in columns else ["p"]
            found[name] = read(spark, path, names)
            print(name, found[name])
        for junk in Path(place).rglob(".*.crc"):
            junk.unlink()
        shutil.make_archive(f"{folder}/tables", "zip", place)
    text = json.dumps(found, indent=1, ensure_ascii=False)
    Path(folder, "expected.json").write_text(f"{text}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
