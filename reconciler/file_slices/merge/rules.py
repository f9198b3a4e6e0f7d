"""Find a table's rules for merging records in ``hoodie.properties``, for every table version.

An unknown rule is refused by name, but only when a slice with log files is read; without log files
there is nothing to merge. Source: HoodieTableConfig (inferMergingConfigsForPreV9Table,
inferMergingConfigsForV9TableCreation), HoodieRecordPayload, DeleteContext.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.table.properties import TableProperties
from reconciler.lazy_dataclass import dataclass

_RECORD_KEY: Final = "_hoodie_record_key"
_EVENT: Final = "EVENT_TIME_ORDERING"
_COMMIT: Final = "COMMIT_TIME_ORDERING"
_MODES: Final = {
    "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload": _COMMIT,
    "org.apache.hudi.common.model.DefaultHoodieRecordPayload": _EVENT,
    "org.apache.hudi.common.model.EventTimeAvroPayload": _EVENT,
    # merge strategies, used without a payload class
    "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5": _EVENT,
    "ce9acb64-bde0-424c-9b91-f6ebba25356d": _COMMIT,
}
#: the first table version where only the merge mode decides, not the payload class
_BY_MODE: Final = 9
_PAYLOADS: Final = ("hoodie.compaction.payload.class", "hoodie.datasource.write.payload.class")
_STRATEGIES: Final = ("hoodie.record.merge.strategy.id", "hoodie.compaction.record.merger.strategy")
_PREFIX: Final = "hoodie.record.merge.property."
#: a property that Hudi 1.x writes for every table version and 0.x never writes
_MADE_BY_1: Final = "hoodie.timeline.path"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRules:
    """The merge rules of a table. ``key_columns``: the record key column, or its parts.

    ``ordering``: the event-time columns, most significant first, with dots into structs; empty: the
    later write wins. ``delete_marker``: a column and the text that makes a record a deletion.
    ``has_named_keys``: joined keys carry their column names (Hudi's complex keys). ``refusal``: why
    records of this table cannot be merged, empty when they can. ``overwrites``: log records replace
    base file records whatever their event times. ``precombines``: log records merge with each other
    as in Hudi 0.x.
    """

    key_columns: tuple[str, ...] = (_RECORD_KEY,)
    ordering: tuple[str, ...] = ()
    delete_marker: tuple[str, str] | None = None
    has_named_keys: bool = False
    refusal: str = ""
    overwrites: bool = False
    precombines: bool = False

    @classmethod
    def from_properties(
        cls, properties: TableProperties, *, precombines: bool | None = None
    ) -> Self:
        """Return a table's rules as readers of the Hudi that made it follow them.

        ``precombines``: merge log records as Hudi 0.x does (True) or as 1.x does (False); None: as
        the table says. They differ if log records of one key are not in the order of their event
        times; see ``precombine``.
        """
        raw = properties.raw
        if precombines is None:
            precombines = _was_made_by_hudi_0(properties)
        mode, why = _find_merge_mode(raw, properties)
        marker = _find_delete_marker(raw)
        keys: tuple[str, ...] = (_RECORD_KEY,)
        is_named = False
        if raw.get("hoodie.populate.meta.fields", "true").lower() == "false":
            keys, is_named = properties.record_keys, len(properties.record_keys) > 1
            why = why or _check_virtual_keys(raw, keys)
        update = raw.get("hoodie.table.partial.update.mode")
        if update and update != "NONE":
            why = f"partial updates ({update}) are not supported"
        if marker and not all(marker):
            why = "only one of the payload's delete field and delete marker is configured"
        return cls(
            key_columns=keys,
            ordering=properties.ordering_fields if mode == _EVENT or precombines else (),
            delete_marker=marker if marker and all(marker) else None,
            has_named_keys=is_named,
            overwrites=mode != _EVENT,
            precombines=precombines,
            refusal=why and f"table {properties.table_name}: {why}",
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The top-level columns that decide how a record merges."""
        marker = self.delete_marker[:1] if self.delete_marker else ()
        names = (*self.key_columns, *self.ordering, *marker, IS_DELETED, OPERATION)
        return tuple(dict.fromkeys(name.partition(".")[0] for name in names))


def _was_made_by_hudi_0(properties: TableProperties) -> bool:
    """Return whether Hudi 0.x made the table and so merges it.

    The merged log records are not on disk. Each version's compaction writes what its own readers
    read, and readers of 0.x and 1.x differ. Hudi 1.x upgrades a table before it writes, unless it
    is configured to keep version 6 for readers of 0.x. A version 6 table that 1.x made names its
    timeline path.
    """
    return properties.table_version < LOGS_BY_COMPLETION and _MADE_BY_1 not in properties.raw


#: a record with true in this column is a deletion
IS_DELETED: Final = "_hoodie_is_deleted"
#: a change stream's operation: D and -U are deletions
OPERATION: Final = "_hoodie_operation"


def _find_merge_mode(raw: Mapping[str, str], properties: TableProperties) -> tuple[str, str]:
    """Return the merge mode, or why there is none."""
    mode = raw.get("hoodie.record.merge.mode", "").upper()
    payload = next((raw[key] for key in _PAYLOADS if raw.get(key)), "")
    strategy = next((raw[key] for key in _STRATEGIES if raw.get(key)), "")
    if properties.table_version >= _BY_MODE or (mode and not payload):
        mode = mode or (_EVENT if properties.ordering_fields else _COMMIT)
        source = f"record merge mode {mode}"
    elif payload or strategy:
        source = f"payload class {payload}" if payload else f"record merge strategy {strategy}"
        payload_mode = _MODES.get(payload or strategy, "")
        if mode and payload_mode and mode != payload_mode:
            return "", f"{source} contradicts record merge mode {mode}"
        mode = payload_mode
    else:
        mode, source = _EVENT if properties.ordering_fields else _COMMIT, ""
    if mode in (_EVENT, _COMMIT):
        return mode, ""
    return "", f"{source} is not supported"


def _find_delete_marker(raw: Mapping[str, str]) -> tuple[str, str] | None:
    keys = ("hoodie.payload.delete.field", "hoodie.payload.delete.marker")
    field, text = (raw.get(_PREFIX + key) or raw.get(key) or "" for key in keys)
    return (field, text) if field or text else None


def _check_virtual_keys(raw: Mapping[str, str], keys: tuple[str, ...]) -> str:
    """Return why keys that are not stored cannot be built from columns; empty if they can."""
    if not keys:
        return "its records store no keys and hoodie.table.recordkey.fields is empty"
    generator = raw.get("hoodie.table.keygenerator.class", "").rpartition(".")[2]
    kind = generator or raw.get("hoodie.table.keygenerator.type", "")
    if len(keys) == 1 and kind.upper().startswith("COMPLEX"):
        return f"records store no keys and {kind} has one field, which writers spell differently"
    return ""
