"""What a write has to know of its table before the first row is looked at: a few small reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.basefile.form import FileForm
from reconciler.basefile.schema import FileSchema
from reconciler.errors import FormatError, NotFoundError, RowsError, UnsupportedError
from reconciler.hudi.arrow import integers
from reconciler.hudi.metadata_partitions import write_verdicts
from reconciler.hudi.properties import TableProperties
from reconciler.hudi.record_index import RecordIndex
from reconciler.merge.avro_schema import arrow_schema, with_meta_columns
from reconciler.merge.calendar import PROLEPTIC
from reconciler.merge.ranges import open_range, reading_parquet
from reconciler.merge.rules import MergeRules
from reconciler.merge.slice import SliceReading
from reconciler.reader.load import open_scan
from reconciler.reader.model import ReadRequest
from reconciler.rewrite.ground import form_of
from reconciler.rewrite.names import seed_of
from reconciler.sizing.choose import rule_for
from reconciler.sizing.estimate import tells
from reconciler.sizing.groups import Groups, base_names, groups_of
from reconciler.sizing.rules import Rule, Sizes
from reconciler.spec.model import FileSizes, TableSpec
from reconciler.state.columns import (
    Declared,
    declared_columns,
    drops_partition_columns,
    has_meta_columns,
)
from reconciler.state.history import read_written
from reconciler.state.model import TableState
from reconciler.state.renames import FOLDER
from reconciler.state.view import view_of
from reconciler.state.weighing import few_footers
from reconciler.storage.api import Storage
from reconciler.transaction.lost import REMEDY, lost_of
from reconciler.transaction.metadata import record_index_of
from reconciler.transaction.metadata_rewrite import indexed_columns
from reconciler.writer.asked import Ask, Way
from reconciler.writer.bucket import Work
from reconciler.writer.dedupe import DedupeRule
from reconciler.writer.evolution import Evolution
from reconciler.writer.generators import Generator, generator_of
from reconciler.writer.keys import KeyRule
from reconciler.writer.partitions import FolderRule
from reconciler.writer.request import Recipe, Standing, WriteWork
from reconciler.writer.schema import avro_schema

_KEY: Final = "_hoodie_record_key"
#: record keys that show how a table spells them
_KEYS: Final = 100
#: file ids that begin with the number of a bucket, as a bucket index makes them
_BUCKET: Final = r"^0000\d{4}-"
_ROWS: Final = "the schema of the rows"
#: what carries rows of older files over into new ones
_REWRITING: Final = (Way.UPSERT, Way.INSERT, Way.DELETE)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Facts:
    """A table as a write finds it.

    ``declared``: its schema as it is, Avro's JSON text, None where there is none; ``avro``: once
    the write is done. ``columns``: of rows, in the table's types; ``brought``: as they come.
    ``index``: the live record index, if it makes a key unique in the whole table.
    """

    state: TableState
    properties: TableProperties
    declared: str | None
    avro: str
    columns: pa.Schema
    brought: pa.Schema
    schema: FileSchema
    form: FileForm
    reading: SliceReading
    ranges: tuple[str, ...]
    keys: KeyRule
    folders: FolderRule
    dedupe: DedupeRule
    standing: Standing
    rule: Rule
    target: int
    index: RecordIndex | None

    @property
    def has_commits(self) -> bool:
        """Whether a write was completed on the table."""
        return bool(self.state.timeline.commits)

    @property
    def blooms(self) -> bool:
        """Whether the metadata table wants the bloom filters of new files."""
        return "bloom_filters" in self.properties.metadata_partitions

    def work(self, ask: Ask, instant: str, attempt: str) -> WriteWork:
        """What is asked under an instant; ``attempt``: a text that no other attempt at it has."""
        recipe = Recipe(
            operation=ask.way.operation,
            work=Work(
                instant=instant,
                reading=self.reading,
                schema=self.schema,
                form=self.form,
                target=self.target,
                ranges=self.ranges,
            ),
            keys=self.keys,
            folders=self.folders,
            dedupe=self.dedupe,
            columns=self.columns,
            brought=self.brought,
            dedupes=ask.dedupes,
        )
        return WriteWork(
            recipe=recipe,
            seed=seed_of(instant, attempt),
            standing=self.standing,
            rule=self.rule,
            has_commits=self.has_commits,
            blooms=self.blooms,
            streams=ask.streams,
            index=self.index,
        )


def facts_of(
    storage: Storage,
    properties: TableProperties,
    spec: TableSpec,
    state: TableState,
    ask: Ask,
) -> Facts:
    """What there is to know for what is asked.

    Raises UnsupportedError for a table that is not written here, RowsError for rows that do not fit
    it, FormatError for damage, StorageError.
    """
    _refuse(storage, properties, state)
    groups, bases = _groups(state)
    if ask.way in _REWRITING:
        _check_whole(storage, properties, state, groups)
    declared = declared_columns(storage, properties, state)
    evolution = _evolved(properties, declared, ask)
    schema = FileSchema.of(evolution.avro, f"the schema of table {properties.table_name}")
    files = spec.files or FileSizes()
    whole = with_meta_columns(arrow_schema(evolution.avro, _ROWS))
    index = record_index_of(storage, properties, state.timeline)
    written = read_written(storage, properties, state.timeline, newest=20)
    return Facts(
        state=state,
        properties=properties,
        declared=None if declared is None else declared.text,
        avro=evolution.avro,
        columns=evolution.columns,
        brought=evolution.brought,
        schema=schema,
        form=_form(storage, properties, groups),
        reading=SliceReading(
            rules=MergeRules.of(properties), schema=whole, columns=tuple(schema.columns.names)
        ),
        ranges=indexed_columns(storage, properties, state.timeline),
        keys=KeyRule.of(properties, _written_keys(storage, properties, groups, bases)),
        folders=FolderRule.of(properties),
        dedupe=DedupeRule.of(properties, is_global=index is not None),
        standing=Standing(groups=groups, bases=bases),
        rule=rule_for(
            files.assign,
            Sizes(target=files.target, small=files.small),
            written,
            footers=few_footers(storage, groups, bases)
            if files.assign == "steady" and not tells(written)
            else None,
            declared=files.record_size,
        ),
        target=files.target,
        index=index,
    )


def _refuse(storage: Storage, properties: TableProperties, state: TableState) -> None:
    name = properties.table_name
    if state.is_merge_on_read:
        raise UnsupportedError(
            f"table {name} merges on read: only tables that are copied on write are written here; "
            + (
                "write it with Hudi"
                if state.timeline.commits
                else "it is there, without rows; write them with Hudi"
            )
        )
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
    if properties.metadata_partitions:  # what cannot be kept is known before the first row is read
        write_verdicts(
            properties.metadata_partitions,
            table_version=properties.table_version,
            inflight=properties.metadata_partitions_inflight,
        )
    if _has_versions(storage):
        raise UnsupportedError(
            f"table {name}: columns were renamed or retyped in place (schema on read); write it "
            "with Hudi"
        )


def _has_versions(storage: Storage) -> bool:
    try:
        return bool(storage.list(FOLDER))
    except NotFoundError:
        return False


def _groups(state: TableState) -> tuple[Groups, Any]:
    """The file groups and their newest base files; UnsupportedError where keys decide on groups."""
    view = view_of(state)
    groups = groups_of(
        view,
        compacting=[(one.partition, one.file_id) for one in state.compactions],
        clustering=[(one.partition, one.file_id) for one in state.clusterings],
    )
    ids = groups.file_id.filter(pa.array(groups.is_live))
    if len(ids) and pc.all(pc.match_substring_regex(ids, _BUCKET)).as_py():
        raise UnsupportedError(
            f"table {state.table_name}: its file groups are buckets of record keys (a bucket "
            "index), into which only Hudi sorts rows; write it with Hudi"
        )
    return groups, base_names(view)


def _check_whole(
    storage: Storage, properties: TableProperties, state: TableState, groups: Groups
) -> None:
    """Raises FormatError naming a file that a completed write made and that is gone.

    Without it an older one of its file group passes for the newest, and a write would make that so.
    """
    live = np.flatnonzero(groups.is_live)
    ids = groups.file_id.take(integers(live)).to_pylist()
    folders = [groups.partitions[code] for code in groups.partition[live].tolist()]
    lost = lost_of(storage, properties, state, zip(folders, ids, strict=True))
    for (folder, _), name in sorted(lost.items()):
        path = f"{folder}/{name}" if folder else name
        raise FormatError(path, "is gone, which a completed write made", REMEDY)


def _evolved(properties: TableProperties, declared: Declared | None, ask: Ask) -> Evolution:
    """The table's schema with what the rows bring; a deletion brings nothing but keys."""
    name, version = properties.table_name, properties.table_version
    if declared is None:
        text = avro_schema(ask.schema, name, table_version=version)
        return Evolution.of(text, ask.schema, table_name=name, table_version=version)
    columns = arrow_schema(declared.text, declared.path)
    if ask.way in (Way.DELETE, Way.DELETE_PARTITION):
        return Evolution(avro=declared.text, columns=columns, brought=pa.schema([]))
    found = Evolution.of(
        declared.text,
        ask.schema,
        table_name=name,
        table_version=version,
        fills_missing=ask.fills_missing,
    )
    _check_deciding(properties, columns, found.brought)
    return found


def _check_deciding(properties: TableProperties, columns: pa.Schema, brought: pa.Schema) -> None:
    """What decides where a row belongs, and which row counts, is there and spelled as it was.

    A key of another type is another key: 1 and 1.0. Raises RowsError.
    """
    of = {
        "record key": properties.record_keys,
        "partition": properties.partition_fields,
        "ordering": MergeRules.of(properties).ordering,
    }
    for what, paths in of.items():
        for name in dict.fromkeys(path.partition(".")[0] for path in paths):
            if name not in columns.names:
                continue
            if name not in brought.names:
                raise RowsError(
                    f"the rows have no column {name}, which is of the table's {what}: it cannot be "
                    "null for all of them"
                )
            theirs, ours = brought.field(name).type, columns.field(name).type
            is_whole = pa.types.is_integer(theirs) and pa.types.is_integer(ours)
            if theirs != ours and not is_whole:
                raise RowsError(
                    f"column {name} is of the table's {what}, where it is {ours}, and {theirs} in "
                    "the rows: its values would be spelled or compared in another way; cast it"
                )


def _form(storage: Storage, properties: TableProperties, groups: Groups) -> FileForm:
    """As the newest file is; as Hudi's writers have it by default where there is none."""
    form = form_of(storage, open_scan(storage, ReadRequest())) if len(groups) else FileForm()
    return replace(form, has_keys=has_meta_columns(properties), calendar=PROLEPTIC)


def _written_keys(
    storage: Storage, properties: TableProperties, groups: Groups, bases: Any
) -> Sequence[str]:
    """Some record keys, where the table does not say how they are spelled."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    if generator_of(properties) is not Generator.COMPLEX or len(properties.record_keys) > 1:
        return ()
    for group in pc.indices_nonzero(pc.is_valid(bases)).to_pylist():
        partition, name = groups.partitions[groups.partition[group]], bases[group].as_py()
        path = f"{partition}/{name}" if partition else name
        with reading_parquet(path):
            file = pq.ParquetFile(open_range(storage, path, int(groups.base[group])))
            for batch in file.iter_batches(_KEYS, columns=[_KEY]):
                found: list[str] = batch.column(0).cast(pa.string()).drop_null().to_pylist()
                return found
    return ()
