"""Create a valid table of any size in seconds: partitions x groups x versions base files.

Table version 6, 8 or 9, copy-on-write, UTC, not hive-style, one commit a version; every commit
carries its write statistics as Hudi's do. Base files are links to one small Parquet file, so that a
million of them cost neither inodes nor bytes. Real Hudi plans cleans on it.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

_SCHEMAS = Path(__file__).parents[2] / "reconciler" / "hudi" / "schemas"
_LINKS = 60_000  # ext4 stops at 65 000 links of one file
_LAYOUT_2_FROM = 8
_PROPERTIES = {
    "hoodie.table.name": "t",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.checksum": str(zlib.crc32(b".t")),
    "hoodie.table.partition.fields": "p",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.base.file.format": "PARQUET",
    "hoodie.table.cdc.enabled": "false",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.populate.meta.fields": "true",
    "hoodie.partition.metafile.use.base.format": "false",
    "hoodie.datasource.write.hive_style_partitioning": "false",
    "hoodie.datasource.write.partitionpath.urlencode": "false",
    "hoodie.datasource.write.drop.partition.columns": "false",
}
_OF_LAYOUT_1 = {
    "hoodie.table.precombine.field": "ts",
    "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
    "hoodie.timeline.layout.version": "1",
    "hoodie.archivelog.folder": "archived",
}
_OF_LAYOUT_2 = {
    "hoodie.table.format": "native",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.table.keygenerator.type": "SIMPLE",
    "hoodie.table.multiple.base.file.formats.enable": "false",
    "hoodie.timeline.layout.version": "2",
    "hoodie.timeline.path": "timeline",
    "hoodie.timeline.history.path": "history",
    "hoodie.archivelog.folder": "history",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
}
_SCHEMA = {
    "type": "record",
    "name": "t_record",
    "namespace": "hoodie.t",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "p", "type": ["null", "string"], "default": None},
        {"name": "ts", "type": "long"},
    ],
}


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The size of a table; ``first``: when the first commit was requested."""

    partitions: int
    groups: int
    versions: int
    first: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    table_version: int = 9

    @property
    def has_layout_2(self) -> bool:
        return self.table_version >= _LAYOUT_2_FROM

    @property
    def timeline_folder(self) -> str:
        return ".hoodie/timeline" if self.has_layout_2 else ".hoodie"

    @property
    def properties(self) -> dict[str, str]:
        version = {"hoodie.table.version": str(self.table_version)}
        if not self.has_layout_2:
            return _PROPERTIES | _OF_LAYOUT_1 | version
        initial = {"hoodie.table.initial.version": str(self.table_version)}
        return _PROPERTIES | _OF_LAYOUT_2 | version | initial

    @property
    def files(self) -> int:
        return self.partitions * self.groups * self.versions

    @cached_property
    def instants(self) -> list[str]:
        return [self.stamp(timedelta(minutes=5 * n)) for n in range(self.versions)]

    @cached_property
    def completions(self) -> list[str]:
        return [self.stamp(timedelta(minutes=5 * n, seconds=30)) for n in range(self.versions)]

    def stamp(self, after: timedelta) -> str:
        """Return the instant time of so long after the first commit."""
        moment = self.first + after
        return moment.strftime("%Y%m%d%H%M%S") + f"{moment.microsecond // 1000:03d}"

    def partition(self, number: int) -> str:
        return f"p{number:06d}"

    def list_names(self, partition: int) -> list[str]:
        """Return the names of all files of a partition."""
        groups, versions = range(self.groups), range(self.versions)
        return [self.name(partition, group, version) for group in groups for version in versions]

    def name(self, partition: int, group: int, version: int) -> str:
        """Return a file's name; a group has the same id in every version."""
        number = partition * self.groups + group
        return f"{_file_id(number)}_{group}-{version}-{number}_{self.instants[version]}.parquet"


def make_table(
    root: Path,
    shape: Shape,
    *,
    base: Path | None = None,
    schema: Mapping[str, object] = _SCHEMA,
) -> None:
    """Write the table; an older one at the path goes.

    ``base``: what every base file is a copy of, a file of one row if it is None; ``schema``: of its
    rows.
    """
    shutil.rmtree(root, ignore_errors=True)
    timeline = root / shape.timeline_folder
    (timeline / ("history" if shape.has_layout_2 else "archived")).mkdir(parents=True)
    (root / ".hoodie" / ".temp").mkdir()
    arguments = "".join(f"{key}={value}\n" for key, value in shape.properties.items())
    (root / ".hoodie" / "hoodie.properties").write_text(arguments)
    templates = _templates(root / ".hoodie" / ".temp", shape.files, base)
    size = 0
    for partition in range(shape.partitions):
        folder = root / shape.partition(partition)
        folder.mkdir()
        metafile = f"#partition metadata\ncommitTime={shape.instants[0]}\npartitionDepth=1\n"
        (folder / ".hoodie_partition_metadata").write_text(metafile)
        for group in range(shape.groups):
            for version in range(shape.versions):
                template = next(templates)
                size = size or template.stat().st_size
                os.link(template, folder / shape.name(partition, group, version))
    for version in range(shape.versions):
        _commit(timeline, shape, version, size, schema)


def _templates(folder: Path, files: int, base: Path | None) -> Iterator[Path]:
    """Yield, for each file of the table, the file to link to."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    rows = pa.table({"id": pa.array([1], pa.int64()), "p": ["p"], "ts": pa.array([1], pa.int64())})
    for number in range(files):
        if number % _LINKS == 0:
            template = folder / f"template-{number}"
            if base is None:
                pq.write_table(rows, template)
            else:
                shutil.copyfile(base, template)
        yield template


def _commit(
    timeline: Path, shape: Shape, version: int, size: int, row: Mapping[str, object]
) -> None:
    instant, completed = shape.instants[version], shape.completions[version]
    record = {
        "partitionToWriteStats": {},
        "compacted": False,
        "extraMetadata": {},
        "version": 1,
        "operationType": "UPSERT",
    }
    end = f"_{completed}" if shape.has_layout_2 else ""
    (timeline / f"{instant}.commit.requested").touch()
    _write_record(timeline / f"{instant}.inflight", shape, record)
    record["partitionToWriteStats"] = {
        shape.partition(partition): [
            _stat(shape, partition, group, version, size) for group in range(shape.groups)
        ]
        for partition in range(shape.partitions)
    }
    record["extraMetadata"] = {"schema": json.dumps(row)}
    _write_record(timeline / f"{instant}{end}.commit", shape, record)


def _write_record(path: Path, shape: Shape, record: dict[str, object]) -> None:
    """Write a commit's metadata: Avro, and JSON before layout 2."""
    import fastavro  # noqa: PLC0415

    if not shape.has_layout_2:
        known = {key: value for key, value in record.items() if key != "version"}
        path.write_text(json.dumps(known, indent=2))
        return
    schema = json.loads((_SCHEMAS / "HoodieCommitMetadata.avsc").read_text())
    with path.open("wb") as out:
        fastavro.writer(out, fastavro.parse_schema(schema), [record])


def _stat(shape: Shape, partition: int, group: int, version: int, size: int) -> dict[str, object]:
    path = shape.partition(partition)
    before = version - 1
    return {
        "fileId": _file_id(partition * shape.groups + group),
        "path": f"{path}/{shape.name(partition, group, version)}",
        "prevCommit": shape.instants[before] if version else "null",
        "prevBaseFile": shape.name(partition, group, before) if version else None,
        "numWrites": 1,
        "numUpdateWrites": 1 if version else 0,
        "numInserts": 0 if version else 1,
        "totalWriteBytes": size,
        "fileSizeInBytes": size,
        "partitionPath": path,
    }


def _file_id(number: int) -> str:
    return f"{uuid.UUID(int=(number * 0x9E3779B97F4A7C15F39CC0605CEDC835) % (1 << 128))}-0"
