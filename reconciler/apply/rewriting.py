"""What a rewrite needs to know of the table at hand: its schema, its files' form, its slices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.apply.freshness import keys_present
from reconciler.basefile.form import FileForm
from reconciler.basefile.schema import FileSchema
from reconciler.errors import FormatError, ReconcilerError, UnsupportedError
from reconciler.hudi.arrow import integers, numbers, strings
from reconciler.hudi.load import load_properties
from reconciler.hudi.properties import TableProperties
from reconciler.merge.calendar import PROLEPTIC
from reconciler.merge.ranges import open_range, reading_parquet
from reconciler.merge.slice import FileSliceRef, SliceReading
from reconciler.plan.groups import owners
from reconciler.plan.model import Rewrites
from reconciler.reader.load import open_scan
from reconciler.reader.model import PATH, ReadRequest, Scan
from reconciler.rewrite.model import Group, Ordering, Rewrite
from reconciler.rewrite.names import seed_of
from reconciler.spec.model import FileSizes, TableSpec
from reconciler.state.columns import declared_columns, drops_partition_columns, has_meta_columns
from reconciler.state.layout import Layout
from reconciler.state.model import TableState
from reconciler.storage.api import Storage
from reconciler.transaction.metadata_rewrite import indexed_columns

#: of a base file's name: the instant that wrote it
_TIME: Final = r"_(?P<time>\d+)\.[a-z]+$"
#: base files whose form is looked for until one can be read
_FORMS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ground:
    """The table as a rewrite finds it.

    ``avro``: its schema as commits carry it. ``dropped``: columns that only folders say.
    """

    scan: Scan
    avro: str
    schema: FileSchema
    form: FileForm
    dropped: tuple[str, ...]
    ranges: tuple[str, ...]
    key_fields: tuple[str, ...]

    @property
    def refusal(self) -> str:
        """Why log files of this table cannot be merged, empty where they can."""
        return self.scan.rules.refusal


def ground_of(storage: Storage, state: TableState) -> Ground:
    """What there is to know; a few small files are read.

    Raises UnsupportedError where rows of the table cannot be read or written here, FormatError for
    damage and where nobody has written the table's schema down.
    """
    properties = load_properties(storage)
    declared = declared_columns(storage, properties, state)
    if declared is None:
        raise UnsupportedError(
            f"{state.location}: no commit says the table's schema, so its files cannot be "
            "rewritten; write to the table once with Hudi"
        )
    dropped = properties.partition_fields if drops_partition_columns(properties) else ()
    scan = open_scan(storage, ReadRequest())
    has_meta = has_meta_columns(properties)
    return Ground(
        scan=scan,
        avro=declared.text,
        schema=FileSchema.of(declared.text, declared.path, dropped=dropped),
        form=replace(_form(storage, scan), has_keys=has_meta, calendar=PROLEPTIC),
        dropped=dropped,
        ranges=_ranges(storage, properties, state),
        key_fields=() if has_meta else properties.record_keys,
    )


def rewrite_of(
    ground: Ground, spec: TableSpec, layout: Layout, *, instant: str, attempt: str
) -> Rewrite:
    """What all groups of a clustering have in common.

    ``attempt``: a text that no other attempt at the instant has.
    """
    schema = ground.schema.columns
    held = tuple(name for name in schema.names if name in ground.scan.table_schema.names)
    return Rewrite(
        instant=instant,
        seed=seed_of(instant, attempt),
        reading=SliceReading(
            rules=ground.scan.rules,
            schema=ground.scan.table_schema,
            committed=ground.scan.committed,
            columns=held,
        ),
        schema=ground.schema,
        form=ground.form,
        ordering=_ordering(ground, spec, layout),
        target=(spec.files or FileSizes()).target,
        ranges=ground.ranges,
        key_fields=ground.key_fields,
    )


def groups_of(ground: Ground, groups: Rewrites, state: TableState) -> tuple[Group, ...]:
    """The groups as workers want them; every file is one of the state's.

    Raises ReconcilerError for a group that is to become no file: its rows would be in none.
    """
    partitions = groups.partition.to_pylist()
    for number in np.flatnonzero(groups.outputs < 1).tolist():
        raise ReconcilerError(
            f"{state.location}: a group of partition {partitions[number]!r} is to become no file, "
            "and its rows would be lost; plan again"
        )
    slices = _slices(groups, state)
    starts = groups.starts.tolist()
    return tuple(
        Group(
            number=number,
            partition=partitions[number],
            slices=tuple(slices[start:end]),
            outputs=int(groups.outputs[number]),
            bytes=int(groups.bytes[number]),
            values=_values(ground, partitions[number]),
        )
        for number, (start, end) in enumerate(pairwise(starts))
    )


def _ordering(ground: Ground, spec: TableSpec, layout: Layout) -> Ordering:
    names = ground.schema.columns.names
    absent = [name for name in layout.columns if name not in names]
    if absent and not set(absent) <= set(ground.dropped):
        raise UnsupportedError(
            f"table {spec.name} has no column {absent[0]!r} to be clustered by; its columns are "
            f"{', '.join(names)}"
        )
    columns = tuple(name for name in layout.columns if name in names)
    if not columns:
        return Ordering()
    return Ordering(
        columns=columns,
        curve=layout.curve,
        mapping=layout.mapping,
        queries=tuple(query.where for query in spec.queries),
        places=tuple(names.index(name) for name in columns),
        zone=spec.timezone or "UTC",
    )


def _slices(groups: Rewrites, state: TableState) -> list[FileSliceRef]:
    """Paths and sizes of the slices' files."""
    folders = [f"{path}/" if path else "" for path in groups.partition.to_pylist()]
    of = owners(groups)
    prefix = strings(folders).take(integers(of)) if folders else strings([])
    partition = strings(groups.partition.to_pylist()).take(integers(of))
    keys = pc.binary_join_element_wise(partition, groups.base, "/")
    rows = numbers(pc.index_in(keys, value_set=keys_present(state.files)).fill_null(-1))
    sizes = np.where(rows >= 0, state.files.size[rows], 0) if len(state.files) else rows
    bases = pc.binary_join_element_wise(prefix, groups.base, "").to_pylist()
    logs = groups.logs.to_pylist()
    return [
        FileSliceRef(
            base=base,
            base_size=int(size),
            logs=tuple(folders[group] + name for name in names),
        )
        for base, size, names, group in zip(bases, sizes, logs, of.tolist(), strict=True)
    ]


def _values(ground: Ground, partition: str) -> Mapping[str, Any]:
    """What only the folder of a partition says of its rows."""
    if not ground.dropped:
        return {}
    row = ground.scan.partitions.column(PATH).index(partition).as_py()
    if row < 0:
        return {}
    values = ground.scan.values(row)
    return {name: values[name].as_py() for name in ground.dropped if name in values}


def _form(storage: Storage, scan: Scan) -> FileForm:
    """The form of the newest base file that is read; of Hudi's defaults where there are only logs.

    Of files that nobody reads there may be halves: what a write that died has left. A damaged one
    is passed over, for it may be in no group; where the first few are, the newest one is the error.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415

    slices = scan.slices.filter(pc.is_valid(scan.slices.column("base")))
    if not len(slices):
        return FileForm()
    times = pc.struct_field(pc.extract_regex(slices.column("base"), _TIME), "time")
    newest = pc.sort_indices(pa.table({"time": times}), sort_keys=[("time", "descending")])
    damage: list[FormatError] = []
    for row in newest[:_FORMS].to_pylist():
        path, size = slices.column("base")[row].as_py(), slices.column("base_size")[row].as_py()
        try:
            with reading_parquet(path):
                footer = pq.ParquetFile(open_range(storage, path, size)).metadata
            return FileForm.of_file(footer, path)
        except FormatError as error:
            damage.append(error)
    raise damage[0]


def _ranges(storage: Storage, properties: TableProperties, state: TableState) -> tuple[str, ...]:
    if not properties.metadata_partitions:
        return ()
    return indexed_columns(storage, properties, state.timeline)
