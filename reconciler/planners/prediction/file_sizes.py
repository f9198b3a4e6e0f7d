"""Report on file sizes compared with the spec and simulate the next insert; pure.

The report only informs reviewers; no step depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from reconciler.arrays import to_arrow
from reconciler.hudi.files.bucket_ids import are_bucket_ids
from reconciler.hudi.metadata.sync_decisions import RECORD_INDEX
from reconciler.hudi.timeline.instant import Action
from reconciler.layout.sizing.assignment_rules import (
    AssignmentRule,
    FileSizeLimits,
    MergeOnRead,
    SteadyRule,
    TableKind,
    choose_rule,
    restrict_moves,
)
from reconciler.layout.sizing.candidates import find_table_kind
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes, measure_groups
from reconciler.layout.sizing.record_size import PastWrite
from reconciler.layout.sizing.simulate_inserts import (
    NextInsert,
    apportion_rows,
    combine_forecasts,
    estimate_amplification,
    simulate_inserts,
    sum_by_partition,
)
from reconciler.layout.sizing.size_report import measure_file_sizes
from reconciler.planners.picture import TablePicture
from reconciler.plans.file_sizes import FileSizeReport, InsertReport
from reconciler.plans.model import Note
from reconciler.spec.model import FileSizes
from reconciler.state.model import TableState

#: the rule of the warning that past writes could not be read
WARNING_RULE: Final = "fileSizes"
#: greatest number of partitions that a plan lists, the worst first
_MAX_PARTITIONS: Final = 20
#: greatest number of files that is simulated
_MAX_FILES: Final = 1_000_000
#: Hudi's names of operations that rewrite existing rows
_SERVICES: Final = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT"})


def report_file_sizes(
    picture: TablePicture, next_insert: NextInsert | None = None
) -> FileSizeReport | None:
    """Return the report on file sizes; None if past writes were not read.

    ``next_insert``: new rows whose effect is simulated.
    """
    state, files = picture.state, picture.file_sizes
    if state.recent_writes is None:
        return None
    groups = measure_groups(
        picture.view,
        compacting=[(file.partition, file.file_id) for file in state.compactions],
        clustering=[(file.partition, file.file_id) for file in state.clusterings],
    )
    sizes = FileSizeLimits(target=files.target, small=files.small)
    report = measure_file_sizes(groups, sizes, _find_operations(state))
    return FileSizeReport(
        target=sizes.target,
        small_below=sizes.small,
        state=replace(report, partitions=report.partitions[:_MAX_PARTITIONS]),
        small_partitions=len(report.partitions),
        next_insert=None
        if next_insert is None
        else _simulate_inserts(next_insert, state, groups, files, sizes),
    )


def warn_of_writes(state: TableState) -> tuple[Note, ...]:
    """Warn that past writes could not be read."""
    if state.recent_writes is None or state.recent_writes.warning is None:
        return ()
    return (Note(WARNING_RULE, state.recent_writes.warning.because),)


def _find_operations(state: TableState) -> dict[str, str]:
    """Return the operation of each instant, for the newest writes and all known clusterings."""
    operations = dict.fromkeys(
        (past.instant for past in state.clustering_facts.clusterings)
        if state.clustering_facts
        else (),
        "CLUSTER",
    )
    written = state.recent_writes.newest if state.recent_writes else ()
    return operations | {write.instant: write.operation for write in written if write.operation}


def _simulate_inserts(
    insert: NextInsert,
    state: TableState,
    groups: FileGroupSizes,
    files: FileSizes,
    sizes: FileSizeLimits,
) -> InsertReport:
    assert state.recent_writes is not None, "past writes were asked for"
    written = state.recent_writes.newest
    rows, spread = _spread_rows(insert, state, written)
    if not rows:
        return _skip_simulation(insert, spread)
    if are_bucket_ids(groups.file_id.filter(to_arrow(groups.is_live))):
        return _skip_simulation(
            insert,
            "the table has a bucket index, so rows go to file groups by their keys, whatever the "
            "file sizes",
        )
    kind = find_table_kind(
        groups,
        written,
        is_merge_on_read=state.is_merge_on_read,
        has_record_index=RECORD_INDEX in state.metadata_partitions,
    )
    rule = restrict_moves(
        choose_rule(
            files.assign,
            sizes,
            written,
            footers=state.recent_writes.footers,
            declared=files.record_size,
        ),
        has_flink_writers=state.recent_writes.has_flink_writers,
        has_record_index=RECORD_INDEX in state.metadata_partitions,
    )
    if insert.rows * _bytes_per_row(rule) > _MAX_FILES * sizes.target:
        return _skip_simulation(insert, "the rows would make more than a million files")
    forecasts = simulate_inserts(
        groups,
        rows,
        kind,
        rule,
        has_commits=bool(state.timeline.commits),
    )
    largest = sorted(forecasts, key=lambda forecast: -forecast.rows)[:_MAX_PARTITIONS]
    return InsertReport(
        rows=insert.rows,
        because="; ".join(filter(None, (spread, _explain_row_size(rule), _explain_kind(kind)))),
        partition_count=len(forecasts),
        total=combine_forecasts(forecasts),
        partitions=tuple(largest),
        brought=round(insert.rows * _bytes_per_row(rule)),
        written_per_byte=estimate_amplification(
            rule, largest[0].rows, appends=isinstance(kind, MergeOnRead) and kind.indexes_logs
        ),
    )


def _skip_simulation(insert: NextInsert, why: str) -> InsertReport:
    return InsertReport(rows=insert.rows, because=f"not simulated: {why}")


def _spread_rows(
    insert: NextInsert, state: TableState, written: Sequence[PastWrite]
) -> tuple[dict[str, int], str]:
    """Return rows by partition and how they were distributed; no rows and a reason if unknown."""
    is_partitioned = state.is_partitioned or any(state.partitions)
    if insert.partition is not None:
        if not is_partitioned:
            return {}, "the table has no partitions; do not name one"
        return {insert.partition: insert.rows}, f"all rows into {insert.partition}"
    recent = [one.inserts for one in written if one.inserts and not _is_table_service(one, state)]
    shares = sum_by_partition(recent)
    if not is_partitioned:
        return {"": insert.rows}, ""
    if not shares:
        return {}, (
            "the newest writes inserted no rows, so the partitions of the next rows are unknown; "
            "name one, as N,PARTITION"
        )
    spread = {path: rows for path, rows in apportion_rows(insert.rows, shares).items() if rows}
    writes = "write" if len(recent) == 1 else f"{len(recent)} writes"
    return spread, f"distributed over partitions like the new rows of the last {writes}"


def _is_table_service(written: PastWrite, state: TableState) -> bool:
    """Return whether a write only rewrote existing rows; a compaction ends as a commit."""
    is_compaction = state.is_merge_on_read and written.action is Action.COMMIT
    return is_compaction or (written.operation or "").upper() in _SERVICES


def _bytes_per_row(rule: AssignmentRule) -> float:
    return rule.record_size.per_row if isinstance(rule, SteadyRule) else float(rule.average)


def _explain_row_size(rule: AssignmentRule) -> str:
    """Explain the assumed size of a row and which rule it comes from."""
    if isinstance(rule, SteadyRule):
        record = rule.record_size
        fixed = f" plus {record.fixed} per file" if record.fixed else ""
        unsure = "; too few rows for a sure estimate, so a write measures its own"
        reason = record.because + unsure * rule.needs_row_sizes
        return f"{_format_bytes(record.per_row)} per row{fixed} ({reason})"
    return f"{_format_bytes(rule.average)} per row by Hudi's rule"


def _explain_kind(kind: TableKind) -> str:
    """Explain where new rows of a merge-on-read table may go; nothing for other tables."""
    if not isinstance(kind, MergeOnRead):
        return ""
    if kind.indexes_logs:
        return "new rows join log files, where the table's writers put new rows too"
    return "new rows fill base files without log files"


def _format_bytes(count: float) -> str:
    return "1 byte" if round(count) == 1 else f"{count:.0f} bytes"
