"""Write the metadata table of a new table: its properties and the listing's first deltacommit.

Readers see none of it before the data table's properties list the partition ``files``, so the
caller writes all of it first. Source: HoodieBackedTableMetadataWriter.initializeFromFilesystem,
initializeFilesPartition and the files that 0.15, 1.0 and 1.2 write.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Final

from reconciler.hudi.byte_source import ByteSource
from reconciler.hudi.codecs.avro_binary import load_schema_text
from reconciler.hudi.metadata.deltacommit import Deltacommit, FileToCreate
from reconciler.hudi.metadata.first_groups import build_listing_group
from reconciler.hudi.metadata.listing import FileSizes
from reconciler.hudi.metadata.own_timeline import ROOT, VERSION_8
from reconciler.hudi.metadata.table import MetadataTable
from reconciler.hudi.table.properties import compute_checksum, format_java_properties
from reconciler.hudi.timeline.active import Timeline

PROPERTIES: Final = f"{ROOT}/.hoodie/hoodie.properties"
#: the instant of the first deltacommit; Hudi 0.x appends an operation suffix
_FIRST: Final = {6: "00000000000000010", 8: "00000000000000000", 9: "00000000000000000"}
_META: Final = ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")
_ALWAYS: Final = {
    "hoodie.compaction.payload.class": "org.apache.hudi.metadata.HoodieMetadataPayload",
    "hoodie.datasource.write.drop.partition.columns": "false",
    "hoodie.populate.meta.fields": "false",
    "hoodie.table.base.file.format": "HFILE",
    "hoodie.table.recordkey.fields": "key",
    "hoodie.table.type": "MERGE_ON_READ",
}
_LAYOUT_1: Final = {
    "hoodie.archivelog.folder": "archived",
    "hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    "hoodie.table.keygenerator.class": "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator",
    "hoodie.timeline.layout.version": "1",
}
_LAYOUT_2: Final = {
    "hoodie.archivelog.folder": "history",
    "hoodie.record.merge.mode": "CUSTOM",
    "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
    "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
    "hoodie.timeline.history.path": "history",
    "hoodie.timeline.layout.version": "2",
    "hoodie.timeline.path": "timeline",
}


def build_metadata_properties(table_name: str, version: int) -> bytes:
    """Return the bytes of the metadata table's own ``hoodie.properties``."""
    properties = {
        **_ALWAYS,
        **(_LAYOUT_2 if version >= VERSION_8 else _LAYOUT_1),
        "hoodie.table.name": f"{table_name}_metadata",
        "hoodie.table.version": str(version),
    }
    if version >= VERSION_8:
        properties["hoodie.table.initial.version"] = str(version)
    properties["hoodie.table.checksum"] = str(compute_checksum(properties))
    return format_java_properties(properties)


@functools.cache
def load_record_schema(version: int) -> str:
    """Return the Avro schema of the metadata table's records as JSON, Hudi's columns included."""
    document = json.loads(load_schema_text(f"HoodieMetadataRecord.v{version}.avsc"))
    meta = [
        {"name": f"_hoodie_{name}", "type": ["null", "string"], "doc": "", "default": None}
        for name in _META
    ]
    document["fields"] = [*meta, *document["fields"]]
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def build_first_listing(
    source: ByteSource,
    *,
    version: int,
    data: Timeline,
    completion_time: str,
    partitions: Mapping[str, FileSizes],
) -> tuple[FileToCreate, ...]:
    """Return the files of the listing's first deltacommit, in the order to create them.

    ``completion_time``: used from version 8 on. ``partitions``: path ("" in a table without
    partitions) -> names and sizes of its data files; may be empty.
    """
    schema = load_record_schema(version)
    deltacommit = Deltacommit(
        table=MetadataTable(source, version, Timeline.from_files([]), data),
        instant=_FIRST[version],
        completion_time=completion_time,
        schema=schema,
    )
    return deltacommit.build_first_files([build_listing_group(partitions, schema)], {})
