"""Read what a write must know of its table before it reads rows; a few small reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Final

import numpy as np
import pyarrow as pa

from reconciler.errors import FormatError, RowsError, UnsupportedError
from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.file_slices.log_file.log_file import LogFileSettings
from reconciler.file_slices.merge.avro_schema import add_meta_columns, to_arrow_schema
from reconciler.file_slices.merge.calendar import PROLEPTIC
from reconciler.file_slices.merge.committed_blocks import CommittedInstants
from reconciler.file_slices.merge.rules import MergeRules
from reconciler.file_slices.merge.slice_reader import SliceReadOptions
from reconciler.hudi.files.key_buckets import BucketRule
from reconciler.hudi.files.names import make_file_path
from reconciler.hudi.metadata.record_index import RecordIndex
from reconciler.hudi.metadata.sync_decisions import decide_write_sync
from reconciler.hudi.table.properties import TableProperties
from reconciler.layout.sizing.assignment_rules import (
    AssignmentRule,
    CopyOnWrite,
    FileSizeLimits,
    MergeOnRead,
    TableKind,
    choose_rule,
)
from reconciler.layout.sizing.candidates import find_table_kind
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes, measure_groups
from reconciler.layout.sizing.record_size import can_fit_size
from reconciler.lazy_dataclass import dataclass
from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.rewrite.facts import read_file_form
from reconciler.rewrite.model import make_seed
from reconciler.spec.model import FileSizes, TableSpec
from reconciler.state.footers import sample_footers
from reconciler.state.model import TableState
from reconciler.state.schema import (
    DeclaredSchema,
    drops_partition_columns,
    has_meta_columns,
    read_declared_schema,
)
from reconciler.state.schema_versions import SCHEMA_FOLDER
from reconciler.state.write_history import read_newest_writes
from reconciler.storage.api import Storage
from reconciler.storage.paths import list_if_exists
from reconciler.transaction.metadata.rewrite_sync import find_indexed_columns
from reconciler.transaction.metadata.sync import open_record_index
from reconciler.transaction.recovery.damaged_files import REMEDY, find_lost_files
from reconciler.writer.bucket import BucketSettings
from reconciler.writer.declared_schema import make_avro_schema
from reconciler.writer.dedupe import DedupeRule
from reconciler.writer.index_bucket_facts import read_bucket_rule
from reconciler.writer.index_bucket_logs import check_logged_sample
from reconciler.writer.index_buckets import IndexBuckets
from reconciler.writer.job import RowJob, RowRules, WriteJob
from reconciler.writer.log_blocks import read_data_block_type
from reconciler.writer.log_targets import LogTargets
from reconciler.writer.logged_inserts import (
    NEWEST_WRITES,
    count_telling_writes,
    has_archived_logs,
)
from reconciler.writer.partition_paths import PartitionRule
from reconciler.writer.record_keys import KeyRule
from reconciler.writer.request import WriteMode, WriteRequest
from reconciler.writer.row_moves import restrict_row_moves
from reconciler.writer.schema_evolution import SchemaEvolution
from reconciler.writer.slice_keys import SliceLogs
from reconciler.writer.slice_logs import list_slice_logs
from reconciler.writer.stored_keys import sample_stored_keys

#: modes that copy rows of older files into new ones
_REWRITING_MODES: Final = (WriteMode.UPSERT, WriteMode.INSERT, WriteMode.DELETE)
#: more bytes than any file has: the file group of a bucket is one file, whatever its size
_ANY_SIZE: Final = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WriteFacts:
    """A table as a write finds it.

    ``declared``: its current schema, Avro's JSON text, None if there is none; ``avro``: after the
    write. ``kind``: how rows go to existing file groups. ``index``: the live record index, if it
    makes keys unique in the whole table. ``logs``: the log files of each group that has some.
    ``searches_logs``: they may have rows that base files do not have. ``index_buckets``: where keys
    belong, if the table has a bucket index.
    """

    state: TableState
    properties: TableProperties
    declared: str | None
    avro: str
    settings: BucketSettings
    rules: RowRules
    groups: FileGroupSizes
    size_rule: AssignmentRule
    index: RecordIndex | None
    kind: TableKind = CopyOnWrite()
    logs: Mapping[int, SliceLogs] = field(default_factory=dict)
    searches_logs: bool = False
    index_buckets: IndexBuckets | None = None

    def make_job(self, request: WriteRequest, instant: str, attempt: str) -> WriteJob:
        """Return the job of a request; ``attempt``: a text that no other attempt has."""
        row_job = RowJob(
            operation=request.mode.operation,
            instant=instant,
            settings=self.settings,
            rules=self.rules,
            dedupes=request.dedupes,
            needs_blooms="bloom_filters" in self.properties.metadata_partitions,
            index_buckets=self.index_buckets,
        )
        return WriteJob(
            row_job=row_job,
            seed=make_seed(instant, attempt),
            groups=self.groups,
            size_rule=self.size_rule,
            kind=self.kind,
            has_commits=bool(self.state.timeline.commits),
            is_stream_batch=request.batch is not None,
            index=self.index,
            log_targets=self._make_log_targets(),
            logs=self.logs,
            searches_logs=self.searches_logs,
        )

    def _make_log_targets(self) -> LogTargets | None:
        if isinstance(self.kind, CopyOnWrite):
            return None
        version = self.properties.table_version
        return LogTargets(view=self.state.view, groups=self.groups, table_version=version)


def read_write_facts(
    storage: Storage,
    properties: TableProperties,
    spec: TableSpec,
    state: TableState,
    request: WriteRequest,
) -> WriteFacts:
    """Read the facts that a request needs.

    Raises UnsupportedError for a table that cannot be written here, RowsError for rows that do not
    fit it, FormatError for damage, StorageError.
    """
    groups, rule = check_writable(storage, properties, state, spec, request.mode)
    if request.mode in _REWRITING_MODES or (rule is not None and not request.mode.replaces):
        _check_no_lost_files(storage, properties, state, groups)
    declared = read_declared_schema(storage, properties, state)
    evolution = _evolve_schema(properties, declared, request)
    files = spec.files or FileSizes()
    index = open_record_index(storage, properties, state.timeline) if rule is None else None
    target = files.target if rule is None else _ANY_SIZE
    settings = _make_settings(storage, properties, state, evolution.avro, groups, target)
    rules = RowRules(
        key=KeyRule.from_properties(properties, sample_stored_keys(storage, properties, groups)),
        partition=PartitionRule.from_properties(properties),
        dedupe=DedupeRule.from_properties(properties, is_global=index is not None),
        columns=evolution.columns,
        incoming=evolution.incoming,
    )
    telling = count_telling_writes(state, groups)
    written = read_newest_writes(storage, properties, state.timeline, newest=telling)
    kind = find_table_kind(
        groups,
        written,
        is_merge_on_read=state.is_merge_on_read,
        has_record_index=index is not None,
    )
    written = written[-NEWEST_WRITES:]
    needs_footers = files.assign == "steady" and not can_fit_size(written)
    return WriteFacts(
        state=state,
        properties=properties,
        declared=None if declared is None else declared.text,
        avro=evolution.avro,
        settings=settings,
        rules=rules,
        groups=groups,
        size_rule=restrict_row_moves(
            choose_rule(
                files.assign,
                FileSizeLimits(target=files.target, small=files.small),
                written,
                footers=sample_footers(storage, groups) if needs_footers else None,
                declared=files.record_size,
            ),
            storage,
            properties,
            groups,
        ),
        index=index,
        kind=kind,
        logs=list_slice_logs(state, groups) if state.is_merge_on_read else {},
        searches_logs=_indexes_logs(kind) or has_archived_logs(state, groups),
        index_buckets=_make_index_buckets(rule, groups, request.mode),
    )


def _make_index_buckets(
    rule: BucketRule | None, groups: FileGroupSizes, mode: WriteMode
) -> IndexBuckets | None:
    """Return the buckets of the table's bucket index; rows that replace others go to new groups."""
    if rule is None:
        return None
    return IndexBuckets.from_groups(rule, None if mode.replaces else groups)


def _indexes_logs(kind: TableKind) -> bool:
    return isinstance(kind, MergeOnRead) and kind.indexes_logs


def _make_settings(
    storage: Storage,
    properties: TableProperties,
    state: TableState,
    avro: str,
    groups: FileGroupSizes,
    target: int,
) -> BucketSettings:
    """Return the settings of the files to write; ``avro``: the table's schema after the write."""
    schema = FileSchema.from_avro(avro, f"the schema of table {properties.table_name}")
    settings = BucketSettings(
        reading=SliceReadOptions(
            rules=MergeRules.from_properties(properties),
            schema=add_meta_columns(to_arrow_schema(avro, "the schema of the rows")),
            committed=CommittedInstants.from_timeline(
                state.timeline, table_version=properties.table_version
            ),
            columns=tuple(schema.columns.names),
        ),
        schema=schema,
        form=_choose_form(storage, properties, groups),
        target=target,
        range_columns=find_indexed_columns(storage, properties, state.timeline),
    )
    if not state.is_merge_on_read:
        return settings
    return replace(settings, log=_choose_log_settings(storage, state, settings))


def _choose_log_settings(
    storage: Storage, state: TableState, settings: BucketSettings
) -> LogFileSettings:
    """Return the settings of log files; the newest one shows what its data blocks are."""
    return LogFileSettings(
        schema=settings.schema,
        form=settings.form,
        table_version=state.table_version,
        data_block=read_data_block_type(storage, state.view),
        range_columns=settings.range_columns,
    )


def check_writable(
    storage: Storage,
    properties: TableProperties,
    state: TableState,
    spec: TableSpec,
    mode: WriteMode,
) -> tuple[FileGroupSizes, BucketRule | None]:
    """Return the file groups and the rule of the table's bucket index, if it has one.

    Raises UnsupportedError for a table that cannot be written here, and as ``read_bucket_rule``.
    """
    _check_supported(storage, properties)
    groups = measure_groups(
        state.view,
        compacting=[(plan.partition, plan.file_id) for plan in state.compactions],
        clustering=[(plan.partition, plan.file_id) for plan in state.clusterings],
    )
    rule = read_bucket_rule(storage, properties, spec, groups, mode)
    if rule is not None and mode is not WriteMode.INSERT_OVERWRITE_TABLE:
        check_logged_sample(state, groups, rule, storage)
    return groups, rule


def _check_supported(storage: Storage, properties: TableProperties) -> None:
    name = properties.table_name
    if drops_partition_columns(properties):
        raise UnsupportedError(
            f"table {name} keeps its partition columns in folder names alone "
            "(hoodie.datasource.write.drop.partition.columns); write it with Hudi"
        )
    if not has_meta_columns(properties):
        raise UnsupportedError(
            f"table {name} has no meta columns (hoodie.populate.meta.fields is false); write it "
            "with Hudi"
        )
    if properties.raw.get("hoodie.table.cdc.enabled", "false").lower() == "true":
        raise UnsupportedError(
            f"table {name} keeps change data (hoodie.table.cdc.enabled), which only Hudi writes; "
            "write it with Hudi"
        )
    if refusal := MergeRules.from_properties(properties).refusal:
        raise UnsupportedError(refusal)
    # indexes that cannot be kept are refused before the first row is read
    if properties.metadata_partitions:
        decide_write_sync(
            properties.metadata_partitions,
            table_version=properties.table_version,
            inflight=properties.metadata_partitions_inflight,
        )
    if list_if_exists(storage, SCHEMA_FOLDER):
        raise UnsupportedError(
            f"table {name}: columns were renamed or retyped in place (schema on read); write it "
            "with Hudi"
        )


def _check_no_lost_files(
    storage: Storage, properties: TableProperties, state: TableState, groups: FileGroupSizes
) -> None:
    """Raise FormatError naming a file of a completed write that is missing.

    An older file of its group would pass for the newest, and a write would make that permanent.
    """
    by_partition = groups.list_file_ids(np.flatnonzero(groups.is_live))
    live = ((path, file_id) for path, file_ids in by_partition.items() for file_id in file_ids)
    lost = find_lost_files(storage, properties, state, live)
    for (folder, _), name in sorted(lost.items()):
        path = make_file_path(folder, name)
        raise FormatError(path, "is gone, which a completed write made", REMEDY)


def _evolve_schema(
    properties: TableProperties, declared: DeclaredSchema | None, request: WriteRequest
) -> SchemaEvolution:
    """Evolve the table's schema by the rows' columns; a deletion only brings keys."""
    name, version = properties.table_name, properties.table_version
    if declared is None:
        text = make_avro_schema(request.schema, name, table_version=version)
        return SchemaEvolution.from_schemas(
            text, request.schema, table_name=name, table_version=version
        )
    columns = to_arrow_schema(declared.text, declared.path)
    if request.mode in (WriteMode.DELETE, WriteMode.DELETE_PARTITION):
        return SchemaEvolution(avro=declared.text, columns=columns, incoming=pa.schema([]))
    evolution = SchemaEvolution.from_schemas(
        declared.text,
        request.schema,
        table_name=name,
        table_version=version,
        fills_missing=request.fills_missing,
    )
    _check_key_columns(properties, columns, evolution.incoming)
    return evolution


def _check_key_columns(
    properties: TableProperties, columns: pa.Schema, incoming: pa.Schema
) -> None:
    """Raise RowsError if columns of keys, partitions or ordering are missing or retyped.

    A key of another type is another key: 1 and 1.0.
    """
    columns_by_purpose = {
        "record key": properties.record_keys,
        "partition": properties.partition_fields,
        "ordering": MergeRules.from_properties(properties).ordering,
    }
    for purpose, paths in columns_by_purpose.items():
        for name in dict.fromkeys(path.partition(".")[0] for path in paths):
            if name not in columns.names:
                continue
            if name not in incoming.names:
                raise RowsError(
                    f"the rows lack column {name}, part of the table's {purpose}; it cannot be "
                    "null for all rows"
                )
            row_type, table_type = incoming.field(name).type, columns.field(name).type
            is_whole = pa.types.is_integer(row_type) and pa.types.is_integer(table_type)
            if row_type != table_type and not is_whole:
                raise RowsError(
                    f"column {name}, part of the table's {purpose}, is {table_type} in the table "
                    f"and {row_type} in the rows: values would be spelled or compared "
                    "differently; cast it"
                )


def _choose_form(
    storage: Storage, properties: TableProperties, groups: FileGroupSizes
) -> BaseFileSettings:
    """Return the settings of the newest file; Hudi's defaults if there is none."""
    form = BaseFileSettings()
    if len(groups):
        form = read_file_form(storage, open_scan(storage, ReadRequest()))
    return replace(form, has_keys=has_meta_columns(properties), calendar=PROLEPTIC)
