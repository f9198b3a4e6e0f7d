"""Which layout a table's queries ask for: what they read today, and what of others in miniature.

Reads what a plan reads of a table with queries, and a sample of all of it. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from reconciler import units
from reconciler.foresight.ask import with_foresight
from reconciler.foresight.sample import read_sample
from reconciler.plan.model import Note, Sampled
from reconciler.planners.advice import (
    Candidate,
    Reading,
    Trial,
    Wanted,
    best_first,
    candidates,
    proposed,
    wanted,
)
from reconciler.planners.candidates import candidates as newest_slices
from reconciler.planners.decide import known_of
from reconciler.planners.phrases import plural
from reconciler.planners.scans import today
from reconciler.planners.slices import view_of
from reconciler.planners.trials import Whole, trial
from reconciler.spec.model import Clustering, ClusteringBudget, ClusteringTrigger, Query, TableSpec
from reconciler.state.observe import observe

if TYPE_CHECKING:
    from reconciler.planners.candidates import Candidates
    from reconciler.planners.scans import Today
    from reconciler.state.foresight import Foresight
    from reconciler.state.model import TableState
    from reconciler.storage.api import Storage

#: rows that layouts are tried on; a few dozen of them, each of which takes a second
MOST_ROWS: Final = 80_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Advice:
    """What is to be said of one table. ``error`` is set alone: it could not be read.

    ``today``: what each of the queries reads now, None where too little is known of the files, and
    then nothing was tried. ``files``, ``bytes``: of the newest slices. ``trials``: best first.
    ``best``: the one that is proposed, None where none is worth a rewrite; ``because`` says why in
    both cases. ``declared``: what the spec says by now. ``index``: the columns that it should have
    statistics of, empty where it has all of them.
    """

    name: str
    path: str
    queries: tuple[Query, ...] = ()
    today: tuple[Reading, ...] | None = None
    files: int = 0
    bytes: int = 0
    trials: tuple[Trial, ...] = ()
    best: Trial | None = None
    because: str = ""
    declared: Candidate | None = None
    index: tuple[str, ...] = ()
    sampled: Sampled | None = None
    notes: tuple[Note, ...] = ()
    error: str | None = None

    @property
    def is_new(self) -> bool:
        """Whether there is anything to commit."""
        changes = self.best is not None and self.best.candidate != self.declared
        return changes or bool(self.index)


def advised(
    storage: Storage, spec: TableSpec, *, observed_ms: int, most_rows: int = MOST_ROWS
) -> Advice:
    """What layout and index the spec's queries ask for; the spec has some.

    Reads footers, or what indexes say of them, and the row groups of a sample; of the same files
    always the same. Raises StorageError, FormatError, UnsupportedError, BlockedError.
    """
    state = observe(storage, _everything(spec), observed_ms=observed_ms)
    state = with_foresight(storage, replace(spec, clustering=None), state)
    foresight = state.foresight
    assert foresight is not None, "the spec has queries"
    declared = _declared(spec, foresight)
    more = declared.columns if declared else ()
    columns = tuple(dict.fromkeys((*foresight.columns, *more)))
    foresight = replace(foresight, columns=columns)
    asks = wanted(spec.queries, foresight.schema, tuple(foresight.values))
    doubts = tuple(Note(doubt.rule, doubt.because) for doubt in foresight.doubts)
    known = Advice(
        name=spec.name,
        path=spec.path,
        queries=spec.queries,
        declared=declared,
        index=_to_index(spec, asks),
        notes=(*asks.notes, *doubts),
    )
    found = newest_slices(state, view_of(state))
    now = today(spec, foresight, found)
    if now is None:
        return replace(known, because="too little is known of the table's files to try a layout")
    reads = zip(now.reads.files.tolist(), now.reads.bytes.tolist(), strict=True)
    known = replace(
        known,
        today=tuple(Reading(files=files, bytes=size) for files, size in reads),
        files=len(found),
        bytes=now.total,
    )
    whole = _whole(spec, state, found, now)
    if not asks.columns or not (whole.outputs > 1).any():
        return replace(known, because=_nothing_to_try(asks, whole))
    return _tried(storage, state, foresight, whole, candidates(asks), known, most_rows)


def _tried(  # noqa: PLR0913, PLR0917
    storage: Storage,
    state: TableState,
    foresight: Foresight,
    whole: Whole,
    options: Sequence[Candidate],
    known: Advice,
    most_rows: int,
) -> Advice:
    """With these layouts tried, and what is declared."""
    sample = read_sample(
        storage,
        state.files,
        whole.to_sample(most_rows),
        foresight.columns,
        foresight.schema,
        rows=most_rows,
    )
    sampled = Sampled(row_groups=sample.groups, of=sample.of, rows=len(sample.rows))
    foresight = replace(foresight, sample=sample)
    declared = [known.declared] if known.declared else []
    tries = [trial(whole, foresight, one) for one in dict.fromkeys([*declared, *options])]
    trials = best_first((one for one in tries if one is not None), known.declared)
    assert known.today is not None, "it was looked at"
    best = proposed(known.today, trials)
    because = _because(known.today, trials, best, known.declared)
    return replace(
        known,
        trials=trials,
        best=best,
        because=because,
        sampled=sampled,
        notes=(*known.notes, *_of_logs(whole)),
    )


def _of_logs(whole: Whole) -> Iterator[Note]:
    """What a sample of base files does not know."""
    if (whole.found.logs > 0).any():
        yield Note(
            "logs",
            "slices with log files are read by every query today, and what the log files change is "
            "not in the figures of the layouts: compact first for better ones",
        )


def _everything(spec: TableSpec) -> TableSpec:
    """The spec for which is read what rows take and nothing that only a trigger needs."""
    whole = Clustering(columns=(), when=ClusteringTrigger(always=True))
    return replace(spec, clustering=whole, retention=None)


def _whole(spec: TableSpec, state: TableState, found: Candidates, now: Today) -> Whole:
    known = known_of(spec, state)
    budget = spec.clustering.budget if spec.clustering else ClusteringBudget()
    return Whole.of(
        found,
        now,
        rows=known.evidence.rows,
        sizes=known.sizes,
        target=known.files.target,
        per_group=budget.per_group,
    )


def _declared(spec: TableSpec, foresight: Foresight) -> Candidate | None:
    """What the spec declares, where that orders rows by columns that the table has."""
    asked = spec.clustering
    if asked is None or not asked.columns or not {*asked.columns} <= {*foresight.schema.names}:
        return None
    return Candidate(columns=asked.columns, curve=asked.curve or "kd-tree", mapping=asked.mapping)


def _to_index(spec: TableSpec, asks: Wanted) -> tuple[str, ...]:
    """All columns of the index that should be; empty where it has them."""
    there = spec.index.columns if spec.index else ()
    more = [name for name in asks.index if name not in there]
    return (*there, *more) if more else ()


def _nothing_to_try(asks: Wanted, whole: Whole) -> str:
    if not asks.columns:
        return "no layout helps: no query bounds a column that rows can be ordered by"
    if not len(whole.found):
        return "there is no layout to try: the table has no files"
    files, target = plural(int(whole.outputs.sum()), "file"), units.format_size(whole.target)
    return (
        f"no layout helps: with files of {target} (files.target) the table is {files}, one a "
        "partition or a group, and of one file nothing can be left out"
    )


def _because(
    now: Sequence[Reading], trials: Sequence[Trial], best: Trial | None, declared: Candidate | None
) -> str:
    before = sum(one.bytes for one in now)
    if not trials:
        return "no layout was tried: no row of the table's files could be sampled"
    if not before:
        return "no layout helps: the queries read nothing today"
    share = f"{100 * trials[0].bytes / before:.0f} %"
    if best is None:
        still = f"still read {share}" if trials[0].bytes <= before else "read more"
        return (
            f"the table lies well for its queries: of what they read today the best layout that "
            f"was tried would {still}, and a rewrite should save 10 % at least"
        )
    if best.candidate == declared:
        return f"what is declared is best: once it is applied the queries read {share} of today"
    return f"the queries would read {share} of what they read today"
