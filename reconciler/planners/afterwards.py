"""What queries read once the groups of a decision are rewritten; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reconciler.hudi.view import View
from reconciler.planners.candidates import Candidates
from reconciler.planners.clustering import ClusteringDecision
from reconciler.planners.decide import Known, decide
from reconciler.planners.drawn import Group
from reconciler.planners.miniature import Ask
from reconciler.planners.scans import Scans, Today
from reconciler.planners.simulate import (
    Counted,
    Expected,
    counted,
    error,
    expected,
    unsure_of_sizes,
)
from reconciler.spec.model import TableSpec
from reconciler.state.foresight import Foresight
from reconciler.state.layout import Layout
from reconciler.state.model import TableState

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Look:
    """What one planning starts from."""

    spec: TableSpec
    state: TableState
    foresight: Foresight
    known: Known
    now: Today
    view: View

    def ask(self, layout: Layout) -> Ask:
        return Ask(
            queries=tuple(query.where for query in self.spec.queries),
            foresight=self.foresight,
            layout=layout,
            sizes=self.known.sizes,
            target=self.known.files.target,
        )

    def decide(self, scans: Scans) -> ClusteringDecision:
        return decide(self.spec, self.state, self.view, self.known, scans)


class Miniatures:
    """Groups rewritten in miniature, each once."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self._known: dict[tuple[bytes, int], Counted | None] = {}

    def of(self, group: Group) -> Counted | None:
        key = (group.members.tobytes(), group.outputs)
        if key not in self._known:
            self._known[key] = counted(self.ask, group)
        return self._known[key]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class After:
    """What queries read once the groups of a decision are rewritten; an element a query.

    ``stays_files``, ``stays_bytes``: of slices that stay. ``new``: of each group, None of one that
    was not sampled; ``all``: of all groups. ``total``: bytes of the table then; ``unsure``: the
    share of their bytes that new files may be off.
    """

    stays_files: Floats
    stays_bytes: Floats
    new: tuple[Expected | None, ...]
    all: Expected
    total: float
    unsure: float
    has_logs: bool

    @classmethod
    def of(cls, look: Look, decision: ClusteringDecision, miniatures: Miniatures) -> After:
        found, kept = decision.found, look.now.reads.kept
        stays = decision.group_of < 0
        groups = list(groups_of(look, decision))
        counts = [miniatures.of(group) for group in groups]
        limits = [limit_of(look, *pair) for pair in zip(groups, counts, strict=True)]
        some = [(c, limit) for c, limit in zip(counts, limits, strict=True) if c is not None]
        told = iter(expected([c for c, _ in some], [limit for _, limit in some]))
        new = tuple(None if c is None else next(told) for c in counts)
        written = sum(size for _, size in limits)
        return cls(
            stays_files=kept[:, stays].sum(axis=1).astype(np.float64),
            stays_bytes=(kept[:, stays] @ found.bytes[stays]).astype(np.float64),
            new=new,
            all=_together(new, limits, len(kept)),
            total=float(found.bytes[stays].sum()) + written,
            unsure=unsure_of_sizes(miniatures.ask),
            has_logs=any(not group.is_whole for group in groups),
        )

    @property
    def is_unknown(self) -> bool:
        return bool(self.new) and all(one is None for one in self.new)

    @property
    def files(self) -> Floats:
        return self.stays_files + self.all.files

    @property
    def bytes(self) -> Floats:
        return self.stays_bytes + self.all.bytes

    @property
    def error(self) -> Floats:
        return error(self.all, self.stays_files, self.stays_bytes, self.unsure)


def groups_of(look: Look, decision: ClusteringDecision) -> Iterator[Group]:
    """The groups of a decision, in its order."""
    starts = decision.groups.starts.tolist()
    for outputs, (start, end) in zip(
        decision.groups.outputs.tolist(), pairwise(starts), strict=True
    ):
        yield group_of(look, decision.found, decision.members[start:end], int(outputs))


def group_of(look: Look, found: Candidates, slices: NDArray[np.int64], outputs: int) -> Group:
    """Slices that are rewritten together into so many files."""
    rows, sizes = look.known.evidence.rows, look.known.sizes
    based = slices[found.has_base[slices]]
    return Group(
        members=found.base_row[based],
        sizes=found.base[based],
        rows=int(rows[found.base_row[based]].sum()),
        data=int(sizes.data_of(found.base[slices], found.logs[slices]).sum()),
        outputs=outputs,
        partition=int(found.partition[slices[0]]),
        is_whole=bool((found.logs[slices] == 0).all()) and len(based) == len(slices),
    )


def limit_of(look: Look, group: Group, count: Counted | None) -> tuple[float, float]:
    """Files that a group becomes, and their bytes: as planned where it was not sampled."""
    if count is not None and count.made is not None:
        return count.made
    return group.outputs, float(group.data + group.outputs * look.known.sizes.fixed)


def _together(
    new: Sequence[Expected | None], limits: Sequence[tuple[float, float]], queries: int
) -> Expected:
    """All groups; those that were not sampled are read as the others are, on average."""
    none = np.zeros(queries)
    known = [(one, limit) for one, limit in zip(new, limits, strict=True) if one is not None]
    files, size = (sum(limit[at] for _, limit in known) for at in (0, 1))
    more = (
        [limits[nth][0] if one is None else 0 for nth, one in enumerate(new)],
        [limits[nth][1] if one is None else 0.0 for nth, one in enumerate(new)],
    )
    grow_files = 1 + sum(more[0]) / max(files, 1)
    grow_bytes = 1 + sum(more[1]) / max(size, 1.0)
    return Expected(
        files=grow_files * sum((one.files for one, _ in known), none),
        bytes=grow_bytes * sum((one.bytes for one, _ in known), none),
        of_files=grow_files**2 * sum((one.of_files for one, _ in known), none),
        of_bytes=grow_bytes**2 * sum((one.of_bytes for one, _ in known), none),
    )
