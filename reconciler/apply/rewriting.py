"""What a rewrite needs to know of the table at hand: its schema, its files' form, its slices."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow.compute as pc

from reconciler.apply.freshness import keys_present
from reconciler.errors import ReconcilerError, UnsupportedError
from reconciler.hudi.arrow import integers, numbers, strings
from reconciler.merge.slice import FileSliceRef, SliceReading
from reconciler.plan.groups import owners
from reconciler.plan.model import Rewrites
from reconciler.reader.model import PATH
from reconciler.rewrite.ground import Ground
from reconciler.rewrite.model import Group, Ordering, Rewrite
from reconciler.rewrite.names import seed_of
from reconciler.spec.model import FileSizes, TableSpec
from reconciler.state.layout import Layout
from reconciler.state.model import TableState


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
