"""Perform a clustering step by step like an apply, with one new file per partition."""

from __future__ import annotations

import io
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.file_slices.base_file.write_stat import build_created_stat
from reconciler.hudi.files.names import BaseName
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.metadata.table import open_metadata_table
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.hudi.timeline.plans import (
    ClusteringPlan,
    ClusteringPlanGroup,
    InputSlice,
)
from reconciler.hudi.timeline.write_commit import WriteCommit
from reconciler.storage.open import open_storage
from reconciler.transaction.metadata.live_partitions import drop_partitions
from reconciler.transaction.metadata.rewrite_sync import find_indexed_columns, prepare_rewrite_sync
from reconciler.transaction.metadata.sync import SyncRequest, apply_sync
from tests.base_files import write_base_file

FILE_IDS = "c0ffee{:02}-1234-4abc-9def-0123456789ab-0"


def add_milliseconds(instant, milliseconds):
    form = "%Y%m%d%H%M%S"
    time = datetime.strptime(instant[:14], form) + timedelta(milliseconds=int(instant[14:17]))  # noqa: DTZ007
    time += timedelta(milliseconds=milliseconds)
    return time.strftime(form) + f"{time.microsecond // 1000:03d}"


def to_epoch_ms(instant):
    moment = datetime.strptime(f"{instant}000+0000", "%Y%m%d%H%M%S%f%z")
    return round(moment.timestamp() * 1000)


def drop_meta_fields(text):
    """Return an Avro schema without Hudi's meta columns."""
    schema = json.loads(text)
    schema["fields"] = [f for f in schema["fields"] if not f["name"].startswith("_hoodie_")]
    return json.dumps(schema)


class ManualClustering:
    """A clustering in steps; ``replaced``: names of the base files to rewrite, by partition."""

    def __init__(self, folder, partitions=None):
        self.folder = Path(folder)
        self.storage = open_storage(str(folder))
        self.properties = load_properties(self.storage)
        self.version = self.properties.table_version
        self.replaced = {
            path: names
            for path, names in self._newest().items()
            if partitions is None or path in partitions
        }
        self.instant = add_milliseconds(self.newest_time(), 1)
        self.added = {}
        self.schema = ""

    @property
    def timeline(self):
        return load_timeline(self.storage, self.properties)

    def metadata(self):
        self.properties = load_properties(self.storage)
        return open_metadata_table(
            self.storage,
            version=self.version,
            data=self.timeline,
            live_partitions=self.properties.metadata_partitions,
        )

    def newest_time(self):
        """Return the greatest time on the timelines of data and metadata."""
        own = self.folder / ".hoodie/metadata/.hoodie"
        folders = [self.folder / self.properties.timeline_folder]
        folders.append(own / "timeline" if self.version >= 8 else own)
        names = [entry.name for folder in folders for entry in folder.glob("[0-9]*")]
        return max(time for name in names for time in re.findall(r"\d{17}", name))

    def begin(self):
        """Write the requested and the inflight instant."""
        action = Action.CLUSTERING if self.version >= 8 else Action.REPLACECOMMIT
        groups = [
            ClusteringPlanGroup(
                slices=tuple(
                    InputSlice(
                        partition=path,
                        file_id=BaseName.parse(name).file_id,
                        base_file=name,
                        log_files=(),
                    )
                    for name in names
                ),
                output_count=1,
            )
            for path, names in self.replaced.items()
        ]
        plan = ClusteringPlan(groups=tuple(groups)).encode(str(self.folder), version=self.version)
        self._put(Instant(self.instant, action, State.REQUESTED), plan)
        self._put(Instant(self.instant, action, State.INFLIGHT), b"")
        return self

    def write(self, *, bloom=True, columns=None):
        """Write the new files, rows of the last file first; ``columns``: those with ranges."""
        wanted = find_indexed_columns(self.storage, self.properties, self.timeline)
        for number, (path, names) in enumerate(self.replaced.items()):
            files = [pq.ParquetFile(self.folder / path / name) for name in reversed(names)]
            rows = pa.concat_tables([file.read() for file in files])
            footer, name = files[0].metadata, self._name(number)
            form = BaseFileSettings.from_footer(footer, name)
            if not bloom:
                form = BaseFileSettings(codec=form.codec, bloom=None)
            text = footer.metadata[b"parquet.avro.schema"].decode()
            schema, self.schema = FileSchema.from_avro(text, name), drop_meta_fields(text)
            sink = io.BytesIO()
            made = write_base_file(
                rows.to_batches(), sink, name, schema, form, ranges=columns or wanted
            )
            self.storage.replace(f"{path}/{name}" if path else name, sink.getvalue())
            self.added[path] = [made]
        return self

    def plan(self):
        request = SyncRequest(
            storage=self.storage,
            properties=load_properties(self.storage),
            timeline=self.timeline,
            instant=self.instant,
            zone=UTC,
            choose_time=lambda: add_milliseconds(self.newest_time(), 1),
        )
        return prepare_rewrite_sync(request, self.added)

    def sync(self, planned=None):
        """Drop index partitions that cannot be kept, and sync the others."""
        planned = planned or self.plan()
        if planned.dropped_partitions:
            drop_partitions(self.storage, load_properties(self.storage), planned.dropped_partitions)
        apply_sync(self.storage, planned.sync)
        return planned

    def complete(self):
        done = add_milliseconds(self.newest_time(), 2) if self.version >= 8 else None
        commit = WriteCommit(
            operation="CLUSTER",
            stats_by_partition={
                path: [build_created_stat(file, path) for file in files]
                for path, files in self.added.items()
            },
            replaced={
                path: [BaseName.parse(name).file_id for name in names]
                for path, names in self.replaced.items()
            },
            extra={"schema": self.schema},
        )
        instant = Instant(self.instant, Action.REPLACECOMMIT, State.COMPLETED, done)
        self._put(instant, commit.encode(version=self.version))
        return self

    def _put(self, instant, data):
        path = f"{self.properties.timeline_folder}/{instant.file_name}"
        self.storage.create(path, data)

    def _name(self, number):
        return f"{FILE_IDS.format(number)}_0-0-0_{self.instant}.parquet"

    def _newest(self):
        found = {}
        for path in sorted(self.folder.rglob("*.parquet")):
            name = BaseName.parse(path.name)
            if ".hoodie" not in path.parts and name:
                of = found.setdefault(str(path.parent.relative_to(self.folder)), {})
                known = of.get(name.file_id)
                if known is None or BaseName.parse(known).instant < name.instant:
                    of[name.file_id] = path.name
        return {"" if path == "." else path: [*of.values()] for path, of in found.items()}
