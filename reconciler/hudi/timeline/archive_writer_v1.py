"""Write the archived timeline of layout 1: a log file with a record for each state of an instant.

A record has the content of the state's file, reduced to the fields that Hudi's record knows. The
times of states are modification times of their files in the zone of the timeline.

Source: HoodieTimelineArchiver (archive, writeToFile), MetadataConversionUtils.createMetaWrapper,
convertCommitMetadata and ReplaceArchivalHelper of Hudi 0.15. Hudi 1.x writes the same records to
such tables, with more statistics, and without the entry for rolling statistics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from itertools import islice
from typing import Any, Final

from reconciler.hudi.codecs.avro_binary import (
    decoding,
    encode_record,
    load_schema_text,
    parse_schema,
    require,
)
from reconciler.hudi.codecs.avro_container import read_strings, read_text_map
from reconciler.hudi.codecs.log_blocks import (
    BlockType,
    HeaderKey,
    encode_avro_records,
    encode_block,
)
from reconciler.hudi.timeline.archivable_instant import ArchivableInstant
from reconciler.hudi.timeline.instant import Action, State

_SCHEMA: Final = "HoodieArchivedMetaEntry.v6.avsc"
#: records of a block (hoodie.commits.archival.batch)
_BATCH: Final = 10
#: an entry that Hudi empties in every archived commit
_ROLLING: Final = "ROLLING_STAT"
#: the field that holds a record; an inflight commit of a replacement has a field of its own
_FIELDS: Final = {
    "HoodieCommitMetadata": "hoodieCommitMetadata",
    "HoodieReplaceCommitMetadata": "hoodieReplaceCommitMetadata",
    "HoodieRequestedReplaceMetadata": "hoodieRequestedReplaceMetadata",
    "HoodieCompactionPlan": "hoodieCompactionPlan",
    "HoodieCleanerPlan": "hoodieCleanerPlan",
    "HoodieCleanMetadata": "hoodieCleanMetadata",
    "HoodieRollbackMetadata": "hoodieRollbackMetadata",
}
_INFLIGHT_REPLACE: Final = "HoodieInflightReplaceMetadata"
_COMMITS: Final = frozenset({"HoodieCommitMetadata", "HoodieReplaceCommitMetadata"})
_TEXTS: Final = ("fileId", "path", "prevCommit", "partitionPath")
#: counts that Hudi's commits never have, though its archive could hold them
_NULLS: Final = ("totalLogFiles",)
_COUNTS: Final = (
    "numWrites",
    "numDeletes",
    "numUpdateWrites",
    "totalWriteBytes",
    "totalWriteErrors",
    "totalLogRecords",
    "totalUpdatedRecordsCompacted",
    "numInserts",
    "totalLogBlocks",
    "totalCorruptLogBlock",
    "totalRollbackBlocks",
    "fileSizeInBytes",
)


def encode_archive_file(instants: Iterable[ArchivableInstant], *, zone: tzinfo = UTC) -> bytes:
    """Encode a new file of the archive with the instants, ordered by requested time.

    ``zone``: the zone of the timeline. Raises FormatError naming an instant's file whose bytes
    cannot be decoded.
    """
    ordered = sorted(instants, key=lambda instant: instant.requested)
    records = (record for instant in ordered for record in _encode_states(instant, zone))
    header = [(HeaderKey.SCHEMA, load_schema_text(_SCHEMA))]
    blocks = (
        encode_block(BlockType.AVRO_DATA, header, encode_avro_records(batch))
        for batch in iter(lambda: tuple(islice(records, _BATCH)), ())
    )
    return b"".join(blocks)


def _encode_states(instant: ArchivableInstant, zone: tzinfo) -> Iterator[bytes]:
    schema = parse_schema(load_schema_text(_SCHEMA), "")
    for state in State:
        if instant.get_bytes(state) is None:
            continue
        entry = {
            "commitTime": instant.requested,
            "actionType": instant.get_action(state).value,
            "actionState": state.value,
            "stateTransitionTime": _format_time(instant.get_modified_ms(state), zone),
            "version": None,
        }
        path = instant.make_path(state, with_completion=False)
        content = _build_content(instant, state)
        with decoding(path, "its content"):
            yield encode_record(entry | content, schema)


def _build_content(instant: ArchivableInstant, state: State) -> dict[str, Any]:
    """Return the field with the content of a state, empty if Hudi archives none."""
    decoded = instant.decode(state, with_completion=False)
    if decoded is None:
        return _describe_empty_file(instant, state)
    name, record = decoded
    if name not in _FIELDS:  # Hudi does not archive the plan of a rollback
        return {}
    field = _FIELDS[name]
    if name not in _COMMITS:
        return {field: record}
    if state is State.INFLIGHT and instant.action is Action.REPLACECOMMIT:
        field = _INFLIGHT_REPLACE
    path = instant.make_path(state, with_completion=False)
    with decoding(path, name):
        return {field: _reduce_commit(record, has_groups=name == "HoodieReplaceCommitMetadata")}


def _describe_empty_file(instant: ArchivableInstant, state: State) -> dict[str, Any]:
    """Return what an empty file of a pending write decodes to in Hudi 0.15: an empty commit."""
    is_write = instant.get_action(state) in (Action.COMMIT, Action.DELTACOMMIT)
    if state is State.COMPLETED or not is_write:
        return {}
    return {_FIELDS["HoodieCommitMetadata"]: _reduce_commit({}, has_groups=False)}


def _reduce_commit(record: Mapping[str, Any], *, has_groups: bool) -> dict[str, Any]:
    """Return a commit with the fields of the archive; raises ValueError for other types."""
    stats = _read_map(record, "partitionToWriteStats")
    operation = record.get("operationType") or "UNKNOWN"
    reduced = {
        "partitionToWriteStats": {
            str(partition): [_reduce_stat(stat) for stat in written or ()]
            for partition, written in stats.items()
        },
        "extraMetadata": read_text_map(record.get("extraMetadata")) | {_ROLLING: ""},
        "operationType": "COMPACT" if record.get("compacted") else operation,
        "version": None,
    }
    if has_groups:
        groups = _read_map(record, "partitionToReplaceFileIds")
        replaced = {str(partition): [*read_strings(ids)] for partition, ids in groups.items()}
        return reduced | {"partitionToReplaceFileIds": replaced}
    return reduced


def _read_map(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = record.get(name)
    require(value is None or isinstance(value, Mapping), f"{name} is not a map")
    return value or {}


def _reduce_stat(stat: Mapping[str, Any]) -> dict[str, Any]:
    """Return a write statistic; a text that is missing is null, and a count is 0."""
    texts = {name: stat.get(name) for name in (*_TEXTS, *_NULLS)}
    counts = ((name, stat.get(name)) for name in _COUNTS)
    return texts | {name: 0 if count is None else count for name, count in counts}


def _format_time(epoch_ms: int, zone: tzinfo) -> str:
    moment = datetime.fromtimestamp(epoch_ms // 1000, UTC).astimezone(zone)
    return f"{moment:%Y%m%d%H%M%S}{epoch_ms % 1000:03d}"
