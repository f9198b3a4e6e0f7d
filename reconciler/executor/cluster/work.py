"""Describe a pending clustering of ours: what a new one and a resumed one have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import to_arrow, to_numpy
from reconciler.errors import ReconcilerError
from reconciler.executor.result import LeftGroup
from reconciler.file_slices.base_file.write_stat import build_created_stat
from reconciler.hudi.files.table_files import make_present_keys
from reconciler.hudi.timeline.instant import Action
from reconciler.hudi.timeline.plans import (
    SORT_COLUMNS,
    ClusteringPlan,
    ClusteringPlanGroup,
    InputSlice,
    compute_group_metrics,
)
from reconciler.hudi.timeline.write_commit import WriteCommit
from reconciler.plans.groups import group_of_slices
from reconciler.plans.model import Rewrites
from reconciler.rewrite.facts import TableFacts
from reconciler.rewrite.file_ids import make_output_id, make_seed
from reconciler.rewrite.model import RewrittenGroup
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
from reconciler.transaction.conflicts import GroupClaim
from reconciler.transaction.footprints import CompletedWrites

if TYPE_CHECKING:
    from reconciler.executor.session import ApplySession

#: Hudi's own key, of every commit
SCHEMA: Final = "schema"
_EIGHT: Final = 8
#: what Hudi's writers take for small unless they are told otherwise
_HUDIS_SMALL: Final = 104_857_600


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterWork:
    """A requested clustering and what of it runs.

    ``extra``: of the request and of the completed file. ``known``: the completed writes that the
    groups were chosen after. ``attempt``: a text that no other attempt has. ``measurement``: what
    the declared queries read of the new files; None before those are there, and without queries.
    """

    instant: str
    groups: Rewrites
    layout: ClusteringLayout
    facts: TableFacts
    state: TableState
    extra: Mapping[str, str]
    known: CompletedWrites
    attempt: str
    left: tuple[LeftGroup, ...] = ()
    gone: int = 0
    measurement: QueryMeasurement | None = None

    @property
    def action(self) -> Action:
        return get_clustering_action(self.state.table_version)

    def make_extra(self, numbers_kept: Sequence[int]) -> dict[str, str]:
        """Return the extra metadata of the completed file when only some groups are published."""
        extra = {key: text for key, text in self.extra.items() if key != PREDICTED_KEY}
        if (how := ClusteringContext.read(extra)) is not None:
            dropped = np.ones(len(self.groups), np.bool_)
            dropped[list(numbers_kept)] = False
            more = int(np.diff(self.groups.starts)[dropped].sum())
            waiting = how.remaining_slices + more + sum(one.slices for one in self.left)
            extra[CIRCUMSTANCES_KEY] = replace(how, remaining_slices=waiting).text
        measured = (
            self.measurement.select_groups(numbers_kept) if self.measurement is not None else ()
        )
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
    return Action.CLUSTERING if version >= _EIGHT else Action.REPLACECOMMIT


def make_claims(groups: Rewrites, state: TableState, spec: TableSpec) -> list[GroupClaim]:
    """Return the groups as claims, for which conflicts are looked for."""
    ids = groups.file_id.to_pylist()
    sizes = get_base_sizes(groups, state)
    small = max((spec.files or FileSizes()).small, _HUDIS_SMALL)
    has_logs = to_numpy(pc.list_value_length(groups.logs)) > 0
    is_open = (sizes < small) | has_logs
    return [
        GroupClaim(
            partition=partition,
            ids=frozenset(ids[start:end]),
            is_open=bool(is_open[start:end].any()),
        )
        for partition, (start, end) in zip(
            groups.partition.to_pylist(), pairwise(groups.starts.tolist()), strict=True
        )
    ]


def make_requested_plan(
    groups: Rewrites,
    state: TableState,
    spec: TableSpec,
    layout: ClusteringLayout,
    extra: Mapping[str, str],
) -> ClusteringPlan:
    """Return the plan that a clustering requests, and that any Hudi writer may execute."""
    target = (spec.files or FileSizes()).target
    sizes = get_base_sizes(groups, state)
    log_sizes = _get_log_sizes(groups, state)
    slices = [
        InputSlice(partition="", file_id=file_id, base_file=base, log_files=tuple(reversed(logs)))
        for file_id, base, logs in zip(
            groups.file_id.to_pylist(),
            groups.base.to_pylist(),
            groups.logs.to_pylist(),
            strict=True,
        )
    ]
    planned = []
    for partition, outputs, (start, end) in zip(
        groups.partition.to_pylist(),
        groups.outputs.tolist(),
        pairwise(groups.starts.tolist()),
        strict=True,
    ):
        bases = [
            None if one.base_file is None else int(size)
            for one, size in zip(slices[start:end], sizes[start:end], strict=True)
        ]
        logs = [size for found in log_sizes[start:end] for size in found]
        planned.append(
            ClusteringPlanGroup(
                slices=tuple(_place_in(partition, one) for one in slices[start:end]),
                output_count=outputs,
                metrics=compute_group_metrics(bases, logs, target),
            )
        )
    strategy = {SORT_COLUMNS: ",".join(layout.columns)} if layout.columns else {}
    return ClusteringPlan(groups=tuple(planned), strategy=strategy, extra=extra)


def make_completed_commit(
    work: ClusterWork, results: Sequence[RewrittenGroup], numbers_kept: Sequence[int]
) -> WriteCommit:
    """Return what the clustering did in the groups that are kept.

    ``results``: in the order of the groups.
    """
    partitions = work.groups.partition.to_pylist()
    ids, starts = work.groups.file_id.to_pylist(), work.groups.starts.tolist()
    written: dict[str, list[Mapping[str, str | int]]] = {}
    replaced: dict[str, list[str]] = {}
    for number in numbers_kept:
        partition = partitions[number]
        stats = [build_created_stat(file, partition) for file in results[number].files]
        if stats:
            written.setdefault(partition, []).extend(stats)
        replaced.setdefault(partition, []).extend(ids[starts[number] : starts[number + 1]])
    return WriteCommit(
        operation="CLUSTER",
        stats_by_partition=written,
        replaced=replaced,
        extra={**work.make_extra(numbers_kept), SCHEMA: work.facts.avro},
    )


def make_circumstances_extra(session: ApplySession) -> dict[str, str]:
    """Return the extra metadata by which whoever completes a clustering can judge it.

    It records what was predicted for the declared queries, the target of file sizes, and how much
    waits for another run.
    """
    layout = session.plan.layout
    left = [one.slices for one in (layout.untouched if layout else ()) if one.rule == "budget"]
    how = ClusteringContext(
        target=(session.spec.files or FileSizes()).target, remaining_slices=sum(left)
    )
    extra = {CIRCUMSTANCES_KEY: how.text}
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
        found = by_number[number]
        rows = sum(file.rows for file in found.files)
        if found.read != found.written or rows != found.written.rows:
            alike = "are the same" if found.read.keys == found.written.keys else "differ"
            raise ReconcilerError(
                f"clustering {work.instant}, a group of partition {partition!r}: {found.read.rows} "
                f"rows were read, {found.written.rows} were written, {rows} are in its files, and "
                f"their keys {alike}; nothing was published. This is an error of this program or "
                "of the machine: report it"
            )
    return [by_number[number] for number in range(len(partitions))]


def get_base_sizes(groups: Rewrites, state: TableState) -> NDArray[np.int64]:
    """Return the bytes of every slice's base file, 0 without one."""
    return _get_sizes(groups, groups.base, group_of_slices(groups), state)


def _get_log_sizes(groups: Rewrites, state: TableState) -> list[list[int]]:
    """Return the bytes of the log files of every slice."""
    counts = to_numpy(pc.list_value_length(groups.logs)).astype(np.int64)
    of = np.repeat(group_of_slices(groups), counts)
    sizes = _get_sizes(groups, groups.logs.flatten(), of, state)
    ends = np.cumsum(counts)
    return [part.tolist() for part in np.split(sizes, ends[:-1])] if len(counts) else []


def _get_sizes(
    groups: Rewrites, names: Any, group_of: NDArray[np.int64], state: TableState
) -> NDArray[np.int64]:
    """Return the bytes of files by name and group; 0 for a null and for a file that is gone."""
    partition = to_arrow(groups.partition.to_pylist()).take(to_arrow(group_of))
    keys = pc.binary_join_element_wise(partition, names, "/")
    rows = to_numpy(pc.index_in(keys, value_set=make_present_keys(state.files)).fill_null(-1))
    if not len(state.files):
        return np.zeros(len(rows), np.int64)
    sizes: NDArray[np.int64] = np.where(rows >= 0, state.files.size[rows], 0)
    return sizes


def _place_in(partition: str, one: InputSlice) -> InputSlice:
    return InputSlice(
        partition=partition,
        file_id=one.file_id,
        base_file=one.base_file,
        log_files=one.log_files,
    )
