"""The status of tables: as text for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reconciler import canonical_json
from reconciler.planners.orphans import ORPHANS
from reconciler.plans import encode
from reconciler.plans.model import Note, Selection
from reconciler.render import words
from reconciler.render.cluster_result import describe_measured_query
from reconciler.render.compact_step import describe_compaction
from reconciler.render.costs import describe_storage, describe_storage_sums
from reconciler.render.log_status import log_lines
from reconciler.render.savepoints import describe_savepoint
from reconciler.render.terminal import Terminal
from reconciler.status.index import IndexStatus
from reconciler.status.model import (
    CleanStatus,
    ClusteringStatus,
    LastApply,
    LayoutStatus,
    PendingClusteringStatus,
    PendingStatus,
    PlannedLayout,
    TableStatus,
    TimelineStatus,
)
from reconciler.status.orphans import OrphanStatus

_BAR_WIDTH: Final = 24
_MAX_PARTITIONS: Final = 5
_MAX_QUERIES: Final = 10
_MAX_REASONS: Final = 3
_MAX_ORPHANS: Final = 5
_DIGEST_LENGTH: Final = 12  # characters of a digest or a commit that people compare
_WORST_FIRST: Final = (
    "error",
    "blocked",
    "blocked in part",
    "drifted",
    "unknown",
    "unmanaged",
    "in sync",
)
_TABLE_TYPES: Final = {"COPY_ON_WRITE": "COW", "MERGE_ON_READ": "MOR"}
_STALE: Final = "; longer than concurrency.staleAfter"
#: how a note that one kind of work is not due begins -> its label
_NOTHING_LABELS: Final = {
    "nothing to do: ": "= nothing to clean",
    "no clustering: ": "= no clustering",
    "no compaction: ": "= no compaction",
    "no savepoint: ": "= no savepoint",
    "no rewrite for file sizes: ": "= no rewrite for file sizes",
}
_MINUTE: Final = 60


def status_text(
    tables: Sequence[TableStatus], terminal: Terminal, *, selection: Selection | None = None
) -> str:
    """Return the tables as text, those that need attention first; the last line is a summary."""
    lines: list[str] = []
    for table in sorted(tables, key=_sort_key):
        lines += [*_table_lines(table, terminal), ""]
    kinds = words.join_counts((sum(t.sync == sync for t in tables), sync) for sync in _WORST_FIRST)
    unhealthy = sum(_is_unhealthy(table) for table in tables)
    health = f"; {words.format_number(unhealthy)} unhealthy" if unhealthy else ""
    health += describe_storage_sums(table.costs for table in tables)
    total = words.format_tables(len(tables), selection)
    summary = f"{total}: {kinds}{health}" if kinds else total
    lines += terminal.wrap(f"{terminal.strong('Status:')} ", summary, 2)
    return "\n".join(lines) + "\n"


def _sort_key(table: TableStatus) -> tuple[int, bool, str]:
    return _WORST_FIRST.index(table.sync), not _is_unhealthy(table), table.name


def status_json(
    tables: Sequence[TableStatus],
    *,
    observed_at: str,
    tool: str,
    selection: Selection | None = None,
) -> bytes:
    """Return the tables as canonical JSON and a newline (``schemas/status.v1.json``).

    ``observed_at``: ISO-8601 with offset. ``tool``: name and version of this program.
    """
    document = {
        "format": 1,
        "createdAt": observed_at,
        "observedAt": observed_at,
        "tool": tool,
        "tables": canonical_json.to_document(tables),
        **encode.encode_selection(selection),
    }
    return canonical_json.to_bytes(document) + b"\n"


# --- one table -----------------------------------------------------------------------------------


def _table_lines(table: TableStatus, terminal: Terminal) -> Iterator[str]:
    yield from _title_lines(table, terminal)
    if table.error is not None:
        yield from terminal.item(terminal.bad("! error"), table.error)
        return
    for sentence in table.because:
        yield from terminal.item(terminal.warn("~"), sentence)
    for note in (note for note in table.notes if note.because not in table.because):
        if note.rule != ORPHANS or table.orphans is None:
            yield from terminal.item(*_label_note(note, terminal))
    if table.table_type is None:
        return  # the table could not be read
    yield from _reach_lines(table, terminal)
    yield from _file_lines(table, terminal)
    if table.logs is not None and table.logs.files:
        yield from log_lines(table.logs, terminal)
    if table.orphans is not None:
        yield from _orphan_lines(table.orphans, terminal)
    if table.layout is not None:
        yield from _layout_lines(table.layout, terminal)
    if table.index is not None:
        yield from _index_lines(table.index, terminal)
    yield from _timeline_lines(table, terminal)


def _timeline_lines(table: TableStatus, terminal: Terminal) -> Iterator[str]:
    """Yield what writers and earlier applies did to the table, and what is pending."""
    for fact in table.writers:
        yield from terminal.note(terminal.warn("! writers"), fact)
    if table.lock is not None:
        label = terminal.bad("! stale lock") if table.lock.is_stale else terminal.warn("locked")
        yield from terminal.item(label, f"{table.lock.path} is held by {table.lock.held_by}")
    for pending in _other_pending(table):
        held = f"; {pending.holds_back}" if pending.holds_back else ""
        yield from _pending_line(pending, pending.action, "", terminal, held)
    if table.compaction is not None:
        yield from terminal.item("compaction", describe_compaction(table.compaction))
    if table.timeline is not None:
        yield from terminal.item("timeline", _describe_timeline(table.timeline))
    for savepoint in table.savepoints:
        yield from terminal.item("savepoint", describe_savepoint(savepoint))
    yield from _clean_lines(table, terminal)
    if table.last_apply is not None:
        yield from terminal.item("last apply", _describe_apply(table.last_apply))


def _title_lines(table: TableStatus, terminal: Terminal) -> Iterator[str]:
    warned = dict.fromkeys(("drifted", "unknown", "unmanaged"), terminal.warn)
    label = {"in sync": terminal.good, **warned}.get(table.sync, terminal.bad)(table.sync)
    label += ", " + terminal.bad("unhealthy") if _is_unhealthy(table) else ""
    kind = _TABLE_TYPES.get(table.table_type or "", "")
    version = f"{kind} v{table.table_version}" if kind else ""
    name = terminal.strong(words.escape_text(table.name))
    yield from terminal.title(name, label, version, words.escape_text(table.path))


def _is_unhealthy(table: TableStatus) -> bool:
    """Return whether the table is unhealthy; an unreadable table only has its error."""
    health = table.condition("Healthy")
    return table.error is None and health is not None and health.status == "False"


def _describe_apply(last: LastApply) -> str:
    actor = f" by {last.actor}" if last.actor else ""
    commit = f" from specs at {last.spec_commit[:_DIGEST_LENGTH]}" if last.spec_commit else ""
    plan = last.plan_digest.removeprefix("sha256:")[:_DIGEST_LENGTH]
    return f"{last.instant} ({words.format_instant(last.instant)}){actor}{commit}, plan {plan}"


def _label_note(note: Note, terminal: Terminal) -> tuple[str, str]:
    """The label and sentence of a note; that nothing is to be done is not a warning."""
    for prefix, label in _NOTHING_LABELS.items():
        is_fact = note.rule == "nothingToDo" or label == "= nothing to clean"
        if is_fact and note.because.startswith(prefix):
            return label, f"{note.because.removeprefix(prefix)} [{note.rule}]"
    return terminal.warn("! warning"), f"{note.because} [{note.rule}]"


def _reach_lines(table: TableStatus, terminal: Terminal) -> Iterator[str]:
    zone = " (the writers' local time)"
    if table.timezone:
        zone = f" {words.escape_text(table.timezone)}"
    last = table.last_completed
    completed = "nothing yet" if last is None else f"{words.format_instant(last)}{zone}"
    yield from terminal.item("last completed", completed)
    if table.earliest_readable is not None:
        reach = words.format_time_between(table.earliest_readable, table.window_end)
        back = "" if reach is None else f", {reach} back"
        earliest = words.format_instant(table.earliest_readable)
        yield from terminal.item("readable from", f"{earliest}{back}")


def _file_lines(table: TableStatus, terminal: Terminal) -> Iterator[str]:
    size = f", {words.format_size(table.bytes)}" if table.files else ""
    reclaimable = ""
    if table.bytes_reclaimable:
        reclaimable = f"; the plan would remove {words.format_size(table.bytes_reclaimable)}"
    files = words.format_count(table.files, "file")
    yield from terminal.item("files", f"{files}{size}{reclaimable}")
    if table.costs is not None:
        yield from terminal.detail(describe_storage(table.costs))
    sizes = table.sizes if table.layout is None else table.layout.sizes
    shown = [size_class for size_class in sizes if size_class.files]
    if not shown:
        return
    newest = words.format_number(sum(size_class.files for size_class in shown))
    small = f", {words.format_number(table.small_files)} of them small" if table.small_files else ""
    yield from terminal.detail(f"newest base files: {newest}{small}")
    most = max(size_class.files for size_class in shown)
    least = 0
    for size_class in sizes:
        if size_class.files:
            bar = "█" * max(1, round(_BAR_WIDTH * size_class.files / most))
            count = words.format_number(size_class.files)
            name = words.format_size_class(least, size_class.below).replace(".0 ", " ")
            yield f"        {name:<20} {count:>9}  {bar}"
        least = size_class.below or least


def _orphan_lines(orphans: OrphanStatus, terminal: Terminal) -> Iterator[str]:
    """Yield the files that no write knows, by reason, and the oldest by name."""
    if orphans.files:
        label = terminal.warn("! orphans")
        yield from terminal.item(label, _describe_orphans(orphans))
        for reason in orphans.reasons[:_MAX_REASONS]:
            files = words.format_count(reason.files, "file")
            yield from terminal.detail(f"{files}: {reason.because}")
        if (more := len(orphans.reasons) - _MAX_REASONS) > 0:
            yield from terminal.detail(f"… and {words.format_count(more, 'more reason')}")
        for file in orphans.listed[:_MAX_ORPHANS]:
            path = f"{file.partition}/{file.name}".lstrip("/")
            yield from terminal.detail(f"{path}, {words.format_size(file.bytes)}", indent=2)
        if more := orphans.files - len(orphans.listed[:_MAX_ORPHANS]):
            files = words.format_count(more, "more file")
            yield from terminal.detail(f"… and {files}; --format json lists them", indent=2)
    if orphans.undecided_files:
        files = words.format_count(orphans.undecided_files, "file")
        size = words.format_size(orphans.undecided_bytes)
        sentence = f"{files}, {size}, cannot be told from orphans: {orphans.why_undecided}"
        yield from terminal.item("undecided", sentence)


def _describe_orphans(orphans: OrphanStatus) -> str:
    files, size = words.format_count(orphans.files, "file"), words.format_size(orphans.bytes)
    age = ""
    if orphans.oldest_age_seconds is not None:
        age = f", the oldest {words.format_duration(orphans.oldest_age_seconds)} old"
    unseen = words.format_size(orphans.removable_bytes)
    if not orphans.removable_files:
        unseen = "readers may see all of them"
    elif orphans.removable_files == orphans.files:
        unseen = "no reader sees them"
    else:
        unseen = f"no reader sees {words.format_number(orphans.removable_files)} of them, {unseen}"
    return f"{files}, {size}, that no write names{age}; {unseen}"


def _layout_lines(layout: LayoutStatus, terminal: Terminal) -> Iterator[str]:
    order = _describe_order(layout.columns, layout.curve, layout.mapping)
    yield from terminal.item("layout", f"declared: {order}")
    if layout.overlap is not None:
        yield from terminal.detail(f"{layout.overlap:.1f} files cover a row on average")
    if layout.small_partitions:
        total = words.format_count(layout.partitions, "partition")
        small = words.format_number(layout.small_partitions)
        yield from terminal.detail(f"small files in {small} of {total}")
    for partition in layout.worst[:_MAX_PARTITIONS]:
        cover = "" if partition.overlap is None else f", {partition.overlap:.1f} cover a row"
        total = words.format_count(partition.files, "file")
        files = f"{words.format_number(partition.small_files)} of {total} small"
        name = partition.partition or "the table"
        yield from terminal.detail(f"{name}: {files}{cover}", indent=2)
    if layout.planned is not None:
        yield from terminal.detail(_describe_planned(layout, layout.planned))
    last = layout.last_clustering
    done = "none on the active timeline" if last is None else _describe_clustering(last)
    yield from terminal.item("last clustering", done)
    for query in () if last is None else last.queries[:_MAX_QUERIES]:
        yield from terminal.detail(describe_measured_query(query))
    for pending in layout.pending:
        groups = words.format_count(pending.file_groups, "file group")
        where = words.format_count(pending.partitions, "partition")
        yield from _pending_line(pending, "clustering", f", of {groups} in {where}", terminal)


def _index_lines(index: IndexStatus, terminal: Terminal) -> Iterator[str]:
    if index.instant is None:
        yield from terminal.item("index", f"none yet; declared: {', '.join(index.declared)}")
    else:
        total = words.format_count(index.files, "base file")
        files = f"{words.format_number(index.files_covered)} of {total}"
        yield from terminal.item("index", f"{', '.join(index.columns)}: covers {files}")
        since = index.commits_since or 0
        age = f", {words.format_count(since, 'commit')} ago" if since else ", the newest"
        size, date = words.format_size(index.bytes), words.format_instant(index.instant)
        yield from terminal.detail(f"{size}, of {date}{age}")
    if index.hudi_columns is not None:
        columns = ", ".join(index.hudi_columns) or "no known column"
        yield from terminal.detail(f"Hudi's column_stats has {columns}")
    for problem in index.damaged:
        yield from terminal.item(terminal.bad("! unread index"), problem)


def _describe_planned(layout: LayoutStatus, planned: PlannedLayout) -> str:
    before = words.format_number(sum(size.files for size in layout.sizes))
    after = words.format_count(planned.files_after, "base file")
    cover = ""
    if layout.overlap is not None and planned.overlap_after is not None:
        cover = f", {planned.overlap_after:.1f} of them cover a row"
    size = words.format_size(planned.bytes_rewritten)
    return f"the plan would rewrite {size}: {before} → {after}{cover} (predicted)"


def _describe_clustering(last: ClusteringStatus) -> str:
    author = _author(is_ours=last.is_ours)
    if last.is_as_declared:
        return f"{last.instant} {author}, as declared"
    if last.columns is None:
        return f"{last.instant} {author}; its row order is unknown"
    order = _describe_order(last.columns, last.curve, last.mapping)
    return f"{last.instant} {author}, not as declared: {order}"


def _author(*, is_ours: bool) -> str:
    return "by reconciler" if is_ours else "by a writer of the table"


def _describe_order(columns: Sequence[str], curve: str | None, mapping: str | None) -> str:
    """The columns and the curve that a layout orders rows by."""
    if not columns:
        return "row order unchanged"
    along = f" along {curve}" if curve else ""
    return f"rows by {', '.join(columns)}{along}" + (f", mapping {mapping}" if mapping else "")


def _other_pending(table: TableStatus) -> list[PendingStatus]:
    """The pending instants that the layout does not show."""
    shown: set[str] = set()
    if table.layout is not None:
        shown = {pending.instant for pending in table.layout.pending}
    return [pending for pending in table.pending if pending.instant not in shown]


def _pending_line(
    pending: PendingStatus | PendingClusteringStatus,
    action: str,
    more: str,
    terminal: Terminal,
    held: str = "",
) -> Iterator[str]:
    label = terminal.bad("! stuck") if pending.is_stuck else "pending"
    age = f"{pending.state.lower()} for {words.format_duration(pending.age_seconds)}"
    stuck = _STALE if pending.is_stuck else ""
    return terminal.item(label, f"{action} {pending.instant} {age}{more}{stuck}{held}")


def _describe_timeline(timeline: TimelineStatus) -> str:
    active = words.format_count(timeline.commits, "commit")
    sentence = f"{active} active; spec keeps {timeline.keep}"
    if timeline.archivable:
        sentence += f"; the plan archives {words.format_count(timeline.archivable, 'commit')}"
    if timeline.bound is not None:
        held = words.format_count(timeline.bound.commits, "more commit")
        sentence += f"; {timeline.bound.rule} holds {held}"
    return sentence


def _clean_lines(table: TableStatus, terminal: Terminal) -> Iterator[str]:
    last, foreign = table.last_clean, table.last_foreign_clean
    if last is None:
        yield from terminal.item("last clean", "none on the active timeline")
        return
    yield from terminal.item("last clean", _describe_clean(last, table.window_end))
    if foreign is not None and foreign != last:
        yield from terminal.item("writers' clean", _describe_clean(foreign, table.window_end))


def _describe_clean(clean: CleanStatus, newest_write: str | None) -> str:
    kept = ""
    if clean.commits:
        reach = words.format_time_between(clean.earliest_instant_to_retain, clean.instant)
        span = "" if reach is None else f", {reach}"
        kept = f": it kept {words.format_count(clean.commits, 'commit')}{span}"
    since = words.time_between(clean.instant, newest_write)
    before = ""
    if since is not None and since.total_seconds() >= _MINUTE:
        before = f", {words.format_duration(since.total_seconds())} before the last write"
    policy = f" with {words.escape_text(clean.policy)}" if clean.policy else ""
    return f"{clean.instant} {_author(is_ours=clean.is_ours)}{policy}{kept}{before}"
