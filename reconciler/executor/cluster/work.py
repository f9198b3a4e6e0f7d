"""Describe a pending clustering of ours: what a new one and a resumed one have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow.compute as pc

from reconciler.arrays import Integers, to_arrow, to_numpy
from reconciler.errors import ReconcilerError
from reconciler.executor.cluster.group_selection import GroupSelection
from reconciler.file_slices.base_file.write_stat import build_created_stat
from reconciler.hudi.files.table_files import find_sizes
from reconciler.hudi.timeline.instant import Action
from reconciler.hudi.timeline.plans import (
    SORT_COLUMNS,
    ClusteringPlan,
    ClusteringPlanGroup,
    InputSlice,
    compute_group_metrics,
)
from reconciler.hudi.timeline.write_commit import WriteCommit
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.groups import group_of_slices, iterate_groups
from reconciler.plans.rewrites import Rewrites
from reconciler.rewrite.facts import TableFacts
from reconciler.rewrite.model import RewrittenGroup, make_output_id, make_seed
from reconciler.spec.model import FileSizes, TableSpec
from reconciler.state.clustering_layout import LAYOUT_KEY, ClusteringLayout
from reconciler.state.measured_queries import (
    CIRCUMSTANCES_KEY,
    PREDICTED_KEY,
    QUERIES_KEY,
    ClusteringContext,
    QueryMeasurement,
    encode_measurements,
    encode_predictions,
)
from reconciler.state.model import TableState
from reconciler.transaction.conflicts import Footprint, GroupClaim
from reconciler.transaction.footprints import CompletedWrites, collect_completed_writes

if TYPE_CHECKING:
    from reconciler.executor.session import ApplySession

#: Hudi's own key, of every commit
SCHEMA: Final = "schema"
_V8: Final = 8
#: bytes below which Hudi's writers take a file for small by default
_HUDIS_SMALL: Final = 104_857_600


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterWork:
    """A requested clustering, and the part of it that runs.

    ``selection``: its groups run. ``extra``: extra metadata of the request and the completed file.
    ``attempt``: a text that no other attempt has. ``foreign``: the plan of another writer, None for
    one of ours; its instant gets no inflight file of ours. ``measurement``: what the declared
    queries read of the new files; None before those are there, and without queries.
    """

    instant: str
    selection: GroupSelection
    layout: ClusteringLayout
    facts: TableFacts
    state: TableState
    extra: Mapping[str, str]
    attempt: str
    foreign: ClusteringPlan | None = None
    measurement: QueryMeasurement | None = None

    @property
    def groups(self) -> Rewrites:
        return self.selection.groups

    @property
    def action(self) -> Action:
        return get_clustering_action(self.state.table_version)

    @property
    def known(self) -> CompletedWrites:
        """The completed writes that the groups were chosen after."""
        return collect_completed_writes(self.state.timeline)

    def make_extra(self, numbers_kept: Sequence[int]) -> dict[str, str]:
        """Return the extra metadata of the completed file when only some groups are published."""
        extra = {key: text for key, text in self.extra.items() if key != PREDICTED_KEY}
        if (context := ClusteringContext.read(extra)) is not None:
            sizes = np.diff(self.groups.starts)
            dropped = int(sizes.sum() - sizes[list(numbers_kept)].sum())
            left = sum(group.slices for group in self.selection.left)
            waiting = context.remaining_slices + dropped + left
            extra[CIRCUMSTANCES_KEY] = replace(context, remaining_slices=waiting).text
        measured = self.measurement.select_groups(numbers_kept) if self.measurement else ()
        return extra | ({QUERIES_KEY: encode_measurements(measured)} if measured else {})


def list_output_ids(work: ClusterWork) -> frozenset[str]:
    """Return what the file ids begin with of all files that this attempt may write."""
    seed = make_seed(work.instant, work.attempt)
    return frozenset(
        make_output_id(seed, group, output)
        for group, outputs in enumerate(work.groups.outputs.tolist())
        for output in range(outputs)
    )


def get_clustering_action(version: int) -> Action:
    """Return the action of a pending clustering, by table version."""
    return Action.CLUSTERING if version >= _V8 else Action.REPLACECOMMIT


def make_claims(groups: Rewrites, state: TableState, spec: TableSpec) -> list[GroupClaim]:
    """Return the groups as claims, for which conflicts are looked for."""
    ids = groups.file_id.to_pylist()
    sizes = get_base_sizes(groups, state)
    small = max((spec.files or FileSizes()).small, _HUDIS_SMALL)
    has_logs = to_numpy(pc.list_value_length(groups.logs)) > 0
    is_open = (sizes < small) | has_logs
    return [
        GroupClaim(partition=partition, ids=frozenset(ids[part]), is_open=bool(is_open[part].any()))
        for partition, part in iterate_groups(groups)
    ]


def make_work_claims(
    work: ClusterWork, spec: TableSpec, footprints: Sequence[Footprint]
) -> list[GroupClaim]:
    """Return the groups of a pending clustering as claims against other writes.

    Writers of Hudi add no rows to small files that a pending clustering rewrites. So only a write
    that is older than a clustering of another writer may add rows to its groups.
    """
    claims = make_claims(work.groups, work.state, spec)
    older = (one for one in footprints if not one.is_completed and one.instant < work.instant)
    if work.foreign is None or any(older):
        return claims
    return [replace(claim, is_open=False) for claim in claims]


def make_requested_plan(
    groups: Rewrites,
    state: TableState,
    spec: TableSpec,
    layout: ClusteringLayout,
    extra: Mapping[str, str],
) -> ClusteringPlan:
    """Return the plan that a clustering requests, and that any Hudi writer may execute."""
    target = (spec.files or FileSizes()).target
    ids, bases, logs = (column.to_pylist() for column in (groups.file_id, groups.base, groups.logs))
    base_sizes, log_sizes = get_base_sizes(groups, state).tolist(), _get_log_sizes(groups, state)
    planned = []
    for outputs, (partition, part) in zip(
        groups.outputs.tolist(), iterate_groups(groups), strict=True
    ):
        slices = tuple(
            InputSlice(
                partition=partition,
                file_id=file_id,
                base_file=base,
                log_files=tuple(reversed(names)),
            )
            for file_id, base, names in zip(ids[part], bases[part], logs[part], strict=True)
        )
        sized = zip(bases[part], base_sizes[part], strict=True)
        metrics = compute_group_metrics(
            [None if base is None else size for base, size in sized],
            list(chain.from_iterable(log_sizes[part])),
            target,
        )
        planned.append(ClusteringPlanGroup(slices=slices, output_count=outputs, metrics=metrics))
    strategy = {SORT_COLUMNS: ",".join(layout.columns)} if layout.columns else {}
    return ClusteringPlan(groups=tuple(planned), strategy=strategy, extra=extra)


def make_completed_commit(
    work: ClusterWork, results: Sequence[RewrittenGroup], numbers_kept: Sequence[int]
) -> WriteCommit:
    """Return what the clustering did in the groups that are kept.

    ``results`` are in the order of the groups.
    """
    ids, groups = work.groups.file_id.to_pylist(), list(iterate_groups(work.groups))
    written: dict[str, list[Mapping[str, str | int]]] = {}
    replaced: dict[str, list[str]] = {}
    for number in numbers_kept:
        partition, part = groups[number]
        stats = [build_created_stat(file, partition) for file in results[number].files]
        if stats:
            written.setdefault(partition, []).extend(stats)
        replaced.setdefault(partition, []).extend(ids[part])
    return WriteCommit(
        operation="CLUSTER",
        stats_by_partition=written,
        replaced=replaced,
        extra={**work.make_extra(numbers_kept), SCHEMA: work.facts.avro},
    )


def make_circumstances_extra(session: ApplySession) -> dict[str, str]:
    """Return the extra metadata by which a run that completes a clustering can judge it.

    It records what was predicted for the declared queries, the target of file sizes, and how much
    waits for another run.
    """
    layout = session.plan.layout
    left = [rule.slices for rule in (layout.untouched if layout else ()) if rule.rule == "budget"]
    target = (session.spec.files or FileSizes()).target
    context = ClusteringContext(target=target, remaining_slices=sum(left))
    extra = {CIRCUMSTANCES_KEY: context.text}
    if queries := {query.name: query.where for query in session.spec.queries}:
        extra[PREDICTED_KEY] = encode_predictions(queries, session.plan.predictions)
    return extra


def make_layout_extra(layout: ClusteringLayout) -> dict[str, str]:
    """Return the extra metadata that records how rows are ordered."""
    return {LAYOUT_KEY: layout.text}


def check_results(work: ClusterWork, results: Sequence[RewrittenGroup]) -> list[RewrittenGroup]:
    """Return the results in the order of the groups.

    Raises ReconcilerError unless there is one for every group, with all of its rows.
    """
    by_number = {result.number: result for result in results}
    partitions = work.groups.partition.to_pylist()
    if sorted(by_number) != list(range(len(partitions))) or len(results) != len(partitions):
        raise ReconcilerError(
            f"of the {len(partitions)} groups of clustering {work.instant} the workers have told "
            f"of {len(results)}; nothing was published, run apply again"
        )
    for number, partition in enumerate(partitions):
        group = by_number[number]
        rows = sum(file.rows for file in group.files)
        if group.read != group.written or rows != group.written.rows:
            alike = "are the same" if group.read.keys == group.written.keys else "differ"
            raise ReconcilerError(
                f"clustering {work.instant}, a group of partition {partition!r}: {group.read.rows} "
                f"rows were read, {group.written.rows} were written, {rows} are in its files, and "
                f"their keys {alike}; nothing was published. This is an error of this program or "
                "of the machine: report it"
            )
    return [by_number[number] for number in range(len(partitions))]


def get_base_sizes(groups: Rewrites, state: TableState) -> Integers:
    """Return the bytes of every slice's base file, 0 if it has none."""
    return _get_sizes(groups, groups.base, group_of_slices(groups), state)


def _get_log_sizes(groups: Rewrites, state: TableState) -> list[list[int]]:
    """Return the bytes of the log files of every slice."""
    counts = to_numpy(pc.list_value_length(groups.logs)).astype(np.int64)
    group_of = np.repeat(group_of_slices(groups), counts)
    sizes = _get_sizes(groups, groups.logs.flatten(), group_of, state)
    ends = np.cumsum(counts)
    return [part.tolist() for part in np.split(sizes, ends[:-1])] if len(counts) else []


def _get_sizes(groups: Rewrites, names: Any, group_of: Integers, state: TableState) -> Integers:
    """Return the bytes of files by name and group; 0 for a null and for a missing file."""
    partition = to_arrow(groups.partition.to_pylist()).take(to_arrow(group_of))
    keys = pc.binary_join_element_wise(partition, names, "/")
    return np.maximum(find_sizes(state.files, keys), 0)
