"""Write ``hoodie.properties`` of a new table as the writers of its version do.

Times are in UTC unless the spec gives another zone for the writers. In that case the timeline is
LOCAL, which is Hudi's default, and the property does not name the zone. Source:
HoodieTableConfig.create, HoodieTableMetaClient.TableBuilder (0.15, 1.0, 1.2) and the files they
write.
"""

from __future__ import annotations

from typing import Final, Literal

from reconciler.hudi.table.properties import compute_checksum, format_java_properties
from reconciler.lazy_dataclass import dataclass

TableType = Literal["COPY_ON_WRITE", "MERGE_ON_READ"]

_V8: Final = 8
_NINE: Final = 9
_DEFAULT_PAYLOAD: Final = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
_LATEST_PAYLOAD: Final = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
_EVENT_STRATEGY: Final = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
_COMMIT_STRATEGY: Final = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
#: key generator classes, which versions before 8 name instead of the kind
_GENERATORS: Final = {
    "SIMPLE": "org.apache.hudi.keygen.SimpleKeyGenerator",
    "COMPLEX": "org.apache.hudi.keygen.ComplexKeyGenerator",
    "NON_PARTITION": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
}
#: the default properties that every version writes
_ALWAYS: Final = {
    "hoodie.datasource.write.drop.partition.columns": "false",
    "hoodie.partition.metafile.use.base.format": "false",
    "hoodie.populate.meta.fields": "true",
    "hoodie.table.base.file.format": "PARQUET",
    "hoodie.table.cdc.enabled": "false",
    "hoodie.table.metadata.partitions": "",
    "hoodie.table.metadata.partitions.inflight": "",
}
_BOOLEAN: Final = {True: "true", False: "false"}
_LAYOUT_1: Final = {
    "hoodie.archivelog.folder": "archived",
    "hoodie.timeline.layout.version": "1",
}
_LAYOUT_2: Final = {
    "hoodie.archivelog.folder": "history",
    "hoodie.table.multiple.base.file.formats.enable": "false",
    "hoodie.timeline.history.path": "history",
    "hoodie.timeline.layout.version": "2",
    "hoodie.timeline.path": "timeline",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewHudiTable:
    """A table to create. ``version``: 6, 8 or 9.

    ``ordering``: the event-time columns; without any, the later write wins. ``schema``: Avro JSON
    of the table's own columns, if already known. ``is_utc``: whether instants are in UTC.
    ``metadata_partitions``: partitions of its metadata table, which exist before the properties
    name them.
    """

    name: str
    database: str = ""
    type: TableType = "COPY_ON_WRITE"
    version: int = 9
    record_keys: tuple[str, ...]
    partition_fields: tuple[str, ...] = ()
    ordering: tuple[str, ...] = ()
    hive_style: bool = True
    url_encode: bool = False
    schema: str | None = None
    is_utc: bool = True
    metadata_partitions: tuple[str, ...] = ()

    @property
    def key_generator(self) -> str:
        """The kind of key generator that makes its record keys and partition paths."""
        if not self.partition_fields:
            return "NON_PARTITION"
        is_simple = len(self.record_keys) == 1 and len(self.partition_fields) == 1
        return "SIMPLE" if is_simple else "COMPLEX"

    @property
    def properties_bytes(self) -> bytes:
        """The bytes of its ``hoodie.properties``."""
        entries = {
            **_ALWAYS,
            **(_LAYOUT_2 if self.version >= _V8 else _LAYOUT_1),
            **self._merge_properties(),
            **self._key_generator_properties(),
            "hoodie.table.name": self.name,
            "hoodie.table.type": self.type,
            "hoodie.table.version": str(self.version),
            "hoodie.table.recordkey.fields": ",".join(self.record_keys),
            "hoodie.table.partition.fields": ",".join(self.partition_fields),
            "hoodie.datasource.write.hive_style_partitioning": _BOOLEAN[self.hive_style],
            "hoodie.datasource.write.partitionpath.urlencode": _BOOLEAN[self.url_encode],
            "hoodie.table.timeline.timezone": "UTC" if self.is_utc else "LOCAL",
            "hoodie.table.metadata.partitions": ",".join(sorted(self.metadata_partitions)),
        }
        if self.database:
            entries["hoodie.database.name"] = self.database
        if self.schema is not None:
            entries["hoodie.table.create.schema"] = self.schema
        if self.version >= _V8:
            entries["hoodie.table.initial.version"] = str(self.version)
        if self.version >= _NINE:
            entries["hoodie.table.format"] = "native"
        entries["hoodie.table.checksum"] = str(compute_checksum(entries))
        return format_java_properties(entries)

    def _key_generator_properties(self) -> dict[str, str]:
        if self.version >= _V8:
            return {"hoodie.table.keygenerator.type": self.key_generator}
        return {"hoodie.table.keygenerator.class": _GENERATORS[self.key_generator]}

    def _merge_properties(self) -> dict[str, str]:
        """Return how records of one key merge: by event time, or the later write wins."""
        payload = _DEFAULT_PAYLOAD if self.ordering else _LATEST_PAYLOAD
        strategy = _EVENT_STRATEGY if self.ordering else _COMMIT_STRATEGY
        mode = "EVENT_TIME_ORDERING" if self.ordering else "COMMIT_TIME_ORDERING"
        columns = ",".join(self.ordering)
        if self.version >= _NINE:
            entries = {"hoodie.record.merge.mode": mode}
            return entries | ({"hoodie.table.ordering.fields": columns} if columns else {})
        entries = {"hoodie.compaction.payload.class": payload}
        if columns:
            entries["hoodie.table.precombine.field"] = columns
        if self.version >= _V8:
            entries |= {
                "hoodie.record.merge.mode": mode,
                "hoodie.record.merge.strategy.id": strategy,
            }
        return entries
