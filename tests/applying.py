"""Apply a plan as its tests do: one call with everything that an apply needs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from reconciler.executor.gate import admit_plan, get_waiver_time
from reconciler.executor.result import ApplyResult
from reconciler.executor.run import apply_plan
from reconciler.executor.session import ApplyContext
from reconciler.plans.plan import Plan
from reconciler.spec.model import TableSpec
from reconciler.transaction.process import Clock

_OF_THE_RUN = ("parallelism", "journal", "on_crash", "on_stop")


def admit_and_apply(
    plan: Plan,
    *,
    clock: Clock,
    now: datetime | None = None,
    specs: Iterable[TableSpec] | None = None,
    expected_digest: str | None = None,
    **options: Any,
) -> ApplyResult:
    """Admit a plan and apply it; ``options``: of ``apply_plan`` and of ``ApplyContext``."""
    admitted = admit_plan(
        plan, specs=specs, expected_digest=expected_digest, now=get_waiver_time(now, clock)
    )
    of_run = {name: options.pop(name) for name in _OF_THE_RUN if name in options}
    return apply_plan(admitted, ApplyContext(clock=clock, now=now, **options), **of_run)
