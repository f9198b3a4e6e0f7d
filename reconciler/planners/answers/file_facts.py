"""Why a file of a table stays or goes; pure. The sentences are the planners' own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.hudi.files.names import make_file_path
from reconciler.hudi.timeline.instant import WRITES
from reconciler.planners.answers.model import Answer, Fact, Verdict
from reconciler.planners.answers.planned_table import PlannedTable, find_path
from reconciler.planners.clean.explanations import LOGS_OF_LATER_SLICES
from reconciler.planners.clean.planner import (
    CleanDecision,
    describe_retention,
    find_logs_of_later_slices,
)
from reconciler.planners.protection import find_saved_slices
from reconciler.planners.reasons import pluralize
from reconciler.plans.model import (
    FILE_KINDS,
    KEEP_RULES,
    CleanStep,
    OrphansStep,
    ResumeStep,
    RollbackStep,
    Step,
)
from reconciler.plans.partition_deletion import deleted_partitions
from reconciler.spec.model import Policy, Retention
from reconciler.units import format_rounded_size

_KIND_NAMES = {"base": "base file", "log": "log file", "cdc": "CDC file"}


def explain_file(table: PlannedTable, row: int) -> Answer:
    """Return what becomes of a file of the table, by its row."""
    files, view = table.state.files, table.view
    path, _ = files.locate_file(row)
    place = int(view.row_slice[row])
    taking = tuple(_find_steps(table, path, place))
    facts = (
        *_describe_file(table, row),
        *_describe_slice(table, place),
        *_describe_retention(table, row, place),
        *_describe_protection(table, place),
        *(Fact(_name_step(step), because) for step, because in taking),
        *(fact for step, _ in taking for fact in table.describe_refusal(step)),
        *_describe_deletion(table, files.partitions[files.partition[row]]),
        *table.find_mentions(path.rpartition("/")[2]),
    )
    verdict, summary = _decide(table, path, row, [step for step, _ in taking])
    return Answer(kind="file", name=path, verdict=verdict, summary=summary, facts=facts)


def explain_removed_file(table: PlannedTable, path: str) -> Answer | None:
    """Return the answer about a file that a clean of the active timeline removed, if one did."""
    folder, _, name = path.rpartition("/")
    for clean in table.state.cleans:
        for partition, names in clean.removed.items():
            if name in names and (not folder or folder == partition):
                found = make_file_path(partition, name)
                what = f"clean {clean.instant} removed it by {clean.policy}"
                if earliest := clean.earliest_instant_to_retain:  # file versions have none
                    what += f"; its earliest instant to retain was {earliest}"
                fact = Fact("clean", what)
                return Answer(
                    kind="file",
                    name=found,
                    verdict="removed",
                    summary=f"was removed by clean {clean.instant}",
                    facts=(fact,),
                )
    return None


def _decide(table: PlannedTable, path: str, row: int, steps: Sequence[Step]) -> tuple[Verdict, str]:
    """Return the verdict and its sentence: the first of what holds."""
    place = int(table.view.row_slice[row])
    applied = [step for step in steps if table.find_refusal(step) is None]
    if going := [step for step in applied if _removes_files(step)]:
        return "goes", f"goes: step {_name_step(going[0])} of the plan removes it"
    if (because := table.find_kept(path)) is not None:
        return "kept", f"stays although it is past retention: {because}"
    if rewriting := [step for step in applied if not _removes_files(step)]:
        name = _name_step(rewriting[0])
        return "rewritten", f"stays until a clean: step {name} of the plan rewrites its slice"
    if refused := [step for step in steps if _removes_files(step)]:
        step = refused[0]
        return "refused", f"stays: step {_name_step(step)} is refused: {table.find_refusal(step)}"
    return _decide_by_slice(table, row, place)


def _decide_by_slice(table: PlannedTable, row: int, place: int) -> tuple[Verdict, str]:
    """Return why a file stays that no step names."""
    view = table.view
    if not view.is_visible[place]:
        return "unfinished", "stays: its write is not completed, so no reader sees it"
    if view.is_live[place] and view.is_newest[place]:
        return "newest", "stays: it is of the newest file slice of its group, which readers see"
    return "retained", f"stays: {_explain_retained(table, row, place)}"


def _removes_files(step: Step) -> bool:
    """Return whether a step takes away the files that it names; others rewrite slices."""
    is_resumed = isinstance(step, ResumeStep) and step.groups is None
    return is_resumed or isinstance(step, CleanStep | OrphansStep | RollbackStep)


def _explain_retained(table: PlannedTable, row: int, place: int) -> str:
    """Return why a superseded slice that no step and no rule names stays."""
    if table.spec.retention is None:
        return "the spec declares no retention, so no clean is planned"
    if table.is_blocked or table.plan.is_blocked:
        return "the plan of the table is refused"
    clean = table.clean
    if clean is None or not clean.expired.by_policy[place]:
        return _explain_not_past(table, place, table.spec.retention)
    if table.clean_obstacle is not None:
        return f"no clean is due; {table.clean_obstacle}"
    if _is_log_of_later_slice(clean, row):
        return LOGS_OF_LATER_SLICES
    return "no clean is due; the plan has no clean"


def _explain_not_past(table: PlannedTable, place: int, retention: Retention) -> str:
    """Return why a slice is not past retention: what ended it is too new, or its partition waits.

    A slice ends when the next one supersedes it, or when its file group is replaced.
    """
    kept = f"it is not past the retention of {describe_retention(retention)}"
    end = None if table.clean is None else _describe_end(table, table.clean, place)
    return kept if end is None else f"{kept}: {end}"


def _describe_end(table: PlannedTable, clean: CleanDecision, place: int) -> str | None:
    """Return when a slice ended, if that is not before the earliest instant to retain."""
    view, earliest = table.view, clean.expired.earliest
    if earliest is None or not view.is_visible[place]:
        return None
    is_live = bool(view.is_live[place])
    code = int(view.newer[place] if is_live else view.replaced[view.group[place]])
    if code >= view.never_code or view.times[code] < earliest:
        return None
    what = "it was superseded" if is_live else "its file group was replaced"
    return f"{what} at {view.times[code]}, which is not before {earliest}"


def _is_log_of_later_slice(clean: CleanDecision, row: int) -> bool:
    later = find_logs_of_later_slices(clean.view, clean.expired)
    return bool(len(later) and later[row])


def _describe_file(table: PlannedTable, row: int) -> Iterator[Fact]:
    files, state = table.state.files, table.state
    kind = _KIND_NAMES[FILE_KINDS[files.kind[row]]]
    written = files.instants[files.instant[row]]
    yield Fact("file", f"a {kind} of {format_rounded_size(int(files.size[row]))}")
    instants = [one for one in state.timeline.instants if one.requested == written]
    writes = [one for one in instants if one.action in WRITES]
    start = state.timeline.start
    if writes:
        write = writes[-1]
        yield Fact("write", f"{write.action} {written} of its name is {write.state.lower()}")
    elif start is not None and written < start:
        yield Fact("write", f"{written} of its name is before the active timeline, {start}")
    else:
        yield Fact("write", f"no write {written} of its name is on the active timeline")


def _describe_slice(table: PlannedTable, place: int) -> Iterator[Fact]:
    view = table.view
    group = int(view.group[place])
    slices = int((view.group == group).sum())
    file_id = view.files.group_id[group].as_py()
    began = view.times[view.key[place]]
    yield Fact("group", f"file group {file_id} has {pluralize(slices, 'file slice')}")
    if not view.is_live[place]:
        yield Fact("group", f"its file group was replaced at {view.times[view.replaced[group]]}")
    if view.is_phantom[place]:
        yield Fact("slice", f"file slice {began} waits for a pending compaction")
    elif not view.is_visible[place]:
        yield Fact("slice", f"file slice {began} is of a write that is not completed")
    elif view.newer[place] < view.never_code:
        newer = view.times[view.newer[place]]
        yield Fact("slice", f"file slice {began} is superseded by {newer}")
    else:
        yield Fact("slice", f"file slice {began} is the newest of its file group")


def _describe_retention(table: PlannedTable, row: int, place: int) -> Iterator[Fact]:
    """Yield what the policy says of a slice, with its figures."""
    retention, clean = table.spec.retention, table.clean
    if retention is None:
        yield Fact("retention", "the spec declares no retention")
        return
    if clean is None:
        return
    kept = f"retention keeps {describe_retention(retention)}"
    commits = pluralize(len(table.state.timeline.commits), "completed commit")
    verdict = "is past it" if clean.expired.by_policy[place] else "is not past it"
    if _is_log_of_later_slice(clean, row):
        yield Fact("completionTimes", LOGS_OF_LATER_SLICES)
    if retention.policy is Policy.FILE_VERSIONS:
        newer = pluralize(int(table.view.rank[place]), "newer slice")
        yield Fact("retention", f"{kept}; the slice has {newer} in its group and {verdict}")
        return
    earliest = clean.expired.earliest
    if earliest is None:
        yield Fact("retention", f"{kept} of {commits} on the active timeline: nothing is past it")
        return
    yield Fact("retention", f"{kept}: the earliest instant to retain is {earliest}")
    end = None if clean.expired.by_policy[place] else _describe_end(table, clean, place)
    yield Fact(
        "retention", f"the slice {verdict}" if end is None else f"{end}: the slice {verdict}"
    )


def _describe_protection(table: PlannedTable, place: int) -> Iterator[Fact]:
    """Yield everything that would keep the slice if it were past retention."""
    savepoints = [
        one.instant for one in table.future.savepoints if find_saved_slices(table.view, one)[place]
    ]
    for instant in savepoints:
        yield Fact("savepoint", f"savepoint {instant} pins its file slice")
    reasons = table.protection.reasons
    for rule in KEEP_RULES:
        if rule in reasons and rule != "savepoint":
            where, sentence, key = reasons[rule]
            if where[place]:
                text = sentence if isinstance(sentence, str) else sentence(int(key[place]))
                yield Fact(rule, text)
    for pending in table.state.pending_cleans:
        named = {name for names in pending.files.values() for name in names}
        rows = (table.view.row_slice == place).nonzero()[0].tolist()
        if any(table.state.files.name[row].as_py() in named for row in rows):
            yield Fact("pendingClean", f"clean {pending.instant} is {pending.state.lower()}")


def _find_steps(table: PlannedTable, path: str, place: int) -> Iterator[tuple[Step, str]]:
    """Yield the steps of the plan that name the file or its slice, each with its reason."""
    folder, _, name = path.rpartition("/")
    group = table.view.files.group_id[int(table.view.group[place])].as_py()
    slice_path = make_file_path(folder, group)
    for step, items in table.step_items:
        at = find_path(items, path)
        if at < 0 and items.noun == "file slice":
            at = find_path(items, slice_path)
            content = "" if at < 0 else items.content[at].as_py()
            at = at if name in content.split(",") else -1
        if at >= 0:
            yield step, items.because[at].as_py() or getattr(step, "because", "")


def _name_step(step: Step) -> str:
    return f"resume {step.action}" if isinstance(step, ResumeStep) else step.kind


def _describe_deletion(table: PlannedTable, partition: str) -> Iterator[Fact]:
    for deleted in deleted_partitions(table.plan.steps):
        if deleted.path == partition:
            yield Fact("deletePartition", f"its partition is deleted: {deleted.because}")
