"""Advise a compaction where log files make the declared queries dearer than a fifth; pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from reconciler import units
from reconciler.arrays import Floats, Mask
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.compact.deltacommits import count_deltacommits
from reconciler.planners.compact.planner import plan_compaction
from reconciler.planners.picture import TablePicture
from reconciler.planners.prediction.compacted_reads import CompactedReads, predict_compaction
from reconciler.planners.prediction.merge_costs import measure_merges
from reconciler.planners.reasons import format_bytes, pluralize
from reconciler.spec.compaction import Compaction, CompactionTrigger

if TYPE_CHECKING:
    from reconciler.planners.newest_slices import CandidateSlices
    from reconciler.planners.prediction.current_reads import CurrentReads

#: share by which reads may be dearer than those of compacted slices
MAX_EXTRA: Final = 0.2
#: shares of log files in the bytes of a slice that are proposed, the least work first
_LOG_SHARES: Final = (0.5, 0.3, 0.2, 0.1)
#: pending work that keeps a compaction from a slice
_HOLDERS: Final = frozenset({"pendingCompaction", "pendingLogCompaction", "pendingClustering"})
_DIGITS_FROM: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionAdvice:
    """What log files cost the queries, and the compaction to declare for it.

    ``bytes``: what all queries together read today; ``log_bytes``: of these, from ``log_files`` log
    files, which several queries may read. ``compacted_bytes``: what they would read if every
    slice that can be were compacted. ``block``: what to declare; None if nothing is worth it, or
    something is declared. ``because``: the reason.
    """

    bytes: int
    log_files: int
    log_bytes: int
    compacted_bytes: int
    block: Compaction | None = None
    because: str = ""


def advise_compaction(
    picture: TablePicture, current: CurrentReads, slices: CandidateSlices
) -> CompactionAdvice | None:
    """Return the advice about a compaction; None if no query reads a log file."""
    forecast_input = picture.state.forecast_input
    assert forecast_input is not None, "the spec has queries"
    merges = measure_merges(forecast_input, slices)
    costs = merges.count(current.reads.kept)
    if not any(cost.slices for cost in costs):
        return None
    is_read = current.reads.kept.any(axis=0)
    held = [code for code, (rule, _) in enumerate(slices.holders) if rule in _HOLDERS]
    can_compact = (merges.files > 0) & ~np.isin(slices.holder, held)
    after = predict_compaction(current, forecast_input, slices, merges, can_compact)
    reads = _CompactableReads(current, slices, after)
    found = CompactionAdvice(
        bytes=reads.count_bytes(np.zeros_like(can_compact)),
        log_files=int(merges.files[is_read].sum()),
        log_bytes=sum(cost.bytes for cost in costs),
        compacted_bytes=reads.count_bytes(can_compact),
    )
    if not (can_compact & is_read).any():
        return replace(found, because=f"{_describe_reads(found)}; pending work rewrites them")
    if found.bytes <= (1 + MAX_EXTRA) * found.compacted_bytes:
        limit = units.format_percent(MAX_EXTRA)
        enough = f"at most {limit} more needs no compaction"
        return replace(found, because=f"{_describe_cost(found)}; {enough}")
    shares = merges.bytes / np.maximum(slices.bytes, 1)
    return _propose(picture, found, _choose_share(reads, shares))


@dataclass(frozen=True, slots=True, eq=False)
class _CompactableReads:
    """What queries read today, and of slices that are compacted."""

    current: CurrentReads
    slices: CandidateSlices
    after: CompactedReads

    def count_bytes(self, is_compacted: Mask) -> int:
        """Return what all queries read if some slices are compacted."""
        kept = np.where(is_compacted, self.after.kept, self.current.reads.kept)
        return int((kept @ np.where(is_compacted, self.after.sizes, self.slices.bytes)).sum())


def _choose_share(reads: _CompactableReads, shares: Floats) -> float | None:
    """Return the greatest share of log files above which slices are worth compacting.

    None: every slice with log files is.
    """
    can_compact = reads.after.is_compacted
    most = (1 + MAX_EXTRA) * reads.count_bytes(can_compact)
    for share in _LOG_SHARES:
        if reads.count_bytes(can_compact & (shares > share)) <= most:
            return share
    return None


def _propose(
    picture: TablePicture, found: CompactionAdvice, share: float | None
) -> CompactionAdvice:
    """Return the advice with a block whose plan has a step, or why there is none."""
    cost = _describe_cost(found)
    declared = picture.spec.compaction
    if declared is not None:
        why = _explain_no_step(picture)
        then = "the next plan compacts them" if why is None else f"a plan leaves them: {why}"
        return replace(found, because=f"{cost}; compaction is declared, and {then}")
    when = None if share is None else CompactionTrigger(log_share_above=share)
    count = max(count_deltacommits(picture.state).count, 1)
    block = Compaction(after_delta_commits=min(Compaction().after_delta_commits, count), when=when)
    why = _explain_no_step(replace(picture, spec=replace(picture.spec, compaction=block)))
    if why is not None:
        return replace(found, because=f"{cost}; nothing is proposed: {why}")
    which = "all slices with log files"
    if share is not None:
        which = f"slices with more than {units.format_percent(share)} of their bytes in log files"
    because = f"{cost}; that ends once {which} are compacted"
    return replace(found, block=block, because=because)


def _explain_no_step(picture: TablePicture) -> str | None:
    """Return why a plan compacts nothing; None if it has a step."""
    part = plan_compaction(picture)
    if part is None or part.step is not None:
        return None
    notes = (*part.refusals, *part.warnings)
    because = next((note.because for note in notes), "no file slice is compacted")
    return because.removeprefix("no compaction: ")


def _describe_reads(found: CompactionAdvice) -> str:
    logs = f"{format_bytes(found.log_bytes)} of it from {pluralize(found.log_files, 'log file')}"
    return f"the queries together read {format_bytes(found.bytes)}, {logs}"


def _describe_cost(found: CompactionAdvice) -> str:
    return f"{_describe_reads(found)}: {_compare(found.bytes, found.compacted_bytes)}"


def _compare(now: int, then: int) -> str:
    """Return how much dearer reads are than those of compacted slices.

    >>> _compare(113, 100), _compare(250, 100)
    ('13 % more than of compacted slices, 100 B', '2.5 times the 100 B of compacted slices')
    >>> _compare(4000, 100), _compare(5, 0)
    ('40 times the 100 B of compacted slices', 'of compacted slices they would read nothing')
    """
    if not then:
        return "of compacted slices they would read nothing"
    size, times = format_bytes(then), now / then
    if now < 2 * then:
        return f"{100 * (times - 1):.0f} % more than of compacted slices, {size}"
    shown = f"{times:.1f}" if times < _DIGITS_FROM else f"{times:.0f}"
    return f"{shown} times the {size} of compacted slices"
