"""Create a valid table of any size in seconds: partitions x groups x versions base files.

Version 9, copy-on-write, UTC, not hive-style, one commit a version; every commit carries its write
statistics as Hudi's do. Base files are links to one small Parquet file, so that a million of them
cost inodes and not bytes. Real Hudi plans cleans on it.
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
_PROPERTIES = {
    "hoodie.table.name": "t",
    "hoodie.table.version": "9",
    "hoodie.table.initial.version": "9",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.format": "native",
    "hoodie.table.checksum": str(zlib.crc32(b".t")),
    "hoodie.table.partition.fields": "p",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.table.keygenerator.type": "SIMPLE",
    "hoodie.table.base.file.format": "PARQUET",
    "hoodie.table.multiple.base.file.formats.enable": "false",
    "hoodie.table.cdc.enabled": "false",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.timeline.layout.version": "2",
    "hoodie.timeline.path": "timeline",
    "hoodie.timeline.history.path": "history",
    "hoodie.archivelog.folder": "history",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
    "hoodie.populate.meta.fields": "true",
    "hoodie.partition.metafile.use.base.format": "false",
    "hoodie.datasource.write.hive_style_partitioning": "false",
    "hoodie.datasource.write.partitionpath.urlencode": "false",
    "hoodie.datasource.write.drop.partition.columns": "false",
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

    @property
    def files(self) -> int:
        return self.partitions * self.groups * self.versions

    @cached_property
    def instants(self) -> list[str]:
        return [_stamp(self.first + timedelta(minutes=5 * n)) for n in range(self.versions)]

    @cached_property
    def completions(self) -> list[str]:
        later = self.first + timedelta(seconds=30)
        return [_stamp(later + timedelta(minutes=5 * n)) for n in range(self.versions)]

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
    timeline = root / ".hoodie" / "timeline"
    (timeline / "history").mkdir(parents=True)
    (root / ".hoodie" / ".temp").mkdir()
    arguments = "".join(f"{key}={value}\n" for key, value in _PROPERTIES.items())
    (root / ".hoodie" / "hoodie.properties").write_text(arguments)
    templates = _templates(root / ".hoodie" / ".temp", shape.files, base)
    size = 0
    for partition in range(shape.partitions):
        folder = root / _partition(partition)
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
    import fastavro  # noqa: PLC0415

    instant, completed = shape.instants[version], shape.completions[version]
    schema = json.loads((_SCHEMAS / "HoodieCommitMetadata.avsc").read_text())
    parsed = fastavro.parse_schema(schema)
    record = {
        "partitionToWriteStats": {},
        "compacted": False,
        "extraMetadata": {},
        "version": 1,
        "operationType": "UPSERT",
    }
    (timeline / f"{instant}.commit.requested").touch()
    with (timeline / f"{instant}.inflight").open("wb") as out:
        fastavro.writer(out, parsed, [record])
    record["partitionToWriteStats"] = {
        _partition(partition): [
            _stat(shape, partition, group, version, size) for group in range(shape.groups)
        ]
        for partition in range(shape.partitions)
    }
    record["extraMetadata"] = {"schema": json.dumps(row)}
    with (timeline / f"{instant}_{completed}.commit").open("wb") as out:
        fastavro.writer(out, parsed, [record])


def _stat(shape: Shape, partition: int, group: int, version: int, size: int) -> dict[str, object]:
    path = _partition(partition)
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


def _partition(number: int) -> str:
    return f"p{number:06d}"


def _file_id(number: int) -> str:
    return f"{uuid.UUID(int=(number * 0x9E3779B97F4A7C15F39CC0605CEDC835) % (1 << 128))}-0"


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y%m%d%H%M%S") + f"{moment.microsecond // 1000:03d}"
