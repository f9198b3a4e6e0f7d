"""How often a file slice was laid out as declared, and when that is often enough; pure.

Whatever is predicted of a rewrite, what comes of it may overlap again, or be read too much again:
then the next plan would find the same to do, and the next. This ends it. What no clustering laid
out as declared has made no pass; what one wrote is of the pass that it was over its partition. A
group makes the pass after the least of its slices', and is formed only where one of them has not
made passes enough. So a rewrite leaves fewer rows of the least pass in it, and makes none of that
pass or a lower one. Of rows by pass, least first, each rewrite lowers the first number that it
changes: that ends, as numbers do that are not negative, however many higher ones grow, since no
rewrite starts from passes that are enough. Only rows that others write begin again.

A pass is over a partition: where groups of one make several, all of its new files count as of the
last of them, so they have made no fewer than is written down. And it is of one declaration: another
overlap, size, group or query that is asked for is worth new passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from reconciler import canonical_json
from reconciler.hudi.files.view import find_group_codes
from reconciler.planners.cluster.candidates import CandidateSlices, find_candidates
from reconciler.planners.cluster.clustered import declared_layout, has_few_logs, is_clustered
from reconciler.planners.cluster.grouping import SliceGroups
from reconciler.planners.protection import build_table_view
from reconciler.plans.model import Rewrites
from reconciler.spec.model import Clustering, FileSizes, TableSpec
from reconciler.state.clustering_layout import PastClustering
from reconciler.state.clustering_passes import PASSES_KEY
from reconciler.state.clustering_passes import RecordedPasses as Written
from reconciler.state.model import TableState

#: passes that are enough beside one for every round in which groups are merged
_BASE_PASSES: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PassCounts:
    """``limits``: int64 per partition, passes. ``is_finished``: bool per slice, it has made so many.

    Then only others are a reason to rewrite it.
    """

    limits: NDArray[np.int64]
    is_done: NDArray[np.bool_]

    def needs_pass(self, groups: SliceGroups) -> NDArray[np.bool_]:
        """Per group, whether one of its slices has not made passes enough."""
        found: NDArray[np.bool_] = groups.sum_values((~self.is_done).astype(np.int64)) > 0
        return found


def count_passes(
    candidates: CandidateSlices,
    spec: TableSpec,
    clustering: Clustering,
    is_settled: NDArray[np.bool_],
    past: tuple[PastClustering, ...],
) -> PassCounts:
    """``is_settled``: bool per slice, it was laid out as declared, and little has changed since."""
    made, enough = (
        _count_made(candidates, is_settled, past, digest_declaration(spec, clustering)),
        _count_enough(candidates, clustering),
    )
    return PassCounts(limits=enough, is_done=made >= enough[candidates.partition])


def build_pass_metadata(spec: TableSpec, state: TableState, groups: Rewrites) -> dict[str, str]:
    """What a clustering says of the passes that it makes, in its extra metadata.

    ``state``: the table as the groups were found in it.
    """
    asked = spec.clustering
    if asked is None or not asked.columns or asked.when.always:
        return {}
    past = state.clustering_facts.clusterings if state.clustering_facts is not None else ()
    if not any(one.layout == declared_layout(asked) for one in past):
        return {}  # each group makes the first pass
    found = find_candidates(state, build_table_view(state))
    is_settled = is_clustered(found, past, declared_layout(asked)) & has_few_logs(found)
    digest = digest_declaration(spec, asked)
    made = np.append(_count_made(found, is_settled, past, digest), 0)
    of_group = np.full(len(found.view.files.group_partition) + 1, len(found), np.int64)
    of_group[found.group] = np.arange(len(found))
    partitions, ends = groups.partition.to_pylist(), pairwise(groups.starts.tolist())
    of = [
        path for path, (start, end) in zip(partitions, ends, strict=True) for _ in range(start, end)
    ]
    pairs = zip(of, groups.file_id.to_pylist(), strict=True)
    slices = of_group[find_group_codes(found.view.files, pairs)]
    least = np.minimum.reduceat(made[slices], groups.starts[:-1])
    later: dict[str, int] = {}
    for path, nth in zip(partitions, (least + 1).tolist(), strict=True):
        if nth > 1:
            later[path] = max(nth, later.get(path, 0))
    return {PASSES_KEY: Written(declaration_digest=digest, partitions=later).text} if later else {}


def digest_declaration(spec: TableSpec, clustering: Clustering) -> str:
    """Digest of what passes are made for, beside the layout."""
    limited = sorted(query.where for query in spec.queries if query.max_scan is not None)
    document = {
        "overlapAbove": clustering.when.overlap_above,
        "queries": limited,
        "perGroup": max_group_bytes(clustering),
        "target": (spec.files or FileSizes()).target,
    }
    return canonical_json.digest_document(document)


def max_group_bytes(clustering: Clustering) -> int:
    """The most bytes of a group of several slices."""
    return min(
        clustering.budget.per_group, clustering.budget.rewrite or clustering.budget.per_group
    )


def _count_made(
    found: CandidateSlices,
    is_settled: NDArray[np.bool_],
    past: tuple[PastClustering, ...],
    asked: str,
) -> NDArray[np.int64]:
    """Per slice the passes that it has made: 0 unless it is settled."""
    files = found.view.files
    partitions = {path: code for code, path in enumerate(files.partitions)}
    instants = {instant: code for code, instant in enumerate(files.instants)}
    said = [
        (instants[one.instant] * len(partitions) + partitions[path], nth)
        for one in past
        if one.instant in instants
        and (written := Written.read(one.extra)) is not None
        and written.declaration_digest == asked
        for path, nth in written.partitions.items()
        if path in partitions
    ]
    made = is_settled.astype(np.int64)
    if said:
        keys, nths = np.array(sorted(said), np.int64).T
        slices = np.flatnonzero(is_settled)
        own = files.instant[found.base_row[slices]].astype(np.int64) * len(partitions)
        own += found.partition[slices]
        at = np.minimum(np.searchsorted(keys, own), len(keys) - 1)
        made[slices] = np.where(keys[at] == own, np.maximum(nths[at], 1), 1)
    return made


def _count_enough(found: CandidateSlices, asked: Clustering) -> NDArray[np.int64]:
    """Per partition: as often as groups have to be merged until files of all of it can have met."""
    count = len(found.view.files.partitions)
    of = found.partition[found.has_base]
    files = np.maximum(np.bincount(of, minlength=count), 1)
    size = np.bincount(of, weights=found.base[found.has_base], minlength=count)
    together = np.maximum(max_group_bytes(asked) * files / np.maximum(size, 1), 2)
    rounds = np.ceil(np.log(files) / np.log(together))
    enough: NDArray[np.int64] = _BASE_PASSES + rounds.astype(np.int64)
    return enough
