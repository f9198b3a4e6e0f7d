"""Choose which file slices of a simple bucket index are rewritten, each alone; pure.

The file group of a bucket stays one: it is neither merged with others nor split, because writers
look for a row in the one file group whose id begins with the number of the row's bucket. So a
rewrite can only put its rows in the declared order and fold its log files.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final

import numpy as np

from reconciler import units
from reconciler.arrays import Integers, Mask, to_arrow
from reconciler.hudi.files.bucket_ids import find_agreed_ids, find_bucket_ids
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.cluster.grouping import SliceGroups, concatenate_groups
from reconciler.planners.cluster.passes import has_few_logs
from reconciler.planners.cluster.slice_verdicts import SliceVerdicts
from reconciler.planners.drift import UnfoldedBuckets
from reconciler.planners.newest_slices import CandidateSlices
from reconciler.planners.reasons import pluralize
from reconciler.spec.model import Clustering

_ALONE: Final = "it is the file group of a bucket, which is neither merged nor split"


@dataclass(frozen=True, slots=True, eq=False)
class BucketGroups:
    """Groups of one bucket's slice each. ``reasons``: why each is rewritten."""

    slices: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    reasons: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.slices)

    @property
    def groups(self) -> SliceGroups:
        return SliceGroups(self.slices, np.arange(len(self.slices) + 1))

    def take(self, numbers: Integers) -> BucketGroups:
        """Return the groups with these numbers, in this order."""
        reasons = tuple(self.reasons[number] for number in numbers.tolist())
        return BucketGroups(self.slices[numbers], reasons)

    def join(
        self,
        groups: SliceGroups,
        outputs: Integers,
        reasons: list[str],
        candidates: CandidateSlices,
    ) -> tuple[SliceGroups, Integers, list[str]]:
        """Return these groups and others with their output files and reasons, by partition."""
        if not len(self):
            return groups, outputs, reasons
        both = concatenate_groups([self.groups, groups])
        order = np.argsort(candidates.partition[both.first_members], kind="stable")
        files = np.concatenate([np.ones(len(self), np.int64), outputs])
        texts = [*self.reasons, *reasons]
        return both.take(order), files[order], [texts[number] for number in order.tolist()]


def find_buckets(candidates: CandidateSlices) -> Mask:
    """Return which slices are buckets: those of partitions in which all file ids have a number."""
    is_numbered = find_bucket_ids(_file_ids(candidates))
    partitions = len(candidates.view.files.partitions)
    others = np.bincount(candidates.partition[~is_numbered], minlength=partitions)
    is_bucket: Mask = is_numbered & (others[candidates.partition] == 0)
    return is_bucket


def has_agreed_buckets(candidates: CandidateSlices) -> bool:
    """Return whether a bucket has the file id that non-blocking writers agree on."""
    return bool(find_agreed_ids(_file_ids(candidates)).any())


def _file_ids(candidates: CandidateSlices) -> object:
    return candidates.view.files.group_id.take(to_arrow(candidates.group))


def choose_buckets(
    candidates: CandidateSlices,
    verdicts: SliceVerdicts,
    clustering: Clustering,
    is_clustered: Mask,
    large: int,
) -> BucketGroups:
    """Return the buckets worth rewriting; all other buckets get a verdict with its reason.

    A bucket is as declared if it has a base file, few log bytes, and its rows in the declared
    order. In a partition, a share of others above ``smallFileShareAbove`` has all of these
    rewritten; under ``when: always`` any other is, also for a few log bytes. ``large``: bytes above
    which a file would be split.
    """
    is_bucket = find_buckets(candidates)
    is_open = is_bucket & verdicts.is_open
    if not is_open.any():
        return BucketGroups()
    always = clustering.when.always
    is_due = is_open & ~_find_folded(candidates, always=always)
    if clustering.columns:
        is_due |= is_open & ~is_clustered
    count = len(candidates.view.files.partitions)
    due = np.bincount(candidates.partition[is_due], minlength=count)
    total = np.bincount(candidates.partition[is_bucket], minlength=count)
    share = 0.0 if always else clustering.when.small_file_share_above
    # without a limit no share is above it
    fires = due > (1.0 if share is None else share) * total
    chosen = np.flatnonzero(is_due & fires[candidates.partition])

    def explain(partition: int) -> str:
        sentence = _count_due(int(due[partition]), int(total[partition]))
        return f"{sentence} ({_name_limit(clustering, exceeds=bool(fires[partition]))})"

    verdicts.decide("when", is_due & ~fires[candidates.partition], explain, candidates.partition)
    _explain_settled(candidates, verdicts, is_open & ~is_due, large)
    reasons = tuple(explain(code) for code in candidates.partition[chosen].tolist())
    return BucketGroups(chosen, reasons)


def measure_unfolded(
    candidates: CandidateSlices, is_rewritten: Mask, *, always: bool
) -> UnfoldedBuckets | None:
    """Measure the buckets that are rewritten to fold log files; None if there are none."""
    is_bucket = find_buckets(candidates)
    is_unfolded = is_bucket & is_rewritten & ~_find_folded(candidates, always=always)
    if not is_unfolded.any():
        return None
    count = len(candidates.view.files.partitions)
    total = np.bincount(candidates.partition[is_bucket], minlength=count)
    rewritten = np.bincount(candidates.partition[is_bucket & is_rewritten], minlength=count)
    touched = np.unique(candidates.partition[is_unfolded])
    return UnfoldedBuckets(
        buckets=int(is_unfolded.sum()),
        total=int(total[touched].sum()),
        partitions=len(touched),
        share=round(float((rewritten[touched] / total[touched]).max()), 3),
    )


def _find_folded(candidates: CandidateSlices, *, always: bool) -> Mask:
    """Return which slices have a base file and few log bytes, none at all under ``always``."""
    has_no_logs = candidates.logs == 0 if always else has_few_logs(candidates)
    is_folded: Mask = candidates.has_base & has_no_logs
    return is_folded


def _count_due(due: int, total: int) -> str:
    """Return how many buckets of a partition are not as declared.

    >>> _count_due(1, 4)
    '1 of 4 buckets is not as declared'
    """
    return f"{due} of {pluralize(total, 'bucket')} {'is' if due == 1 else 'are'} not as declared"


def _name_limit(clustering: Clustering, *, exceeds: bool) -> str:
    """Return the declared limit that a partition exceeds or does not."""
    share = clustering.when.small_file_share_above
    if clustering.when.always:
        return "when: always"
    if share is None:
        return "smallFileShareAbove is not declared"
    return f"{'above' if exceeds else 'within'} smallFileShareAbove {share:g}"


def _explain_settled(
    candidates: CandidateSlices, verdicts: SliceVerdicts, settled: Mask, large: int
) -> None:
    """Record why buckets that are as declared stay, first those that are too large."""
    limit = units.format_size(large)
    verdicts.decide(
        "bucket",
        settled & (candidates.base > large),
        f"its file is above {limit}, and the file of a bucket is not split: let Hudi have more "
        "buckets",
    )
    verdicts.decide("bucket", settled, f"{_ALONE}; it is as declared")
