"""What was applied to a table, from its active and archived timeline and from audit records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from typing import Any, Final

from reconciler.errors import NotFoundError
from reconciler.hudi.load import load_properties, load_timeline, read_instant_file
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline import archive_v1, archive_v2
from reconciler.hudi.timeline.instant import Action, Instant
from reconciler.hudi.timeline.past_change import PastChange, parse_past_change
from reconciler.plans.refusals import choose_zone, format_instant
from reconciler.spec.model import TableSpec
from reconciler.state.extra_metadata import PLAN_DIGEST, TOOL
from reconciler.state.measured_queries import parse_measurements
from reconciler.status.audit_lines import AuditedTable
from reconciler.status.history_model import HistoryEntry, TableHistory, describe_change
from reconciler.storage.api import Storage

_SPEC_DIGEST: Final = "reconciler.spec.digest"
_SPEC_COMMIT: Final = "reconciler.spec.commit"
_ACTOR: Final = "reconciler.actor"
_OWNER: Final = "reconciler.owner"
#: actions that change no file of the table by themselves, and are of other tools only
_SILENT: Final = frozenset({Action.INDEXING, Action.SCHEMACOMMIT})


def read_history(
    storage: Storage,
    spec: TableSpec,
    *,
    limit: int,
    since: datetime | None = None,
    with_others: bool = False,
    audited: Sequence[AuditedTable] = (),
) -> TableHistory:
    """Return the newest applies of a table, newest first.

    ``since``: older ones are left out; a time without a zone is of the timeline's. ``with_others``:
    also the instants that no plan made. ``audited``: runs of audit records. The archived timeline
    is read only if the active one has fewer entries than ``limit``. Raises FormatError and
    StorageError.
    """
    properties = load_properties(storage)
    zone = choose_zone(properties.timezone, spec.timezone) or UTC
    start = "" if since is None else _format_start(since, zone)
    changes = _read_changes(storage, properties, start)
    entries = list(_group_changes(changes, limit + 1, with_others=with_others))
    entries = _add_audited(entries, audited, start, zone)
    entries.sort(key=lambda entry: entry.at, reverse=True)
    return TableHistory(
        name=spec.name,
        path=spec.path,
        entries=tuple(entries[:limit]),
        is_whole=len(entries) <= limit,
        with_others=with_others,
        since=start or None,
    )


def _format_start(since: datetime, zone: tzinfo) -> str:
    return format_instant(since if since.tzinfo else since.replace(tzinfo=zone), zone)


# --- the timeline --------------------------------------------------------------------------------


def _read_changes(
    storage: Storage, properties: TableProperties, start: str
) -> Iterator[PastChange]:
    """Yield the completed instants from a time on, newest first, each once.

    An instant that is archived while it is read comes from the archive.
    """
    seen: set[tuple[str, Action]] = set()
    for change in _read_active(storage, properties, start):
        seen.add((change.instant.requested, change.instant.action))
        yield change
    for instant, content, path in _read_archive(storage, properties):
        key = (instant.requested, instant.action)
        if instant.requested >= start and key not in seen:
            seen.add(key)
            yield parse_past_change(instant, content, path)


def _read_active(storage: Storage, properties: TableProperties, start: str) -> Iterator[PastChange]:
    timeline = load_timeline(storage, properties)
    files = timeline.completed_files(frozenset(Action) - _SILENT, since=start)
    for file in sorted(files, key=lambda one: one.instant.requested, reverse=True):
        try:
            content, path = read_instant_file(storage, properties, file)
        except NotFoundError:
            continue
        yield parse_past_change(file.instant, content, path)


def _read_archive(
    storage: Storage, properties: TableProperties
) -> Iterator[tuple[Instant, bytes | Mapping[str, Any], str]]:
    folder = properties.archive_folder
    if properties.layout == 1:
        yield from archive_v1.read_commit_contents(storage, folder, archive_v1.CHANGES)
    else:
        yield from archive_v2.read_commit_contents(storage, folder)


def _group_changes(
    changes: Iterable[PastChange], limit: int, *, with_others: bool
) -> Iterator[HistoryEntry]:
    """Yield an entry for each apply, and for each other instant if asked, up to a number."""
    groups: dict[tuple[str, ...], list[PastChange]] = {}
    for change in changes:
        digest = change.extra.get(PLAN_DIGEST)
        if digest is None and not with_others:
            continue
        key = (change.instant.requested, str(change.instant.action))
        if digest is not None:
            key = (digest, change.extra.get(_OWNER, ""))
        if key not in groups and len(groups) == limit:
            break
        groups.setdefault(key, []).append(change)
    yield from map(_build_entry, groups.values())


def _build_entry(changes: Sequence[PastChange]) -> HistoryEntry:
    extra = changes[0].extra
    return HistoryEntry(
        at=max(change.instant.requested for change in changes),
        plan_digest=extra.get(PLAN_DIGEST),
        spec_digest=extra.get(_SPEC_DIGEST),
        spec_commit=extra.get(_SPEC_COMMIT),
        actor=extra.get(_ACTOR),
        tool=extra.get(TOOL),
        changes=tuple(describe_change(one, parse_measurements(one.extra)) for one in changes),
    )


# --- audit records -------------------------------------------------------------------------------


def _add_audited(
    entries: Sequence[HistoryEntry], audited: Sequence[AuditedTable], start: str, zone: tzinfo
) -> list[HistoryEntry]:
    """Return the entries with the runs of audit records; runs without an instant are entries."""
    runs: dict[int, list[AuditedTable]] = {}
    alone = []
    for table in audited:
        number = _find_entry(entries, table)
        if number is None:
            alone.append(_build_audited_entry(table, zone))
        else:
            runs.setdefault(number, []).append(table)
    found = [
        replace(entry, audited=tuple(table.run for table in runs.get(number, ())))
        for number, entry in enumerate(entries)
    ]
    return [*found, *(entry for entry in alone if entry.at >= start)]


def _find_entry(entries: Sequence[HistoryEntry], table: AuditedTable) -> int | None:
    """Return the entry of the apply that a record is about: by its instants, else by its plan."""
    for number, entry in enumerate(entries):
        if table.instants & {change.instant for change in entry.changes}:
            return number
    if table.run.status not in ("died", "interrupted"):
        return None
    same = [n for n, entry in enumerate(entries) if entry.plan_digest == table.plan_digest]
    return same[0] if same else None


def _build_audited_entry(table: AuditedTable, zone: tzinfo) -> HistoryEntry:
    return HistoryEntry(
        at=format_instant(table.moment, zone),
        plan_digest=table.plan_digest,
        spec_digest=table.spec_digest,
        spec_commit=table.spec_commit,
        actor=table.actor,
        tool=table.tool,
        audited=(table.run,),
    )
