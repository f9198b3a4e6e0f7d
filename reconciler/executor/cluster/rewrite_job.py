"""Make the jobs of a rewrite from the table's schema, its files' form and its slices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from reconciler.arrays import Mask, to_arrow
from reconciler.errors import ReconcilerError, UnsupportedError
from reconciler.executor.cluster.work import get_base_sizes
from reconciler.file_slices.merge.slice_reader import SliceFiles, SliceReadOptions
from reconciler.hudi.files.bucket_ids import find_bucket_ids
from reconciler.planners.cluster.size_limits import find_split_rule
from reconciler.plans.groups import group_of_slices, iterate_groups
from reconciler.plans.rewrites import Rewrites
from reconciler.reader.model import PATH
from reconciler.rewrite.facts import TableFacts
from reconciler.rewrite.model import RewriteGroup, RewriteJob, RowOrdering, make_seed
from reconciler.spec.model import TableSpec
from reconciler.state.clustering_layout import ClusteringLayout
from reconciler.state.model import TableState


def make_rewrite(
    facts: TableFacts, spec: TableSpec, layout: ClusteringLayout, *, instant: str, attempt: str
) -> RewriteJob:
    """Return what all groups of a clustering have in common.

    ``attempt``: a text that no other attempt at the instant has.
    """
    schema = facts.schema.columns
    stored = tuple(name for name in schema.names if name in facts.scan.table_schema.names)
    return RewriteJob(
        instant=instant,
        seed=make_seed(instant, attempt),
        reading=SliceReadOptions(
            rules=facts.scan.rules,
            schema=facts.scan.table_schema,
            committed=facts.scan.committed,
            columns=stored,
        ),
        schema=facts.schema,
        form=facts.form,
        ordering=_make_ordering(facts, spec, layout),
        split=find_split_rule(spec),
        range_columns=facts.indexed_columns,
        key_fields=facts.key_fields,
    )


def make_groups(facts: TableFacts, groups: Rewrites, state: TableState) -> tuple[RewriteGroup, ...]:
    """Return the groups as workers take them; every file is in ``state``.

    Raises ReconcilerError for a group without output files: its rows would be lost.
    """
    partitions = groups.partition.to_pylist()
    for number in np.flatnonzero(groups.outputs < 1).tolist():
        raise ReconcilerError(
            f"{state.location}: a group of partition {partitions[number]!r} is to become no file, "
            "and its rows would be lost; plan again"
        )
    slices, buckets = _make_slices(groups, state), find_bucket_groups(groups)
    file_ids = groups.file_id.to_pylist()
    return tuple(
        RewriteGroup(
            number=number,
            partition=partition,
            slices=tuple(slices[part]),
            outputs=int(groups.outputs[number]),
            bytes=int(groups.bytes[number]),
            values=get_partition_values(facts, partition),
            bucket=file_ids[part.start] if buckets[number] else "",
        )
        for number, (partition, part) in enumerate(iterate_groups(groups))
    )


def find_bucket_groups(groups: Rewrites) -> Mask:
    """Return which groups are one slice of a simple bucket index that becomes one file."""
    first = groups.file_id.take(to_arrow(groups.starts[:-1]))
    is_alone: Mask = (np.diff(groups.starts) == 1) & (groups.outputs == 1)
    return is_alone & find_bucket_ids(first)


def _make_ordering(facts: TableFacts, spec: TableSpec, layout: ClusteringLayout) -> RowOrdering:
    names = facts.schema.columns.names
    absent = [name for name in layout.columns if name not in names]
    if absent and not set(absent) <= set(facts.dropped_columns):
        raise UnsupportedError(
            f"table {spec.name} has no column {absent[0]!r} to be clustered by; its columns are "
            f"{', '.join(names)}"
        )
    columns = tuple(name for name in layout.columns if name in names)
    if not columns:
        return RowOrdering()
    return RowOrdering(
        columns=columns,
        curve=layout.curve,
        mapping=layout.mapping,
        queries=tuple(query.where for query in spec.queries),
        positions=tuple(names.index(name) for name in columns),
        zone=spec.timezone or "UTC",
    )


def _make_slices(groups: Rewrites, state: TableState) -> list[SliceFiles]:
    """Return the paths and sizes of the slices' files."""
    folders = [f"{path}/" if path else "" for path in groups.partition.to_pylist()]
    columns = (
        groups.base.to_pylist(),
        get_base_sizes(groups, state).tolist(),
        groups.logs.to_pylist(),
        group_of_slices(groups).tolist(),
    )
    return [
        SliceFiles(
            base=None if base is None else folders[group] + base,
            base_size=size,
            logs=tuple(folders[group] + name for name in names),
        )
        for base, size, names, group in zip(*columns, strict=True)
    ]


def get_partition_values(facts: TableFacts, partition: str) -> Mapping[str, Any]:
    """Return the column values that only the folder of a partition holds."""
    if not facts.dropped_columns:
        return {}
    row = facts.scan.partitions.column(PATH).index(partition).as_py()
    if row < 0:
        return {}
    values = facts.scan.get_partition_values(row)
    return {name: values[name].as_py() for name in facts.dropped_columns if name in values}
