"""A table on which a plan was applied, with its audit record."""

from __future__ import annotations

from pathlib import Path

import reconciler
from reconciler import runtime
from reconciler.executor.audit import AuditLog
from reconciler.executor.deletion import LocalDeleter
from reconciler.executor.origin import Origin
from reconciler.plans.plan import Plan
from reconciler.rewrite.local import LocalRewriter
from reconciler.storage.open import open_storage
from tests.applying import admit_and_apply


def apply_with_audit(spec: Path, audit: Path, actor: str = "data-core") -> Plan:
    """Plan the tables of a spec, apply the plan in this process, and append audit lines."""
    plan = reconciler.plan(reconciler.load_specs(spec))
    origin = Origin(actor=actor, spec_commit="1234abc", environment="prod")
    clock, process = runtime.SystemClock(), runtime.current_process()

    def append(line: bytes) -> None:
        with audit.open("ab") as file:
            file.write(line)

    result = admit_and_apply(
        plan,
        clock=clock,
        open_storage=_open,
        deleter=LocalDeleter(_open),
        rewriter=LocalRewriter(_open),
        new_token=runtime.new_token,
        process=process,
        origin=origin,
        journal=AuditLog(
            append=append,
            clock=clock,
            run_id=runtime.new_token(),
            process=process,
            origin=origin,
            plan_digest=plan.digest,
        ),
    )

    assert 0 == result.exit_code

    return plan


def _open(ref, options=None):
    del options
    return open_storage(ref)
