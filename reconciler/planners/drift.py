"""Find where a table differs from its spec."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import datetime

from reconciler import units
from reconciler.canonical_json import to_document
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.model import Finding
from reconciler.spec.model import Clustering, FileSizes, Policy, Retention, TableSpec
from reconciler.state.clustering_layout import ClusteringLayout, PastClustering
from reconciler.state.model import TableState

RETENTION_FIELDS = {
    Policy.COMMITS: "retention.commits",
    Policy.HOURS: "retention.hours",
    Policy.FILE_VERSIONS: "retention.fileVersions",
}
_SECONDS = 14  # digits of an instant down to seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcessSlices:
    """File slices past retention that no other rule keeps.

    ``oldest``: instant of the oldest slice. ``versions``: most versions of a live file group.
    ``cutoff``: instant at which a retention window of hours starts.
    """

    slices: int
    files: int
    oldest: str
    versions: int
    cutoff: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfoldedBuckets:
    """Buckets that are rewritten to fold their log files.

    ``total``: all buckets of their ``partitions``. ``share``: greatest share of a partition's
    buckets that is rewritten.
    """

    buckets: int
    total: int
    partitions: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UnclusteredSlices:
    """File slices that are rewritten because they are not clustered as declared.

    ``layout``: the declared layout; ``past``: the newest completed clustering. ``mean_bytes``: mean
    size of a base file of the slices; None if all have only log files. ``small`` of ``files`` base
    files are small in the ``partitions`` with too many of them, ``only_logs`` of them slices
    without a base file.
    ``large`` base files are above ``files.large``.
    ``overlap``: greatest of a partition; None if unknown. ``gain``: greatest predicted share of
    files by which reads of a partition fall; None if no partition is rewritten for it.
    ``unfolded``: buckets that have log files to fold; None if there are none.
    """

    layout: ClusteringLayout
    past: PastClustering | None
    slices: int
    partitions: int
    mean_bytes: int | None
    small: int
    files: int
    overlap: float | None
    gain: float | None = None
    large: int = 0
    only_logs: int = 0
    unfolded: UnfoldedBuckets | None = None


def find_drift(
    spec: TableSpec,
    state: TableState,
    excess: ExcessSlices | None,
    unclustered: UnclusteredSlices | None = None,
) -> tuple[Finding, ...]:
    """Return every difference between a table and its spec.

    ``excess`` is None if no slice is past retention, ``unclustered`` if none is to be clustered.
    """
    findings = []
    if spec.retention is not None:
        if excess is not None:
            findings.append(_describe_excess(spec.retention, state, excess))
        by_writers = _find_foreign_policy(spec.retention, state)
        findings += [by_writers] if by_writers else []
    if unclustered is not None and spec.rewriting is not None:
        findings += _find_layout_drift(spec.rewriting, spec.files or FileSizes(), unclustered)
        if unclustered.unfolded is not None:
            block = "files" if spec.clustering is None else "clustering"
            findings.append(_describe_unfolded(block, spec.rewriting, unclustered.unfolded))
    return tuple(findings)


def _find_layout_drift(
    clustering: Clustering, files: FileSizes, misfit: UnclusteredSlices
) -> Iterator[Finding]:
    if clustering.columns:
        yield from _find_order_drift(misfit)
    if misfit.small or misfit.large:
        yield Finding(
            field="files.target",
            desired=files.target,
            actual=misfit.mean_bytes,
            because=_describe_sizes(files, misfit),
        )
    above = clustering.when.overlap_above
    if misfit.overlap is not None and above is not None and misfit.overlap > above:
        yield Finding(
            field="clustering.when.overlapAbove",
            desired=above,
            actual=misfit.overlap,
            because=f"up to {misfit.overlap} files overlap per row (limit {above:g})",
        )
    if misfit.gain is not None:
        yield Finding(
            field="clustering.when.gainAbove",
            desired=clustering.when.gain_above,
            actual=misfit.gain,
            because=f"a rewrite lets queries read up to {100 * misfit.gain:.0f} % fewer files",
        )


def _describe_sizes(files: FileSizes, misfit: UnclusteredSlices) -> str:
    """Return how many files are below and above the declared sizes."""
    partitions = f"{misfit.partitions} partition" + ("" if misfit.partitions == 1 else "s")
    noun, clauses = "file slices" if misfit.only_logs else "base files", list[str]()
    for count, side in (
        (misfit.small, f"below files.small, {units.format_size(files.existing_small)}"),
        (misfit.large, f"above files.large, {units.format_size(files.large or 0)}"),
    ):
        of_files = "" if clauses else f" of {misfit.files} {noun} in {partitions}"
        clauses += [f"{count}{of_files} {'is' if count == 1 else 'are'} {side}"] if count else []
    return ", and ".join(clauses)


def _describe_unfolded(block: str, clustering: Clustering, unfolded: UnfoldedBuckets) -> Finding:
    """Return that buckets have log files to fold; ``when: always`` leaves none."""
    when, partitions = clustering.when, f"{unfolded.partitions} partition"
    partitions += "" if unfolded.partitions == 1 else "s"
    verb = "has" if unfolded.buckets == 1 else "have"
    return Finding(
        field=f"{block}.when.smallFileShareAbove",
        desired=0.0 if when.always else float(when.small_file_share_above or 0),
        actual=unfolded.share,
        because=f"{unfolded.buckets} of {unfolded.total} buckets in {partitions} {verb} log files "
        "to fold into the base file",
    )


def _find_order_drift(misfit: UnclusteredSlices) -> Iterator[Finding]:
    """Yield the difference in row order from the newest clustering, or that there is none."""
    declared, past = misfit.layout, misfit.past
    name, actual = "columns", None
    if past is None:
        because = "the table has not been clustered yet"
    elif past.layout is None:
        because = f"clustering {past.instant} did not record how it ordered rows"
    else:
        because = f"clustering {past.instant} ordered rows this way"
        fields = [field.name for field in dataclasses.fields(declared)]
        name = next((n for n in fields if getattr(declared, n) != getattr(past.layout, n)), "")
        actual = to_document(getattr(past.layout, name)) if name else None
    if name:
        desired = to_document(getattr(declared, name))
        yield Finding(f"clustering.{name}", desired, actual, because)


def _describe_excess(retention: Retention, state: TableState, excess: ExcessSlices) -> Finding:
    slices = f"{excess.slices} file slice" + ("" if excess.slices == 1 else "s")
    files = f"{excess.files} file" + ("" if excess.files == 1 else "s")
    exceed = "exceeds" if excess.slices == 1 else "exceed"
    return Finding(
        field=RETENTION_FIELDS[retention.policy],
        desired=retention.keep,
        actual=_measure_retention(retention, state, excess),
        because=f"{slices} in {files} {exceed} it, the oldest of {excess.oldest}",
    )


def _measure_retention(retention: Retention, state: TableState, excess: ExcessSlices) -> int:
    match retention.policy:
        case Policy.COMMITS:
            return sum(i.requested >= excess.oldest for i in state.timeline.commits)
        case Policy.HOURS:
            return retention.keep + _hours_between(excess.oldest, excess.cutoff or excess.oldest)
        case Policy.FILE_VERSIONS:
            return excess.versions


def _hours_between(earlier: str, later: str) -> int:
    """Return the hours between two instants, rounded up; 0 if one is not a time (bootstrap)."""
    try:
        start, end = (
            datetime.strptime(i[:_SECONDS], "%Y%m%d%H%M%S")  # noqa: DTZ007 (difference only)
            for i in (earlier, later)
        )
    except ValueError:
        return 0
    return max(0, -int(-(end - start).total_seconds() // 3600))


def _find_foreign_policy(retention: Retention, state: TableState) -> Finding | None:
    """Return the policy of another writer's last clean if it contradicts the spec."""
    for clean in reversed(state.cleans):
        if clean.is_blank or clean.policy is None or "reconciler.plan.digest" in clean.extra:
            continue
        if clean.policy == retention.policy.value:
            return None
        return Finding(
            field="retention.policy",
            desired=retention.policy.value,
            actual=clean.policy,
            because=f"clean {clean.instant} of another writer used it; the table has two retention "
            "policies while its writers also clean it (hoodie.clean.automatic)",
        )
    return None
