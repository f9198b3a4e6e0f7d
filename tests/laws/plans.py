"""Strategies for plans, with any names that a file system allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from reconciler import arrays
from reconciler.layout.sizing.simulate_inserts import InsertForecast, SizeRange
from reconciler.layout.sizing.size_report import (
    FileSizeState,
    HistogramBar,
    LogFileSizes,
    OperationFiles,
    PartitionSmallFiles,
)
from reconciler.plans import columns
from reconciler.plans.archive_step import (
    ArchiveBound,
    ArchivedInstant,
    ArchiveStep,
    Leftover,
)
from reconciler.plans.encode import compute_spec_digest
from reconciler.plans.file_sizes import FileSizeReport, InsertReport
from reconciler.plans.groups import rewrites_from_json, slice_paths
from reconciler.plans.layout_change import LayoutChange, LayoutFigures, Untouched
from reconciler.plans.model import (
    CURVES,
    FILE_KINDS,
    INDEX_TARGETS,
    KEEP_RULES,
    MAPPINGS,
    REMOVAL_RULES,
    CleanStep,
    ClusterStep,
    Finding,
    Impact,
    IndexStep,
    KeptFiles,
    NamedFiles,
    Note,
    Observed,
    OrphanFiles,
    OrphansStep,
    PendingInstant,
    RemovedFiles,
    ResumeStep,
    RollbackStep,
    Selection,
    TablePlan,
    rewritten_groups,
)
from reconciler.plans.partition_deletion import DeletePartitionStep, ExpiredPartition
from reconciler.plans.plan import Plan
from reconciler.plans.savepoint_step import SavepointReport, SavepointStep
from reconciler.plans.table_costs import QueryCosts, TableCosts
from reconciler.prices import Prices

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    [
        '"}],"policy":"',
        '{"because":"',
        '"}]},{',
        "\\",
        '\\"',
        "\n\r\t\b\f\x00\x1f\x7f",
        "🦆é漢",
        "x" * 999,
    ]
)
names = texts.map(lambda t: t.replace("/", "").replace("\\", "").replace("\0", "")).filter(
    lambda t: t not in ("", ".", "..")
)
partitions = st.just("") | st.lists(names, min_size=1, max_size=3).map("/".join).filter(
    lambda p: not p.startswith(".hoodie") and "://" not in p
)
instants = st.integers(0, 10**17 - 1).map("{:017}".format)
counts = st.integers(0, 2**63 - 1)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
notes = st.lists(st.builds(Note, rule=texts, because=texts), max_size=2).map(tuple)
keys = st.lists(st.tuples(partitions, names), max_size=8, unique=True).map(sorted)


def dictionary_array(values: Sequence[str]) -> Any:
    distinct = list(dict.fromkeys(values))
    return columns.build_dictionary(
        np.array([distinct.index(value) for value in values], np.int32), distinct
    )


@cache
def arrow_column(of: st.SearchStrategy[Any], length: int) -> st.SearchStrategy[list[Any]]:
    """Strategies are looked into when they are made, which takes longer than drawing from one."""
    return st.lists(of, min_size=length, max_size=length)


kinds = st.integers(0, len(FILE_KINDS) - 1)
removal_rules = st.integers(0, len(REMOVAL_RULES) - 1)
keep_rules = st.integers(0, len(KEEP_RULES) - 1)


@st.composite
def removed_files(draw: Any) -> RemovedFiles:
    rows = draw(keys)

    return RemovedFiles(
        partition=dictionary_array([p for p, _ in rows]),
        name=arrays.to_arrow([n for _, n in rows]),
        bytes=np.array(draw(arrow_column(counts, len(rows))), np.int64),
        kind=np.array(draw(arrow_column(kinds, len(rows))), np.int8),
        rule=np.array(draw(arrow_column(removal_rules, len(rows))), np.int8),
        because=dictionary_array(draw(arrow_column(texts, len(rows)))),
    )


@st.composite
def orphan_files(draw: Any) -> OrphanFiles:
    files = draw(removed_files())
    return OrphanFiles(
        partition=files.partition,
        name=files.name,
        bytes=files.bytes,
        kind=files.kind,
        because=files.because,
    )


@st.composite
def kept_files(draw: Any) -> KeptFiles:
    rows = draw(keys)
    return KeptFiles(
        partition=dictionary_array([p for p, _ in rows]),
        name=arrays.to_arrow([n for _, n in rows]),
        rule=np.array(draw(arrow_column(keep_rules, len(rows))), np.int8),
        because=dictionary_array(draw(arrow_column(texts, len(rows)))),
    )


@st.composite
def named_files(draw: Any) -> NamedFiles:
    rows = draw(keys)
    return NamedFiles(
        partition=dictionary_array([p for p, _ in rows]),
        name=arrays.to_arrow([n for _, n in rows]),
    )


deleted = st.lists(partitions, max_size=3, unique=True).map(lambda p: tuple(sorted(p)))
WHEN = ("Before", "After")
_groups = st.lists(
    st.fixed_dictionaries(
        {
            "partition": partitions,
            "outputs": counts.map(lambda count: max(count, 1)),
            "bytes": counts,
            "because": texts,
            "slices": st.lists(
                st.fixed_dictionaries(
                    {
                        "fileId": names,
                        "base": st.none() | names,
                        "logs": st.lists(names, max_size=2),
                    }
                ),
                min_size=1,
                max_size=2,
            ),
        }
    ),
    max_size=3,
)


def _have_no_group_twice(groups: Sequence[Any]) -> bool:
    ids = [(group["partition"], each["fileId"]) for group in groups for each in group["slices"]]
    return len(ids) == len(set(ids))


rewrites = _groups.filter(_have_no_group_twice).map(rewrites_from_json)
resumes = st.builds(
    ResumeStep,
    instant=instants,
    action=st.sampled_from(["clean", "clustering"]),
    files=removed_files(),
    delete_partitions=deleted,
    groups=rewrites.map(lambda groups: groups or None),
    because=texts,
)
rollbacks = st.builds(
    RollbackStep, instant=instants, action=texts, files=named_files(), because=texts
)
deletions = st.builds(
    DeletePartitionStep,
    partitions=st.lists(
        st.builds(
            ExpiredPartition,
            path=partitions.filter(bool),
            files=counts,
            bytes=counts,
            rows=st.none() | counts,
            date=st.none() | texts,
            last_commit=instants,
            because=texts,
        ),
        max_size=3,
        unique_by=lambda partition: partition.path,
    ).map(lambda found: tuple(sorted(found, key=lambda partition: partition.path))),
)
clusters = st.builds(
    ClusterStep,
    columns=st.lists(texts, max_size=2).map(tuple),
    curve=st.none() | st.sampled_from(CURVES),
    mapping=st.none() | st.sampled_from(MAPPINGS),
    groups=rewrites,
)
cleans = st.builds(
    CleanStep,
    policy=texts,
    earliest_instant_to_retain=st.none() | instants,
    files=removed_files(),
    delete_partitions=deleted,
)
orphans = st.builds(OrphansStep, files=orphan_files())
savepoints = st.builds(
    SavepointStep,
    change=st.sampled_from(["create", "remove"]),
    name=texts,
    instant=instants,
    until=st.none() | texts,
    files=counts,
    bytes=counts,
    because=texts,
)
other_savepoints = st.builds(
    SavepointReport,
    instant=instants,
    is_completed=st.booleans(),
    made_by=st.none() | texts,
    comment=st.none() | texts,
    made_ms=st.none() | counts,
    files=counts,
    bytes=counts,
)
column_names = st.lists(texts, max_size=2, unique=True).map(tuple)
archived = st.lists(
    st.builds(
        ArchivedInstant, instants, st.sampled_from(("commit", "deltacommit", "clean", "rollback"))
    ),
    max_size=3,
).map(tuple)
archives = st.builds(
    ArchiveStep,
    kind=st.just("archive"),
    keep=st.just("30..50"),
    commits=counts,
    instants=archived,
    metadata_table=archived,
    leftovers=st.lists(
        st.builds(Leftover, instants.map(".hoodie/.heartbeat/{}".format), texts), max_size=2
    ).map(tuple),
    bound=st.none()
    | st.builds(
        ArchiveBound,
        rule=st.sampled_from(("savepoint", "newestClean")),
        instant=instants,
        commits=counts,
        because=texts,
    ),
    because=texts,
)
indexes = st.builds(
    IndexStep,
    targets=st.sampled_from([INDEX_TARGETS, INDEX_TARGETS[:1], INDEX_TARGETS[1:]]),
    columns=column_names,
    add=column_names,
    drop=column_names,
    files=counts,
    because=texts,
)


def _have_nothing_in_common(steps: Sequence[Any]) -> bool:
    slices = [
        path for groups in rewritten_groups(steps) for path in slice_paths(groups).to_pylist()
    ]
    files = [
        (partition, name)
        for step in steps
        if isinstance(step, ResumeStep | RollbackStep | CleanStep | OrphansStep)
        for partition, name in zip(
            step.files.partition.to_pylist(), step.files.name.to_pylist(), strict=True
        )
    ]
    return len(files) == len(set(files)) and len(slices) == len(set(slices))


observed = st.builds(
    Observed,
    table_version=st.sampled_from([6, 8, 9]),
    table_type=st.sampled_from(["COPY_ON_WRITE", "MERGE_ON_READ"]),
    last_completed=st.none() | instants,
    newest_write=st.none() | instants,
    pending=st.lists(
        st.builds(PendingInstant, instant=instants, action=texts, state=texts), max_size=2
    ).map(tuple),
    savepoints=st.lists(instants, max_size=2).map(tuple),
    files=counts,
    bytes=counts,
    small_files=counts,
)


figures = st.builds(
    LayoutFigures,
    files=counts,
    small=counts,
    bytes=counts,
    overlap=st.none() | st.floats(0, 99),
    sizes=st.lists(counts, max_size=2).map(tuple),
)
layouts = st.builds(
    LayoutChange,
    below=st.lists(counts, max_size=2).map(tuple),
    before=figures,
    after=figures,
    untouched=st.lists(st.builds(Untouched, texts, counts, texts), max_size=2).map(tuple),
    bytes_written=st.none() | counts,
)
spans = st.none() | st.builds(SizeRange, least=counts, most=counts)


def insert_forecasts(partition: st.SearchStrategy[str | None]) -> st.SearchStrategy[InsertForecast]:
    return st.builds(
        InsertForecast,
        partition=partition,
        rows=counts,
        filled=counts,
        filled_rows=counts,
        filled_sizes=spans,
        rewritten=counts,
        new=counts,
        new_sizes=spans,
        small=counts,
        merged=st.none() | counts,
        written=st.none() | counts,
    )


file_sizes = st.builds(
    FileSizeReport,
    target=counts,
    small_below=counts,
    state=st.builds(
        FileSizeState,
        files=counts,
        bytes=counts,
        small=counts,
        log_only=counts,
        histogram=st.lists(
            st.builds(
                HistogramBar, least=counts, below=st.none() | counts, files=counts, bytes=counts
            ),
            max_size=2,
        ).map(tuple),
        partitions=st.lists(
            st.builds(
                PartitionSmallFiles,
                partition=texts,
                files=counts,
                small=counts,
                pinned=counts,
                bytes=counts,
            ),
            max_size=2,
        ).map(tuple),
        operations=st.lists(
            st.builds(OperationFiles, operation=texts, files=counts, small=counts, bytes=counts),
            max_size=2,
        ).map(tuple),
        log_files=st.none() | st.builds(LogFileSizes, files=counts, bytes=counts, slices=counts),
    ),
    small_partitions=counts,
    next_insert=st.none()
    | st.builds(
        InsertReport,
        rows=counts,
        because=texts,
        partition_count=counts,
        total=st.none() | insert_forecasts(st.none()),
        partitions=st.lists(insert_forecasts(texts), max_size=2).map(tuple),
        brought=st.none() | counts,
        written_per_byte=st.none() | st.floats(0, 1e6),
    ),
)
merging = st.fixed_dictionaries(
    {f"{what}{when}": counts for what in ("slices", "logFiles", "logBytes") for when in WHEN}
    | {f"rows{when}": st.none() | counts for when in WHEN}
)
amounts = st.none() | st.floats(0, 1e18)
costs = st.builds(
    TableCosts,
    prices=st.builds(
        Prices,
        currency=st.sampled_from(["USD", "JPY"]),
        storage_per_gb_month=amounts,
        scan_per_tb=amounts,
        rewrite_per_tb=amounts,
    ),
    freed_per_month=amounts,
    rewrite_once=amounts,
    added_per_month=amounts,
    deleted_per_month=amounts,
    queries=st.none()
    | st.builds(
        QueryCosts,
        queries=counts,
        counted=counts,
        runs_per_day=amounts,
        bytes_before=counts,
        bytes_after=counts,
        per_day_before=amounts,
        per_day_after=amounts,
    ),
    pays_back_days=amounts,
)
tables = st.builds(
    TablePlan,
    name=st.just(""),
    path=st.sampled_from(["/warehouse/t", "s3://lake/t"]),
    spec=st.dictionaries(texts, values, max_size=3),
    spec_digest=st.just(""),
    error=st.none() | texts,
    observed=st.none() | observed,
    drift=st.lists(
        st.builds(Finding, field=texts, desired=values, actual=values, because=texts), max_size=2
    ).map(tuple),
    steps=st.lists(
        resumes
        | rollbacks
        | savepoints
        | deletions
        | clusters
        | indexes
        | cleans
        | orphans
        | archives,
        max_size=3,
    )
    .filter(_have_nothing_in_common)
    .map(tuple),
    kept=st.none() | kept_files(),
    predictions=st.lists(
        st.fixed_dictionaries(
            {
                "query": texts,
                "filesBefore": counts,
                "filesAfter": counts,
                "bytesBefore": counts,
                "bytesAfter": counts,
                "error": st.floats(0, 1),
            },
            optional={"merging": merging},
        ),
        max_size=2,
    ).map(tuple),
    impact=st.builds(
        Impact,
        files_removed=counts,
        bytes_removed=counts,
        bytes_rewritten=counts,
        earliest_readable_before=st.none() | instants,
        earliest_readable_after=st.none() | instants,
    ),
    layout=st.none() | layouts,
    file_sizes=st.none() | file_sizes,
    other_savepoints=st.none() | st.lists(other_savepoints, min_size=1, max_size=2).map(tuple),
    costs=st.none() | costs,
    refusals=notes,
    warnings=notes,
)
table_names = st.lists(texts, max_size=3, unique=True)
selections = st.none() | st.builds(
    Selection,
    tables=st.just(0),
    total=st.integers(0, 500),
    by=st.lists(texts, max_size=2).map(tuple),
)


@st.composite
def plans(draw: Any) -> Plan:
    found = []
    for name in draw(table_names):
        table = draw(tables)
        found.append(replace(table, name=name, spec_digest=compute_spec_digest(table.spec)))
    chosen = draw(selections)
    return Plan(
        created_at="2026-11-21T09:00:00+00:00",
        tool=draw(texts),
        tables=tuple(found),
        selection=chosen and replace(chosen, tables=len(found), total=len(found) + chosen.total),
    )
