"""Which groups of file slices are worth a rewrite for the queries that read too much; pure.

Each group is judged by itself: by what queries read of its slices today and of the files that a
rewrite in miniature makes of them. So what is left out once is left out again by the next plan.
What is laid out as declared already is rewritten for more than its error, and never again and again
for a gain that does not come: the last clustering of the same declaration says what came of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reconciler.planners.afterwards import After, Look, Miniatures, group_of, limit_of
from reconciler.planners.candidates import Candidates
from reconciler.planners.grouping import Groups
from reconciler.planners.scans import LEAST_GAIN
from reconciler.planners.simulate import Expected, error, expected
from reconciler.state.layout import Layout, PastClustering
from reconciler.state.measured import Circumstances, read_measured

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What the last clustering of the same declaration came to.

    ``clustering``: None where there was none. ``shares``: of the table's bytes, what a query read
    then, by its text; None where nobody measured it. ``is_done``: it left nothing to another run.
    """

    clustering: PastClustering | None = None
    shares: dict[str, float] | None = None
    is_done: bool = True

    @classmethod
    def of(cls, past: tuple[PastClustering, ...], layout: Layout, target: int) -> Memory:
        """``past``: oldest first; ``layout``, ``target``: what is declared."""
        last = next((one for one in reversed(past) if one.layout == layout), None)
        if last is None:
            return cls()
        how = Circumstances.read(last.extra)
        if how is not None and how.target != target:
            return cls()
        measured = [one for one in read_measured(last.extra) if one.where and not one.unread]
        shares = {one.where: one.bytes / max(one.of_bytes, 1) for one in measured}
        return cls(
            clustering=last,
            shares=shares or None,
            is_done=how is None or not how.waiting,
        )

    def has_settled(self, where: str, share: float) -> bool:
        """Whether a query that reads this share is no worse off than the last clustering left it.

        Then what it reads is what the layout comes to, whatever is predicted.
        """
        if self.clustering is None or not self.is_done:
            return False
        if self.shares is None:
            return True
        before = self.shares.get(where)
        return before is not None and share <= before * (1 + LEAST_GAIN)


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """Which groups gain.

    ``exceeding``: places of the queries that read too much; of each of them ``reaches``: it gets
    below its limit where everything is rewritten that may be, and ``is_settled``: it reads what the
    layout has come to before.
    """

    look: Look
    miniatures: Miniatures
    found: Candidates
    exceeding: NDArray[np.int64]
    reaches: NDArray[np.bool_]
    is_settled: NDArray[np.bool_]

    @classmethod
    def of(cls, look: Look, miniatures: Miniatures, found: Candidates, tried: After) -> Judge:
        """``tried``: what queries read when everything is rewritten that may be."""
        now, exceeding = look.now, look.now.exceeding
        asked = [now.queries[nth] for nth in exceeding.tolist()]
        limits = np.array([query.max_scan or 0.0 for query in asked])
        memory = memory_of(look, miniatures.ask.layout)
        settled = [
            memory.has_settled(now.queries[n].where, now.share(n)) for n in exceeding.tolist()
        ]
        return cls(
            look,
            miniatures,
            found,
            exceeding,
            np.asarray(tried.bytes[exceeding] <= limits * tried.total),
            np.array(settled, np.bool_),
        )

    def __call__(
        self, groups: Groups, outputs: NDArray[np.int64], is_laid: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        ends = pairwise(groups.starts.tolist())
        worth = [
            self._gains(groups.members[start:end], files, is_laid)
            for (start, end), files in zip(ends, outputs.tolist(), strict=True)
        ]
        return np.array(worth, np.bool_)

    def _gains(self, slices: NDArray[np.int64], outputs: int, is_laid: NDArray[np.bool_]) -> bool:
        group = group_of(self.look, self.found, slices, outputs)
        count = self.miniatures.of(group)
        if count is None:
            return False
        now, limit = self._now(slices, is_laid), limit_of(self.look, group, count)
        (then,), total = expected([count], [limit]), max(limit[1], 1.0)
        if is_laid[slices].all():
            return self._gains_again(now[self.exceeding], then, total)
        limited = np.array([query.max_scan is not None for query in self.look.now.queries])
        if then.bytes[limited].sum() > now[limited].sum() * total:
            return False  # what one query gains others lose
        before, after = now[self.exceeding], then.bytes[self.exceeding] / total
        is_less = after < before
        much = is_less & (after <= (1 - LEAST_GAIN) * before)
        enough = is_less & self.reaches & ~self.is_settled
        return bool((much | enough).any())

    def _gains_again(self, now: Floats, then: Expected, total: float) -> bool:
        """What is laid out as declared has to gain a tenth, and more than its error."""
        some = np.flatnonzero(~self.is_settled)
        at = self.exceeding[some]
        none = np.zeros(len(some))
        part = Expected(
            files=then.files[at],
            bytes=then.bytes[at],
            of_files=then.of_files[at],
            of_bytes=then.of_bytes[at],
        )
        most = float((part.bytes * (1 + error(part, none, none))).sum()) / total
        before = float(now[some].sum())
        return most < before and most <= (1 - LEAST_GAIN) * before

    def _now(self, slices: NDArray[np.int64], is_laid: NDArray[np.bool_]) -> Floats:
        """The share of their bytes that queries read; how big new files get is only estimated.

        Of what is laid out as declared log files are not to blame on the layout: a compaction takes
        them away, and a clustering would only be followed by the next of them.
        """
        now, sizes = self.look.now, self.found.bytes[slices]
        kept = np.where(is_laid[slices], now.by_base[:, slices], now.reads.kept[:, slices])
        found: Floats = (kept @ sizes) / max(int(sizes.sum()), 1)
        return found


def memory_of(look: Look, layout: Layout) -> Memory:
    """What past clusterings say of a layout under this spec."""
    return Memory.of(look.known.evidence.clusterings, layout, look.known.files.target)


def helped(now: Floats, after: Floats, limits: Floats) -> NDArray[np.bool_]:
    """Which queries a rewrite is for: below their limit then, or a tenth less; shares of bytes."""
    found: NDArray[np.bool_] = (after < now) & (
        (after <= limits) | (after <= (1 - LEAST_GAIN) * now)
    )
    return found
