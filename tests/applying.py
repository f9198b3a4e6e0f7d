"""Apply a plan as its tests do: one call with everything that an apply needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from reconciler import runtime
from reconciler.executor.deletion import LocalDeleter
from reconciler.executor.gate import admit_plan, get_waiver_time
from reconciler.executor.result import ApplyResult
from reconciler.executor.run import apply_plan
from reconciler.executor.session import ApplyContext
from reconciler.plans.plan import Plan
from reconciler.rewrite.local import LocalRewriter
from reconciler.spec.model import Option, TableSpec
from reconciler.storage.api import Storage, StorageRef
from reconciler.storage.open import open_storage
from reconciler.transaction.process import Clock, Process

_OF_THE_RUN = ("parallelism", "journal", "on_crash", "on_stop")
#: the longest wait of an apply that nobody works beside
_LONGEST_S = 0.01


class ImpatientClock(runtime.SystemClock):
    """Waits a moment where an apply waits for others, which a test in one process has none of."""

    def sleep(self, seconds: float) -> None:
        super().sleep(min(seconds, _LONGEST_S))


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


def apply_here(
    plan: Plan,
    *,
    storage: Callable[[StorageRef | str], Storage] = open_storage,
    process: Process | None = None,
    rewriter: object = None,
    now: datetime | None = None,
    clock: Clock | None = None,
) -> ApplyResult:
    """Apply in this process, without Spark; ``storage`` may break things."""

    def opened(ref: StorageRef | str, options: Mapping[str, Option] | None = None) -> Storage:
        del options
        return storage(ref)

    return admit_and_apply(
        plan,
        open_storage=opened,
        deleter=LocalDeleter(opened),
        rewriter=rewriter or LocalRewriter(opened),
        clock=clock or runtime.SystemClock(),
        new_token=runtime.new_token,
        process=process or runtime.current_process(),
        now=now,
    )
