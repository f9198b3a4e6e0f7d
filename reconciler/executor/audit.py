"""Write the audit record of an apply: one JSON line as work on a table begins, one as it ends.

A run that dies leaves the first line without the second, so what it may have touched is known in
any case. The lines are ASCII, whatever names they carry; docs/audit.md describes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from reconciler.errors import ReconcilerError
from reconciler.executor.origin import Origin
from reconciler.executor.result import FileReasons, StepOutcome, TableResult
from reconciler.plans.document import compute_steps_digest
from reconciler.plans.model import Note, TablePlan
from reconciler.transaction.process import Clock, Process

_FORMAT = 1


class Journal(Protocol):
    """Is told of every table before anything is done to it, and when its work ends."""

    def started(self, plan: TablePlan) -> None:
        """Raise StorageError where this cannot be recorded: then nothing may be done."""

    def finished(self, plan: TablePlan, result: TableResult) -> None:
        """Raise StorageError where this cannot be recorded."""

    def interrupted(self, plan: TablePlan, result: TableResult) -> None:
        """Record that the process was stopped in the middle; raises as ``finished``."""


class NoJournal:
    """A journal that records nothing."""

    def started(self, plan: TablePlan) -> None: ...

    def finished(self, plan: TablePlan, result: TableResult) -> None: ...

    def interrupted(self, plan: TablePlan, result: TableResult) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLog:
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
        self._write("started", {**_describe_table(plan), "planned": _describe_plan(plan)})

    def finished(self, plan: TablePlan, result: TableResult) -> None:
        end = {"status": result.status, "exitCode": result.exit_code}
        self._write(
            "finished",
            {
                **_describe_table(plan),
                "planned": _describe_plan(plan),
                **_describe_result(result),
                **end,
            },
        )

    def interrupted(self, plan: TablePlan, result: TableResult) -> None:
        end = {"status": "interrupted", "exitCode": None}
        self._write(
            "finished",
            {
                **_describe_table(plan),
                "planned": _describe_plan(plan),
                **_describe_result(result),
                **end,
            },
        )

    def refused(self, error: ReconcilerError) -> None:
        """Record that the whole plan is not applied; no table was looked at."""
        self._write("refused", {"error": str(error), "exitCode": error.exit_code})

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
        # printable ASCII: no name of others can break a line or move a terminal's cursor
        self.append(text.replace("\x7f", "\\u007f").encode() + b"\n")


def _describe_table(plan: TablePlan) -> dict[str, Any]:
    return {
        "table": plan.name,
        "path": plan.path,
        "specDigest": plan.spec_digest,
        "stepsDigest": compute_steps_digest(plan),
    }


def _describe_plan(plan: TablePlan) -> dict[str, int]:
    impact = plan.impact
    return {
        "files": int(impact.files_removed),
        "bytes": int(impact.bytes_removed),
        "bytesRewritten": int(impact.bytes_rewritten),
    }


def _describe_result(result: TableResult) -> dict[str, Any]:
    return {
        "seconds": round(result.seconds, 3),
        "instants": list(result.instants),
        "filesRemoved": int(result.removed),
        "bytesRemoved": int(result.bytes),
        "steps": [_describe_step(outcome) for outcome in result.outcomes],
        "refusals": _describe_notes(result.refusals),
        "warnings": _describe_notes(result.warnings),
        "error": result.error,
    }


def _describe_step(outcome: StepOutcome) -> dict[str, Any]:
    left = outcome.partitions_left
    return {
        "kind": outcome.kind,
        "how": outcome.how,
        "instant": outcome.instant,
        "earliestInstantToRetain": outcome.earliest_instant_to_retain,
        "filesRemoved": int(outcome.removed),
        "bytesRemoved": int(outcome.bytes),
        "filesGone": int(outcome.gone),
        "leftOut": _group_by_reason(outcome.left_out),
        "failed": _group_by_reason(outcome.failed),
        "partitionsRemoved": list(outcome.partitions_removed),
        "partitionsLeft": [{"path": note.rule, "because": note.because} for note in left],
        "differences": _describe_notes(outcome.differences),
        "warnings": _describe_notes(outcome.warnings),
        "seconds": round(outcome.seconds, 3),
        "rewritten": outcome.rewritten.document if outcome.rewritten else None,
        "indexed": outcome.indexed.document if outcome.indexed else None,
    }


def _group_by_reason(rows: FileReasons | None) -> list[dict[str, Any]]:
    """Return the files by reason, as partition/name; a million files may share one reason."""
    names: dict[str, list[str]] = {}
    if rows is not None:
        columns = (rows.partition.to_pylist(), rows.name.to_pylist(), rows.because.to_pylist())
        for partition, name, because in zip(*columns, strict=True):
            names.setdefault(because, []).append(f"{partition}/{name}" if partition else name)
    return [{"because": because, "files": found} for because, found in sorted(names.items())]


def _describe_notes(notes: Iterable[Note]) -> list[dict[str, str]]:
    return [{"rule": note.rule, "because": note.because} for note in notes]
