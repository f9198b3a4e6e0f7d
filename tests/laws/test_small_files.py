"""Whatever the inserts, a partition has few small files without a pending service.

The files of whole writes are so small here that rewriting one costs nothing, which leaves one.
"""

from __future__ import annotations

import base64
import random
import tempfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import reconciler
from reconciler.hudi.timeline.instant import Action
from reconciler.layout.sizing.assign import assign_rows, make_insert_workload
from reconciler.layout.sizing.assignment_rules import CopyOnWrite, FileSizeLimits, choose_rule
from reconciler.layout.sizing.record_size import FooterSizes, PastWrite
from reconciler.layout.sizing.simulate_inserts import simulate_inserts
from reconciler.layout.sizing.tiers import FileTiers
from reconciler.state.current_files import find_newest_bases
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from reconciler.writer.request import WriteMode
from tests.selection import examples, rounds
from tests.unit.layout.sizing.file_groups import make_groups
from tests.write_runs import SCHEMA, WriteRuns

LAW = settings(
    max_examples=rounds("SMALL_FILES", few=2, many=100),
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
  files: {{target: {target}B, small: {small}B, recordSize: {record}}}
  concurrency: {{lock: {{provider: filesystem}}}}
  table:
    {{type: COPY_ON_WRITE, version: {version}, recordKey: [id], partitionBy: [p], ordering: []}}
"""
TARGET, SMALL = 900_000, 720_000
#: the first file of a table that knows no rows yet takes up to so many times the target
FULL = 1.08


class InsertTable(WriteRuns):
    """Inserts rows of similar width into a table."""

    def __init__(self, folder: Path, *, version: int, width: int, record: int) -> None:
        folder.mkdir()
        text = SPEC.format(
            path=folder / "table", target=TARGET, small=SMALL, version=version, record=record
        )
        (folder / "spec.yaml").write_text(text)
        super().__init__(reconciler.load_specs(folder / "spec.yaml")[0])
        self.width, self.key = width, 0

    def insert(self, counts, way=WriteMode.INSERT):
        """Insert new rows into each partition."""
        found = []
        for partition, count in counts.items():
            for _ in range(count):
                self.key += 1
                noise = random.Random(self.key).randbytes(self.width)
                found.append((self.key, partition, 1, base64.b64encode(noise).decode()))
        columns = [list(column) for column in zip(*found, strict=True)] or [[] for _ in SCHEMA]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
        self.write(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA), way)

    def files(self):
        """Return sizes and keys of the visible files by partition."""
        storage = open_storage(self.spec.path)
        state = observe(storage, None, observed_ms=self.clock.now_ms())
        found = defaultdict(list)
        for row in find_newest_bases(state.view).tolist():
            path = state.files.partitions[state.files.partition[row]]
            data = storage.read(f"{path}/{state.files.name[row].as_py()}")
            keys = pq.read_table(pa.BufferReader(data), columns=["id"]).column("id").to_pylist()
            found[path].append((len(data), sorted(keys)))
        return found


batches = st.lists(
    st.fixed_dictionaries({name: st.integers(0, 110) for name in "ab"}).filter(
        lambda counts: sum(counts.values())
    ),
    min_size=1,
    max_size=5,
)


@LAW
@given(
    counts=batches,
    version=st.sampled_from([6, 9]),
    width=st.sampled_from([2_000, 4_000, 6_000]),
    record=st.sampled_from([1, 1024]),
    way=st.sampled_from([WriteMode.INSERT, WriteMode.UPSERT]),
)
def test_runs_leave_at_most_one_small_file_per_partition(counts, version, width, record, way):
    """No file is too large, and repeating the run gives the same rows in each file."""
    with tempfile.TemporaryDirectory() as folder:
        table, other = (
            InsertTable(Path(folder, name), version=version, width=width, record=record)
            for name in ("one", "two")
        )
        rows = defaultdict(int)
        for batch in counts:
            table.insert(batch, way)
            other.insert(batch, way)
            found = table.files()
            for name, count in batch.items():
                rows[name] += count
                files = found[f"p={name}"]
                assert rows[name] == sum(len(keys) for _, keys in files)
                assert sum(size < SMALL for size, _ in files) <= 1
                assert all(size <= 1.15 * TARGET for size, _ in files)
            assert keys_by_file(found) == keys_by_file(other.files())


@pytest.mark.parametrize("width", [9_000, 12_000, 40_000])
def test_first_file_of_wide_rows_is_not_too_large(width, tmp_path):
    """Although half of it is a bloom filter, and the width of the rows is not known yet."""
    table = InsertTable(tmp_path / "one", version=9, width=width, record=1024)
    table.insert({"a": 110})

    assert 110 == sum(len(keys) for _, keys in table.files()["p=a"])
    assert all(size <= 1.15 * TARGET for size, _ in table.files()["p=a"])


def keys_by_file(found):
    """Return the sets of keys in each file, by partition."""
    return {path: sorted(keys for _, keys in files) for path, files in found.items() if files}


class SimulatedTable:
    """Partitions with files of given rows, whose sizes are linear in their rows."""

    def __init__(self, fixed, per_row, sizes, pinned, tiers=None):
        self.tiers = tiers
        self.fixed, self.per_row, self.sizes, self.pinned = fixed, per_row, sizes, pinned
        self.files, self.history, self.made = {"p": {}, "q": {}}, [], 0

    def bytes_of(self, rows):
        return round(self.fixed + rows * self.per_row)

    def groups(self):
        held = {name for files in self.files.values() for name in files if self.is_pinned(name)}
        sizes = {
            path: {name: self.bytes_of(rows) for name, rows in files.items()}
            for path, files in self.files.items()
        }
        return make_groups({path: files for path, files in sizes.items() if files}, clustering=held)

    def is_pinned(self, name):
        return int(name[1:]) in self.pinned

    def rule(self):
        """Return what a writer knows: its last writes, else footers, else the declared size."""
        rows = np.array([n for files in self.files.values() for n in files.values()], np.int64)
        sizes = np.array([self.bytes_of(n) for n in rows.tolist()], np.int64)
        data = np.rint(rows * self.per_row).astype(np.int64)
        footers = FooterSizes(rows=rows, bytes=sizes, data=data) if len(rows) else None
        found = choose_rule("steady", self.sizes, self.history[-20:], footers=footers, declared=1)
        return replace(found, tiers=self.tiers, rewrite_cap=None)

    def insert(self, counts):
        groups, rule = self.groups(), self.rule()
        ids = groups.file_id.to_pylist()
        workload = make_insert_workload(counts)
        commits = bool(self.history)
        found = assign_rows(groups, workload, CopyOnWrite(), rule, has_commits=commits)
        forecasts = simulate_inserts(groups, counts, CopyOnWrite(), rule, has_commits=commits)
        written = []
        for source, into in found.list_moves():
            files = self.files[workload.partitions[found.partition[source]]]
            old, new = (ids[found.group[bucket]] for bucket in (source, into))
            files[new], files[old] = files[new] + files[old], 0
        for code, outlook in enumerate(forecasts):
            path, place = workload.partitions[code], found.partition == code
            assert outlook.rows == found.inserts[place].sum() == counts[path]
            for at, rows in zip(found.group[place], found.inserts[place].tolist(), strict=True):
                name = ids[at] if at >= 0 else None
                written += self.fill(path, name, int(rows))
        self.history.append(
            PastWrite(
                instant=f"{len(self.history)}",
                action=Action.COMMIT,
                rows=np.array(written, np.int64),
                bytes=np.array([self.bytes_of(rows) for rows in written], np.int64),
                is_base=np.ones(len(written), np.bool_),
            )
        )

    def fill(self, path, name, rows):
        """Write a bucket like the writer: rows beyond the maximum go to a further file."""
        rows += self.files[path].get(name, 0)
        full = max(int((FULL * self.sizes.target - self.fixed) / self.per_row), 1)
        if self.bytes_of(rows) <= 1.15 * self.sizes.target:
            full = rows
        while rows:
            if name is None:
                self.made += 1
                name = f"f{self.made:03}"
            self.files[path][name] = min(rows, full)
            yield self.files[path][name]
            rows -= self.files[path][name]
            name = None


@settings(max_examples=examples(17, many=200), deadline=None)
@given(
    first=st.fixed_dictionaries({"p": st.integers(1, 1_000), "q": st.integers(0, 1_000)}),
    counts=st.lists(
        st.fixed_dictionaries({"p": st.integers(0, 3_000), "q": st.integers(0, 900)}), max_size=12
    ),
    fixed=st.integers(0, 400_000),
    per_row=st.floats(1_000, 20_000),
    pinned=st.sets(st.integers(1, 30)),
    tiers=st.sampled_from([None, FileTiers(free_bytes=0), FileTiers()]),
)
def test_learned_record_sizes_leave_few_small_files(first, counts, fixed, per_row, pinned, tiers):
    """At most three with tiers, else one; by the record size that writes or footers tell each time.

    The first write knows none: it is of rows that are declared no bigger than they are, and of so
    few that it expects one file of them. Sizes are so large that rounding them to bytes changes no
    estimate.
    """
    sizes = FileSizeLimits(target=1_200_000, small=1_000_000)
    table = SimulatedTable(fixed, per_row, sizes, pinned, tiers)
    for batch in (first, *counts):
        table.insert({path: rows for path, rows in batch.items() if rows})

        for files in table.files.values():
            free = [table.bytes_of(n) for name, n in files.items() if not table.is_pinned(name)]
            assert sum(size < sizes.small for size in free) <= (3 if tiers else 1)
            assert all(table.bytes_of(n) <= 1.15 * sizes.target + 1 for n in files.values())
