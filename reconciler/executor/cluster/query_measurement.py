"""Measure what the declared queries read after a clustering, to compare it with the prediction.

Statistics of the new files are read before anything is published, so that the completed instant
records the result. Nothing here makes a clustering fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from reconciler.arrays import Integers, Mask, to_numpy
from reconciler.executor.cluster.rewrite_job import make_groups
from reconciler.lazy_dataclass import dataclass
from reconciler.reader.model import PATH
from reconciler.reader.pruning import mark_reached_slices
from reconciler.reader.reached_files import find_reached_files, make_keys
from reconciler.reader.skipping import parse_condition
from reconciler.state.measured_queries import QueryMeasurement, parse_predictions
from reconciler.transaction.paths import resolve_path

if TYPE_CHECKING:
    from reconciler.executor.cluster.work import ClusterWork
    from reconciler.executor.session import ApplySession
    from reconciler.rewrite.model import RewrittenGroup

#: footers of files that stay as they are, which are read at most
MAX_FOOTERS: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteredFile:
    """A base file that a clustering wrote for a group."""

    group: int
    partition: str
    name: str
    size: int


def list_new_files(work: ClusterWork, results: Sequence[RewrittenGroup]) -> list[ClusteredFile]:
    """Return the files that we wrote; ``results`` are in the order of the groups."""
    partitions = work.groups.partition.to_pylist()
    return [
        ClusteredFile(group=group, partition=partitions[group], name=file.name, size=file.size)
        for group, result in enumerate(results)
        for file in result.files
    ]


def measure_queries(
    session: ApplySession, work: ClusterWork, files: Sequence[ClusteredFile]
) -> QueryMeasurement | None:
    """Measure a table with these new files; None if the spec declares no query.

    Reads the footers of the new files, and of at most MAX_FOOTERS files that stay and that the
    index does not know. Those of replaced files are not read, so the files of a group that is
    dropped at the last moment count as read. Raises nothing: a failure is recorded as the result's
    ``problem``.
    """
    if not session.spec.queries:
        return None
    try:
        return _measure(session, work, files)
    except Exception as problem:  # noqa: BLE001
        none = np.zeros(0, np.int64)
        return QueryMeasurement(
            queries=(),
            reads=np.zeros((0, 0), np.bool_),
            group=none,
            is_new=none.astype(np.bool_),
            bytes=none,
            predicted={},
            problem=f"what the queries read could not be measured: {problem}",
        )


def _measure(
    session: ApplySession, work: ClusterWork, files: Sequence[ClusteredFile]
) -> QueryMeasurement:
    queries = session.spec.queries
    old, new = _MeasuredSlices.from_table(work), _MeasuredSlices.from_files(files)
    unread = int(np.count_nonzero(old.is_examined))
    unread = unread if unread > MAX_FOOTERS else 0
    wheres = [query.where for query in queries]
    parts = [new] if unread else [old, new]
    return QueryMeasurement(
        queries=tuple((query.name, query.where) for query in queries),
        reads=np.concatenate([_find_reads(session, work, part, wheres) for part in parts], axis=1),
        group=np.concatenate([part.group for part in parts]),
        is_new=np.concatenate([np.full(len(part.group), part is new) for part in parts]),
        bytes=np.concatenate([part.bytes for part in parts]),
        predicted=parse_predictions(work.extra),
        unread=unread,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _MeasuredSlices:
    """File slices, an element each.

    ``partition``: its path. ``base``: the base file's path below the table, None if it has none;
    ``size``: its bytes. ``group``, ``bytes``: as in ``QueryMeasurement``. ``is_examined``: whether
    the statistics of the base file are read, because no log file changes them and the slice stays.
    ``is_merged``: whether it stays with log files, as the row of the scan.
    """

    partition: Sequence[str]
    base: Sequence[str | None]
    size: Integers
    group: Integers
    bytes: Integers
    is_examined: Mask
    is_merged: Mask

    @classmethod
    def from_table(cls, work: ClusterWork) -> Self:
        """Return the slices that a read of the table touched when the groups were chosen."""
        scan, slices = work.facts.scan, work.facts.scan.slices
        paths = scan.partitions.column(PATH).to_pylist()
        bases, logs = slices.column("base").to_pylist(), slices.column("logs").to_pylist()
        groups = make_groups(work.facts, work.groups, work.state)
        numbers = {
            _make_slice_key(files.base, files.logs): group.number
            for group in groups
            for files in group.slices
        }
        size = to_numpy(slices.column("base_size").combine_chunks())
        group = [numbers.get(_make_slice_key(*key), -1) for key in zip(bases, logs, strict=True)]
        return cls(
            partition=[paths[row] for row in slices.column("partition").to_pylist()],
            base=bases,
            size=size,
            group=np.array(group, np.int64),
            bytes=size + to_numpy(slices.column("log_size").combine_chunks()),
            is_examined=np.array(
                [
                    base is not None and not more and number < 0
                    for base, more, number in zip(bases, logs, group, strict=True)
                ],
                np.bool_,
            ),
            is_merged=scan.has_logs & (np.array(group, np.int64) < 0),
        )

    @classmethod
    def from_files(cls, files: Sequence[ClusteredFile]) -> Self:
        size = np.array([file.size for file in files], np.int64)
        return cls(
            partition=[file.partition for file in files],
            base=[resolve_path(file.partition, file.name) for file in files],
            size=size,
            group=np.array([file.group for file in files], np.int64),
            bytes=size,
            is_examined=np.ones(len(files), np.bool_),
            is_merged=np.zeros(len(files), np.bool_),
        )


def _make_slice_key(base: str | None, logs: Sequence[str]) -> str:
    """Return what tells a slice from all others: one of its files."""
    return base if base is not None else min(logs, default="")


def _find_reads(
    session: ApplySession, work: ClusterWork, slices: _MeasuredSlices, wheres: Sequence[str]
) -> Mask:
    """Return queries by slices, True if nothing is known."""
    examined = np.flatnonzero(slices.is_examined)
    reads = np.ones((len(wheres), len(slices.base)), np.bool_)
    bases = [str(slices.base[row]) for row in examined.tolist()]
    files = make_keys(
        [slices.partition[row] for row in examined.tolist()],
        [path.rpartition("/")[2] for path in bases],
        slices.size[examined],
    )
    known = work.state.index_state.index if work.state.index_state is not None else None
    zone = session.spec.timezone or "UTC"
    reads[:, examined] = find_reached_files(
        session.storage, work.facts.scan, files, wheres, zone=zone, known=known
    )
    if slices.is_merged.any():
        scan = work.facts.scan.select_slices(slices.is_merged)
        for nth, where in enumerate(wheres):
            condition = parse_condition(where, zone)
            reads[nth, slices.is_merged] = mark_reached_slices(session.storage, scan, condition)
    return reads
