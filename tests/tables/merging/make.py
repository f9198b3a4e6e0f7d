"""Write the tables of this folder with a real Hudi, or read some with one.

    python make.py VERSION BUNDLE.jar FOLDER [TABLE ...]

Without TABLE every story is written to FOLDER and read back; with, only these are read, into
FOLDER/TABLE.VERSION.json. A story ends where Hudi refuses a step, which some versions do.
"""

from __future__ import annotations

import json
import sys

RANGE = "(select explode(sequence({}, {})) id)"
RICH = """select cast(id as string) k, id, cast({time} as {type}) ts, concat('{tag}', id) v,
 cast(id as decimal(12, 3)) / 7 d, date_add(date'2024-01-01', id) dt,
 timestamp_micros(1700000000000000 + id * 1000001) t, array(id, id + 1) a,
 map('x', id, 'y', null) m, named_struct('p', id, 'q', array(named_struct('z', concat('z', id)))) s,
 cast(concat('b', id) as binary) bin, id % 2 = 0 flag, cast(id as float) / 3 f,
 cast(id as short) sh {more} from {rows}"""
PLAIN = "select cast(id as string) k, id, {time} ts, concat('{tag}', id) v {more} from {rows}"
FLAG = ", if(id in ({}), true, null) as _hoodie_is_deleted"
MODES = {"commit": "COMMIT_TIME_ORDERING", "event": "EVENT_TIME_ORDERING"}
PAYLOADS = {
    "commit": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
    "event": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
}
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.bulkinsert.shuffle.parallelism": "1",
    "hoodie.index.type": "SIMPLE",
    "hoodie.datasource.write.keygenerator.class": (
        "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
    ),
}


def rows(first, last, time, tag, *, text=PLAIN, more="", **words):
    return text.format(time=time, tag=tag, more=more, rows=RANGE.format(first, last), **words)


def rich(type_, first="insert"):
    """Updates late and early in event time, deletions of both kinds, a record that comes back."""

    def step(first, last, time, tag, more=""):
        return rows(first, last, time, tag, text=RICH, more=more, type=type_)

    none = FLAG.format("-1")
    return [
        (step(0, 19, 10, "base"), first, {}),
        (step(0, 5, 20, "u1"), "upsert", {}),
        (step(3, 8, 5, "u2"), "upsert", {}),
        (step(9, 10, 30, "u3"), "upsert", {}),
        (step(0, 0, 0, "del"), "delete", {}),
        (step(9, 9, 0, "del"), "delete", {}),
        (step(15, 15, 0, "del"), "delete", {}),
        (step(0, 0, 1, "back"), "upsert", {}),
        (step(1, 2, 15, "flag", FLAG.format("1, 11")), "upsert", {}),
        (step(11, 12, 15, "flag", FLAG.format("1, 11")), "upsert", {}),
        (step(13, 13, 5, "early", none), "upsert", {}),
    ]


def timed(time, text=PLAIN, order=("m", "n", "a", "m", "0", "1")):
    """The same with event times of other types; ``time`` makes one of a number."""

    def step(first, last, number, tag, place, more=""):
        word = order[place]
        return rows(first, last, time(number), tag, text=text, more=more, n=word)

    flag = FLAG.format("1, 5, 6")
    return [
        (step(0, 9, 10, "b", 0), "insert", {}),
        (step(0, 4, 20, "u", 1), "upsert", {}),
        (step(2, 6, 5, "o", 2), "upsert", {}),
        (step(1, 7, 15, "d", 3, flag), "upsert", {}),
        (step(8, 8, 0, "x", 4), "delete", {}),
        (step(8, 8, 1, "y", 5, FLAG.format("-1")), "upsert", {}),
    ]


def evolving():
    text = "select cast(id as string) k, id, {time} ts, {more} from {rows}"
    old = "id n, named_struct('a', id) s"
    new = (
        "cast(id as bigint) + 5000000000 n, if(id < 99, 1.5D, null) added, "
        "named_struct('a', cast(id as bigint), 'b', if(id < 99, 'new', null)) s"
    )
    return [
        (rows(0, 9, 10, "", text=text, more=old), "insert", {}),
        (rows(0, 5, 20, "", text=text, more=old), "upsert", {}),
        (rows(2, 6, 30, "", text=text, more=new), "upsert", {}),
    ]


def compacting():
    options = {"hoodie.log.compaction.inline": "true", "hoodie.log.compaction.blocks.threshold": 2}
    return [
        (rows(0, 9, 10, "b"), "insert", {}),
        *((rows(0, n, 20 + n % 2, f"u{n}_"), "upsert", options) for n in range(1, 6)),
    ]


def stories(version):
    """Name -> steps and the options of all of them; a step is SQL, an operation and options."""
    newer = version >= "1.1"
    ordering = (
        "hoodie.table.ordering.fields" if newer else "hoodie.datasource.write.precombine.field"
    )
    modes = {
        kind: {"hoodie.datasource.write.payload.class": PAYLOADS[kind]}
        if version < "1.0"
        else {"hoodie.record.merge.mode": MODES[kind]}
        for kind in MODES
    }
    by, event = {ordering: "ts"}, {ordering: "ts", **modes["event"]}
    parquet = {"hoodie.logfile.data.block.format": "parquet"}
    # a table of 1.x orders by event time as soon as it knows ordering fields
    found = {
        "commit": (rich("int"), {**(by if version < "1.0" else {}), **modes["commit"]}),
        "event": (rich("int"), event),
        "eventlong": (rich("bigint"), event),
        "eventstr": (rich("string"), event),
        "parq": (rich("int", "bulk_insert"), event | parquet),
        "ots": (timed(lambda n: f"timestamp_micros({n}000001)"), by),
        "odate": (timed(lambda n: f"date_add(date'2020-01-01', {n})"), by),
        "odec": (timed(lambda n: f"cast({n} as decimal(20, 4))"), by),
        "odbl": (timed(lambda n: f"cast({n} as double) - 12.5D"), by),
        "virt": (timed(str)[:3], by | {"hoodie.populate.meta.fields": "false"}),
        "evol": (evolving(), by),
        "logc": (compacting(), by),
    }
    if newer:
        text = PLAIN.replace(" v {more}", " v, '{n}' n {more}")
        same = timed(lambda _: "cast(10 as bigint)", text)
        found["multi"] = (same, {ordering: "ts,n"})
    return found


def session(jar):
    from pyspark.sql import SparkSession  # noqa: PLC0415 (collecting tests needs no Spark)

    conf = {
        "spark.driver.extraClassPath": jar,
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("merging")
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def dump(spark, folder, name, version):
    frame = spark.read.format("hudi").load(f"{folder}/{name}")
    found = [[row.asDict(recursive=True)[c] for c in frame.columns] for row in frame.collect()]
    with open(f"{folder}/{name}.{version}.json", "w") as file:
        known = {"cols": frame.columns, "rows": found}
        json.dump(known, file, default=lambda v: v.hex() if isinstance(v, bytearray) else str(v))


def main(version, jar, folder, *tables):
    spark = session(jar)
    for name, (steps, options) in ({} if tables else stories(version)).items():
        path = f"{folder}/{name}_{version}"
        for number, (sql, operation, more) in enumerate(steps, 1):
            how = {**OPTIONS, **options, **more, "hoodie.datasource.write.operation": operation}
            try:
                writer = spark.sql(sql).write.format("hudi").options(**how)
                writer.mode("append").save(path)
            except Exception as problem:  # noqa: BLE001 (whatever Hudi raises)
                print(f"{name}: step {number} of {len(steps)}: {str(problem)[:300]}")
                break
    for name in tables or [f"{name}_{version}" for name in stories(version)]:
        try:
            dump(spark, folder, name, version)
        except Exception as problem:  # noqa: BLE001
            print(f"{name} cannot be read: {str(problem)[:300]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
