"""Plan the deletion of partitions past ``retention.partitions``; pure.

Source: Hudi's partition TTL (RFC 65; KeepByTimeStrategy). Dates in paths are of our own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime, tzinfo
from types import MappingProxyType
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np

from reconciler import units
from reconciler.arrays import Mask
from reconciler.hudi.files.names import decode_folders
from reconciler.hudi.timeline.instant import parse_instant
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.expiry.partition_figures import (
    PartitionFigures,
    find_held_partitions,
    measure_partitions,
)
from reconciler.planners.picture import TablePicture
from reconciler.planners.protection import find_protection
from reconciler.planners.reasons import pluralize
from reconciler.plans.model import Finding, Note
from reconciler.plans.partition_deletion import DeletePartitionStep, ExpiredPartition
from reconciler.plans.refusals import find_timeline_zone
from reconciler.spec.model import PartitionRetention, TableSpec
from reconciler.spec.partition_dates import LAST_COMMIT, compile_date_pattern
from reconciler.state.model import TableState

FIELD: Final = "retention.partitions"
_MAX_NAMES: Final = 10
_DAY_S: Final = 86_400


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartitionExpiry:
    """The partitions past retention, and the step that deletes them.

    ``reasons``: why each partition is past it, also of those that stay for now; ``is_deleted``: per
    row of the state's files, whether its partition is deleted.
    """

    step: DeletePartitionStep | None = None
    reasons: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    is_deleted: Mask
    drift: tuple[Finding, ...] = ()
    warnings: tuple[Note, ...] = ()
    refusals: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Age:
    """The age of a partition. ``end_s``: its end, or its newest write, in epoch seconds.

    ``text``: the time that the partition holds by its path; None if its newest write counts.
    """

    path: str
    end_s: float
    text: str | None
    last_commit: str

    @property
    def event(self) -> str:
        """What began the age, as a clause."""
        return f"{self.path} ended" if self.text else f"its newest write {self.last_commit} was"


def plan_expiry(picture: TablePicture) -> PartitionExpiry:
    """Return which partitions of a table are past their retention.

    A partition without a date in its path stays, one that pending work needs stays for now, and so
    do the ``keepLatest`` newest ones.
    """
    spec, state = picture.spec, picture.state
    nothing = PartitionExpiry(is_deleted=np.zeros(len(state.files), np.bool_))
    retention, now = spec.partition_retention, picture.now
    zone = None if retention is None else find_age_zone(spec, state)
    if retention is None or now is None or zone is None:
        return nothing
    if not state.is_partitioned:
        return PartitionExpiry(is_deleted=nothing.is_deleted, refusals=(_refuse_flat_table(),))
    figures = measure_partitions(state)
    ages = _find_ages(retention, state, figures, zone)
    past, latest = _find_expired(retention, ages, now)
    held = find_held_partitions(state) if past else {}
    due = [age for age in past if age.path not in held]
    return PartitionExpiry(
        step=_build_step(retention, picture, figures, due, now),
        reasons={age.path: _explain(retention, age, now) for age in past},
        is_deleted=_mark_files(state, due),
        drift=_find_drift(retention, past, now),
        warnings=(
            *_warn_of_undated(retention, figures, ages),
            *_warn_of_held(past, held),
            *_note_latest(retention, latest),
        ),
    )


def find_age_zone(spec: TableSpec, state: TableState) -> tzinfo | None:
    """Return the zone of the partitions' ages: the spec's for dates, the timeline's for writes."""
    retention = spec.partition_retention
    if retention is not None and retention.by != LAST_COMMIT and spec.timezone:
        return ZoneInfo(spec.timezone)
    return find_timeline_zone(spec, state)


def choose_counted_files(
    state: TableState, most: int, *, spec: TableSpec, now: datetime
) -> dict[str, list[tuple[str, int]]]:
    """Return the base files whose rows the plan shows, by partition, each with its size.

    They are those of partitions to delete without log files, ``most`` altogether.
    """
    expiry = plan_expiry(TablePicture(spec, state, now))
    if expiry.step is None:
        return {}
    figures, files = measure_partitions(state), state.files
    chosen: dict[str, list[tuple[str, int]]] = {}
    places = {path: place for place, path in enumerate(figures.paths)}
    for partition in expiry.step.partitions:
        place = places[partition.path]
        most -= partition.files
        if most >= 0 and not figures.has_logs[place]:
            rows = figures.rows[figures.place == place].tolist()
            chosen[partition.path] = [
                (f"{partition.path}/{files.name[row]}", int(files.size[row])) for row in rows
            ]
    return chosen


def _find_ages(
    retention: PartitionRetention, state: TableState, figures: PartitionFigures, zone: tzinfo
) -> list[_Age]:
    """Return the ages of all partitions that have one."""
    ends: list[tuple[str | None, float | None]]
    if retention.by == LAST_COMMIT:
        ends = [(None, _find_instant_s(instant, zone)) for instant in figures.last_commit]
    else:
        pattern = compile_date_pattern(retention.by)
        periods = map(pattern.find_period, decode_folders(figures.paths, state.properties))
        ends = [(p.text, p.find_end_s(zone)) if p else (None, None) for p in periods]
    return [
        _Age(path=path, end_s=end_s, text=text, last_commit=instant)
        for path, (text, end_s), instant in zip(
            figures.paths, ends, figures.last_commit, strict=True
        )
        if end_s is not None
    ]


def _find_instant_s(instant: str, zone: tzinfo) -> float | None:
    """Return an instant in epoch seconds, the later one of an hour that occurs twice."""
    time = parse_instant(instant)
    if time is None:
        return None
    fraction = instant[14:17]
    seconds = max(time.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1))
    return seconds + (int(fraction) / 1000 if len(fraction) == 3 else 0)  # noqa: PLR2004


def _find_expired(
    retention: PartitionRetention, ages: Iterable[_Age], now: datetime
) -> tuple[list[_Age], list[_Age]]:
    """Return the partitions past retention, by path, and those that only ``keepLatest`` keeps."""
    boundary = now.timestamp() - retention.older_than
    newest_first = sorted(ages, key=lambda age: (age.end_s, age.path), reverse=True)
    kept = retention.keep_latest or 0
    past = [age for age in newest_first[kept:] if _is_past(age, boundary)]
    latest = [age for age in newest_first[:kept] if _is_past(age, boundary)]
    return sorted(past, key=lambda age: age.path), latest


def _is_past(age: _Age, boundary: float) -> bool:
    """Return whether an age is past a boundary; the end of a period is the moment after its last.

    A write of exactly that age stays, as in Hudi.
    """
    return age.end_s < boundary or (age.text is not None and age.end_s == boundary)


def _build_step(
    retention: PartitionRetention,
    picture: TablePicture,
    figures: PartitionFigures,
    due: Sequence[_Age],
    now: datetime,
) -> DeletePartitionStep | None:
    if not due:
        return None
    state = picture.state
    places = {path: place for place, path in enumerate(figures.paths)}
    pins, rows = _find_pins(state, figures), state.partition_rows or {}
    partitions = []
    for age in due:
        place, why = places[age.path], _explain(retention, age, now)
        if (savepoint := pins.get(age.path)) is not None:
            why += f"; savepoint {savepoint} keeps its files until it is removed"
        partitions.append(
            ExpiredPartition(
                path=age.path,
                files=int(figures.files[place]),
                bytes=int(figures.bytes[place]),
                rows=rows.get(age.path),
                date=age.text,
                last_commit=age.last_commit,
                because=why,
            )
        )
    return DeletePartitionStep(partitions=tuple(partitions))


def _find_pins(state: TableState, figures: PartitionFigures) -> dict[str, str]:
    """Return the partitions of which a savepoint keeps current files, with the newest one."""
    if not state.savepoints:
        return {}
    protection = find_protection(state)
    codes = protection.savepoint[state.view.row_slice[figures.rows]]
    newest = np.full(len(figures.paths), -1, np.int64)
    np.maximum.at(newest, figures.place, codes)
    return {
        figures.paths[place]: protection.savepoints[int(newest[place])]
        for place in np.flatnonzero(newest >= 0).tolist()
    }


def _mark_files(state: TableState, due: Iterable[_Age]) -> Mask:
    paths = {age.path for age in due}
    is_due = np.array([path in paths for path in state.files.partitions], np.bool_)
    if not len(is_due):
        return np.zeros(len(state.files), np.bool_)
    marked: Mask = is_due[state.files.partition]
    return marked


# --- sentences -----------------------------------------------------------------------------------


def _explain(retention: PartitionRetention, age: _Age, now: datetime) -> str:
    limit = units.format_duration(retention.older_than)
    return f"{age.event} {_format_age(age, now)} ago ({FIELD}.olderThan: {limit})"


def _format_age(age: _Age, now: datetime) -> str:
    """Return an age in whole days, or in hours below two days."""
    seconds = int(now.timestamp() - age.end_s)
    if seconds >= 2 * _DAY_S:
        return pluralize(seconds // _DAY_S, "day")
    return pluralize(seconds // 3600, "hour")


def _find_drift(
    retention: PartitionRetention, past: Sequence[_Age], now: datetime
) -> tuple[Finding, ...]:
    """Return how many partitions are past retention, and the oldest."""
    if not past:
        return ()
    oldest = min(past, key=lambda age: (age.end_s, age.path))
    what = f"{pluralize(len(past), 'partition')} {'is' if len(past) == 1 else 'are'} past it"
    written = "" if oldest.text else f", last written by {oldest.last_commit}"
    return (
        Finding(
            field=FIELD,
            desired=units.format_duration(retention.older_than),
            actual=_format_age(oldest, now),
            because=f"{what}, the oldest {oldest.path}{written}",
        ),
    )


def _warn_of_undated(
    retention: PartitionRetention, figures: PartitionFigures, ages: Sequence[_Age]
) -> Iterator[Note]:
    """Warn of partitions without an age, which are never deleted."""
    dated = {age.path for age in ages}
    undated = [path for path in figures.paths if path not in dated]
    if not undated:
        return
    by = f"{FIELD}.by: {retention.by}"
    if retention.by == LAST_COMMIT:
        what = f"the newest write of {_name_all(undated)} has no time"
    elif dated:
        what = f"{_name_all(undated)} {'has' if len(undated) == 1 else 'have'} no date by {by}"
    else:
        what = f"no partition has a date by {by}, for example {undated[0]}; correct the pattern"
        yield Note("partitionDate", f"{what}: nothing is deleted")
        return
    stay = "it is never deleted" if len(undated) == 1 else "they are never deleted"
    yield Note("partitionDate", f"{what}: {stay}")


def _warn_of_held(past: Iterable[_Age], held: Mapping[str, str]) -> Iterator[Note]:
    """Warn of partitions that stay because of pending work, one note for each piece of work."""
    paths_by_reason: dict[str, list[str]] = {}
    for age in past:
        if age.path in held:
            paths_by_reason.setdefault(held[age.path], []).append(age.path)
    for reason, paths in sorted(paths_by_reason.items()):
        yield Note(
            "pendingWork", f"{_name_all(paths)} past {FIELD} {_stay(paths)} for now: {reason}"
        )


def _note_latest(retention: PartitionRetention, latest: Sequence[_Age]) -> Iterator[Note]:
    if latest:
        paths = sorted(age.path for age in latest)
        yield Note(
            "keepLatest",
            f"{_name_all(paths)} past {FIELD}.olderThan {_stay(paths)} as the newest "
            f"({FIELD}.keepLatest: {retention.keep_latest})",
        )


def _refuse_flat_table() -> Note:
    return Note(
        "partitions",
        f"the table has no partitions, so {FIELD} cannot delete any; remove it from the spec",
        step="deletePartition",
    )


def _stay(paths: Sequence[str]) -> str:
    return "stays" if len(paths) == 1 else "stay"


def _name_all(paths: Sequence[str]) -> str:
    """Return some partitions with their names, the first of them if there are many.

    >>> _name_all(["a"]), _name_all(["a", "b"])
    ('partition a', '2 partitions (a, b)')
    """
    if len(paths) == 1:
        return f"partition {paths[0]}"
    shown = ", ".join(paths[:_MAX_NAMES])
    more = len(paths) - _MAX_NAMES
    return f"{pluralize(len(paths), 'partition')} ({shown}{f' and {more} more' * (more > 0)})"
