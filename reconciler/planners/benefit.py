"""The groups that are worth rewriting: small files together, what overlaps, what is read; pure.

Hudi takes whatever is small, again and again. Here a partition has to need it, files that an
earlier clustering laid out as declared stay out of it, and only what is new makes a group: so what
is left over once is left over again, and a second run finds nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reconciler import units
from reconciler.planners.candidates import Candidates
from reconciler.planners.companions import with_companions
from reconciler.planners.generations import laid_out_with_new, of_several_times
from reconciler.planners.grouping import Groups, joined, next_fit, settle
from reconciler.planners.nearness import in_order
from reconciler.planners.overlap import Ranges
from reconciler.planners.passes import Passes, most_of
from reconciler.planners.scans import Scans
from reconciler.planners.standing import Standing
from reconciler.planners.triggers import Triggers
from reconciler.sizing.estimate import RecordSize
from reconciler.spec.model import Clustering


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Need:
    """What is asked for, and of which slices. ``target``: bytes of a file.

    ``is_laid``: per slice, an earlier clustering laid its base file out as declared, and
    ``is_settled``: its log files don't say much else. ``data``: int64 per slice, bytes of rows it
    brings into new files. ``passes``: how often they were laid out as declared. ``scans``: what is
    read too much, None where nothing is.
    """

    clustering: Clustering
    target: int
    found: Candidates
    triggers: Triggers
    is_laid: NDArray[np.bool_]
    is_settled: NDArray[np.bool_]
    passes: Passes
    data: NDArray[np.int64]
    sizes: RecordSize
    ranges: Ranges | None
    scans: Scans | None = None

    @property
    def most(self) -> int:
        """The most bytes of a group of several slices."""
        return most_of(self.clustering)

    def outputs(self, groups: Groups) -> NDArray[np.int64]:
        return self.sizes.files_for(groups.sums(self.data), self.target)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chosen:
    """``groups`` that are worth it; ``is_asked``: bool a group, it is for the sake of a query."""

    groups: Groups
    is_asked: NDArray[np.bool_]


def by_benefit(need: Need, standing: Standing) -> Chosen:
    """Groups in the order in which they gain most for their bytes.

    The slices of no group are decided about in ``standing``; those of a group stay open.
    """
    found = need.found
    standing.decide(
        "logs",
        ~found.has_base,
        0,
        lambda _: "it is log files alone: a compaction gives it a base file",
    )
    is_open = standing.is_open
    own = is_open & need.triggers.is_asked(found.partition)
    read = is_open & need.scans.is_read if need.scans is not None else np.zeros_like(own)
    settled = is_open & need.is_settled
    settled &= ~laid_out_with_new(need, own & ~settled, settled & own & need.triggers.is_wide)
    fresh, is_asked, left = _of_new(need, own & ~settled, read & ~settled)
    fresh = with_companions(need, fresh, settled & need.triggers.is_small)
    settled[fresh.members] = False
    again = of_several_times(need, np.flatnonzero(settled & own & need.triggers.is_wide))
    settled[again.members] = False
    better = _read_again(need, np.flatnonzero(settled & read))
    settled[better.members] = False
    groups = joined([fresh, again, better])
    is_open[groups.members] = False
    _leave_out(need, standing, is_open)
    _say_done(need, standing, is_open & own & need.passes.is_done)
    _say_left(need, standing, left)
    _say_laid(need, standing, settled & own)
    none, all_ = np.zeros(len(again), np.bool_), np.ones(len(better), np.bool_)
    is_asked = np.concatenate([is_asked, none, all_])
    order = _by_gain(need, groups)
    return Chosen(groups=groups.take(order), is_asked=is_asked[order])


def _by_gain(need: Need, groups: Groups) -> NDArray[np.int64]:
    """The numbers of the groups, those with the smallest slices first."""
    mean = groups.sums(need.found.bytes) / np.maximum(groups.sizes, 1)
    first = np.argsort(groups.first, kind="stable")
    found: NDArray[np.int64] = first[np.argsort(mean[first], kind="stable")]
    return found


def _of_new(
    need: Need, own: NDArray[np.bool_], read: NDArray[np.bool_]
) -> tuple[Groups, NDArray[np.bool_], NDArray[np.int64]]:
    """Groups of what is not laid out as declared, which are for a query, and what is left.

    ``own``: what triggers ask for; ``read``: what a query reads too much. Where a query reads
    something both are laid out together, as far as that gains; then what triggers ask for alone;
    then what is left for the query alone: so a second plan has nothing else to look at.
    """
    partition = need.found.partition
    is_near = np.zeros(len(need.triggers.fires), np.bool_)
    is_near[partition[read]] = True
    open_ = (own | read) & is_near[partition]

    def settled(which: NDArray[np.bool_], worth: _Worth, near: NDArray[np.bool_]) -> list[Groups]:
        found, _ = settle(
            in_order(need, np.flatnonzero(which), near),
            lambda order: next_fit(order, partition, need.found.bytes, need.most),
            worth,
            partition,
        )
        for groups in found:
            open_[groups.members] = False
            own[groups.members] = False
        return found

    both = settled(open_, lambda groups: _is_worth_reading(need, groups, own), is_near)
    is_asked = [~_all(groups, need.triggers.is_asked(partition)) for groups in both]
    alone = settled(own, lambda groups: _is_worth(need, groups), np.zeros_like(is_near))
    is_asked += [np.zeros(len(groups), np.bool_) for groups in alone]
    none = np.zeros_like(own)
    rest = settled(open_, lambda groups: _is_worth_reading(need, groups, none), is_near)
    is_asked += [np.ones(len(groups), np.bool_) for groups in rest]
    flags = np.concatenate([np.zeros(0, np.bool_), *is_asked])
    return joined([*both, *alone, *rest]), flags, np.flatnonzero(own)


_Worth = Callable[[Groups], "NDArray[np.bool_]"]


def _all(groups: Groups, is_one: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Per group whether all its slices are such."""
    found: NDArray[np.bool_] = groups.sums(is_one.astype(np.int64)) == groups.sizes
    return found


def _is_worth_reading(need: Need, groups: Groups, own: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """As ``_is_worth``; with more than what is its ``own``, a query has to gain by it."""
    found = _is_worth(need, groups)
    asked = np.flatnonzero(found & ~_all(groups, own))
    found[asked] = _gains(need, groups.take(asked))
    return found


def _gains(need: Need, groups: Groups) -> NDArray[np.bool_]:
    assert need.scans is not None, "something is read too much"
    if need.scans.gains is None or not len(groups):
        return np.ones(len(groups), np.bool_)
    return need.scans.gains(groups, need.outputs(groups), need.is_laid)


def _read_again(need: Need, settled: NDArray[np.int64]) -> Groups:
    """Groups of what is laid out as declared, and is read less when it is so again."""
    partition = need.found.partition
    is_near = np.ones(len(need.triggers.fires), np.bool_)
    order = in_order(need, settled, is_near)
    groups = next_fit(order, partition, need.found.bytes, need.most)
    groups = groups.take(np.flatnonzero(need.passes.of_use(groups)))
    return groups.take(np.flatnonzero(_gains(need, groups))) if len(groups) else groups


def _leave_out(need: Need, standing: Standing, stays: NDArray[np.bool_]) -> None:
    """What of those that stay no trigger asks for."""
    found, triggers = need.found, need.triggers
    fires = triggers.fires[found.partition]
    standing.decide("when", stays & ~fires, found.partition, triggers.says)
    limit = units.format_size(triggers.limit)
    measured = ~np.isnan(triggers.overlap[found.partition])
    share = " and few files cover its rows" if measured.any() else ""
    standing.decide(
        "large",
        stays & ~(triggers.is_small | triggers.is_wide),
        measured,
        lambda is_measured: (
            f"its base file is not below files.small ({limit})" + (share if is_measured else "")
        ),
    )


def _is_worth(need: Need, groups: Groups) -> NDArray[np.bool_]:
    """Fewer files come out, or several that are laid out anew; a lone small one if it may.

    Of columns the passes are counted, and what has made enough is no reason.
    """
    outputs = need.outputs(groups)
    if not need.clustering.columns:
        return outputs < groups.sizes
    worth: NDArray[np.bool_] = (groups.sizes > 1) | (outputs > 1)
    if need.clustering.single_file:
        worth |= need.triggers.is_small[groups.first]
    return worth & need.passes.of_use(groups)


def _say_left(need: Need, standing: Standing, left: NDArray[np.int64]) -> None:
    if not need.clustering.columns:
        no_gain = "packing it with others of its partition would make no fewer files"
    else:
        no_gain = "by itself it would cover as many rows as before"
        standing.decide(
            "singleFile",
            left[need.triggers.is_small[left]],
            0,
            lambda _: "nothing else of its partition is rewritten with it (clustering.singleFile)",
        )
    standing.decide("noGain", left, 0, lambda _: no_gain)


def _say_done(need: Need, standing: Standing, done: NDArray[np.bool_]) -> None:
    """Of what was laid out as declared often enough, whatever is the matter with it."""
    found, files = need.found, need.found.view.files
    parts = max(len(files.partitions), 1)

    def says(code: int) -> str:
        instant, partition = divmod(code, parts)
        return (
            f"clustering {files.instants[instant]} laid it out as declared, and its partition has "
            f"had {need.passes.enough[partition]} passes of that: only new rows are a reason for "
            "another"
        )

    standing.decide("clustered", done, _instants(found) * parts + found.partition, says)


def _instants(found: Candidates) -> NDArray[np.int64]:
    """Per slice the code of its base file's instant."""
    files = found.view.files
    return files.instant[found.base_row].astype(np.int64) if len(files) else found.base_row


def _say_laid(need: Need, standing: Standing, laid: NDArray[np.bool_]) -> None:
    instants = need.found.view.files.instants
    standing.decide(
        "clustered",
        laid,
        _instants(need.found),
        lambda code: f"clustering {instants[code]} laid it out as declared",
    )
