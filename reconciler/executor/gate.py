"""Decide once which tables of a plan may run, before anything of a table is read.

The command line and the API ask here, and start no workers for a table that may not run. What only
a look at the table can tell is checked in ``fresh_plan``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from reconciler.errors import BlockedError, ReconcilerError, StaleError
from reconciler.executor.spec_match import explain_mismatch, explain_other_specs
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.encode import compute_spec_digest
from reconciler.plans.guardrails import PolicyNotes, evaluate_policies
from reconciler.plans.model import (
    Impact,
    Note,
    TablePlan,
    removed_sizes,
    rewritten_groups,
)
from reconciler.plans.plan import Plan
from reconciler.plans.refused_steps import find_refused_kinds, omit_refused_steps
from reconciler.spec.document import spec_from_document
from reconciler.spec.model import TableSpec
from reconciler.transaction.process import Clock


class RefusedError(BlockedError):
    """Refusals of one table, each with its rule."""

    def __init__(self, notes: tuple[Note, ...]) -> None:
        super().__init__("; ".join(note.because for note in notes))
        self.notes = notes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdmittedTable:
    """A table of a plan that may run.

    ``plan``: the reviewed one. ``refusals``: those of the review and of today's policies; each
    forbids one kind of step. ``spec``: the reviewed one, with the store options of today's.
    ``guarded``: the same under today's policies; ``warnings``: theirs.
    """

    plan: TablePlan
    spec: TableSpec
    guarded: TableSpec
    refusals: tuple[Note, ...] = ()
    warnings: tuple[Note, ...] = ()

    @property
    def allowed(self) -> TablePlan:
        """The reviewed plan without refused steps."""
        return omit_refused(self.plan, self.refusals)

    @property
    def may_work(self) -> bool:
        """True if an apply may find anything to do; without a declared lock it does nothing."""
        has_lock = self.spec.concurrency is not None and self.spec.concurrency.lock is not None
        return self.allowed.has_changes and has_lock


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RefusedTable:
    """A table of a plan that may not run, and why."""

    plan: TablePlan
    error: ReconcilerError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdmittedPlan:
    """A plan that may be applied, with its digest; ``tables`` are in its order."""

    plan: Plan
    digest: str
    tables: tuple[AdmittedTable | RefusedTable, ...]

    @property
    def working_tables(self) -> Iterator[TablePlan]:
        """The tables for which an apply may find anything to do."""
        for table in self.tables:
            if isinstance(table, AdmittedTable) and table.may_work:
                yield table.allowed


def admit_plan(
    plan: Plan,
    *,
    specs: Iterable[TableSpec] | None = None,
    expected_digest: str | None = None,
    now: datetime,
) -> AdmittedPlan:
    """Decide which tables of a plan may run.

    ``specs``: today's, None if the user has named none. A table whose path or effective spec has
    changed since the review is refused, and one that today's policies forbid. ``now``: what waivers
    of policies count from, see ``get_waiver_time``. Raises StaleError when the plan does not have
    the expected digest, or is of other specs than these.
    """
    digest = plan.digest
    if expected_digest is not None and expected_digest != digest:
        raise StaleError(
            f"the plan's digest is {digest}, and {expected_digest} was approved; apply the "
            "approved plan, or review this one"
        )
    today = None if specs is None else {spec.name: spec for spec in specs}
    if today is not None and (other := explain_other_specs(plan, today)):
        raise StaleError(other)
    spec_digests = {
        name: compute_spec_digest(spec.document) for name, spec in (today or {}).items()
    }

    def admit(table: TablePlan) -> AdmittedTable | RefusedTable:
        try:
            return _check_table(table, today, spec_digests, now)
        except ReconcilerError as error:
            return RefusedTable(plan=table, error=error)

    return AdmittedPlan(plan=plan, digest=digest, tables=tuple(map(admit, plan.tables)))


def get_waiver_time(now: datetime | None, clock: Clock) -> datetime:
    """Return what waivers of policies count from: now, or a later time that the user names."""
    actual = datetime.fromtimestamp(clock.now_ms() / 1000, UTC)
    return actual if now is None else max(now, actual)


def check_policies(plan: TablePlan, spec: TableSpec, now: datetime) -> PolicyNotes:
    """Return the steps that policies refuse and their warnings.

    Raises RefusedError if they forbid all work on the table.
    """
    verdict = evaluate_policies(plan, spec, now)
    check_table_refusals(verdict.refusals)
    return verdict


def check_table_refusals(refusals: tuple[Note, ...]) -> None:
    """Raise RefusedError with all refusals if one of them forbids all work on the table."""
    if any(refusal.step is None for refusal in refusals):
        raise RefusedError(refusals)


def omit_refused(plan: TablePlan, refusals: Iterable[Note]) -> TablePlan:
    """Return the plan without the steps of refused kinds, and with the sums of the others."""
    kinds = find_refused_kinds(refusals)
    if not kinds:
        return plan
    return recount(replace(plan, steps=omit_refused_steps(plan.steps, kinds)))


def recount(plan: TablePlan) -> TablePlan:
    """Return the plan with the sums of its own steps, which may be wrong in an edited plan."""
    impact = Impact(
        files_removed=sum(map(len, removed_sizes(plan.steps))),
        bytes_removed=sum(int(sizes.sum()) for sizes in removed_sizes(plan.steps)),
        bytes_rewritten=sum(int(groups.bytes.sum()) for groups in rewritten_groups(plan.steps)),
    )
    return replace(plan, impact=impact)


def _check_table(
    plan: TablePlan,
    today: Mapping[str, TableSpec] | None,
    spec_digests: Mapping[str, str],
    now: datetime,
) -> AdmittedTable:
    """Return a table that may run; raises ReconcilerError for any other."""
    if plan.error is not None:
        raise ReconcilerError(plan.error)
    check_table_refusals(plan.refusals)
    if today is not None and (why := explain_mismatch(plan, today, spec_digests)) is not None:
        raise StaleError(why)
    spec = guarded = spec_from_document(plan.spec, plan.name, plan.path)
    if today is not None:
        current = today[plan.name]
        spec = replace(spec, storage_options=current.storage_options)
        guarded = replace(spec, guarded_by=current.guarded_by)
    policies = check_policies(recount(omit_refused(plan, plan.refusals)), guarded, now)
    refusals = tuple(dict.fromkeys((*plan.refusals, *policies.refusals)))
    return AdmittedTable(
        plan=plan, spec=spec, guarded=guarded, refusals=refusals, warnings=policies.warnings
    )
