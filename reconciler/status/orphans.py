"""The status of a table's orphan files: what no write knows, and what the plan removes; pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import numpy as np

from reconciler.arrays import Mask
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.orphans import (
    LEAST_AGE_S,
    OrphanReport,
    find_orphans,
    list_orphan_files,
)
from reconciler.plans.columns import dictionary_codes
from reconciler.plans.model import FILE_KINDS, ResumeStep, RollbackStep, TablePlan
from reconciler.spec.model import TableSpec
from reconciler.state.model import TableState
from reconciler.state.orphan_facts import UNTOLD

#: most files that a status names; the oldest come first
MAX_LISTED: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanReason:
    """Orphan files with one reason; ``is_removable``: no reader sees them."""

    because: str
    files: int
    bytes: int
    is_removable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanFile:
    """One orphan file. ``modified_at``: ISO-8601 in UTC; None if the store does not tell it."""

    partition: str
    name: str
    bytes: int
    kind: str
    modified_at: str | None
    is_removable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanStatus:
    """Files that no write knows and that are older than a number of seconds.

    ``removable_files``: those of them that no reader sees. ``oldest_age_seconds``: None without
    files. ``undecided_files``: files of which the archived timeline does not tell whether a write
    knows them, because of ``why_undecided``. ``listed``: at most 1 000 of the files, oldest first.
    """

    older_than_seconds: int
    files: int = 0
    bytes: int = 0
    removable_files: int = 0
    removable_bytes: int = 0
    oldest_age_seconds: int | None = None
    undecided_files: int = 0
    undecided_bytes: int = 0
    why_undecided: str = ""
    reasons: tuple[OrphanReason, ...] = ()
    listed: tuple[OrphanFile, ...] = ()


def orphan_status(spec: TableSpec, state: TableState, plan: TablePlan) -> OrphanStatus | None:
    """Return the orphan files of a table; None if nobody looked for them.

    Without an orphans block files count from the least age on that a spec may declare.
    """
    if state.orphan_facts is None:
        return None
    age = LEAST_AGE_S if spec.orphans is None else spec.orphans.older_than
    kinds = ResumeStep | RollbackStep
    finished = {step.instant for step in plan.steps if isinstance(step, kinds)}
    now = datetime.fromtimestamp(state.observed_ms / 1000, UTC)
    report = find_orphans(state, age, now, finished=finished)
    sizes = state.files.size[report.rows]
    oldest = _find_oldest(report)
    return OrphanStatus(
        older_than_seconds=age,
        files=len(report.rows),
        bytes=int(sizes.sum()),
        removable_files=int(report.is_removable.sum()),
        removable_bytes=int(sizes[report.is_removable].sum()),
        oldest_age_seconds=None if oldest is None else (report.now_ms - oldest) // 1000,
        undecided_files=len(report.undecided),
        undecided_bytes=int(state.files.size[report.undecided].sum()),
        why_undecided=report.why_undecided,
        reasons=tuple(_sum_reasons(state, report)),
        listed=tuple(_list_oldest(state, report)),
    )


def _find_oldest(report: OrphanReport) -> int | None:
    known = report.modified_ms[report.modified_ms > UNTOLD]
    return int(known.min()) if len(known) else None


def _sum_reasons(state: TableState, report: OrphanReport) -> list[OrphanReason]:
    """Return every reason, those of most files first."""
    codes, sizes = dictionary_codes(report.because), state.files.size[report.rows]
    reasons = []
    for code, text in enumerate(report.because.dictionary.to_pylist()):
        mask: Mask = codes == code
        reason = OrphanReason(
            because=text,
            files=int(mask.sum()),
            bytes=int(sizes[mask].sum()),
            is_removable=bool(report.is_removable[mask].any()),
        )
        reasons += [reason] if reason.files else []
    return sorted(reasons, key=lambda reason: (-reason.files, reason.because))


def _list_oldest(state: TableState, report: OrphanReport) -> list[OrphanFile]:
    places = np.argsort(report.modified_ms, kind="stable")[:MAX_LISTED]
    chosen = np.zeros(len(report.rows), np.bool_)
    chosen[places] = True
    files = list_orphan_files(state, report, chosen)
    rows = zip(
        files.partition.to_pylist(),
        files.name.to_pylist(),
        files.bytes.tolist(),
        files.kind.tolist(),
        report.modified_ms[chosen].tolist(),
        report.is_removable[chosen].tolist(),
        strict=True,
    )
    listed = [
        (
            modified_ms,
            OrphanFile(
                partition=partition,
                name=name,
                bytes=size,
                kind=FILE_KINDS[kind],
                modified_at=_format_time(modified_ms),
                is_removable=is_removable,
            ),
        )
        for partition, name, size, kind, modified_ms, is_removable in rows
    ]
    return [file for _time, file in sorted(listed, key=lambda pair: pair[0])]


def _format_time(epoch_ms: int) -> str | None:
    if epoch_ms == UNTOLD:
        return None
    return datetime.fromtimestamp(epoch_ms // 1000, UTC).isoformat()
