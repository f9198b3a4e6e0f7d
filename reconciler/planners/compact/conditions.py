"""Judge file slices by the conditions of ``compaction.when``; pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

import numpy as np

from reconciler import units
from reconciler.arrays import Mask
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.compact.log_figures import LogFigures
from reconciler.planners.picture import TablePicture
from reconciler.planners.reasons import pluralize
from reconciler.plans.model import Finding, Note
from reconciler.plans.refusals import explain_zone, find_timeline_zone, format_instant
from reconciler.spec.compaction import Compaction

_WHEN: Final = "compaction.when"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Condition:
    """One declared condition, and the slices that meet it.

    ``because``: why such a slice is compacted. ``desired``: as declared. ``values``: what is
    measured of each slice, the greater the worse; of an age the negative instant.
    """

    field: str
    is_met: Mask
    because: str
    desired: Any
    values: Any

    def find_worst(self, among: Mask) -> Any:
        """Return the worst value of the slices that meet it among some; None if none does."""
        values = self.values[self.is_met & among]
        return values.max().item() if len(values) else None


def refuse_unknown_zone(picture: TablePicture) -> Iterator[Note]:
    """Refuse a compaction by the age of log files if the timeline's zone is unknown."""
    compaction = picture.spec.compaction
    when = compaction.when if compaction else None
    if when is None or when.older_than is None:
        return
    if find_timeline_zone(picture.spec, picture.state) is None:
        yield Note(
            "zone",
            f"{_WHEN}.olderThan needs the timeline's time zone. {explain_zone(picture.state)}",
            step="compact",
        )


def judge_slices(picture: TablePicture, figures: LogFigures) -> tuple[Condition, ...] | None:
    """Return the declared conditions with the slices that meet them; None if none is declared.

    The age of a slice is unknown without a time or a zone, and then no slice is too old.
    """
    compaction = picture.spec.compaction or Compaction()
    when, found = compaction.when, list[Condition]()
    if when is None:
        return None
    if (share := when.log_share_above) is not None:
        said = f"more than {units.format_percent(share)} of the bytes are in log files"
        found.append(_judge("logShareAbove", share, figures.share > share, said, figures.share))
    if (files := when.log_files_above) is not None:
        verb = "is" if files == 1 else "are"
        said = f"there {verb} more than {pluralize(files, 'log file')}"
        found.append(_judge("logFilesAbove", files, figures.files > files, said, figures.files))
    if when.older_than is not None:
        found.append(_judge_age(picture, figures, when.older_than))
    return tuple(found)


def _judge(name: str, desired: Any, is_met: Mask, said: str, values: Any) -> Condition:
    field = f"{_WHEN}.{name}"
    return Condition(
        field=field, is_met=is_met, because=f"{said} ({field})", desired=desired, values=values
    )


def _judge_age(picture: TablePicture, figures: LogFigures, older_than: int) -> Condition:
    zone, age = find_timeline_zone(picture.spec, picture.state), units.format_duration(older_than)
    is_old = np.zeros(len(figures.oldest), np.bool_)
    if picture.now is not None and zone is not None:
        boundary = format_instant(picture.now - timedelta(seconds=older_than), zone)
        is_old = np.array([len(i) > 0 and i < boundary[: len(i)] for i in figures.oldest], np.bool_)
    said = f"the oldest log file is older than {age}"
    oldest = np.array([int(instant or 0) for instant in figures.oldest], np.int64)
    return _judge("olderThan", age, is_old, said, -oldest)


def find_drift(
    conditions: tuple[Condition, ...] | None,
    is_due: Mask,
    compaction: Compaction,
    count: int,
    amount: str,
) -> Iterator[Finding]:
    """Yield where slices that are due differ from what is declared.

    ``count``: deltacommits since the newest compaction; ``amount``: what the slices come to.
    """
    if not is_due.any():
        return
    if conditions is None:
        yield Finding(
            field="compaction.afterDeltaCommits",
            desired=compaction.after_delta_commits,
            actual=count,
            because=amount,
        )
        return
    for condition in conditions:
        worst = condition.find_worst(is_due)
        if worst is None:
            continue
        slices = int((condition.is_met & is_due).sum())
        beyond = f"{pluralize(slices, 'file slice')} {'is' if slices == 1 else 'are'} beyond it"
        is_all = slices == int(is_due.sum())
        actual: Any = round(worst, 3) if isinstance(worst, float) else worst
        if condition.field.endswith("olderThan"):
            actual = str(-worst)
        yield Finding(
            field=condition.field,
            desired=condition.desired,
            actual=actual,
            because=amount if is_all else f"{beyond}, of {amount}",
        )
