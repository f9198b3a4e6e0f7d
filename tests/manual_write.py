"""Perform a write step by step like a writer: update file groups, start new ones."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.file_slices.base_file.write_stat import build_created_stat, build_merged_stat
from reconciler.file_slices.merge.avro_schema import META_COLUMNS
from reconciler.hudi.codecs.avro_container import encode_container
from reconciler.hudi.files.names import BaseName
from reconciler.hudi.metadata.listing import read_metadata_listing
from reconciler.hudi.metadata.write_sync import NewFilesOfWrite, plan_write_sync
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.hudi.timeline.write_commit import WorkloadProfile, WriteCommit
from reconciler.transaction.metadata.rewrite_sync import find_indexed_columns
from tests.base_files import write_base_file
from tests.manual_clustering import (
    FILE_IDS,
    ManualClustering,
    add_milliseconds,
    drop_meta_fields,
    to_epoch_ms,
)

KEY = "_hoodie_record_key"


class ManualWrite(ManualClustering):
    """A write in steps.

    ``before``: names of the newest base files by partition, sorted by their first keys. ``added``,
    ``new``, ``gone``: files written, new keys and deleted keys. ``left``: replaced file groups.
    """

    def __init__(self, folder):
        super().__init__(folder)
        self.before = {
            path: sorted(names, key=lambda name, path=path: min(self.keys_of(path, name)))
            for path, names in self.replaced.items()
        }
        self.action, self.stats = Action.COMMIT, {}
        self.new, self.gone, self.left, self.count = {}, [], {}, 0
        self.kinds, self.alone, self.begun = {}, (), ()

    def begin(self, action=Action.COMMIT, operation="UPSERT"):
        """Write the requested and the inflight instant."""
        self.action, self.operation = action, operation
        plan = b""
        if action is Action.REPLACECOMMIT:
            nothing = {"operationType": None, "clusteringPlan": None, "extraMetadata": None}
            form = "HoodieRequestedReplaceMetadata" + ("" if self.version >= 8 else ".v6")
            plan = encode_container(f"{form}.avsc", nothing | {"version": 1})
        self._put(Instant(self.instant, action, State.REQUESTED), plan)
        profile = WorkloadProfile(operation=operation, inserts={}, updates={})
        inflight = Instant(self.instant, action, State.INFLIGHT)
        self._put(inflight, profile.encode(version=self.version))
        return self

    def update_group(self, path, number=0, *, put=(), gone=()):
        """Write the next base file of a file group; ``put``: new rows, ``gone``: deleted keys."""
        before = self.before[path][number]
        old = pq.read_table(self.folder / path / before)
        keys = old.column(KEY).to_pylist()
        changed = {row[KEY] for row in put}
        stays = pc.invert(pc.is_in(old.column(KEY), pa.array([*changed, *gone], pa.string())))
        new = [row[KEY] for row in put if row[KEY] not in keys]
        rows = pa.concat_tables([old.filter(stays), self._rows(put, old.schema)])
        name = f"{BaseName.parse(before).file_id}_0-0-0_{self.instant}.parquet"
        file = self._write(path, name, before, rows)
        self.new[f"{path}/{name}" if path else name] = new
        self.gone += gone
        self._add_stat(path, build_merged_stat(
            file, path, previous_file=before, inserts=len(new), updates=len(put) - len(new),
            deletes=len(gone),
        ))  # fmt: skip
        return file

    def start_group(self, path, rows, like):
        """Write a new file group; ``like``: path and name of an existing file of the table."""
        name = f"{FILE_IDS.format(self.count)}_0-0-0_{self.instant}.parquet"
        self.count += 1
        table = self._rows(rows, pq.read_schema(self.folder / like[0] / like[1]))
        folder = self.folder / path
        if not folder.exists():
            folder.mkdir(parents=True)
            mark = f"#partition metadata\ncommitTime={self.instant}\npartitionDepth=1\n"
            (folder / ".hoodie_partition_metadata").write_text(mark)
        file = self._write(path, name, like, table)
        self.new[f"{path}/{name}" if path else name] = table.column(KEY).to_pylist()
        self._add_stat(path, build_created_stat(file, path))
        return file

    def replace_partition(self, path):
        """Replace every file group of a partition."""
        names = self.before[path]
        self.left[path] = [BaseName.parse(name).file_id for name in names]
        for name in names:
            self.gone += self.keys_of(path, name)

    def changed_row(self, path, key, **changes):
        """Return a row of a partition with changes; another key makes it another row."""
        for name in self.before[path]:
            for row in pq.read_table(self.folder / path / name).to_pylist():
                if row[KEY] == key:
                    return row | changes
        raise KeyError(key)

    def writing(self):
        return NewFilesOfWrite(
            instant=self.instant,
            completion_time=add_milliseconds(self.newest_time(), 1),
            instant_ms=to_epoch_ms(self.instant),
            files_by_partition=self.added,
            columns=find_indexed_columns(self.storage, self.properties, self.timeline),
            read_keys=self._new_keys,
            read_deleted_keys=lambda: [pa.array(self.gone, pa.string())],
            arrow_types=self.kinds,
            complete_partitions=self.alone,
            new_columns=self.begun,
        )

    def _new_keys(self, path, size):
        assert (self.folder / path).stat().st_size == size
        return [pa.array(self.new[path], pa.string())]

    def plan(self):
        metadata = self.metadata()
        return plan_write_sync(
            metadata,
            read_metadata_listing(metadata),
            self.writing(),
            inflight=self.properties.metadata_partitions_inflight,
        )

    def complete(self):
        done = add_milliseconds(self.newest_time(), 2) if self.version >= 8 else None
        commit = WriteCommit(
            operation=self.operation,
            stats_by_partition=self.stats,
            replaced=self.left if self.action is Action.REPLACECOMMIT else None,
            extra={"schema": self.schema},
        )
        instant = Instant(self.instant, self.action, State.COMPLETED, done)
        self._put(instant, commit.encode(version=self.version))
        return self

    def keys_of(self, path, name):
        return pq.read_table(self.folder / path / name, columns=[KEY]).column(KEY).to_pylist()

    def _rows(self, rows, schema):
        table = pa.Table.from_pylist([*rows], schema=schema)
        count = len(table)
        for name, values in (
            ("_hoodie_commit_time", [self.instant] * count),
            ("_hoodie_commit_seqno", [f"{self.instant}_0_{n}" for n in range(count)]),
        ):
            at = META_COLUMNS.index(name)
            table = table.set_column(at, schema.field(at), pa.array(values, schema.field(at).type))
        return table

    def _write(self, path, name, like, rows):
        """Write a file in the form of another one, given by name or by path and name."""
        where = (path, like) if isinstance(like, str) else like
        footer = pq.read_metadata(self.folder / where[0] / where[1])
        text = footer.metadata[b"parquet.avro.schema"].decode()
        schema, self.schema = FileSchema.from_avro(text, name), drop_meta_fields(text)
        wanted = find_indexed_columns(self.storage, self.properties, self.timeline)
        sink = io.BytesIO()
        file = write_base_file(
            rows.to_batches(),
            sink,
            name,
            schema,
            BaseFileSettings.from_footer(footer, name),
            ranges=wanted,
        )
        self.storage.replace(f"{path}/{name}" if path else name, sink.getvalue())
        self.added.setdefault(path, []).append(file)
        return file

    def _add_stat(self, path, stat):
        self.stats.setdefault(path, []).append(stat)
