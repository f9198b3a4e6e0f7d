"""How tables are: for people, and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler import canonical
from reconciler.index_status import IndexStatus
from reconciler.layout_status import (
    ClusteringStatus,
    LayoutStatus,
    PendingClustering,
    PlannedLayout,
    SizeClass,
)
from reconciler.plan import encode
from reconciler.plan.model import Note, Selection
from reconciler.render import words
from reconciler.render.lines import item, more
from reconciler.render.paint import Paint
from reconciler.render.rewritten import measured_line
from reconciler.status import (
    CleanStatus,
    LastApply,
    LockStatus,
    PendingStatus,
    SavepointStatus,
    TableStatus,
)

_BAR = 24
_MOST_PARTITIONS = 5
_MOST_QUERIES = 10
_SHORT = 12  # characters of a digest or a commit that people compare
_WORST_FIRST = ("error", "blocked", "drifted", "unmanaged", "in sync")


def status_text(
    tables: Sequence[TableStatus], *, color: bool, selection: Selection | None = None
) -> str:
    """The tables for people, those that need somebody first; ends with a line that sums it up."""
    paint = Paint(is_on=color)
    lines: list[str] = []
    for table in sorted(tables, key=_urgency):
        lines += [*_table(table, paint), ""]
    counts = [(sync, sum(t.sync == sync for t in tables)) for sync in _WORST_FIRST]
    kinds = ", ".join(f"{words.number(n)} {sync}" for sync, n in counts if n)
    ill = sum(_is_ill(table) for table in tables)
    unhealthy = f"; {words.number(ill)} unhealthy" if ill else ""
    total = words.tables(len(tables), selection)
    summary = f"{total}: {kinds}{unhealthy}" if kinds else total
    return "\n".join([*lines, f"{paint.strong('Status:')} {summary}"]) + "\n"


def _urgency(table: TableStatus) -> tuple[int, bool, str]:
    return _WORST_FIRST.index(table.sync), not _is_ill(table), table.name


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
        "tables": [_camel(table.document()) for table in tables],
        **encode.selected(selection),
    }
    return canonical.dumps(document) + b"\n"


def _camel(value: object) -> object:
    """The names of a dataclass as the documents spell them."""
    if isinstance(value, dict):
        return {_camel_name(key): _camel(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_camel(inner) for inner in value]
    return value


def _camel_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def _table(table: TableStatus, paint: Paint) -> Iterator[str]:
    color = {"in sync": paint.good, "drifted": paint.warn, "unmanaged": paint.warn}
    label = color.get(table.sync, paint.bad)(table.sync)
    label += ", " + paint.bad("unhealthy") if _is_ill(table) else ""
    kind = {"COPY_ON_WRITE": "COW", "MERGE_ON_READ": "MOR"}.get(table.table_type or "", "")
    version = f"  {kind} v{table.table_version}" if kind else ""
    yield f"{paint.strong(words.plain(table.name))}  {label}{version}  {words.plain(table.path)}"
    if table.error is not None:
        yield from item(paint.bad("! error"), table.error)
        return
    for sentence in table.because:
        yield from item(paint.warn("~"), sentence)
    for note in table.notes:
        yield from item(*_note(note, paint))
    if table.table_type is None:
        return  # it could not be looked at
    yield from _reach(table)
    yield from _files(table)
    yield from _layout(table.layout, paint) if table.layout is not None else ()
    yield from _index(table.index, paint) if table.index is not None else ()
    for fact in table.writers:
        yield from item(paint.warn("! writers"), f"{fact.because} [{fact.rule}]")
    if table.lock is not None:
        label = paint.bad("! stale lock") if table.lock.is_stale else paint.warn("locked")
        yield from item(label, _lock(table.lock))
    for pending in _others_pending(table):
        yield from _pending(pending, paint)
    for savepoint in table.savepoints:
        yield from item("savepoint", _savepoint(savepoint))
    yield from _cleans(table)
    if table.last_apply is not None:
        yield from item("last apply", _apply(table.last_apply))


def _is_ill(table: TableStatus) -> bool:
    """Unhealthy, and not for want of a reading, which says it all."""
    health = table.condition("Healthy")
    return table.error is None and health is not None and health.status == "False"


def _apply(last: LastApply) -> str:
    whose = f" by {last.actor}" if last.actor else ""
    commit = f" of specs at {last.spec_commit[:_SHORT]}" if last.spec_commit else ""
    plan = last.plan_digest.removeprefix("sha256:")[:_SHORT]
    return f"{last.instant} ({words.date(last.instant)}){whose}{commit}, plan {plan}"


def _note(note: Note, paint: Paint) -> tuple[str, str]:
    """The label and sentence of a warning; that nothing is to be done warns of nothing."""
    start = "nothing to do: "
    if note.because.startswith(start):
        return "= nothing to do", f"{note.because.removeprefix(start)} [{note.rule}]"
    start = "no clustering: "
    if note.rule == "nothingToDo" and note.because.startswith(start):
        return "= no clustering", f"{note.because.removeprefix(start)} [{note.rule}]"
    return paint.warn("! warning"), f"{note.because} [{note.rule}]"


def _lock(lock: LockStatus) -> str:
    return f"{lock.path} is held by {lock.held_by}"


def _reach(table: TableStatus) -> Iterator[str]:
    zone = f" {words.plain(table.timezone)}" if table.timezone else " (the writers' local time)"
    last = table.last_completed
    yield from item(
        "last completed", "nothing yet" if last is None else f"{words.date(last)}{zone}"
    )
    if table.earliest_readable is not None:
        reach = words.between(table.earliest_readable, last)
        back = "" if reach is None else f", {words.span(reach.total_seconds())} back"
        yield from item("readable from", f"{words.date(table.earliest_readable)}{back}")


def _files(table: TableStatus) -> Iterator[str]:
    small = f", {words.number(table.small_files)} of them small" if table.small_files else ""
    size = f", {words.size(table.bytes)}" if table.files else ""
    less = ""
    if table.bytes_reclaimable:
        less = f"; the plan would remove {words.size(table.bytes_reclaimable)}"
    yield from item("files", f"{words.count(table.files, 'file')}{size}{less}")
    sizes = table.sizes if table.layout is None else table.layout.sizes
    shown = [c for c in sizes if c.files]
    if not shown:
        return
    current = sum(c.files for c in shown)
    yield from more(f"newest base files: {words.number(current)}{small}")
    most = max(c.files for c in shown)
    above: int | None = None
    for one in sizes:
        if one.files:
            bar = "█" * max(1, round(_BAR * one.files / most))
            yield f"        {_class(one, above):<20} {words.number(one.files):>9}  {bar}"
        above = one.below


def _layout(layout: LayoutStatus, paint: Paint) -> Iterator[str]:
    yield from item(
        "layout", f"declared: {_ordering(layout.columns, layout.curve, layout.mapping)}"
    )
    if layout.overlap is not None:
        yield from more(f"{layout.overlap:.1f} files cover a row on average")
    if layout.small_partitions:
        of = words.count(layout.partitions, "partition")
        yield from more(f"small files in {words.number(layout.small_partitions)} of {of}")
    for one in layout.worst[:_MOST_PARTITIONS]:
        cover = "" if one.overlap is None else f", {one.overlap:.1f} cover a row"
        files = f"{words.number(one.small_files)} of {words.count(one.files, 'file')} small"
        yield from more(f"{one.partition or 'the table'}: {files}{cover}", 2)
    if layout.planned is not None:
        yield from more(_planned(layout, layout.planned))
    last = layout.last_clustering
    done = "none on the active timeline" if last is None else _clustering(last)
    yield from item("last clustering", done)
    for measured in () if last is None else last.queries[:_MOST_QUERIES]:
        yield from more(measured_line(measured))
    for pending in layout.pending:
        yield from _held(pending, paint)


def _index(index: IndexStatus, paint: Paint) -> Iterator[str]:
    if index.instant is None:
        yield from item("index", f"none yet; declared: {', '.join(index.declared)}")
    else:
        files = f"{words.number(index.files_covered)} of {words.count(index.files, 'base file')}"
        yield from item("index", f"{', '.join(index.columns)}: covers {files}")
        since = index.commits_since or 0
        behind = f", {words.count(since, 'commit')} ago" if since else ", the newest"
        yield from more(f"{words.size(index.bytes)}, of {words.date(index.instant)}{behind}")
    if index.hudi_columns is not None:
        has = ", ".join(index.hudi_columns) or "no column that is known"
        yield from more(f"Hudi's column_stats has {has}")
    for problem in index.damaged:
        yield from item(paint.bad("! unread index"), problem)


def _planned(layout: LayoutStatus, planned: PlannedLayout) -> str:
    before = words.number(sum(size.files for size in layout.sizes))
    after = words.count(planned.files_after, "base file")
    cover = ""
    if layout.overlap is not None and planned.overlap_after is not None:
        cover = f", {planned.overlap_after:.1f} of them cover a row"
    size = words.size(planned.bytes_rewritten)
    return f"the plan would rewrite {size}: {before} → {after}{cover} (predicted)"


def _clustering(last: ClusteringStatus) -> str:
    whose = "by reconciler" if last.is_ours else "by a writer of the table"
    if last.is_as_declared:
        return f"{last.instant} {whose}, as declared"
    if last.columns is None:
        return f"{last.instant} {whose}; how it ordered rows is not known"
    how = _ordering(last.columns, last.curve, last.mapping)
    return f"{last.instant} {whose}, not as declared: {how}"


def _ordering(columns: Sequence[str], curve: str | None, mapping: str | None) -> str:
    """What a layout orders rows by."""
    if not columns:
        return "files packed as they are"
    along = f" along {curve}" if curve else ""
    return f"rows by {', '.join(columns)}{along}" + (f", mapping {mapping}" if mapping else "")


def _held(pending: PendingClustering, paint: Paint) -> Iterator[str]:
    groups = words.count(pending.file_groups, "file group")
    where = words.count(pending.partitions, "partition")
    label = paint.bad("! stuck") if pending.is_stuck else "pending"
    stuck = "; longer than concurrency.staleAfter" if pending.is_stuck else ""
    since = f"{pending.state.lower()} for {words.span(pending.age_seconds)}"
    yield from item(
        label, f"clustering {pending.instant} {since}, {groups} in {where} in hand{stuck}"
    )


def _class(one: SizeClass, above: int | None) -> str:
    if one.below is None:
        return f"{_round(above or 0)} and more"
    return (
        f"below {_round(one.below)}" if above is None else f"{_round(above)} to {_round(one.below)}"
    )


def _round(size: int) -> str:
    return words.size(size).replace(".0 ", " ")


def _others_pending(table: TableStatus) -> list[PendingStatus]:
    """What is pending and was not said with the layout."""
    said = {one.instant for one in table.layout.pending} if table.layout is not None else set()
    return [one for one in table.pending if one.instant not in said]


def _pending(pending: PendingStatus, paint: Paint) -> Iterator[str]:
    stuck = "; longer than concurrency.staleAfter" if pending.is_stuck else ""
    label = paint.bad("! stuck") if pending.is_stuck else "pending"
    age = words.span(pending.age_seconds)
    state = pending.state.lower()
    yield from item(label, f"{pending.action} {pending.instant} {state} for {age}{stuck}")


def _savepoint(savepoint: SavepointStatus) -> str:
    if not savepoint.is_completed:
        return f"{savepoint.instant} is half made: what it will pin is not known"
    pinned = "pins nothing beyond the newest file slices"
    if savepoint.pinned_files:
        files = words.count(savepoint.pinned_files, "file")
        pinned = (
            f"pins {files}, {words.size(savepoint.pinned_bytes)}, beyond the newest file slices"
        )
    return f"{savepoint.instant} ({words.date(savepoint.instant)}) {pinned}"


def _cleans(table: TableStatus) -> Iterator[str]:
    if table.last_clean is None:
        yield from item("last clean", "none on the active timeline")
        return
    yield from item("last clean", _clean(table.last_clean, table.last_completed))
    foreign = table.last_foreign_clean
    if foreign is not None and foreign != table.last_clean:
        yield from item("writers' clean", _clean(foreign, table.last_completed))


def _clean(clean: CleanStatus, last: str | None) -> str:
    whose = "by reconciler" if clean.is_ours else "by a writer of the table"
    start = clean.earliest_instant_to_retain
    kept = ""
    if clean.commits:
        reach = words.between(start, clean.instant)
        span = "" if reach is None else f", {words.span(reach.total_seconds())}"
        kept = f": it kept {words.count(clean.commits, 'commit')}{span}"
    since = words.between(clean.instant, last)
    before = ""
    if since is not None and since.total_seconds() >= 60:  # noqa: PLR2004
        before = f", {words.span(since.total_seconds())} before the last write"
    policy = f" with {words.plain(clean.policy)}" if clean.policy else ""
    return f"{clean.instant} {whose}{policy}{kept}{before}"
