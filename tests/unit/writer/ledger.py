"""A table of base files without a timeline, for writes that follow each other."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.file_slices.merge.avro_schema import add_meta_columns, to_arrow_schema
from reconciler.file_slices.merge.rules import MergeRules
from reconciler.file_slices.merge.slice_reader import SliceReadOptions
from reconciler.hudi.codecs.bloom import BloomShape
from reconciler.hudi.files.key_buckets import BucketRule
from reconciler.hudi.files.names import BaseName
from reconciler.layout.sizing.assignment_rules import FileSizeLimits, SteadyRule
from reconciler.layout.sizing.record_size import RecordSize
from reconciler.storage.open import open_storage
from reconciler.writer.bucket import BucketSettings
from reconciler.writer.declared_schema import make_avro_schema
from reconciler.writer.dedupe import DedupeRule
from reconciler.writer.index_buckets import IndexBuckets
from reconciler.writer.job import RowJob, RowOperation, RowRules, WriteJob
from reconciler.writer.local import LocalWriter
from reconciler.writer.partition_paths import PartitionRule
from reconciler.writer.record_keys import KeyRule
from tests.unit.layout.sizing.file_groups import make_groups
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
#: without a bloom filter, so that a file of few rows is small
FORM = BaseFileSettings(bloom=BloomShape.from_options(entries=100), codec="none")
BIG = SteadyRule(
    sizes=FileSizeLimits(target=1 << 20, small=1 << 19),
    record_size=RecordSize(fixed=4000, per_row=100.0, because=""),
    rewrite_cap=None,
)


def row(key, partition="a", ts=1, name="n", deleted=None):
    return {"id": key, "p": partition, "ts": ts, "name": name, "_hoodie_is_deleted": deleted}


def batch(*rows, schema=ROWS):
    return pa.RecordBatch.from_pylist(list(rows), schema=schema)


class Ledger:
    """``write`` writes rows to files in this process; the new files become the newest."""

    def __init__(
        self, path, rule=BIG, writer=None, schema=ROWS, *, is_global=False, buckets=None, **more
    ):
        self.storage = open_storage(str(path))
        self.properties = properties(
            **{
                "hoodie.table.ordering.fields": "ts",
                "hoodie.datasource.write.hive_style_partitioning": "true",
                **more,
            }
        )
        self.rule, self.number, self.places = rule, 0, 3
        self.is_global, self.buckets = is_global, buckets
        self.files = {}
        self.writer = writer or LocalWriter(self.storage, self.places)
        text = make_avro_schema(schema, "t", table_version=9)
        self.columns = to_arrow_schema(text, "t")
        self.schema = FileSchema.from_avro(text, "t")

    def work(self, operation, **more):
        target = self.rule.sizes.target
        standing = more.pop("standing", None) or self.standing()
        reading = SliceReadOptions(
            rules=MergeRules.from_properties(self.properties), schema=add_meta_columns(self.columns)
        )
        recipe = RowJob(
            operation=operation,
            instant=f"20300101000000{self.number:03}",
            settings=BucketSettings(
                reading=reading,
                schema=self.schema,
                form=FORM,
                target=target,
            ),
            rules=RowRules(
                key=KeyRule.from_properties(self.properties),
                partition=PartitionRule.from_properties(self.properties),
                dedupe=DedupeRule.from_properties(self.properties, is_global=self.is_global),
                columns=self.columns,
                incoming=self.columns,
            ),
            dedupes=more.pop("dedupes", False),
            index_buckets=self.find_index_buckets(standing),
        )
        return WriteJob(
            row_job=recipe,
            seed=f"{self.number:032x}",
            groups=standing,
            size_rule=self.rule,
            has_commits=bool(self.number),
            **more,
        )

    def find_index_buckets(self, standing):
        if self.buckets is None:
            return None
        rule = BucketRule(buckets=self.buckets, fields=("id",), record_key=("id",), table_version=9)
        return IndexBuckets.from_groups(rule, standing)

    def standing(self, **pending):
        held = {}
        for (partition, file_id), (_, size) in sorted(self.files.items()):
            held.setdefault(partition, {})[file_id] = size
        groups = make_groups(held, **pending)
        names = [self.files[key][0] for key in sorted(self.files)]
        return replace(groups, base_name=pa.array(names, pa.string()))

    def write(self, operation, *parts, assigned=lambda _found: None, **more):
        self.number += 1
        done = self.writer.write(parts, self.work(operation, **more), assigned=assigned)
        self.publish(done)
        return done

    def publish(self, done):
        for made in done.files:
            name = BaseName.parse(made.file.name)
            before = self.files.get((made.partition, name.file_id))
            assert made.previous_name == (before and before[0])
            self.files[made.partition, name.file_id] = made.file.name, made.file.size

    def insert(self, *rows, **more):
        return self.write(RowOperation.INSERT, [batch(*rows)], **more)

    def upsert(self, *rows, **more):
        return self.write(RowOperation.UPSERT, [batch(*rows)], **more)

    def delete(self, *rows, **more):
        return self.write(RowOperation.DELETE, [batch(*rows)], **more)

    def tables(self):
        """Read the newest file of every group, by partition and file id."""
        return {
            key: pq.read_table(pa.BufferReader(self.storage.read(f"{key[0]}/{name}")))
            for key, (name, _) in sorted(self.files.items())
        }

    def rows(self):
        """Count the rows as (partition, id, ts, name), and check that each is where it says."""
        found = Counter()
        for (partition, _), table in self.tables().items():
            for one in table.to_pylist():
                assert partition == one["_hoodie_partition_path"] == f"p={one['p']}"
                assert one["_hoodie_record_key"] == str(one["id"])
                found[one["p"], one["id"], one["ts"], one["name"]] += 1
        return found


def few_a_file(rows, **more):
    """Return a size rule for files of about so many rows of ``wide`` names."""
    per_row, fixed = 1100.0, 4000
    target = round(fixed + rows * per_row)
    record = RecordSize(fixed=fixed, per_row=per_row, because="")
    return replace(
        BIG,
        sizes=FileSizeLimits(target=target, small=round(target * 0.8)),
        record_size=record,
        **more,
    )


def wide(key):
    """Return a thousand bytes that no encoding makes smaller."""
    return f"{key}-".ljust(1000, "x")
