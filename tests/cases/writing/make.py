"""Ask a real Hudi what it makes of the rows and schemas of this folder.

    python -m tests.cases.writing.make VERSION BUNDLE.jar SCRATCH [SECTION[:CASE] ...]

writes ``VERSION.json`` beside this file: key and partition texts from Hudi's own key generators,
the schemas of commits, and the rows that real writes left. Run it with ``TZ=UTC``.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import fastavro
import pyarrow.parquet as pq

from reconciler.reader.spark_types import to_spark_schema
from tests.cases.writing import inputs
from tests.cases.writing.batches import BATCHES
from tests.cases.writing.declared import CHANGES, TABLES, example
from tests.tables.merging.make import PAYLOADS, session

KEY = "hoodie.datasource.write.recordkey.field"
FOLDER = "hoodie.datasource.write.partitionpath.field"
PRECOMBINE = "hoodie.datasource.write.precombine.field"
CONSISTENT = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
HIVE = "hoodie.datasource.write.hive_style_partitioning"
ENCODED = "hoodie.datasource.write.partitionpath.urlencode"
NEW_ENCODING = "hoodie.write.complex.keygen.new.encoding"
MISSING = "hoodie.write.set.null.for.missing.columns"
OPTIONS = {
    KEY: "id",
    FOLDER: "p",
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.index.bloom.num_entries": "10",
    "hoodie.index.type": "SIMPLE",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.bulkinsert.shuffle.parallelism": "1",
}


def said(ask):
    """What Hudi answers, or how it refuses: the last cause's class and the start of its words."""
    try:
        return ask()
    except Exception as problem:
        cause = getattr(problem, "java_exception", None) or getattr(problem, "_origin", None)
        if cause is None:
            raise
        while cause.getCause() is not None:
            cause = cause.getCause()
        return {"refused": str(cause.toString()).replace("\n", " ")[:200]}


class Hudi:
    def __init__(self, version, jar, scratch):
        self.version, self.scratch = version, Path(scratch)
        self.spark = session(jar)
        self.spark.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "CORRECTED")
        self.jvm = self.spark._jvm
        self.written = 0
        self.begun = {}

    def frame(self, table):
        path = str(self.scratch / "rows.parquet")
        pq.write_table(table, path)
        return self.spark.read.parquet(path)

    def records(self, table):
        """The rows as the Avro records that an upsert makes its keys of."""
        frame = self.frame(table)._jdf
        make = self.jvm.org.apache.hudi.AvroConversionUtils.createConverterToAvro
        convert = make(frame.schema(), "t_record", "hoodie.t")
        return [convert.apply(row) for row in frame.collect()]

    def generator(self, kind, keys, folders, **options):
        properties = self.jvm.org.apache.hudi.common.config.TypedProperties()
        for key, value in {KEY: keys, FOLDER: folders, **options}.items():
            properties.setProperty(key, value)
        return getattr(self.jvm.org.apache.hudi.keygen, f"{kind}KeyGenerator")(properties)

    def texts(self):
        table = inputs.texts()
        if self.version < "1.1":
            table = table.drop_columns(["k_ntz"])
        records = self.records(table)
        found = {}
        for name in ("k_in.a" if c == "k_in" else c for c in table.column_names):
            made = self.generator("Simple", name, name, **{CONSISTENT: "false"})
            found[name] = [said(lambda r=r, g=made: str(g.getRecordKey(r))) for r in records]
        return found

    def folders(self):
        records, found = self.records(inputs.folders()), {}
        for hive in ("false", "true"):
            for encoded in ("false", "true"):
                for kind, fields in (("Simple", "p"), ("Complex", "p,q")):
                    made = self.generator(kind, "p", fields, **{HIVE: hive, ENCODED: encoded})
                    found[f"{fields} hive={hive} encoded={encoded}"] = [
                        said(lambda r=r, g=made: str(g.getPartitionPath(r))) for r in records
                    ]
        records, typed = self.records(inputs.texts().select(["k_date", "k_double", "k_bool"])), []
        made = self.generator("Complex", "k_date", "k_date,k_double,k_bool", **{HIVE: "true"})
        typed = [str(made.getPartitionPath(r)) for r in records]
        return found | {"typed": typed}

    def empties(self):
        records, found = self.records(inputs.empties()), {}
        asked = {
            "Simple a": ("Simple", "a", {}),
            "Complex a,b": ("Complex", "a,b", {}),
            "Complex a": ("Complex", "a", {}),
            "Complex a new": ("Complex", "a", {NEW_ENCODING: "true"}),
            "Complex a old": ("Complex", "a", {NEW_ENCODING: "false"}),
            "Nonpartitioned a": ("Nonpartitioned", "a", {}),
            "Nonpartitioned a,b": ("Nonpartitioned", "a,b", {}),
        }
        for name, (kind, keys, options) in asked.items():
            made = self.generator(kind, keys, "a", **options)
            found[name] = [said(lambda r=r, g=made: str(g.getRecordKey(r))) for r in records]
        return found

    def write(self, path, frame, operation="upsert", **options):
        # without ordering columns Hudi 0.x asks for one by the name of ts
        first = {PRECOMBINE: "id"} if self.version < "1" and "ts" not in frame.columns else {}
        how = {**OPTIONS, **first, **options, "hoodie.datasource.write.operation": operation}
        frame.write.format("hudi").options(**how).mode("append").save(str(path))

    def place(self):
        self.written += 1
        return self.scratch / f"table{self.written}"

    def typed(self, schema, key):
        from pyspark.sql.types import StructType  # noqa: PLC0415 (as above)

        kind = StructType.fromJson(to_spark_schema(schema))
        return self.spark.createDataFrame([example(schema, key)], kind).coalesce(1)

    def schema_of(self, path):
        """Of the last commit, from its file: JSON below version 8, else an Avro container."""
        names = [*path.glob(".hoodie/*.commit"), *path.glob(".hoodie/timeline/*.commit")]
        last = max(names, key=lambda name: name.name)
        if self.version < "1":
            return json.loads(last.read_text())["extraMetadata"]["schema"]
        with last.open("rb") as file:
            return next(fastavro.reader(file))["extraMetadata"]["schema"]

    def schemas(self, case):
        path, (name, schema) = self.place(), TABLES[case]
        self.write(path, self.typed(schema, "a"), **{"hoodie.table.name": name})
        return self.schema_of(path)

    def change(self, before, after, **options):
        path, name = self.place(), {"hoodie.table.name": "t"}
        if str(before) not in self.begun:
            self.begun[str(before)] = begun = self.place()
            self.write(begun, self.typed(before, "a"), **name)
        shutil.copytree(self.begun[str(before)], path)
        self.write(path, self.typed(after, "b"), **name, **options)
        rows = self.spark.read.format("hudi").load(str(path)).count()
        return {"schema": self.schema_of(path), "rows": rows}

    def changes(self, case):
        name, _, filled = case.partition(", null")
        return self.change(*CHANGES[name], **({MISSING: "true"} if filled else {}))

    def batches(self, case):
        batch = BATCHES[case]
        options = {"hoodie.table.name": "t", **batch.options}
        newer = self.version >= "1.1"
        name = (
            "hoodie.table.ordering.fields" if newer else "hoodie.datasource.write.precombine.field"
        )
        if batch.ordering:
            options[name] = ",".join(batch.ordering)
        if batch.mode and self.version < "1":
            options["hoodie.datasource.write.payload.class"] = PAYLOADS[batch.mode]
        elif batch.mode:
            mode = f"{batch.mode.upper()}_TIME_ORDERING"
            options["hoodie.record.merge.mode"] = options["hoodie.write.record.merge.mode"] = mode
        if batch.is_global:
            options["hoodie.index.type"] = "GLOBAL_SIMPLE"
        path = self.place()
        self.write(path, self.frame(batch.table).coalesce(1), batch.operation, **options)
        found = self.spark.read.format("hudi").load(str(path)).select("id", "p", "n").collect()
        return sorted(list(row) for row in found)


#: of each section, what is asked for one by one; without names, all at once
SECTIONS = {
    "texts": (),
    "folders": (),
    "empties": (),
    "schemas": TABLES,
    "batches": BATCHES,
    "changes": [*CHANGES, *(f"{c}, null where missing" for c in CHANGES if "missing" in c)],
}


def main(version, jar, scratch, *asked):
    hudi = Hudi(version, jar, scratch)
    file = Path(__file__).parent / f"{version}.json"
    for section, _, case in (name.partition(":") for name in asked or SECTIONS):
        ask = getattr(hudi, section)
        if not SECTIONS[section]:
            keep(file, section, ask())
        for name in [case] if case else SECTIONS[section]:
            keep(file, section, {name: said(lambda ask=ask, name=name: ask(name))})


def keep(file, section, made):
    """Add to what is known already: real Hudi takes its time."""
    found = json.loads(file.read_text()) if file.exists() else {}
    found[section] = found.get(section, {}) | made
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    for end in ("}", "]"):
        text = text.replace(f'{end},"', f'{end},\n"')
    file.write_text(text + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
