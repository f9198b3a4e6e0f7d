"""A table of base files without a timeline: writes follow each other."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.basefile.form import FileForm
from reconciler.basefile.schema import FileSchema
from reconciler.hudi.bloom import BloomShape
from reconciler.hudi.names import BaseName
from reconciler.merge.avro_schema import arrow_schema, with_meta_columns
from reconciler.merge.rules import MergeRules
from reconciler.merge.slice import SliceReading
from reconciler.sizing.estimate import RecordSize
from reconciler.sizing.rules import Sizes, Steady
from reconciler.storage.open import open_storage
from reconciler.writer.bucket import Work
from reconciler.writer.dedupe import DedupeRule
from reconciler.writer.keys import KeyRule
from reconciler.writer.local import InProcess
from reconciler.writer.partitions import FolderRule
from reconciler.writer.request import Operation, Recipe, Standing, WriteWork
from reconciler.writer.schema import avro_schema
from tests.unit.sizing.piles import pile
from tests.unit.writer.tables import properties

ROWS = pa.schema(
    [
        ("id", pa.int64()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("name", pa.string()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
#: without a filter, so that a file of few rows is small
FORM = FileForm(bloom=BloomShape.of(entries=100), codec="none")
BIG = Steady(
    sizes=Sizes(target=1 << 20, small=1 << 19),
    record=RecordSize(fixed=4000, per_row=100.0, because=""),
    cap=None,
)


def row(key, partition="a", ts=1, name="n", deleted=None):
    return {"id": key, "p": partition, "ts": ts, "name": name, "_hoodie_is_deleted": deleted}


def batch(*rows, schema=ROWS):
    return pa.RecordBatch.from_pylist(list(rows), schema=schema)


class Ledger:
    """``write`` brings rows to files in this process, and lets the new files be the newest."""

    def __init__(self, path, rule=BIG, writer=None, schema=ROWS, *, is_global=False, **more):
        self.storage = open_storage(str(path))
        self.properties = properties(
            **{
                "hoodie.table.ordering.fields": "ts",
                "hoodie.datasource.write.hive_style_partitioning": "true",
                **more,
            }
        )
        self.rule, self.number, self.places = rule, 0, 3
        self.is_global = is_global
        self.files = {}
        self.writer = writer or InProcess(self.storage, self.places)
        text = avro_schema(schema, "t", table_version=9)
        self.columns = arrow_schema(text, "t")
        self.schema = FileSchema.of(text, "t")

    def work(self, operation, **more):
        target = self.rule.sizes.target
        reading = SliceReading(
            rules=MergeRules.of(self.properties), schema=with_meta_columns(self.columns)
        )
        recipe = Recipe(
            operation=operation,
            work=Work(
                instant=f"20300101000000{self.number:03}",
                reading=reading,
                schema=self.schema,
                form=FORM,
                target=target,
            ),
            keys=KeyRule.of(self.properties),
            folders=FolderRule.of(self.properties),
            dedupe=DedupeRule.of(self.properties, is_global=self.is_global),
            columns=self.columns,
            brought=self.columns,
            dedupes=more.pop("dedupes", False),
        )
        standing = more.pop("standing", None) or self.standing()
        return WriteWork(
            recipe=recipe,
            seed=f"{self.number:032x}",
            standing=standing,
            rule=self.rule,
            has_commits=bool(self.number),
            **more,
        )

    def standing(self, **pending):
        held = {}
        for (partition, file_id), (_, size) in sorted(self.files.items()):
            held.setdefault(partition, {})[file_id] = size
        groups = pile(held, **pending)
        names = [self.files[key][0] for key in sorted(self.files)]
        return Standing(groups=groups, bases=pa.array(names, pa.string()))

    def write(self, operation, *parts, assigned=lambda _found: None, **more):
        self.number += 1
        done = self.writer.write(parts, self.work(operation, **more), assigned=assigned)
        self.publish(done)
        return done

    def publish(self, done):
        for made in done.files:
            name = BaseName.parse(made.file.name)
            before = self.files.get((made.partition, name.file_id))
            assert made.before == (before and before[0])
            self.files[made.partition, name.file_id] = made.file.name, made.file.size

    def insert(self, *rows, **more):
        return self.write(Operation.INSERT, [batch(*rows)], **more)

    def upsert(self, *rows, **more):
        return self.write(Operation.UPSERT, [batch(*rows)], **more)

    def delete(self, *rows, **more):
        return self.write(Operation.DELETE, [batch(*rows)], **more)

    def tables(self):
        """The newest file of every group, by partition and file id."""
        return {
            key: pq.read_table(pa.BufferReader(self.storage.read(f"{key[0]}/{name}")))
            for key, (name, _) in sorted(self.files.items())
        }

    def rows(self):
        """How often each row is there, as (partition, id, ts, name); and each is where it says."""
        found = Counter()
        for (partition, _), table in self.tables().items():
            for one in table.to_pylist():
                assert partition == one["_hoodie_partition_path"] == f"p={one['p']}"
                assert one["_hoodie_record_key"] == str(one["id"])
                found[one["p"], one["id"], one["ts"], one["name"]] += 1
        return found


def few_a_file(rows, **more):
    """A rule of files of about so many rows of ``wide`` names."""
    per_row, fixed = 1100.0, 4000
    target = round(fixed + rows * per_row)
    record = RecordSize(fixed=fixed, per_row=per_row, because="")
    return replace(
        BIG, sizes=Sizes(target=target, small=round(target * 0.8)), record=record, **more
    )


def wide(key):
    """A thousand bytes that no encoding makes fewer."""
    return f"{key}-".ljust(1000, "x")
