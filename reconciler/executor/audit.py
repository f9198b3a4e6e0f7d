"""Write the audit record of an apply: one JSON line as work on a table begins, one as it ends.

A run that dies leaves the first line without the second, so what it may have touched is known in
any case. The lines are ASCII, whatever names they carry; docs/audit.md describes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from reconciler.errors import ReconcilerError
from reconciler.executor.origin import Origin
from reconciler.executor.result import FileReasons, TableResult
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.document import compute_steps_digest
from reconciler.plans.model import TablePlan
from reconciler.transaction.process import Clock, Process

_FORMAT = 1


class Journal:
    """Records each table before anything is done to it, and when its work ends; here nothing."""

    def started(self, plan: TablePlan) -> None:
        """Raise StorageError if this cannot be recorded: then nothing may be done."""

    def finished(self, plan: TablePlan, result: TableResult) -> None:
        """Raise StorageError if this cannot be recorded."""

    def interrupted(self, plan: TablePlan, result: TableResult) -> None:
        """Record that the process was stopped in the middle; raises as ``finished``."""


@dataclass(frozen=True, kw_only=True)
class AuditLog(Journal):
    """A journal of JSON lines.

    ``append`` writes a whole line and syncs it; ``run_id`` names one apply.
    """

    append: Callable[[bytes], None]
    clock: Clock
    run_id: str
    process: Process
    origin: Origin
    plan_digest: str

    def started(self, plan: TablePlan) -> None:
        self._write("started", _describe_plan(plan))

    def finished(self, plan: TablePlan, result: TableResult) -> None:
        self._finish(plan, result, result.status, result.exit_code)

    def interrupted(self, plan: TablePlan, result: TableResult) -> None:
        self._finish(plan, result, "interrupted", None)

    def refused(self, error: ReconcilerError) -> None:
        """Record that the whole plan is not applied; no table was looked at."""
        self._write("refused", {"error": str(error), "exitCode": error.exit_code})

    def _finish(
        self, plan: TablePlan, result: TableResult, status: str, exit_code: int | None
    ) -> None:
        steps = [outcome.to_document(_group_by_reason) for outcome in result.outcomes]
        end = {"steps": steps, "status": status, "exitCode": exit_code}
        self._write("finished", {**_describe_plan(plan), **result.document, **end})

    def _write(self, event: str, facts: Mapping[str, Any]) -> None:
        at = datetime.fromtimestamp(self.clock.now_ms() / 1000, UTC)
        document = {
            "format": _FORMAT,
            "event": event,
            "at": at.isoformat(timespec="milliseconds"),
            "run": self.run_id,
            "actor": self.origin.actor,
            "host": self.process.host.partition("/")[0],
            "tool": self.process.tool,
            "environment": self.origin.environment,
            "specCommit": self.origin.spec_commit,
            "planDigest": self.plan_digest,
            **facts,
        }
        text = json.dumps(document, sort_keys=True, separators=(",", ":"))
        # printable ASCII: no foreign name can break a line or move a terminal's cursor
        self.append(text.replace("\x7f", "\\u007f").encode() + b"\n")


def _describe_plan(plan: TablePlan) -> dict[str, Any]:
    impact = plan.impact
    return {
        "table": plan.name,
        "path": plan.path,
        "specDigest": plan.spec_digest,
        "stepsDigest": compute_steps_digest(plan),
        "planned": {
            "files": int(impact.files_removed),
            "bytes": int(impact.bytes_removed),
            "bytesRewritten": int(impact.bytes_rewritten),
        },
    }


def _group_by_reason(rows: FileReasons | None) -> list[dict[str, Any]]:
    """Return the files by reason, as partition/name; a million files may share one reason."""
    names: dict[str, list[str]] = {}
    if rows is not None:
        columns = (rows.partition.to_pylist(), rows.name.to_pylist(), rows.because.to_pylist())
        for partition, name, because in zip(*columns, strict=True):
            names.setdefault(because, []).append(f"{partition}/{name}" if partition else name)
    return [{"because": because, "files": found} for because, found in sorted(names.items())]
