"""How tables are: for people, and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler import canonical_json
from reconciler.plans import encode
from reconciler.plans.model import Note, Selection
from reconciler.render import words
from reconciler.render.cluster_result import describe_measured_query
from reconciler.render.paint import Paint
from reconciler.render.wrapping import wrap_detail, wrap_item
from reconciler.status.index import IndexStatus
from reconciler.status.layout import (
    ClusteringStatus,
    LayoutStatus,
    PendingClusteringStatus,
    PlannedLayout,
    SizeClass,
)
from reconciler.status.model import (
    CleanStatus,
    LastApply,
    LockStatus,
    PendingStatus,
    SavepointStatus,
    TableStatus,
)

_BAR_WIDTH = 24
_MAX_PARTITIONS = 5
_MAX_QUERIES = 10
_DIGEST_LENGTH = 12  # characters of a digest or a commit that people compare
_WORST_FIRST = ("error", "blocked", "drifted", "unmanaged", "in sync")


def status_text(
    tables: Sequence[TableStatus], *, color: bool, selection: Selection | None = None
) -> str:
    """The tables for people, those that need somebody first; ends with a line that sums it up."""
    paint = Paint(is_on=color)
    lines: list[str] = []
    for table in sorted(tables, key=_sort_key):
        lines += [*_table_lines(table, paint), ""]
    counts = [(sync, sum(t.sync == sync for t in tables)) for sync in _WORST_FIRST]
    kinds = ", ".join(f"{words.format_number(n)} {sync}" for sync, n in counts if n)
    ill = sum(_is_unhealthy(table) for table in tables)
    unhealthy = f"; {words.format_number(ill)} unhealthy" if ill else ""
    total = words.format_tables(len(tables), selection)
    summary = f"{total}: {kinds}{unhealthy}" if kinds else total
    return "\n".join([*lines, f"{paint.strong('Status:')} {summary}"]) + "\n"


def _sort_key(table: TableStatus) -> tuple[int, bool, str]:
    return _WORST_FIRST.index(table.sync), not _is_unhealthy(table), table.name


def status_json(
    tables: Sequence[TableStatus],
    *,
    observed_at: str,
    tool: str,
    selection: Selection | None = None,
) -> bytes:
    """The tables as canonical JSON and a newline (``schemas/status.v1.json``).

    ``observed_at`` is ISO-8601 with offset, ``tool`` the name and version of what says so.
    """
    document = {
        "format": 1,
        "createdAt": observed_at,
        "observedAt": observed_at,
        "tool": tool,
        "tables": [_camel_keys(table.document()) for table in tables],
        **encode.encode_selection(selection),
    }
    return canonical_json.to_canonical_bytes(document) + b"\n"


def _camel_keys(value: object) -> object:
    """The names of a dataclass as the documents spell them."""
    if isinstance(value, dict):
        return {_camel_name(key): _camel_keys(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_camel_keys(inner) for inner in value]
    return value


def _camel_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def _table_lines(table: TableStatus, paint: Paint) -> Iterator[str]:
    color = {"in sync": paint.good, "drifted": paint.warn, "unmanaged": paint.warn}
    label = color.get(table.sync, paint.bad)(table.sync)
    label += ", " + paint.bad("unhealthy") if _is_unhealthy(table) else ""
    kind = {"COPY_ON_WRITE": "COW", "MERGE_ON_READ": "MOR"}.get(table.table_type or "", "")
    version = f"  {kind} v{table.table_version}" if kind else ""
    yield f"{paint.strong(words.escape_text(table.name))}  {label}{version}  {words.escape_text(table.path)}"
    if table.error is not None:
        yield from wrap_item(paint.bad("! error"), table.error)
        return
    for sentence in table.because:
        yield from wrap_item(paint.warn("~"), sentence)
    for note in table.notes:
        yield from wrap_item(*_label_note(note, paint))
    if table.table_type is None:
        return  # it could not be looked at
    yield from _reach_lines(table)
    yield from _file_lines(table)
    yield from _layout_lines(table.layout, paint) if table.layout is not None else ()
    yield from _index_lines(table.index, paint) if table.index is not None else ()
    for fact in table.writers:
        yield from wrap_item(paint.warn("! writers"), f"{fact.because} [{fact.rule}]")
    if table.lock is not None:
        label = paint.bad("! stale lock") if table.lock.is_stale else paint.warn("locked")
        yield from wrap_item(label, _describe_lock(table.lock))
    for pending in _other_pending(table):
        yield from _pending_lines(pending, paint)
    for savepoint in table.savepoints:
        yield from wrap_item("savepoint", _describe_savepoint(savepoint))
    yield from _clean_lines(table)
    if table.last_apply is not None:
        yield from wrap_item("last apply", _describe_apply(table.last_apply))


def _is_unhealthy(table: TableStatus) -> bool:
    """Unhealthy, and not for want of a reading, which says it all."""
    health = table.condition("Healthy")
    return table.error is None and health is not None and health.status == "False"


def _describe_apply(last: LastApply) -> str:
    whose = f" by {last.actor}" if last.actor else ""
    commit = f" of specs at {last.spec_commit[:_DIGEST_LENGTH]}" if last.spec_commit else ""
    plan = last.plan_digest.removeprefix("sha256:")[:_DIGEST_LENGTH]
    return f"{last.instant} ({words.format_instant(last.instant)}){whose}{commit}, plan {plan}"


def _label_note(note: Note, paint: Paint) -> tuple[str, str]:
    """The label and sentence of a warning; that nothing is to be done warns of nothing."""
    start = "nothing to do: "
    if note.because.startswith(start):
        return "= nothing to do", f"{note.because.removeprefix(start)} [{note.rule}]"
    start = "no clustering: "
    if note.rule == "nothingToDo" and note.because.startswith(start):
        return "= no clustering", f"{note.because.removeprefix(start)} [{note.rule}]"
    return paint.warn("! warning"), f"{note.because} [{note.rule}]"


def _describe_lock(lock: LockStatus) -> str:
    return f"{lock.path} is held by {lock.held_by}"


def _reach_lines(table: TableStatus) -> Iterator[str]:
    zone = (
        f" {words.escape_text(table.timezone)}" if table.timezone else " (the writers' local time)"
    )
    last = table.last_completed
    yield from wrap_item(
        "last completed", "nothing yet" if last is None else f"{words.format_instant(last)}{zone}"
    )
    if table.earliest_readable is not None:
        reach = words.time_between(table.earliest_readable, last)
        back = "" if reach is None else f", {words.format_duration(reach.total_seconds())} back"
        yield from wrap_item(
            "readable from", f"{words.format_instant(table.earliest_readable)}{back}"
        )


def _file_lines(table: TableStatus) -> Iterator[str]:
    small = f", {words.format_number(table.small_files)} of them small" if table.small_files else ""
    size = f", {words.format_size(table.bytes)}" if table.files else ""
    less = ""
    if table.bytes_reclaimable:
        less = f"; the plan would remove {words.format_size(table.bytes_reclaimable)}"
    yield from wrap_item("files", f"{words.format_count(table.files, 'file')}{size}{less}")
    sizes = table.sizes if table.layout is None else table.layout.sizes
    shown = [c for c in sizes if c.files]
    if not shown:
        return
    current = sum(c.files for c in shown)
    yield from wrap_detail(f"newest base files: {words.format_number(current)}{small}")
    most = max(c.files for c in shown)
    above: int | None = None
    for one in sizes:
        if one.files:
            bar = "█" * max(1, round(_BAR_WIDTH * one.files / most))
            yield f"        {_class_name(one, above):<20} {words.format_number(one.files):>9}  {bar}"
        above = one.below


def _layout_lines(layout: LayoutStatus, paint: Paint) -> Iterator[str]:
    yield from wrap_item(
        "layout", f"declared: {_describe_order(layout.columns, layout.curve, layout.mapping)}"
    )
    if layout.overlap is not None:
        yield from wrap_detail(f"{layout.overlap:.1f} files cover a row on average")
    if layout.small_partitions:
        of = words.format_count(layout.partitions, "partition")
        yield from wrap_detail(
            f"small files in {words.format_number(layout.small_partitions)} of {of}"
        )
    for one in layout.worst[:_MAX_PARTITIONS]:
        cover = "" if one.overlap is None else f", {one.overlap:.1f} cover a row"
        files = f"{words.format_number(one.small_files)} of {words.format_count(one.files, 'file')} small"
        yield from wrap_detail(f"{one.partition or 'the table'}: {files}{cover}", 2)
    if layout.planned is not None:
        yield from wrap_detail(_describe_planned(layout, layout.planned))
    last = layout.last_clustering
    done = "none on the active timeline" if last is None else _describe_clustering(last)
    yield from wrap_item("last clustering", done)
    for measured in () if last is None else last.queries[:_MAX_QUERIES]:
        yield from wrap_detail(describe_measured_query(measured))
    for pending in layout.pending:
        yield from _pending_clustering_lines(pending, paint)


def _index_lines(index: IndexStatus, paint: Paint) -> Iterator[str]:
    if index.instant is None:
        yield from wrap_item("index", f"none yet; declared: {', '.join(index.declared)}")
    else:
        files = f"{words.format_number(index.files_covered)} of {words.format_count(index.files, 'base file')}"
        yield from wrap_item("index", f"{', '.join(index.columns)}: covers {files}")
        since = index.commits_since or 0
        behind = f", {words.format_count(since, 'commit')} ago" if since else ", the newest"
        yield from wrap_detail(
            f"{words.format_size(index.bytes)}, of {words.format_instant(index.instant)}{behind}"
        )
    if index.hudi_columns is not None:
        has = ", ".join(index.hudi_columns) or "no column that is known"
        yield from wrap_detail(f"Hudi's column_stats has {has}")
    for problem in index.damaged:
        yield from wrap_item(paint.bad("! unread index"), problem)


def _describe_planned(layout: LayoutStatus, planned: PlannedLayout) -> str:
    before = words.format_number(sum(size.files for size in layout.sizes))
    after = words.format_count(planned.files_after, "base file")
    cover = ""
    if layout.overlap is not None and planned.overlap_after is not None:
        cover = f", {planned.overlap_after:.1f} of them cover a row"
    size = words.format_size(planned.bytes_rewritten)
    return f"the plan would rewrite {size}: {before} → {after}{cover} (predicted)"


def _describe_clustering(last: ClusteringStatus) -> str:
    whose = "by reconciler" if last.is_ours else "by a writer of the table"
    if last.is_as_declared:
        return f"{last.instant} {whose}, as declared"
    if last.columns is None:
        return f"{last.instant} {whose}; how it ordered rows is not known"
    how = _describe_order(last.columns, last.curve, last.mapping)
    return f"{last.instant} {whose}, not as declared: {how}"


def _describe_order(columns: Sequence[str], curve: str | None, mapping: str | None) -> str:
    """What a layout orders rows by."""
    if not columns:
        return "files packed as they are"
    along = f" along {curve}" if curve else ""
    return f"rows by {', '.join(columns)}{along}" + (f", mapping {mapping}" if mapping else "")


def _pending_clustering_lines(pending: PendingClusteringStatus, paint: Paint) -> Iterator[str]:
    groups = words.format_count(pending.file_groups, "file group")
    where = words.format_count(pending.partitions, "partition")
    label = paint.bad("! stuck") if pending.is_stuck else "pending"
    stuck = "; longer than concurrency.staleAfter" if pending.is_stuck else ""
    since = f"{pending.state.lower()} for {words.format_duration(pending.age_seconds)}"
    yield from wrap_item(
        label, f"clustering {pending.instant} {since}, {groups} in {where} in hand{stuck}"
    )


def _class_name(one: SizeClass, above: int | None) -> str:
    if one.below is None:
        return f"{_round_size(above or 0)} and more"
    return (
        f"below {_round_size(one.below)}"
        if above is None
        else f"{_round_size(above)} to {_round_size(one.below)}"
    )


def _round_size(size: int) -> str:
    return words.format_size(size).replace(".0 ", " ")


def _other_pending(table: TableStatus) -> list[PendingStatus]:
    """What is pending and was not said with the layout."""
    said = {one.instant for one in table.layout.pending} if table.layout is not None else set()
    return [one for one in table.pending if one.instant not in said]


def _pending_lines(pending: PendingStatus, paint: Paint) -> Iterator[str]:
    stuck = "; longer than concurrency.staleAfter" if pending.is_stuck else ""
    label = paint.bad("! stuck") if pending.is_stuck else "pending"
    age = words.format_duration(pending.age_seconds)
    state = pending.state.lower()
    yield from wrap_item(label, f"{pending.action} {pending.instant} {state} for {age}{stuck}")


def _describe_savepoint(savepoint: SavepointStatus) -> str:
    if not savepoint.is_completed:
        return f"{savepoint.instant} is half made: what it will pin is not known"
    pinned = "pins nothing beyond the newest file slices"
    if savepoint.pinned_files:
        files = words.format_count(savepoint.pinned_files, "file")
        pinned = f"pins {files}, {words.format_size(savepoint.pinned_bytes)}, beyond the newest file slices"
    return f"{savepoint.instant} ({words.format_instant(savepoint.instant)}) {pinned}"


def _clean_lines(table: TableStatus) -> Iterator[str]:
    if table.last_clean is None:
        yield from wrap_item("last clean", "none on the active timeline")
        return
    yield from wrap_item("last clean", _describe_clean(table.last_clean, table.last_completed))
    foreign = table.last_foreign_clean
    if foreign is not None and foreign != table.last_clean:
        yield from wrap_item("writers' clean", _describe_clean(foreign, table.last_completed))


def _describe_clean(clean: CleanStatus, last: str | None) -> str:
    whose = "by reconciler" if clean.is_ours else "by a writer of the table"
    start = clean.earliest_instant_to_retain
    kept = ""
    if clean.commits:
        reach = words.time_between(start, clean.instant)
        span = "" if reach is None else f", {words.format_duration(reach.total_seconds())}"
        kept = f": it kept {words.format_count(clean.commits, 'commit')}{span}"
    since = words.time_between(clean.instant, last)
    before = ""
    if since is not None and since.total_seconds() >= 60:  # noqa: PLR2004
        before = f", {words.format_duration(since.total_seconds())} before the last write"
    policy = f" with {words.escape_text(clean.policy)}" if clean.policy else ""
    return f"{clean.instant} {whose}{policy}{kept}{before}"
