"""Count how often file slices were clustered as declared, and when that is enough; pure.

After a rewrite, files may still overlap or be read too much, so every plan would rewrite them
again. Counting passes ends that. Slices that no clustering wrote as declared have made 0 passes.
Files of a clustering have the pass number that it had for their partition. A group makes the pass
after the lowest one of its slices, and it is formed only if one of its slices may make another
pass. So each rewrite reduces the number of rows with the lowest pass in it and adds none with that
pass or a lower one. The row counts ordered by pass therefore decrease with every rewrite, and
rewriting ends. Only rows from new writes start again at 0.

Passes are counted per partition: if groups of one partition make different passes, all its new
files get the highest number. They are counted per declaration: another overlap limit, file size,
group size or query starts the count again.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import numpy as np

from reconciler import canonical_json
from reconciler.arrays import Integers, Mask
from reconciler.hudi.files.view import find_group_codes
from reconciler.layout.sizing.record_size import LOG_RATIO
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.cluster.grouping import SliceGroups
from reconciler.planners.cluster.size_limits import SizeLimits
from reconciler.planners.newest_slices import CandidateSlices, find_candidates
from reconciler.plans.rewrites import Rewrites
from reconciler.spec.model import Clustering, FileSizes, TableSpec
from reconciler.state.clustering_layout import (
    PASSES_KEY,
    ClusteringLayout,
    PastClustering,
    declared_layout,
)
from reconciler.state.clustering_layout import RecordedPasses as Written
from reconciler.state.model import TableState

#: passes that are enough, plus one per round in which groups are merged
_BASE_PASSES: Final = 2
#: greatest size of a settled slice's log files, as a share of its base file
_MAX_LOG_SHARE: Final = 0.5
#: more passes than any slice makes
_NEVER: Final = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PassCounts:
    """The limit of passes, and which slices have reached it.

    ``limits``: int64 per partition. ``is_done``: bool per slice; such a slice is rewritten only
    together with slices that may make another pass.
    """

    limits: Integers
    is_done: Mask

    def needs_pass(self, groups: SliceGroups) -> Mask:
        """Return per group whether one of its slices may make another pass."""
        return groups.sum_values((~self.is_done).astype(np.int64)) > 0


def count_passes(
    candidates: CandidateSlices,
    spec: TableSpec,
    clustering: Clustering,
    is_settled: Mask,
    past: tuple[PastClustering, ...],
) -> PassCounts:
    """Count the passes of each slice.

    ``is_settled``: bool per slice, it is clustered as declared and has few log bytes.
    """
    made, enough = (
        _count_made(candidates, is_settled, past, digest_declaration(spec, clustering)),
        _count_enough(candidates, clustering),
    )
    return PassCounts(limits=enough, is_done=made >= enough[candidates.partition])


def build_pass_metadata(spec: TableSpec, state: TableState, groups: Rewrites) -> dict[str, str]:
    """Return the extra metadata with the passes that a clustering makes.

    ``state``: the table for which the groups were planned.
    """
    clustering = spec.rewriting
    if clustering is None or clustering.when.always:
        return {}
    if not clustering.columns and not _brings_sizes(spec):
        return {}
    past = state.clustering_facts.clusterings if state.clustering_facts is not None else ()
    layout = declared_layout(clustering)
    if layout.columns and not any(earlier.layout == layout for earlier in past):
        return {}  # each group makes the first pass
    candidates = find_candidates(state)
    is_settled = is_clustered(candidates, past, layout) & has_few_logs(candidates)
    if not is_settled.any():
        return {}
    digest = digest_declaration(spec, clustering)
    made = np.append(_count_made(candidates, is_settled, past, digest), 0)
    # a file that only takes the rest of small ones must not let them begin to count anew
    only_takes = _only_takes_rest(candidates, spec, is_settled | (not layout.columns))
    counts = np.append(~only_takes, np.True_)
    of_group = np.full(len(candidates.view.files.group_partition) + 1, len(candidates), np.int64)
    of_group[candidates.group] = np.arange(len(candidates))
    partitions, ends = groups.partition.to_pylist(), pairwise(groups.starts.tolist())
    slice_partitions = [
        path for path, (start, end) in zip(partitions, ends, strict=True) for _ in range(start, end)
    ]
    pairs = zip(slice_partitions, groups.file_id.to_pylist(), strict=True)
    slices = of_group[find_group_codes(candidates.view.files, pairs)]
    least = _find_least(made[slices], counts[slices], groups.starts[:-1])
    later: dict[str, int] = {}
    for path, nth in zip(partitions, (least + 1).tolist(), strict=True):
        if nth > 1:
            later[path] = max(nth, later.get(path, 0))
    return {PASSES_KEY: Written(declaration_digest=digest, partitions=later).text} if later else {}


def _find_least(made: Integers, counts: Mask, starts: Integers) -> Integers:
    """Return per group the least passes of the slices that count, or of all if none does."""
    least = np.minimum.reduceat(np.where(counts, made, _NEVER), starts)
    chosen: Integers = np.where(least == _NEVER, np.minimum.reduceat(made, starts), least)
    return chosen


def _only_takes_rest(candidates: CandidateSlices, spec: TableSpec, is_ordered: Mask) -> Mask:
    """Return which slices nothing but the small files of a quiet partition has rewritten.

    ``is_ordered``: per slice, its rows are ordered as declared.
    """
    limits = SizeLimits.from_spec(spec.files or FileSizes())
    if not limits.keeps_no_small:
        return np.zeros(len(candidates), np.bool_)
    fits: Mask = ~limits.find_small(candidates) & ~limits.find_large(candidates)
    return fits & is_ordered


def digest_declaration(spec: TableSpec, clustering: Clustering) -> str:
    """Return the digest of the declared goals for which passes are counted, besides the layout."""
    limited = sorted(query.where for query in spec.queries if query.max_scan is not None)
    gain, files = clustering.when.gain_above, spec.files or FileSizes()
    document: dict[str, Any] = {
        **({} if gain is None else {"gainAbove": gain}),
        "overlapAbove": clustering.when.overlap_above,
        "queries": limited,
        "perGroup": clustering.budget.max_group_bytes,
        "target": files.target,
    }
    if _brings_sizes(spec):
        document |= {"small": files.small, "large": files.large}
    return canonical_json.digest_document(document)


def _brings_sizes(spec: TableSpec) -> bool:
    """Return whether existing files are brought to declared sizes."""
    return spec.files is not None and spec.files.when is not None


def _count_made(
    candidates: CandidateSlices,
    is_settled: Mask,
    past: tuple[PastClustering, ...],
    clustering: str,
) -> Integers:
    """Return per slice the passes that it has made; 0 unless it is settled."""
    files = candidates.view.files
    partitions = {path: code for code, path in enumerate(files.partitions)}
    instants = {instant: code for code, instant in enumerate(files.instants)}
    recorded = [
        (instants[earlier.instant] * len(partitions) + partitions[path], nth)
        for earlier in past
        if earlier.instant in instants
        and (written := Written.read(earlier.extra)) is not None
        and written.declaration_digest == clustering
        for path, nth in written.partitions.items()
        if path in partitions
    ]
    made = is_settled.astype(np.int64)
    if recorded:
        keys, nths = np.array(sorted(recorded), np.int64).T
        slices = np.flatnonzero(is_settled)
        key = files.instant[candidates.base_row[slices]].astype(np.int64) * len(partitions)
        key += candidates.partition[slices]
        at = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        made[slices] = np.where(keys[at] == key, np.maximum(nths[at], 1), 1)
    return made


def _count_enough(candidates: CandidateSlices, clustering: Clustering) -> Integers:
    """Return per partition the rounds of merging groups until all of its files can be together."""
    count = len(candidates.view.files.partitions)
    partitions = candidates.partition[candidates.has_base]
    files = np.maximum(np.bincount(partitions, minlength=count), 1)
    size = np.bincount(partitions, weights=candidates.base[candidates.has_base], minlength=count)
    together = np.maximum(clustering.budget.max_group_bytes * files / np.maximum(size, 1), 2)
    rounds = np.ceil(np.log(files) / np.log(together))
    return _BASE_PASSES + rounds.astype(np.int64)


def is_clustered(
    candidates: CandidateSlices, past: tuple[PastClustering, ...], declared: ClusteringLayout
) -> Mask:
    """Return which slices have a base file that a clustering wrote with the declared layout.

    A layout without columns accepts every clustering.
    """
    files = candidates.view.files
    done = {p.instant for p in past if not declared.columns or p.layout == declared}
    is_done = np.array([instant in done for instant in files.instants], np.bool_)
    if not len(files):
        return np.zeros(len(candidates), np.bool_)
    return is_done[files.instant[candidates.base_row]] & candidates.has_base


def has_few_logs(candidates: CandidateSlices) -> Mask:
    """Return which slices have few log bytes compared with their base file."""
    return candidates.logs * LOG_RATIO <= candidates.base * _MAX_LOG_SHARE
