"""Writes by real Hudi 0.15.0 and 1.2.0; each file gets as many new rows as Hudi gave it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from reconciler.hudi.timeline.instant import Action
from reconciler.layout.sizing.assign import Workload, assign_rows
from reconciler.layout.sizing.assignment_rules import (
    CopyOnWrite,
    FileSizeLimits,
    HudiRule,
    MergeOnRead,
)
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.layout.sizing.key_routing import route_by_md5
from reconciler.layout.sizing.record_size import PastWrite, compute_average_size

CASES = sorted((Path(__file__).parent / "smallfiles").glob("*.json"))
every_case = pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)


def read(path):
    return json.loads(path.read_text())


def written(commit):
    rows, sizes, kinds = zip(*commit["files"], strict=True)
    return PastWrite(
        instant="",
        action=Action(commit["action"]),
        rows=np.array(rows, np.int64),
        bytes=np.array(sizes, np.int64),
        is_base=np.array([kind == "base" for kind in kinds]),
    )


def rule_of(case):
    options = case["options"]
    small = int(options["small"])
    average = compute_average_size(
        [written(commit) for commit in case["commits"]],
        small=small,
        fallback=int(options.get("recordSize", 1024)),
        threshold=float(options.get("threshold", 1)),
        rule="0.15" if case["hudi"].startswith("0.15") else "1.x",
    )
    is_split = options.get("autoSplit") == "false"
    return HudiRule(
        sizes=FileSizeLimits(target=int(options["target"]), small=small),
        average=average,
        split_rows=int(options["split"]) if is_split else None,
    )


def kind_of(case):
    options = case["options"]
    if options.get("type") != "MERGE_ON_READ":
        return CopyOnWrite()
    indexes_logs = options.get("index") == "INMEMORY"
    return MergeOnRead(indexes_logs=indexes_logs, max_candidates=int(options.get("most", 1)))


def groups_of(case):
    """Every group has one slice in these cases."""
    found = {}
    for partition, files in sorted(case["files"].items()):
        for name, size in files:
            is_log = name.startswith(".")
            file_id = name.removeprefix(".").split("_")[0]
            row = found.setdefault((partition, file_id), [-1, 0, 0])
            if is_log:
                row[1:] = row[1] + size, row[2] + 1
            else:
                assert -1 == row[0], "a second slice"
                row[0] = size
    partitions = tuple(sorted(case["files"]))
    ids = [file_id for _, file_id in found]
    base, logs, count = np.array(list(found.values()), np.int64).reshape(-1, 3).T
    return FileGroupSizes(
        partitions=partitions,
        partition=np.array([partitions.index(p) for p, _ in found], np.int32),
        file_id=pa.array(ids, pa.string()),
        base=base,
        base_name=pa.nulls(len(ids), pa.string()),
        logs=logs,
        log_files=count,
        slice_start=np.zeros(len(ids), np.int32),
        instants=("0",),
        is_live=~np.isin(ids, case["replaced"]),
        is_compacting=np.isin(ids, case["compacting"]),
        is_clustering=np.isin(ids, case["clustering"]),
    )


def workload_of(case, groups):
    ids = groups.file_id.to_pylist()
    inserts = {p: sum(n for _, n in ranges) for p, ranges in case["inserts"].items()}
    updates = {ids.index(i): n for p in case["updates"].values() for i, n in p.items()}
    return Workload(
        partitions=tuple(inserts),
        inserts=np.array(list(inserts.values()), np.int64),
        group=np.array(list(updates), np.int64),
        updates=np.array(list(updates.values()), np.int64),
        growth=np.zeros(len(updates), np.int64),
    )


def by_file(counts):
    """Rows by file group; the new ones, whose ids are anybody's, by number of rows."""
    new = sorted(n for file_id, n in counts if file_id.endswith("*") and n)
    return {i: n for i, n in counts if not i.endswith("*") and n}, new


@every_case
def test_every_file_gets_as_many_new_rows_as_hudi_gave_it(case):
    case = read(case)
    groups = groups_of(case)
    workload = workload_of(case, groups)
    assigned = assign_rows(
        groups, workload, kind_of(case), rule_of(case), has_commits=bool(case["commits"])
    )
    ids = groups.file_id.to_pylist()

    for code, (partition, ranges) in enumerate(case["inserts"].items()):
        keys = pa.array([f"k{n}" for first, count in ranges for n in range(first, first + count)])
        place = assigned.insert_buckets(code)
        routed = route_by_md5(keys, assigned.inserts[place])
        counts = np.bincount(routed, minlength=place.stop - place.start).tolist()
        taking = [ids[at] if at >= 0 else "*" for at in assigned.group[place].tolist()]

        assert by_file(case["expected"][partition].items()) == by_file(
            list(zip(taking, counts, strict=True))
        )


@every_case
def test_updates_stay_in_their_files(case):
    case = read(case)
    groups = groups_of(case)
    assigned = assign_rows(groups, workload_of(case, groups), kind_of(case), rule_of(case))
    ids = groups.file_id.to_pylist()
    touched = np.flatnonzero(assigned.updates)

    assert {i: n for p in case["updates"].values() for i, n in p.items()} == {
        ids[assigned.group[at]]: assigned.updates[at] for at in touched.tolist()
    }


def test_every_kind_of_case_is_there():
    """Spills, pending services, sizes at the limit, and both kinds of merge-on-read."""
    names = {path.stem.split("_")[2] for path in CASES}

    assert {"c02", "c03", "c09", "c10", "c12", "c13", "c15", "c16", "m02", "m04", "m05"} <= names
    assert 19 == len(CASES)
