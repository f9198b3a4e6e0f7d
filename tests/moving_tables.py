"""Tables with small targets, in which inserts soon move old rows from one file to another."""

from __future__ import annotations

import base64
import random
from functools import partial

import pyarrow as pa

import reconciler
from reconciler.file_slices.base_file.meta_columns import META_COLUMNS
from reconciler.file_slices.merge.slice_reader import SliceFiles, SliceReadOptions, read_slice
from reconciler.hudi.files.names import BaseName
from reconciler.layout.sizing import assignment_rules
from reconciler.layout.sizing.tiers import FileTiers
from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.storage.open import open_storage
from reconciler.writer.request import WriteMode
from tests.write_runs import SCHEMA, WriteRuns, make_rows

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: sales.orders}}
spec:
  path: {path}
  timezone: UTC
  files: {{target: 3MB, small: 2500kB}}
  concurrency: {{lock: {{provider: filesystem}}}}
  table:
    {{type: {kind}, version: {version}, recordKey: [id], partitionBy: [p], ordering: [ts]}}
"""
#: rows of a batch; the fourth batch moves the rows of the first three into one file
BATCH = 8
#: bytes of a row's text
WIDTH = 75_000


def move_soon(monkeypatch):
    """Let small batches move rows, whose files would otherwise be rewritten each time."""
    monkeypatch.setattr(assignment_rules, "FileTiers", partial(FileTiers, free_bytes=0))


class MovingTable(WriteRuns):
    """Inserts batches of rows with new keys; ``places`` tells which file group has each key."""

    def __init__(self, folder, *, version=9, kind="COPY_ON_WRITE"):
        folder.mkdir(exist_ok=True)
        file = folder / "spec.yaml"
        file.write_text(SPEC.format(path=folder / "table", version=version, kind=kind))
        super().__init__(reconciler.load_specs(file)[0])
        self.key = 0

    def make_batch(self, count=BATCH, partition="a"):
        """Return rows of keys that nobody has seen."""
        self.key += count
        return make_rows(
            *(make_row(key, partition) for key in range(self.key - count + 1, self.key + 1))
        )

    def insert(self, count=BATCH, way=WriteMode.INSERT, partition="a", **more):
        """Insert rows of new keys."""
        return self.write(self.make_batch(count, partition), way, **more)

    def insert_until_rows_move(self):
        """Insert batches until one moves rows; return the places before and after it."""
        for _ in range(9):
            before = self.places()
            self.insert()
            after = self.places()
            if any(after[key] != place for key, place in before.items()):
                return before, after
        raise AssertionError("no rows have moved")

    def places(self):
        """Return the file id of each key's row; fails if a key has several rows."""
        found = {}
        for path, rows in self.read_slices("_hoodie_file_name").items():
            for row in rows:
                assert row["id"] not in found
                assert row["_hoodie_file_name"] == path.rpartition("/")[2]
                found[row["id"]] = BaseName.parse(row["_hoodie_file_name"]).file_id
        return found

    def read_rows_by_key(self):
        """Return all rows with their meta columns, by key."""
        slices = self.read_slices(*META_COLUMNS, *SCHEMA.names).values()
        return {row["id"]: row for rows in slices for row in rows}

    def read_slices(self, *columns, **asked):
        """Return the ids and other columns of each base file that a reader sees, by its path."""
        storage = open_storage(self.spec.path)
        scan = open_scan(storage, ReadRequest(**asked), is_checked=True)
        options = SliceReadOptions(
            rules=scan.rules,
            schema=scan.table_schema,
            committed=scan.committed,
            columns=tuple(dict.fromkeys(("_hoodie_commit_time", "id", *columns))),
        )
        found = {}
        for one in scan.slices.to_pylist():
            files = SliceFiles(
                base=one["base"], base_size=one["base_size"], logs=tuple(one["logs"])
            )
            batches = list(read_slice(files, options, storage))
            rows = pa.Table.from_batches(batches).to_pylist() if batches else []
            wanted = scan.commit_times
            found[one["base"]] = [
                row for row in rows if wanted is None or row["_hoodie_commit_time"] in wanted
            ]
        return found

    def keys(self, **asked):
        """Return the sorted keys that a read finds."""
        slices = self.read_slices(**asked).values()
        return sorted(row["id"] for rows in slices for row in rows)


def make_row(key, partition="a", ts=1):
    """Return a row whose text no encoding makes smaller."""
    text = base64.b64encode(random.Random(key).randbytes(WIDTH)).decode()
    return (key, partition, ts, text)
