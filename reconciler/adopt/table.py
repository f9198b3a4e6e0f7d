"""Adoption of one table: a spec whose plan is empty. Changes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import field, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from reconciler.adopt.observed_retention import (
    ObservedRetention,
    RetentionCandidate,
    observe_retention,
)
from reconciler.adopt.observed_settings import observe_clustering, observe_logs, observe_sizes
from reconciler.adopt.spec_text import Findings, ProposedRetention, write_spec_text
from reconciler.errors import FormatError, NotFoundError, StorageError
from reconciler.event_logs.proposal import QueryProposal
from reconciler.hudi.load import load_properties, read_instant_file
from reconciler.hudi.timeline.instant import Action, State
from reconciler.hudi.timeline.plans import RequestedReplace
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.compose import plan_table
from reconciler.plans.model import TablePlan
from reconciler.plans.refusals import find_timeline_zone
from reconciler.plans.timeline_zone import list_fitting_zones, observe_offsets
from reconciler.render import words
from reconciler.spec.model import CatalogTable, Policy, Retention, TableSpec
from reconciler.spec.rules import COUNT_BY_POLICY
from reconciler.state.model import TableState
from reconciler.state.observe import observe
from reconciler.storage.api import Storage
from reconciler.storage.locations import LocationMap

_REPLACING: Final = frozenset({Action.CLUSTERING, Action.REPLACECOMMIT})
#: more plans add no information
_MAX_PLANS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptedTable:
    """The spec of one table.

    ``retention``: the declared one. ``is_open``: the table's cleans suggest a retention that the
    user must decide on. ``refused``: why the plan of the spec is refused; None if it is not.
    """

    location: str
    name: str
    text: str
    retention: Retention | None
    is_open: bool
    refused: str | None

    @property
    def headline(self) -> str:
        """A short description of what the spec declares."""
        if self.retention is None:
            return "a retention to decide on" if self.is_open else "no retention"
        return f"{COUNT_BY_POLICY[self.retention.policy]}: {self.retention.keep}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptionOptions:
    """Options for the specs to write.

    ``now`` has a zone. ``timezone``: zone of the writers, for tables whose properties do not name
    it. ``known_zone``: the zone that the file ``environment`` declares; specs then omit it.
    ``folder`` receives the specs; with ``is_relative``, local paths are written relative to it.
    With an environment a spec has no path at all. ``catalog``: the table in a catalog, which the
    spec names instead of a path. ``queries``: what event logs asked of tables, by their locations.
    """

    now: datetime
    now_ms: int
    folder: Path
    timezone: str | None = None
    is_relative: bool = False
    environment: str | None = None
    known_zone: str | None = None
    catalog: CatalogTable | None = None
    queries: LocationMap[QueryProposal] = field(default_factory=LocationMap)


def adopt_table(storage: Storage, name: str, options: AdoptionOptions) -> AdoptedTable:
    """Return the spec of the table in a storage.

    Raises the errors of ``observe``, and StorageError for a location that a spec cannot have.
    """
    location = storage.location
    if not location.isprintable():
        raise StorageError(location, "has unprintable characters; rename the folder")
    zone = options.timezone or options.known_zone
    bare = TableSpec(name=name, path=location, timezone=zone)
    state = observe(storage, bare, observed_ms=options.now_ms)
    view = state.view
    seen = observe_retention(state, view, find_timeline_zone(bare, state))
    plan = plan_table(bare, state, options.now)
    declared = _choose_retention(bare, state, seen, options.now)
    findings = Findings(
        name=name,
        path=format_location(location, options.folder if options.is_relative else None),
        timezone=zone,
        environment=options.environment,
        catalog=options.catalog,
        is_zone_known=zone == options.known_zone,
        refused=plan.refusals[0].because if plan.refusals else None,
        retention=seen,
        proposed=declared,
        clustering=observe_clustering(_read_clustering_plans(storage, state)),
        sizes=observe_sizes(view),
        logs=observe_logs(state),
        offsets=_observe_offsets(state),
        queries=options.queries.find(location),
    )
    kept = None
    if seen is not None and declared.candidate is not None and declared.doubt is None:
        kept = _build_retention(seen, declared.candidate)
    return AdoptedTable(
        location=location,
        name=name,
        text=write_spec_text(state, findings),
        retention=kept,
        is_open=declared.doubt is not None,
        refused=findings.refused,
    )


def _observe_offsets(state: TableState) -> tuple[int, ...]:
    """Return the offsets from UTC in seconds that the timeline shows, if some zone has them."""
    offsets = observe_offsets(state.timeline)
    if not list_fitting_zones(offsets):
        return ()
    return tuple(sorted({offset.seconds for offset in offsets}))


def _choose_retention(
    unmanaged: TableSpec, state: TableState, observed: ObservedRetention | None, now: datetime
) -> ProposedRetention:
    """Return the first candidate whose plan is empty, else the first one with a doubt."""
    if observed is None or not observed.candidates:
        return ProposedRetention()
    doubts = []
    for candidate in observed.candidates:
        doubt = _find_doubt(plan_table(_add_retention(unmanaged, observed, candidate), state, now))
        if doubt is None:
            return ProposedRetention(candidate=candidate)
        doubts.append(doubt)
    return ProposedRetention(
        candidate=observed.candidates[0],
        doubt=doubts[0],
        wider=_find_wider_count(unmanaged, state, observed, now),
    )


def _find_wider_count(
    unmanaged: TableSpec, state: TableState, observed: ObservedRetention, now: datetime
) -> int | None:
    """Return the number of commits since what the newest clean retained, if it removes nothing.

    If cleans run after every few commits, the commits since the last clean are not counted in it.
    """
    if observed.policy != Policy.COMMITS.value or observed.since is None:
        return None
    keep = sum(i.requested >= observed.since for i in state.timeline.commits)
    plan = plan_table(
        _add_retention(unmanaged, observed, RetentionCandidate(keep=keep)), state, now
    )
    return keep if _find_doubt(plan) is None else None


def _add_retention(
    unmanaged: TableSpec, observed: ObservedRetention, candidate: RetentionCandidate
) -> TableSpec:
    return replace(unmanaged, retention=_build_retention(observed, candidate))


def _build_retention(observed: ObservedRetention, candidate: RetentionCandidate) -> Retention:
    return Retention(policy=Policy(observed.policy), keep=candidate.keep)


def _find_doubt(plan: TablePlan) -> str | None:
    """Return why a retention cannot be declared: its plan would not be empty."""
    if plan.refusals:
        return f"its plan would be refused: {plan.refusals[0].because}"
    if not plan.has_changes:
        return None
    removed = f"remove {words.format_count(plan.impact.files_removed, 'file')}"
    if any(step.kind == "resume" for step in plan.steps):
        return f"the next plan would finish a pending clean and {removed}"
    return f"the next plan would {removed}"


def _read_clustering_plans(
    storage: Storage, state: TableState
) -> Iterator[tuple[str, RequestedReplace]]:
    """Yield the newest clustering plans, pending or not, that can be read."""
    requested = [file for file in state.timeline.files if file.instant.state is State.REQUESTED]
    files = [file for file in requested if file.instant.action in _REPLACING and file.size]
    if not files:
        return
    properties = load_properties(storage)
    for file in files[-_MAX_PLANS:]:
        try:
            plan = RequestedReplace.parse(*read_instant_file(storage, properties, file))
            yield file.instant.requested, plan
        except (FormatError, NotFoundError):
            continue


def format_location(location: str, folder: Path | None) -> str:
    """Return the path as a file in the folder spells it; only local paths can be relative."""
    if folder is None or "://" in location:
        return location
    relative = os.path.relpath(location, os.path.abspath(folder))  # noqa: PTH100 (links stay)
    return relative if relative.startswith("..") else f"./{relative}"
