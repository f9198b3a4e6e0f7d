"""Complete writes to real tables: any history of operations leaves the rows of a dictionary.

``WRITE_HISTORIES=500`` draws as many; beside the rows, nothing is left of a run that is over.
"""

from __future__ import annotations

import base64
import random
import tempfile
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import reconciler
from reconciler.errors import PlanError, RowsError
from reconciler.file_slices.merge.slice_reader import SliceFiles, SliceReadOptions, read_slice
from reconciler.hudi.files.table_files import make_present_keys
from reconciler.hudi.load import PROPERTIES, load_properties
from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.state.current_files import find_newest_bases
from reconciler.state.model import TableState
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from reconciler.transaction.session import RunContext
from reconciler.writer.local import LocalWriter
from reconciler.writer.request import WriteMode, WriteRequest
from reconciler.writer.run import run_write
from reconciler.writer.table_opening import open_for_writing
from tests.crash.drill import TestClock, process
from tests.selection import rounds

LAW = settings(
    max_examples=rounds("WRITE_HISTORIES", few=5, many=250),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: sales.orders}}
spec:
  path: {path}
  timezone: UTC
  files: {{target: {target}B, small: {small}B, assign: {assign}, recordSize: {record}}}
  concurrency: {{lock: {{provider: filesystem}}}}
  table:
    type: {kind}
    version: {version}
    recordKey: {keys}
    partitionBy: {partitions}
    ordering: {ordering}
    hiveStyle: {hive}
    {index}
"""
#: bytes of a file in a table of wide rows; a bloom filter has half of them
TARGET = 900_000
WIDE = 12_000
IDS = ("a", "b", "č", "\U0001f600", "x y", "0", "null", "A")
FOLDERS = ("a", "ů", "b c", None, "", "x/y", "\U0001f600")
#: of column n, as its type is promoted, and a value of each
PROMOTED = (pa.int32(), pa.int64(), pa.float64())


@dataclass(frozen=True)
class Shape:
    """The kind of table."""

    kind: str
    version: int
    keys: tuple[str, ...]
    partitions: tuple[str, ...]
    is_ordered: bool
    is_hive: bool
    is_wide: bool
    assign: str
    record: int
    places: int
    buckets: int | None = None


@dataclass(frozen=True)
class Step:
    """A write of rows (id, k, p, q, ts); ``grown``, ``promoted``: schema changes so far."""

    way: WriteMode
    rows: tuple[tuple[Any, ...], ...]
    grows: bool
    promotes: bool
    dedupes: bool
    parts: int


shapes = st.builds(
    Shape,
    kind=st.sampled_from(["COPY_ON_WRITE", "MERGE_ON_READ"]),
    version=st.sampled_from([6, 8, 9]),
    keys=st.sampled_from([("id",), ("id", "k")]),
    partitions=st.sampled_from([(), ("p",), ("p",), ("p", "q")]),
    is_ordered=st.booleans(),
    is_hive=st.booleans(),
    is_wide=st.booleans(),
    assign=st.sampled_from(["steady", "hudi"]),
    record=st.sampled_from([1024, WIDE]),
    places=st.integers(1, 3),
    buckets=st.sampled_from([None, None, 1, 3]),
)
steps = st.builds(
    Step,
    way=st.sampled_from([WriteMode.UPSERT, WriteMode.UPSERT, WriteMode.UPSERT, *WriteMode]),
    rows=st.lists(
        st.tuples(
            st.sampled_from(IDS),
            st.sampled_from(["1", None, "ž"]),
            st.sampled_from(FOLDERS),
            st.sampled_from([1, None]),
            st.integers(1, 5),
        ),
        max_size=40,
    ).map(tuple),
    grows=st.booleans(),
    promotes=st.booleans(),
    dedupes=st.booleans(),
    parts=st.integers(1, 3),
)


Model = dict[tuple[str, str], list[dict[str, Any]]]


@dataclass
class History:
    """A table with writes, and a model of its expected rows by folder and key."""

    folder: Path
    shape: Shape
    model: Model = field(default_factory=dict)
    extra: list[str] = field(default_factory=list)
    promoted: int = 0
    count: int = 0
    clock: TestClock = field(default_factory=TestClock)
    live: tuple[str, ...] = ("files",)
    deletes: bool = False

    def __post_init__(self) -> None:
        shape, file = self.shape, self.folder / "spec.yaml"
        target = TARGET if shape.is_wide else 120 << 20
        text = SPEC.format(
            path=self.folder / "table",
            kind=shape.kind,
            target=target,
            small=target * 4 // 5,
            assign=shape.assign,
            record=shape.record,
            version=shape.version,
            keys=list(shape.keys),
            partitions=list(shape.partitions),
            ordering="[ts]" if shape.is_ordered else "[]",
            hive=str(shape.is_hive).lower(),
            index=""
            if shape.buckets is None
            else f"index: {{type: bucket, buckets: {shape.buckets}}}",
        )
        file.write_text(text)
        (self.spec,) = reconciler.load_specs(file)

    def go(self, step: Step) -> None:
        """Write to the table and to the model."""
        self.count += 1
        if step.grows and step.way is not WriteMode.DELETE:
            self.extra.append(f"y{len(self.extra)}")
        if step.promotes and step.way is not WriteMode.DELETE:
            self.promoted = min(self.promoted + 1, len(PROMOTED) - 1)
        rows = [self.row(number, *values) for number, values in enumerate(step.rows)]
        if self.is_merged and step.way in (WriteMode.INSERT, WriteMode.BULK_INSERT):
            # of equal keys in a base file, readers merge only the first with log files
            rows = [row for row in rows if (self.path(row), self.key(row)) not in self.model]
            step = replace(step, dedupes=True)
        partitions = None
        if step.way is WriteMode.DELETE_PARTITION:
            partitions = sorted({self.path(row) for row in rows})
        refused = self.refused(step, rows)
        if refused is not None:
            with pytest.raises(refused):
                self.write(step, rows, partitions)
            return
        outcome = self.write(step, rows, partitions)
        before = sum(map(len, self.model.values()))
        self.expect(step, rows, partitions)
        if step.way in (WriteMode.INSERT, WriteMode.BULK_INSERT):
            after = sum(map(len, self.model.values()))
            assert after - before == (outcome.counts.inserts if outcome.counts else 0)

    @property
    def is_merged(self) -> bool:
        return self.shape.kind == "MERGE_ON_READ"

    def refused(self, step: Step, rows: list[dict[str, Any]]) -> type[Exception] | None:
        """Return whether to skip a step: deleting without a table, or overwriting with no rows."""
        if step.way in (WriteMode.DELETE, WriteMode.DELETE_PARTITION) and not self.is_there():
            return PlanError
        return RowsError if step.way is WriteMode.INSERT_OVERWRITE_TABLE and not rows else None

    def is_there(self) -> bool:
        return open_storage(self.spec.path).stat(PROPERTIES) is not None

    def row(self, number: int, key: str, k: str | None, p: str | None, q: int | None, ts: int):
        text = f"{self.count}.{number}"
        if self.is_merged and self.deletes:
            # in log files, an older row than a deleted one is merged with that of the base file
            ts += 10 * self.count
        if self.shape.is_wide:
            noise = random.Random(text).randbytes(WIDE)
            text += base64.b64encode(noise).decode()
        found = {"id": key, "k": k, "p": p, "q": q, "ts": ts, "x": text}
        found["n"] = None if number % 5 == 4 else number * 1000
        return found | {name: f"{name}.{number}" if number % 3 else None for name in self.extra}

    def schema(self) -> pa.Schema:
        text = dict.fromkeys(("id", "k", "p"), pa.string())
        kinds = text | {"q": pa.int32(), "ts": pa.int64(), "x": pa.string()}
        kinds["n"] = PROMOTED[self.promoted]
        return pa.schema(list((kinds | dict.fromkeys(self.extra, pa.string())).items()))

    def path(self, row: dict[str, Any]) -> str:
        names = self.shape.partitions
        values = [str(row[name] or "") or "__HIVE_DEFAULT_PARTITION__" for name in names]
        if self.shape.is_hive:
            values = [f"{name}={value}" for name, value in zip(names, values, strict=True)]
        return "/".join(values)

    def key(self, row: dict[str, Any]) -> str:
        if len(self.shape.keys) == 1 and len(self.shape.partitions) < 2:
            return row["id"]
        if len(self.shape.keys) == 1:
            return row["id"] if self.shape.version < 9 else f"id:{row['id']}"
        return f"id:{row['id']},k:{'__null__' if row['k'] is None else row['k']}"

    def write(self, step: Step, rows: list[dict[str, Any]], partitions: list[str] | None):
        schema = self.schema()
        each = -(-len(rows) // step.parts) or 1
        parts = [rows[at : at + each] for at in range(0, len(rows), each)]
        if step.way is WriteMode.DELETE:
            names = ["id", "k", *self.shape.partitions]
            schema = pa.schema([schema.field(name) for name in names])
        batches = [
            [pa.RecordBatch.from_pylist(part[at : at + 7], schema=schema) for at in
             range(0, len(part), 7)]
            for part in parts
        ]  # fmt: skip
        storage, who = open_storage(self.spec.path), process(self.count)
        means = RunContext(
            open_storage=lambda ref, _options=None: open_storage(ref),
            clock=self.clock,
            process=who,
            report_wait=lambda *_said: None,
            check_stop=lambda: None,
            lock_wait_s=0,
        )
        ask = WriteRequest(
            mode=step.way,
            rows=batches,
            schema=schema,
            dedupes=step.dedupes and step.way is not WriteMode.DELETE,
            partitions=partitions,
        )
        hold, announced = open_for_writing(self.spec, storage, means, f"run-{self.count}", ask)
        writer = None if partitions is not None else LocalWriter(storage, self.shape.places)
        return run_write(hold, self.spec, ask, writer, announced=announced)

    def expect(self, step: Step, rows: list[dict[str, Any]], partitions: list[str] | None) -> None:
        found = self.brought(step, rows)
        match step.way:
            case WriteMode.INSERT | WriteMode.BULK_INSERT:
                for key, brought in found.items():
                    self.model.setdefault(key, []).extend(brought)
            case WriteMode.UPSERT:
                for key, (new,) in found.items():
                    old = self.model.get(key, [])
                    self.model[key] = [self.newest([one, new]) for one in old] or [new]
            case WriteMode.DELETE:
                for key in found:
                    self.model.pop(key, None)
            case WriteMode.INSERT_OVERWRITE:
                gone = {path for path, _ in found}
                self.model = {k: v for k, v in self.model.items() if k[0] not in gone} | found
            case WriteMode.INSERT_OVERWRITE_TABLE:
                self.model = found
            case WriteMode.DELETE_PARTITION:
                self.model = {k: v for k, v in self.model.items() if k[0] not in partitions}

    def brought(self, step: Step, rows: list[dict[str, Any]]) -> Model:
        """Return the rows by folder and key, one per key where the operation keeps one."""
        found: Model = {}
        for row in rows:
            found.setdefault((self.path(row), self.key(row)), []).append(row)
        if step.dedupes or step.way is WriteMode.UPSERT:
            return {key: [self.newest(brought)] for key, brought in found.items()}
        return found

    def newest(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the row that wins: the later one of equal times, the last one without times."""
        return max(reversed(rows), key=lambda row: row["ts"]) if self.shape.is_ordered else rows[-1]

    def assert_rows(self) -> None:
        """Check that readers find the rows of the model in the right files."""
        storage = open_storage(self.spec.path)
        state = observe(storage, None, observed_ms=self.clock.now_ms())
        names = self.schema().names
        seen: Counter[tuple[Any, ...]] = Counter()
        if self.shape.buckets is not None:
            assert_one_group_a_bucket(state)
        if self.is_merged:
            assert self.read_merged(names) == self.expected(names)
            return
        for row in find_newest_bases(state.view).tolist():
            folder = state.files.partitions[state.files.partition[row]]
            name = state.files.name[row].as_py()
            data = storage.read(f"{folder}/{name}" if folder else name)
            if self.shape.is_wide and self.shape.buckets is None:
                assert len(data) <= 1.15 * TARGET
            for one in pq.read_table(pa.BufferReader(data)).to_pylist():
                assert (folder, name) == (one["_hoodie_partition_path"], one["_hoodie_file_name"])
                values = tuple(one.get(column) for column in names)
                seen[folder, one["_hoodie_record_key"], values] += 1
        assert seen == self.expected(names)

    def expected(self, names: list[str]) -> Counter[tuple[Any, ...]]:
        return Counter(
            (path, key, tuple(row.get(column) for column in names))
            for (path, key), rows in self.model.items()
            for row in rows
        )

    def read_merged(self, names: list[str]) -> Counter[tuple[Any, ...]]:
        """Return the rows of a snapshot read, which name their files or file groups."""
        storage = open_storage(self.spec.path)
        scan = open_scan(storage, ReadRequest(), is_checked=True)
        options = SliceReadOptions(
            rules=scan.rules, schema=scan.table_schema, committed=scan.committed
        )
        seen: Counter[tuple[Any, ...]] = Counter()
        for one in scan.slices.to_pylist():
            files = SliceFiles(
                base=one["base"], base_size=one["base_size"], logs=tuple(one["logs"])
            )
            paths = [path for path in (files.base, *files.logs) if path is not None]
            for batch in read_slice(files, options, storage):
                for row in batch.to_pylist():
                    folder, name = row["_hoodie_partition_path"], row["_hoodie_file_name"]
                    assert any(
                        path.rpartition("/")[2].lstrip(".").startswith(name) for path in paths
                    )
                    values = tuple(row.get(column) for column in names)
                    seen[folder, row["_hoodie_record_key"], values] += 1
        return seen

    def assert_tidy(self) -> None:
        """Check that runs leave nothing behind and the metadata table lists all files."""
        own = self.folder / "table" / ".hoodie"
        left = [own / "lock", *own.glob(".heartbeat/*"), *own.glob(".temp/**/*.marker*")]
        assert [] == [path for path in left if path.exists()]
        storage = open_storage(self.spec.path)
        assert load_properties(storage).metadata_partitions == self.live
        ms = self.clock.now_ms()
        disk = observe(storage, None, observed_ms=ms)
        listed = observe(storage, None, observed_ms=ms, listing="metadata")
        assert [] == [one.requested for one in disk.timeline.instants if not one.is_completed]
        assert sorted(make_present_keys(disk.files).to_pylist()) == sorted(
            make_present_keys(listed.files).to_pylist()
        )
        assert disk.files.size.sum() == listed.files.size.sum()


def assert_one_group_a_bucket(state: TableState) -> None:
    """Check that each partition has one file group that readers see for each bucket."""
    view, files = state.view, state.files
    ids = files.group_id.to_pylist()
    live = {int(view.group[at]) for at in (view.is_live & view.is_visible).nonzero()[0]}
    found = Counter((int(files.group_partition[one]), ids[one][:8]) for one in live)
    assert {1} >= set(found.values())


@LAW
@given(shapes, st.lists(steps, min_size=1, max_size=4))
def test_table_has_the_rows_of_its_history_and_no_left_overs(shape, history):
    with tempfile.TemporaryDirectory() as folder:
        deletes = any(step.way is WriteMode.DELETE for step in history)
        table = History(Path(folder), shape, deletes=deletes)
        for step in history:
            table.go(step)
            if table.is_there():
                table.assert_rows()
                table.assert_tidy()
