"""How big a table's files are beside what is declared, and what the next rows will do; pure.

Nothing is decided by it: people look at it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pyarrow.compute as pc

from reconciler.hudi.arrow import booleans
from reconciler.hudi.instant import Action
from reconciler.hudi.view import View
from reconciler.plan.model import Note
from reconciler.plan.sizes import FileSizeReport, Simulated
from reconciler.sizing.choose import rule_for
from reconciler.sizing.groups import Groups, groups_of
from reconciler.sizing.history import Written
from reconciler.sizing.report import file_size_state
from reconciler.sizing.rules import CopyOnWrite, MergeOnRead, Rule, Sizes, Steady
from reconciler.sizing.simulate import (
    NextInsert,
    apportioned,
    shares_of,
    simulate_inserts,
    together,
)
from reconciler.spec.model import FileSizes, TableSpec
from reconciler.state.model import TableState

#: the rule of a plan's warning that past writes could not be read
RULE: Final = "fileSizes"
#: partitions that a plan names, the worst first
_WORST: Final = 20
#: a simulation of more files than that says nothing to anybody
_MOST_FILES: Final = 1_000_000
#: Hudi's names of what writes rows again that are in the table already
_SERVICES: Final = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT"})
#: file ids that begin with the number of a bucket, as a bucket index makes them
_BUCKET: Final = r"^0000\d{4}-"


def file_sizes(
    spec: TableSpec, state: TableState, view: View, insert: NextInsert | None = None
) -> FileSizeReport | None:
    """The files of a table; None where its past writes were not asked for.

    ``view`` is the table's; ``insert``: rows whose way is simulated.
    """
    if state.writes is None:
        return None
    groups = groups_of(
        view,
        compacting=[(one.partition, one.file_id) for one in state.compactions],
        clustering=[(one.partition, one.file_id) for one in state.clusterings],
    )
    files = spec.files or FileSizes()
    sizes = Sizes(target=files.target, small=files.small)
    found = file_size_state(groups, sizes, _operations(state))
    return FileSizeReport(
        target=sizes.target,
        small_below=sizes.small,
        state=replace(found, partitions=found.partitions[:_WORST]),
        small_partitions=len(found.partitions),
        next_insert=None if insert is None else _simulated(insert, state, groups, files, sizes),
    )


def warnings(state: TableState) -> tuple[Note, ...]:
    """What could not be found out about past writes."""
    if state.writes is None or state.writes.doubt is None:
        return ()
    return (Note(RULE, state.writes.doubt.because),)


def _operations(state: TableState) -> dict[str, str]:
    """By instant what wrote it: of the newest writes, and of every clustering that is known."""
    found = dict.fromkeys(
        (one.instant for one in state.evidence.clusterings) if state.evidence else (), "CLUSTER"
    )
    written = state.writes.newest if state.writes else ()
    return found | {one.instant: one.operation for one in written if one.operation}


def _simulated(
    insert: NextInsert, state: TableState, groups: Groups, files: FileSizes, sizes: Sizes
) -> Simulated:
    assert state.writes is not None, "past writes were asked for"
    written = state.writes.newest
    rows, spread = _spread(insert, state, written)
    if not rows:
        return _not_simulated(insert, spread)
    if _are_buckets(groups):
        return _not_simulated(
            insert,
            "the table's file groups are buckets of record keys (a bucket index), into which rows "
            "go by their keys, however big the files are",
        )
    rule = rule_for(
        "hudi" if state.is_merge_on_read else files.assign,
        sizes,
        written,
        footers=state.writes.footers,
        declared=files.record_size,
    )
    if insert.rows * _per_row(rule) > _MOST_FILES * sizes.target:
        return _not_simulated(insert, "so many rows make more than a million files")
    outlooks = simulate_inserts(
        groups,
        rows,
        MergeOnRead() if state.is_merge_on_read else CopyOnWrite(),
        rule,
        has_commits=bool(state.timeline.commits),
    )
    worst = sorted(outlooks, key=lambda one: -one.rows)[:_WORST]
    return Simulated(
        rows=insert.rows,
        because=f"{spread}; {_said(rule, state)}" if spread else _said(rule, state),
        into=len(outlooks),
        total=together(outlooks),
        partitions=tuple(worst),
    )


def _not_simulated(insert: NextInsert, why: str) -> Simulated:
    return Simulated(rows=insert.rows, because=f"not simulated: {why}")


def _spread(
    insert: NextInsert, state: TableState, written: Sequence[Written]
) -> tuple[dict[str, int], str]:
    """The rows by partition and how they came there; no rows and why not."""
    is_partitioned = state.is_partitioned or any(state.partitions)
    if insert.partition is not None:
        if not is_partitioned:
            return {}, "the table has no partitions; name none"
        return {insert.partition: insert.rows}, f"all of them into {insert.partition}"
    recent = [one.inserts for one in written if one.inserts and not _is_service(one, state)]
    shares = shares_of(recent)
    if not is_partitioned:
        return {"": insert.rows}, ""
    if not shares:
        return {}, (
            "the newest writes tell of no new rows, so that nobody knows into which partitions "
            "the next ones go; name one, as N,PARTITION"
        )
    found = {path: rows for path, rows in apportioned(insert.rows, shares).items() if rows}
    writes = "write" if len(recent) == 1 else f"{len(recent)} writes"
    return found, f"on partitions as the new rows of the last {writes}"


def _is_service(written: Written, state: TableState) -> bool:
    """Whether what an instant wrote was in the table before; a compaction ends as a commit."""
    is_compaction = state.is_merge_on_read and written.action is Action.COMMIT
    return is_compaction or (written.operation or "").upper() in _SERVICES


def _are_buckets(groups: Groups) -> bool:
    ids = groups.file_id.filter(booleans(groups.is_live))
    return bool(len(ids)) and bool(pc.all(pc.match_substring_regex(ids, _BUCKET)).as_py())


def _per_row(rule: Rule) -> float:
    return rule.record.per_row if isinstance(rule, Steady) else float(rule.average)


def _said(rule: Rule, state: TableState) -> str:
    """How big a row is taken for, and whose rule that is."""
    if isinstance(rule, Steady):
        fixed = f" beside {rule.record.fixed} of every file" if rule.record.fixed else ""
        weighed = "; so few rows tell nothing sure, and a write weighs its own" * rule.weighs
        return f"{_bytes(rule.record.per_row)} a row{fixed} ({rule.record.because}{weighed})"
    size = f"{_bytes(rule.average)} a row by Hudi's rule"
    if not state.is_merge_on_read:
        return size
    return (
        f"{size}, since Hudi's writers write tables that merge on read; their index is taken for "
        "one that finds no rows in log files (bloom, simple, record index)"
    )


def _bytes(count: float) -> str:
    return "1 byte" if round(count) == 1 else f"{count:.0f} bytes"
