"""One live table as a spec whose plan is empty. Reads the table, writes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from reconciler.adopt.retention import Candidate, SeenRetention, seen_retention
from reconciler.adopt.seen import seen_clustering, seen_offsets, seen_sizes
from reconciler.adopt.text import Declared, Findings, spec_text
from reconciler.errors import FormatError, NotFoundError, StorageError
from reconciler.hudi.clustering import RequestedReplace
from reconciler.hudi.instant import Action, State
from reconciler.hudi.load import instant_path, load_properties, read_instant_file
from reconciler.plan.model import TablePlan
from reconciler.plan.safety import timeline_zone
from reconciler.planners.compose import plan_table
from reconciler.planners.slices import view_of
from reconciler.render import words
from reconciler.spec.model import Policy, Retention, TableSpec
from reconciler.spec.rules import COUNT_OF
from reconciler.state.model import TableState
from reconciler.state.observe import observe
from reconciler.storage.api import Storage

_REPLACING: Final = frozenset({Action.CLUSTERING, Action.REPLACECOMMIT})
#: more plans say nothing more
_MOST_PLANS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """The spec of one table.

    ``retention``: what it declares; ``is_open``: one was seen and is left to people. ``refused``:
    why its plan is, None if it is not.
    """

    location: str
    name: str
    text: str
    retention: Retention | None
    is_open: bool
    refused: str | None

    @property
    def headline(self) -> str:
        """What it declares, in a few words."""
        if self.retention is None:
            return "a retention to decide on" if self.is_open else "no retention"
        return f"{COUNT_OF[self.retention.policy]}: {self.retention.keep}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """How people want specs written.

    ``now`` has a zone. ``timezone``: of the writers, for tables that do not tell; ``known_zone``
    the same where ``environment`` (its file) gives it, so that specs need not. ``folder`` is where
    specs go: with ``is_relative`` local paths are written relative to it. With an environment a
    spec has no path at all.
    """

    now: datetime
    now_ms: int
    folder: Path
    timezone: str | None = None
    is_relative: bool = False
    environment: str | None = None
    known_zone: str | None = None


def adopt(storage: Storage, name: str, wishes: Wishes) -> Adopted:
    """The spec of the table in the storage.

    Raises what ``observe`` raises, and StorageError for a place that no spec can name.
    """
    location = storage.location
    if not location.isprintable():
        raise StorageError(location, "is not plain text, which no spec can name; rename the folder")
    zone = wishes.timezone or wishes.known_zone
    bare = TableSpec(name=name, path=location, timezone=zone)
    state = observe(storage, bare, observed_ms=wishes.now_ms)
    view = view_of(state)
    seen = seen_retention(state, view, timeline_zone(bare, state))
    plan = plan_table(bare, state, wishes.now)
    declared = _declared(bare, state, seen, wishes.now)
    found = Findings(
        name=name,
        path=spelt(location, wishes.folder if wishes.is_relative else None),
        timezone=zone,
        environment=wishes.environment,
        is_zone_known=zone == wishes.known_zone,
        refused=plan.refusals[0].because if plan.refusals else None,
        retention=seen,
        declared=declared,
        clustering=seen_clustering(_clusterings(storage, state)),
        sizes=seen_sizes(view),
        offsets=seen_offsets(state.timeline),
    )
    kept = None
    if seen is not None and declared.candidate is not None and declared.doubt is None:
        kept = _retention(seen, declared.candidate)
    return Adopted(
        location=location,
        name=name,
        text=spec_text(state, found),
        retention=kept,
        is_open=declared.doubt is not None,
        refused=found.refused,
    )


def _declared(
    bare: TableSpec, state: TableState, seen: SeenRetention | None, now: datetime
) -> Declared:
    """The first candidate of which the plan is empty; else the first, with the doubt."""
    if seen is None or not seen.candidates:
        return Declared()
    doubts = []
    for candidate in seen.candidates:
        doubt = _doubt(plan_table(_with(bare, seen, candidate), state, now))
        if doubt is None:
            return Declared(candidate=candidate)
        doubts.append(doubt)
    return Declared(
        candidate=seen.candidates[0],
        doubt=doubts[0],
        wider=_wider(bare, state, seen, now),
    )


def _wider(bare: TableSpec, state: TableState, seen: SeenRetention, now: datetime) -> int | None:
    """As many commits as there are since what the newest clean retained, if that removes nothing.

    Where cleans come after every few commits, those since the last one are beyond what it kept.
    """
    if seen.policy != Policy.COMMITS.value or seen.since is None:
        return None
    keep = sum(i.requested >= seen.since for i in state.timeline.commits)
    plan = plan_table(_with(bare, seen, Candidate(keep=keep)), state, now)
    return keep if _doubt(plan) is None else None


def _with(bare: TableSpec, seen: SeenRetention, candidate: Candidate) -> TableSpec:
    return replace(bare, retention=_retention(seen, candidate))


def _retention(seen: SeenRetention, candidate: Candidate) -> Retention:
    return Retention(policy=Policy(seen.policy), keep=candidate.keep)


def _doubt(plan: TablePlan) -> str | None:
    """Why a retention cannot be declared as it is: its plan would not be empty."""
    if plan.refusals:
        return f"its plan would be refused: {plan.refusals[0].because}"
    if not plan.has_changes:
        return None
    removed = f"remove {words.count(plan.impact.files_removed, 'file')}"
    if any(step.kind == "resume" for step in plan.steps):
        return f"the next plan would finish a pending clean and {removed}"
    return f"the next plan would {removed}"


def _clusterings(storage: Storage, state: TableState) -> Iterator[tuple[str, RequestedReplace]]:
    """The newest plans of clusterings, pending or not; what cannot be read says nothing."""
    files = [
        file
        for file in state.timeline.files
        if file.instant.action in _REPLACING and file.instant.state is State.REQUESTED and file.size
    ]
    if not files:
        return
    properties = load_properties(storage)
    for file in files[-_MOST_PLANS:]:
        try:
            data = read_instant_file(storage, properties, file)
            yield (
                file.instant.requested,
                RequestedReplace.parse(data, instant_path(properties, file)),
            )
        except (FormatError, NotFoundError):
            continue


def spelt(location: str, folder: Path | None) -> str:
    """The path as a file in the folder spells it; only local ones can be relative."""
    if folder is None or "://" in location:
        return location
    relative = os.path.relpath(location, os.path.abspath(folder))  # noqa: PTH100 (links stay)
    return relative if relative.startswith("..") else f"./{relative}"
