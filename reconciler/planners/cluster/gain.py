"""Find the groups that make queries read more than ``gainAbove`` fewer files; pure.

All files of a partition that may be rewritten are tried: those that no clustering laid out as
declared alone, and together with those that earlier clusterings laid out. Both are rewritten if
they would otherwise overlap too much again, so that a second plan finds nothing to do. Files that
were rewritten together stay: their curve can do no better. Groups of one clustering may cover the
same values, so their files are tried too. Groups without a gain of their own stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from reconciler.arrays import Codes, Floats, Integers, Mask
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.cluster.asked_boxes import AskedBoxes
from reconciler.planners.cluster.clustering_input import ClusteringInput, SimulatedGains
from reconciler.planners.cluster.grouping import SliceGroups, concatenate_groups
from reconciler.planners.cluster.read_model import (
    READ_FIGURES,
    BlockReads,
    FileBlocks,
    predict_reads,
)
from reconciler.planners.reasons import format_bytes
from reconciler.plans.layout_change import PartitionGain

#: least gain of a group of a partition with several groups
_MIN_GROUP_GAIN: Final = 0.1
#: how many times the predicted files may be read after a rewrite
_PREDICTION_ERROR: Final = 1.25
#: share of the limit that may remain for a joint rewrite after one of the new files alone
_REMAINING: Final = 0.75


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartitionGains:
    """The predicted gain of the partitions, and the groups that bring it.

    ``reads``: what is read of each partition now, and if ``groups`` are rewritten, or all that may
    be if that is not worth it; NaN where it was not predicted. ``fires``: per partition.
    ``limit``: ``gainAbove``. ``is_declared``: the reads are those of declared queries.
    """

    groups: SliceGroups
    reads: BlockReads
    fires: Mask
    limit: float
    is_declared: bool

    @property
    def share(self) -> Floats:
        """Return the share of files by which reads fall, per partition; NaN if not predicted."""
        with np.errstate(invalid="ignore", divide="ignore"):
            gain = 1 - self.reads.files_then / self.reads.files_now
        return np.where(self.reads.files_now > 0, np.maximum(gain, 0.0), self.reads.files_now * 0)

    def explain(self, partition: int, rewritten: int | None = None) -> str:
        """Explain the gain of a partition; ``rewritten``: bytes of its groups."""
        reads = self.reads
        now, then = float(reads.files_now[partition]), float(reads.files_then[partition])
        share = max(1 - then / now, 0.0) if now > 0 else 0.0
        asked = "a declared query" if self.is_declared else "a box of 1 % of the rows"
        side = "above" if self.fires[partition] else "within"
        text = (
            f"{asked} reads {now:.1f} files now and {then:.1f} after, {100 * share:.0f} % fewer "
            f"({side} gainAbove {self.limit:g})"
        )
        if rewritten is None:
            return text
        saved = float(reads.bytes_now[partition] - reads.bytes_then[partition])
        return f"{text}; {explain_payback(rewritten, saved)}"

    def is_predicted(self, partition: int) -> bool:
        """Return whether the gain of a partition was predicted."""
        return not np.isnan(self.reads.files_now[partition])

    def explain_best(self) -> str:
        """Explain the greatest gain of a partition; empty if none was predicted."""
        share = np.where(np.isnan(self.share), -1.0, self.share)
        if not len(share) or share.max() < 0:
            return ""
        best = self.explain(int(share.argmax()))
        where = "in the partition that would gain most, " if (share >= 0).sum() > 1 else ""
        return f"{where}{best}"


def explain_payback(rewritten: int, saved: float) -> str:
    """Explain how many reads pay a rewrite back.

    >>> explain_payback(1024, 41.0)
    'rewriting 1.0 KiB is paid back by 25 reads'
    >>> explain_payback(1024, -41.0)
    'rewriting 1.0 KiB saves files, not bytes'
    """
    if saved <= 0:
        return f"rewriting {format_bytes(rewritten)} saves files, not bytes"
    reads = max(round(rewritten / saved), 1)
    return f"rewriting {format_bytes(rewritten)} is paid back by {reads} read{'s' * (reads != 1)}"


def find_gains(need: ClusteringInput, is_open: Mask) -> PartitionGains | None:
    """Return the predicted gains; None if ``gainAbove`` is not declared or nothing is known.

    ``is_open``: per slice, whether it may be rewritten.
    """
    limit = need.clustering.when.gain_above
    if limit is None or need.asked is None:
        return None
    is_tried = is_open & need.candidates.has_base
    gains = _GainSearch(need, need.asked, limit, is_tried).run()
    if need.simulated is None or not need.asked.is_declared:
        return gains
    is_rest = is_tried & ~gains.fires[need.candidates.partition]
    at_best = _GainSearch(need, need.asked, limit, is_rest, at_best=True).run()
    return _confirm_gains(gains, at_best, need.simulated, need.candidates.partition)


def _confirm_gains(
    gains: PartitionGains, at_best: PartitionGains, simulated: SimulatedGains, partition: Codes
) -> PartitionGains:
    """Return the gains of partitions as simulated where they are known.

    ``at_best``: the gains of other partitions if a query reads one new file of each group; they
    count only if they are simulated. ``partition``: per slice.
    """
    groups = concatenate_groups([gains.groups, at_best.groups])
    if simulated.reads is None:
        return replace(gains, groups=groups, fires=gains.fires | at_best.fires)
    is_known = ~np.isnan(simulated.reads.files_now) & (gains.fires | at_best.fires)
    reads = _overwrite(gains.reads, simulated.reads, is_known)
    with np.errstate(invalid="ignore"):
        is_worth = reads.files_then < (1 - gains.limit) * reads.files_now
    fires = np.where(is_known, is_worth, gains.fires)
    groups = groups.filter(fires[partition[groups.first_members]])
    return replace(gains, groups=groups, reads=reads, fires=fires)


def _overwrite(reads: BlockReads, other: BlockReads, where: Mask) -> BlockReads:
    """Return the reads, replaced by those of others in some places."""
    return BlockReads.build(
        {name: np.where(where, getattr(other, name), getattr(reads, name)) for name in READ_FIGURES}
    )


@dataclass(frozen=True, slots=True)
class _GainSearch:
    need: ClusteringInput
    asked: AskedBoxes
    limit: float
    is_open: Mask
    at_best: bool = False

    def run(self) -> PartitionGains:
        need, partition = self.need, self.need.candidates.partition
        measured = self._find_partitions()
        is_tried = self.is_open & measured[partition]
        is_new = is_tried & ~need.is_settled
        mixed = self._mark_partitions(is_tried & need.is_settled) & measured
        together = self._try_groups(self._form_groups(is_tried), measured)
        apart = self._try_groups(self._form_groups(is_new & mixed[partition]), mixed)
        now = np.where(mixed, apart.total.files_then, together.total.files_then)
        joins, alone = self._decide(together.total, now, self._mark_partitions(is_new))
        parts = [
            together.select(joins | (alone & ~mixed), partition),
            apart.select(alone & mixed, partition),
        ]
        parts = [self._drop_groups_without_gain(part) for part in parts]
        groups = concatenate_groups([part.groups for part in parts])
        reads = together.total
        for part in parts:
            reads = part.replace_reads(reads, partition)
        return PartitionGains(
            groups=groups,
            reads=reads,
            fires=self._mark_partitions(groups.members),
            limit=self.limit,
            is_declared=self.asked.is_declared,
        )

    def _mark_partitions(self, slices: Mask | Integers) -> Mask:
        """Return which partitions have one of the slices."""
        marked = np.zeros(len(self.need.triggers.fires), np.bool_)
        marked[self.need.candidates.partition[slices]] = True
        return marked

    def _find_partitions(self) -> Mask:
        """Return the partitions whose gain is not known without a prediction.

        Nothing is gained of files that were rewritten together. Where all files are new and
        small, and too many are, they are rewritten anyway.
        """
        need, candidates = self.need, self.need.candidates
        partition, count = candidates.partition, len(need.triggers.fires)
        new = np.zeros(count, np.bool_)
        new[partition[self.is_open & ~need.is_settled]] = True
        several = np.zeros(count, np.bool_)
        several[partition[self._differs_from_previous()]] = True
        others = np.zeros(count, np.bool_)
        others[partition[candidates.has_base & (need.is_settled | ~need.triggers.is_small)]] = True
        known = np.zeros(count, np.bool_)
        is_known = self.asked.ranges.is_known[candidates.base_row] & candidates.has_base
        known[partition[is_known]] = True
        is_certain = need.triggers.fires & ~others
        return known & (new | several) & ~is_certain

    def _differs_from_previous(self) -> Mask:
        """Return which settled slices were not rewritten together with the one before them.

        They have another instant, or one whose clustering had several groups in their partition.
        """
        candidates = self.need.candidates
        settled = np.flatnonzero(self.is_open & self.need.is_settled)
        instant = candidates.view.files.instant[candidates.base_row[settled]]
        partition = candidates.partition[settled]
        differs = np.zeros(len(candidates), np.bool_)
        is_other = (np.diff(partition) == 0) & (np.diff(instant) != 0)
        differs[settled[1:][is_other]] = True
        differs[settled] |= self._find_split()[settled]
        return differs

    def _find_split(self) -> Mask:
        """Return which settled slices one clustering wrote in several groups of a partition.

        They are more than a group may have, so a rewrite brings files of several groups together.
        """
        need, candidates = self.need, self.need.candidates
        is_split = np.zeros(len(candidates), np.bool_)
        settled, files = np.flatnonzero(need.is_settled), candidates.view.files
        if not len(settled):
            return is_split
        instant = files.instant[candidates.base_row[settled]]
        both = candidates.partition[settled].astype(np.int64) * len(files.instants) + instant
        order = np.argsort(both, kind="stable")
        settled, is_first = settled[order], np.diff(both[order], prepend=-1) != 0
        size = np.add.reduceat(candidates.base[settled], np.flatnonzero(is_first))
        is_split[settled] = (size > need.max_group_bytes)[np.cumsum(is_first) - 1]
        return is_split

    def _form_groups(self, is_tried: Mask) -> SliceGroups:
        """Return the groups of slices that a clustering could make."""
        need, candidates = self.need, self.need.candidates
        near = np.ones(len(need.triggers.fires), np.bool_)
        groups = need.pack(need.sort_slices(np.flatnonzero(is_tried), near))
        if not len(groups):
            return groups
        is_new = groups.sum_values((~need.is_settled).astype(np.int64)) > 0
        instant = candidates.view.files.instant[candidates.base_row[groups.members]]
        first, starts = instant[groups.starts[:-1]], groups.starts[:-1]
        is_mixed = np.logical_or.reduceat(instant != np.repeat(first, groups.sizes), starts)
        is_mixed |= groups.sum_values(self._find_split().astype(np.int64)) > 0
        helps = (groups.sizes > 1) | (need.count_outputs(groups) > 1)
        return groups.filter((is_new | is_mixed) & helps & need.passes.needs_pass(groups))

    def _try_groups(self, groups: SliceGroups, wanted: Mask) -> _Trial:
        """Return what is read of the wanted partitions if these groups are rewritten."""
        blocks, codes = self._build_blocks(groups, wanted)
        found = predict_reads(self.asked, self.need.clustering, blocks, at_best=self.at_best)
        total = BlockReads.build({name: np.full(len(wanted), np.nan) for name in READ_FIGURES})
        if len(codes):
            of_block = blocks.partition[blocks.starts]
            sums = found.sum_partitions(np.flatnonzero(np.diff(of_block, prepend=-1)))
            for name in READ_FIGURES:
                getattr(total, name)[codes] = getattr(sums, name)
        is_group = blocks.outputs > 0
        by_group = {name: getattr(found, name)[is_group] for name in READ_FIGURES}
        return _Trial(groups, BlockReads.build(by_group), total)

    def _build_blocks(self, groups: SliceGroups, wanted: Mask) -> tuple[FileBlocks, Integers]:
        """Return all base files of the wanted partitions in blocks, and the partitions' codes."""
        need, candidates = self.need, self.need.candidates
        number = np.full(len(candidates), len(groups), np.int64)
        number[groups.members] = groups.number_members()
        slices = np.flatnonzero(candidates.has_base & wanted[candidates.partition])
        partition = candidates.partition[slices].astype(np.int64)
        order = np.lexsort((slices, number[slices], partition))
        slices, partition = slices[order], partition[order]
        is_first = np.diff(partition, prepend=-1) != 0
        of_slice = number[slices]
        starts = np.flatnonzero(is_first | (np.diff(of_slice, prepend=-1) != 0))
        data, outputs = groups.sum_values(need.row_bytes), need.count_outputs(groups)
        new_bytes = data + outputs * need.sizes.fixed
        group = of_slice[starts]
        blocks = FileBlocks(
            rows=candidates.base_row[slices],
            bytes=candidates.bytes[slices],
            partition=np.cumsum(is_first) - 1,
            starts=starts,
            outputs=np.append(outputs, 0)[group],
            new_bytes=np.append(new_bytes, 0)[group],
        )
        return blocks, partition[is_first]

    def _decide(
        self, together: BlockReads, files_apart: Floats, has_new: Mask
    ) -> tuple[Mask, Mask]:
        """Return the partitions to rewrite with all files, and those with new files alone.

        ``files_apart``: files that are read if only new files are rewritten.
        """
        now, all_ = together.files_now, together.files_then
        rest = 1 - self.limit
        with np.errstate(invalid="ignore"):
            gains = (now > 0) & (all_ < rest * now)
            is_sure = all_ * _PREDICTION_ERROR < rest * now
            remains = all_ < (1 - self.limit * _REMAINING) * files_apart
            is_enough = (files_apart < rest * now) & ~remains
        joins = gains & np.where(has_new, ~is_enough, is_sure)
        return joins, gains & has_new & is_enough

    def _drop_groups_without_gain(self, trial: _Trial) -> _Trial:
        """Return the groups that are read less afterwards, all if one partition has one."""
        groups, reads = trial.groups, trial.reads
        if not len(groups):
            return trial
        partition = self.need.candidates.partition[groups.first_members]
        least = min(_MIN_GROUP_GAIN, self.limit / 2)
        is_only = np.bincount(partition)[partition] == 1
        return trial.take(
            np.flatnonzero((reads.files_then < (1 - least) * reads.files_now) | is_only)
        )


@dataclass(frozen=True, slots=True)
class _Trial:
    """Groups in the order of partitions, what is read of each, and of every partition in all.

    ``reads``: per group; ``total``: per partition, NaN for those that were not tried.
    """

    groups: SliceGroups
    reads: BlockReads
    total: BlockReads

    def take(self, numbers: Integers) -> _Trial:
        """Return the trial with some of its groups."""
        reads = {name: getattr(self.reads, name)[numbers] for name in READ_FIGURES}
        return replace(self, groups=self.groups.take(numbers), reads=BlockReads.build(reads))

    def select(self, is_chosen: Mask, partition: Codes) -> _Trial:
        """Return the trial with the groups of some partitions; ``partition``: per slice."""
        return self.take(np.flatnonzero(is_chosen[partition[self.groups.first_members]]))

    def replace_reads(self, reads: BlockReads, partition: Codes) -> BlockReads:
        """Return the reads of partitions, with those of this trial where it has groups."""
        codes = partition[self.groups.first_members]
        figures = {name: getattr(reads, name).copy() for name in READ_FIGURES}
        for figure in ("files", "bytes"):
            now, then = f"{figure}_now", f"{figure}_then"
            figures[now][codes] = figures[then][codes] = getattr(self.total, now)[codes]
            np.add.at(figures[then], codes, getattr(self.reads, then) - getattr(self.reads, now))
        return BlockReads.build(figures)


def list_partition_gains(
    gains: PartitionGains, partitions: Sequence[str], rewritten: Integers
) -> tuple[PartitionGain, ...]:
    """Return the gains of the partitions that are rewritten for them, as plans record them.

    ``rewritten``: bytes of the groups of each partition.
    """
    reads = gains.reads
    return tuple(
        PartitionGain(
            partition=partitions[code],
            files_before=round(float(reads.files_now[code]), 2),
            files_after=round(float(reads.files_then[code]), 2),
            bytes=int(rewritten[code]),
            bytes_saved=round(float(reads.bytes_now[code] - reads.bytes_then[code])),
        )
        for code in np.flatnonzero(gains.fires & (rewritten > 0)).tolist()
    )
