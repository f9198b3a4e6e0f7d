"""Tables drawn by hypothesis, and an independent implementation of cleaning.

The second opinion is written from the description of Hudi's cleaning with plain loops over one
object a file; it shares nothing with the planner but the table's state.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache

from hypothesis import strategies as st

from reconciler.hudi.files.names import BaseName, LogName
from reconciler.hudi.files.table_files import build_files
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.spec.model import Policy, Retention
from reconciler.state.model import (
    CompletedClean,
    PendingClusteringSlice,
    PendingCompactionGroup,
    Savepoint,
    TableState,
)

WRITES = {"commit", "deltacommit", "replacecommit", "compaction", "logcompaction", "clustering"}


def instant_at(minute):
    return f"2026010100{minute:02d}00000"


@dataclass
class History:
    """A table under construction: instants, files as (partition, name), and pending plans."""

    mor: bool
    version: int
    instants: list = field(default_factory=list)
    files: list = field(default_factory=list)
    groups: list = field(default_factory=list)  # (partition, file id)
    dead: dict = field(default_factory=dict)
    latest: dict = field(default_factory=dict)  # group -> key of its newest base
    compactions: list = field(default_factory=list)
    clusterings: list = field(default_factory=list)
    savepoints: list = field(default_factory=list)
    cleans: list = field(default_factory=list)
    touched: dict = field(default_factory=dict)
    completions: dict = field(default_factory=dict)

    def base(self, group, time, token="0-0-0"):
        name = BaseName(file_id=group[1], token=token, instant=time, extension=".parquet").text
        self.files.append((group[0], name))
        return name

    def log(self, group, time, number):
        name = LogName(
            file_id=group[1], instant=time, version=number, token="1-0-1", is_cdc=False
        ).text
        self.files.append((group[0], name))

    def done(self, time, action, end=None):
        self.instants.append(Instant(time, action, State.COMPLETED, end))
        self.completions[time] = end or time

    def pending(self, time, action):
        self.instants.append(Instant(time, action, State.REQUESTED))


@cache
def _numbers(end):
    """Strategies are looked into when they are made, which takes longer than drawing from one."""
    return st.integers(0, end - 1)


def _draw_one(draw, things):
    return things[draw(_numbers(len(things)))]


def _draw_some(draw, things, least=0):
    """Draw any subset, or one of at least ``least`` elements, with a single draw."""
    chosen = draw(_numbers((1 << len(things)) - least)) + least if things else 0
    return [thing for place, thing in enumerate(things) if chosen >> place & 1]


def _live_groups(history):
    return [g for g in history.groups if g not in history.dead]


def _new_group(history, draw, time):
    path = _draw_one(draw, ["a", "b", "c"])
    group = (path, f"g{len(history.groups):02d}-0")
    history.groups.append(group)
    history.base(group, time)
    history.latest[group] = time
    return group


def _upsert(history, draw, time, minute):
    action = Action.DELTACOMMIT if history.mor else Action.COMMIT
    busy = {(o.partition, o.file_id) for o in history.compactions}
    groups = _draw_some(draw, _live_groups(history))
    appended = busy | set(_draw_some(draw, groups) if history.mor else ())
    wrote = set()
    for group in groups:
        wrote.add(group[0])
        if history.mor and group in appended:
            key = history.latest[group]
            if history.version < 8:
                number = sum(n.startswith(f".{group[1]}_{key}.") for _, n in history.files) + 1
                history.log(group, key, number)
            else:
                history.log(group, time, 1)
        elif group not in busy:
            history.base(group, time)
            history.latest[group] = time
    if not groups or draw(_maybe):
        wrote.add(_new_group(history, draw, time)[0])
    late = draw(_numbers(3)) if history.version >= 8 else 0
    history.done(time, action, f"{instant_at(minute + late)[:-1]}9")
    history.touched[time] = frozenset(wrote)


def _replace(history, draw, time):
    groups = _draw_some(draw, _live_groups(history))
    busy = {(o.partition, o.file_id) for o in history.compactions}
    groups = [g for g in groups if g not in busy]
    history.dead |= dict.fromkeys(groups, time)
    wrote = {g[0] for g in groups}
    if draw(_maybe):
        wrote.add(_new_group(history, draw, time)[0])
    history.done(time, Action.REPLACECOMMIT, f"{time[:-1]}9")
    history.touched[time] = frozenset(wrote)


def _schedule(history, draw, time):
    """Add a compaction, completed or pending."""
    busy = {(o.partition, o.file_id) for o in history.compactions}
    able = [g for g in _live_groups(history) if g not in busy]
    groups = _draw_some(draw, able, least=1)
    if not groups or not history.mor:
        return
    if draw(_maybe):
        for group in groups:
            history.base(group, time)
            history.latest[group] = time
        history.done(time, Action.COMMIT, f"{time[:-1]}9")
        history.touched[time] = frozenset(g[0] for g in groups)
        return
    action = _draw_one(draw, [Action.COMPACTION, Action.COMPACTION, Action.LOGCOMPACTION])
    history.pending(time, action)
    for path, file_id in groups:
        key = history.latest[(path, file_id)]
        history.compactions.append(
            PendingCompactionGroup(
                instant=time, action=action, partition=path, file_id=file_id, base_instant=key
            )
        )
        if action is Action.COMPACTION:
            history.latest[(path, file_id)] = time


def _pend(history, draw, time):
    """Add a write that has not completed, or a pending clustering."""
    busy = {(o.partition, o.file_id) for o in history.compactions}
    able = [g for g in _live_groups(history) if g not in busy]
    if able and draw(_maybe):
        path, file_id = _draw_one(draw, able)
        base = next(n for p, n in reversed(history.files) if p == path and n.startswith(file_id))
        history.pending(time, Action.CLUSTERING)
        history.clusterings.append(
            PendingClusteringSlice(
                instant=time, partition=path, file_id=file_id, base_file=base, log_files=()
            )
        )
        return
    history.pending(time, Action.COMMIT if not history.mor else Action.DELTACOMMIT)
    if able and draw(_maybe):
        group = _draw_one(draw, able)
        if not history.mor:
            history.base(group, time, token="9-9-9")
        elif history.version >= 8:
            history.log(group, time, 1)


def _save(history, draw):
    done = [i for i in history.instants if i.is_completed and i.action.value in WRITES]
    if not done:
        return
    time = _draw_one(draw, done).requested
    if any(s.instant == time for s in history.savepoints):
        return
    names = set()
    for group in history.groups:
        if history.dead.get(group, "9") <= time:
            continue
        bases = [
            n
            for p, n in history.files
            if p == group[0] and n.startswith(group[1]) and BaseName.parse(n).instant <= time
        ]
        names |= set(bases[-1:])
    completed = draw(_maybe)
    history.savepoints.append(
        Savepoint(instant=time, completed=completed, files=frozenset(names if completed else ()))
    )


def _clean(history, draw, time):
    done = [i.requested for i in history.instants if i.is_completed and i.action.value in WRITES]
    blank = draw(_numbers(6)) == 0
    history.instants.append(Instant(time, Action.CLEAN, State.COMPLETED))
    saved = [s.instant for s in history.savepoints if s.completed]
    history.cleans.append(
        CompletedClean(
            instant=time,
            is_blank=blank,
            policy=None,
            earliest_instant_to_retain="" if blank or not done else _draw_one(draw, done),
            last_completed_commit="" if blank or not done else done[-1],
            savepointed=() if blank else tuple(saved + ["1"] * draw(_maybe)),
            removed={},
            extra={},
        )
    )


@st.composite
def tables(draw):
    """Draw a table with some history, of any version and type."""
    steps, shift = draw(_steps), draw(_shifts)
    history = History(mor=draw(_maybe), version=draw(_versions))
    for minute, kind in enumerate(steps):
        _step(history, draw, kind, minute + 10)
    return state_of(history, shift)


@st.composite
def tables_at_two_times(draw):
    """Draw a time, a table at that time, and the same table after later instants."""
    steps, shift = draw(_steps), draw(_shifts)
    history = History(mor=draw(_maybe), version=draw(_versions))
    at = draw(st.integers(0, len(steps) - 1))
    for minute, kind in enumerate(steps):
        _step(history, draw, kind, minute + 10)
        if minute == at:
            then = state_of(history, shift)
    return instant_at(at + 10), then, state_of(history, shift)


_maybe = st.booleans()
_kinds = ["upsert"] * 6 + ["replace", "schedule", "schedule", "pend", "save", "clean"]
_steps = st.lists(st.sampled_from(_kinds), min_size=4, max_size=14)
_shifts = st.sampled_from([0, 30])  # a copied timeline of version 6
_versions = st.sampled_from([6, 6, 8, 9])


def _step(history, draw, kind, minute):
    time = instant_at(minute)
    match kind:
        case "upsert":
            _upsert(history, draw, time, minute)
        case "replace":
            _replace(history, draw, time)
        case "schedule":
            _schedule(history, draw, time)
        case "pend":
            _pend(history, draw, time)
        case "save":
            _save(history, draw)
        case "clean":
            _clean(history, draw, time)


def state_of(history, shift=0):
    folders = {}
    for path, name in history.files:
        folders.setdefault(path, []).append(name)
    files = build_files(
        ((path, names, [7] * len(names)) for path, names in folders.items()), ".parquet"
    )
    late = {t: instant_at(10 + shift) if shift else f"{t[:-1]}9" for t in history.completions}
    return TableState(
        location="/t",
        table_name="t",
        table_type="MERGE_ON_READ" if history.mor else "COPY_ON_WRITE",
        table_version=history.version,
        layout=1 if history.version < 8 else 2,
        timezone="UTC",
        partition_fields=("p",),
        metadata_partitions=(),
        properties={},
        timeline=Timeline.from_files(
            TimelineFile(i, i.file_name, 1, 0)
            for i in [
                *history.instants,
                *(
                    Instant(
                        s.instant,
                        Action.SAVEPOINT,
                        State.COMPLETED if s.completed else State.INFLIGHT,
                    )
                    for s in history.savepoints
                ),
            ]
        ),
        files=files,
        partitions=files.partitions,
        metafile_partitions=frozenset(files.partitions),
        savepoints=tuple(history.savepoints),
        compactions=tuple(history.compactions),
        clusterings=tuple(history.clusterings),
        replaced=dict(history.dead),
        cleans=tuple(history.cleans),
        pending_cleans=(),
        touched_partitions=dict(history.touched),
        completions=dict(history.completions) if history.version >= 8 else {},
        v6_completions=late if history.version < 8 else {},
        observed_ms=0,
    )


def retentions():
    return st.builds(
        Retention,
        policy=st.sampled_from(Policy),
        keep=st.integers(1, 5),
        scan=st.sampled_from(["full", "incremental"]),
        max_commits_per_run=st.none() | st.integers(1, 3),
    )


def cutoffs():
    return st.integers(5, 30).map(instant_at)


def list_files(state):
    paths = [state.files.partitions[code] for code in state.files.partition]
    return list(zip(paths, state.files.name.to_pylist(), strict=True))


def without_files(state, gone):
    """Return the state without the removed files."""
    folders = {}
    for path, name in list_files(state):
        folders.setdefault(path, [])
        if (path, name) not in gone:
            folders[path].append(name)
    files = build_files(((p, n, [7] * len(n)) for p, n in folders.items()), ".parquet")
    return replace(state, files=files)


# ---- the second opinion ---------------------------------------------------------------------


@dataclass
class ExpectedSlice:
    key: str
    files: list = field(default_factory=list)
    phantom: bool = False


def group_slices(state, completion=None):  # noqa: C901 (one function on purpose)
    """Return visible slices by (partition, file id), newest first; ``completion`` None: by name."""
    writes = [i for i in state.timeline.instants if i.action.value in WRITES]
    seen = [i.requested for i in writes if i.is_completed or i.action is Action.COMPACTION]
    start = writes[0].requested if writes else ""
    bases, logs = {}, {}
    for path, name in list_files(state):
        base, log = BaseName.parse(name), LogName.parse(name)
        if base:
            bases.setdefault((path, base.file_id), []).append((base.instant, name))
        else:
            logs.setdefault((path, log.file_id), []).append((log.order, log.instant, name))
    phantoms = {
        (o.partition, o.file_id): o.instant
        for o in state.compactions
        if o.action is Action.COMPACTION
    }
    found = {}
    for group in sorted(set(bases) | set(logs)):
        slices = {}
        for key, name in bases.get(group, []):
            slices.setdefault(key, ExpectedSlice(key)).files.append(name)
        if group in phantoms:
            slices.setdefault(phantoms[group], ExpectedSlice(phantoms[group], phantom=True))
        if completion is not None and state.table_version < 8:
            for _, time, _name in logs.get(group, []):
                slices.setdefault(time, ExpectedSlice(time))
        for _, time, name in sorted(logs.get(group, [])):
            key = time
            if completion is not None and slices:
                end = completion.get(time) or (time if time < start else None)
                if end is None:
                    key = max(slices)
                else:
                    key = max((k for k in slices if k <= end), default=time)
            slices.setdefault(key, ExpectedSlice(key)).files.append(name)
        found[group] = [
            slices[key]
            for key in sorted(slices, reverse=True)
            if seen and key <= max(seen) and (key in seen or key < min(seen))
        ]
    return found


@dataclass(frozen=True)
class ExpectedClean:
    earliest: str | None
    removed: frozenset
    by_policy: frozenset


def expect_clean(state, retention, cutoff):
    """Return (partition, name) of removed files, and of those that the policy alone removes."""
    by_name = state.table_version < 8
    completion = None if by_name else state.completions
    groups = group_slices(state, completion)
    times = [i.requested for i in state.timeline.commits]
    unheld = _unprotected_times(retention, times, cutoff)
    held = _apply_holds(state, times, unheld)
    earliest = held

    def take(bound, *, alone):
        doomed = _removable_files(state, retention, groups, bound, alone=alone)
        files = {(p, f) for (p, _), s in doomed for f in s.files}
        if by_name and state.is_merge_on_read and state.v6_completions:
            others = group_slices(state, state.v6_completions)
            keys = {(g, s.key) for g, s in doomed}
            stays = {
                (g[0], f)
                for g, slices in others.items()
                for s in slices
                if (g, s.key) not in keys
                for f in s.files
                if f[0] == "."
            }
            files -= stays
        return frozenset(files)

    by_policy = take(unheld, alone=True)
    if held is not None and retention.max_commits_per_run is not None:
        earliest = _apply_cap(state, retention, times, held, lambda e: take(e, alone=False))
    return ExpectedClean(earliest, take(earliest, alone=False), by_policy)


def _unprotected_times(retention, times, cutoff):
    match retention.policy:
        case Policy.COMMITS:
            return times[len(times) - retention.keep] if len(times) > retention.keep else None
        case Policy.HOURS:
            return next((t for t in times if t >= cutoff), None)
    return None


def _apply_holds(state, times, unheld):
    holding = {"commit", "deltacommit", "replacecommit", "compaction", "clustering"}
    for instant in state.timeline.instants:
        if not instant.is_completed and instant.action.value in holding:
            if unheld is not None and unheld > instant.requested:
                return max((t for t in times if t < instant.requested), default=None)
            break
    return unheld


def _apply_cap(state, retention, times, held, take):
    last = state.cleans[-1] if state.cleans and not state.cleans[-1].is_blank else None
    since = last.earliest_instant_to_retain if last else ""
    retired = [t for t in times if since <= t < held]
    if len(retired) <= retention.max_commits_per_run:
        return held
    first = retired[retention.max_commits_per_run]
    if not take(held):
        return first
    return next(t for t in times if t >= first and (take(t) or t == held))


def _scanned_groups(state, retention, bound):
    if retention.policy is Policy.FILE_VERSIONS:
        return set(state.partitions)
    if bound is None:
        return set()
    last = state.cleans[-1] if state.cleans and not state.cleans[-1].is_blank else None
    since = last.earliest_instant_to_retain if last else ""
    entries = [
        i.requested
        for i in state.timeline.instants
        if i.action.value in {"commit", "deltacommit", "replacecommit", "clustering"}
    ]
    current = {s.instant for s in state.savepoints if s.completed}
    if retention.scan == "full" or not since or not entries or since < entries[0]:
        return set(state.partitions)
    if set(last.savepointed) - current:
        return set(state.partitions)
    window = [i.requested for i in state.commits_timeline if since <= i.requested < bound]
    return {path for time in window for path in state.touched_partitions[time]}


def _removable_files(state, retention, groups, bound, *, alone):
    """Return the (group, slice) pairs to remove; ``alone``: by the policy only."""
    versions = retention.policy is Policy.FILE_VERSIONS
    fewest = retention.keep if retention.policy is Policy.COMMITS else 0
    if not versions and (bound is None or len(state.commits_timeline) <= fewest):
        return []
    scanned = _scanned_groups(state, retention, bound)
    doomed = []
    for group, slices in groups.items():
        if group[0] not in scanned:
            continue
        replaced = state.replaced.get(group)
        in_plan = any((o.partition, o.file_id) == group for o in state.compactions)
        candidates = [s for s in slices if alone or not _is_needed(state, group, s)]
        if replaced is not None:
            goes = slices if versions or replaced < bound else []
        elif versions:
            goes = candidates[max(retention.keep - (in_plan and not alone), 0) :]
            goes = [s for s in goes if slices.index(s) >= retention.keep]
        else:
            below = next((s for s in slices if s.key < bound), None)
            goes = [s for s in slices if s.key < bound and s is not below and s is not slices[0]]
        newest = {id(s) for s in slices[:1]} | {id(s) for s in [s for s in slices if s.files][:1]}
        for found in goes:
            if not alone:
                if _is_saved(state, group, slices, found) or _is_needed(state, group, found):
                    continue
                if _is_clustered(state, group, found) or (replaced is None and id(found) in newest):
                    continue
            doomed.append((group, found))
    return doomed


def _is_needed(state, group, found):
    return any(
        (o.partition, o.file_id) == group and found.key >= o.base_instant for o in state.compactions
    )


def _is_saved(state, group, slices, found):
    for savepoint in state.savepoints:
        if savepoint.completed and set(found.files) & savepoint.files:
            return True
        if not savepoint.completed and state.replaced.get(group, "9") > savepoint.instant:
            pinned = next((s for s in slices if s.key <= savepoint.instant), None)
            if pinned is found:
                return True
    return False


def _is_clustered(state, group, found):
    return any(
        c.partition == group[0] and set(found.files) & {c.base_file, *c.log_files}
        for c in state.clusterings
    )
