"""Time travel finds the slices of that time; on tables of every version and type."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.hudi.files.table_files import build_files
from reconciler.reader.incremental import find_commit_times, find_touched_slices, make_read_limit
from reconciler.reader.open_scan import find_evolved_instants, format_types
from reconciler.reader.slice_selection import ReadLimit, find_newest_write, pick_slices
from tests.file_slices import keep_completed_slices, list_slices, select_merged_slices
from tests.laws.clean_tables import instant_at, list_files, tables, tables_at_two_times
from tests.selection import examples

LAW = settings(max_examples=examples(13, many=60), deadline=None)


def slices_of_state(state, until=None, **how):
    """Return (base, logs) of each slice."""
    picked = pick_slices(state, until or ReadLimit(), **how)
    none = np.zeros(len(picked), np.int32)
    found = picked.to_table(none, none.astype(np.bool_)).to_pylist()
    return sorted((row["base"] or "", row["logs"]) for row in found)


def completed_writes(state):
    """Return the completed writes."""
    return {i.requested for i in state.timeline.commits}


@LAW
@given(tables_at_two_times(), st.booleans())
def test_slices_as_of_an_instant_are_the_newest_at_that_time(times, only_base):
    time, then, now = times
    until = ReadLimit(requested=time)
    # a log file of version 6 that came later may be named after a slice of then
    there = {f"{path}/{name}" for path, name in list_files(then)}
    past = [
        (base, [log for log in logs if log in there or then.table_version >= 8])
        for base, logs in slices_of_state(now, until, only_base=only_base)
    ]

    assert not completed_writes(then) or slices_of_state(then, only_base=only_base) == past
    assert find_newest_write(then) == find_newest_write(now, until)


@LAW
@given(tables(), st.data())
def test_files_of_unfinished_writes_are_ignored(state, data):
    pairs = sorted({(path, name.lstrip(".").partition("_")[0]) for path, name in list_files(state)})
    groups = data.draw(st.lists(st.sampled_from(pairs), max_size=3)) if pairs else []
    times = data.draw(st.lists(st.integers(10, 30), min_size=len(groups), max_size=len(groups)))
    junk = []
    for (path, group), minute in zip(groups, times, strict=True):
        time = f"{instant_at(minute)[:-1]}5"
        junk.append((path, f"{group}_7-7-7_{time}.parquet"))
        if state.table_version >= 8:
            junk.append((path, f".{group}_{time}.log.1_7-7-7"))
    folders = {}
    for path, name in {*list_files(state), *junk}:
        folders.setdefault(path, []).append(name)
    files = build_files(((p, n, [7] * len(n)) for p, n in folders.items()), ".parquet")
    littered = replace(state, files=files)

    if completed_writes(state):
        assert slices_of_state(state) == slices_of_state(littered)
        assert slices_of_state(state, only_base=True) == slices_of_state(littered, only_base=True)


@LAW
@given(tables())
def test_without_unfinished_writes_slices_equal_the_view_of_one_partition(state):
    expected = []
    view = state.view
    for path in state.partitions:
        every = list_slices(view, path)
        done = keep_completed_slices(every, state.timeline, table_version=state.table_version)
        for found in select_merged_slices(done):
            base = f"{path}/{found.base}" if found.base else ""
            expected.append((base, [f"{path}/{log}" for log in found.logs]))

    done = completed_writes(state)
    if all(i in done for i in state.files.instants):
        assert sorted(expected) == slices_of_state(state)


@LAW
@given(tables(), st.integers(0, 40), st.integers(0, 40))
def test_adjacent_ranges_share_no_write_and_miss_none(state, one, other):
    begin, middle = instant_at(min(one, other)), instant_at(max(one, other))
    whole = find_commit_times(state, begin, None)
    early, late = find_commit_times(state, begin, middle), find_commit_times(state, middle, None)

    assert whole == tuple(sorted(early + late))
    assert not set(early) & set(late)


@LAW
@given(tables(), st.integers(0, 40))
def test_slice_outside_a_range_holds_none_of_its_files(state, minute):
    times = find_commit_times(state, instant_at(minute), None)
    picked = pick_slices(state, make_read_limit(state, None))
    left = picked.filter(~find_touched_slices(picked, state, times))
    rows = np.concatenate([left.base[left.base >= 0], left.logs])
    instants = {left.files.instants[code] for code in left.files.instant[rows]}

    assert not instants & set(times)


@LAW
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([0, 1, 2])), max_size=8))
def test_files_with_other_types_are_found_like_by_a_full_check(changes):
    kinds = (pa.int32(), pa.int64(), pa.float64())
    columns, files = {}, []
    for name, kind in changes:
        columns[name] = kinds[max(kind, kinds.index(columns.get(name, pa.int32())))]
        files += [pa.schema(sorted(columns.items()))] * (kind + 1)
    instants = [f"{number:03d}" for number in range(len(files))]
    table = files[-1] if files else pa.schema([])

    found = find_evolved_instants(instants, lambda i: format_types(files[int(i)]), table)
    slow = {i for i, file in zip(instants, files, strict=True) if any(f not in table for f in file)}
    assert slow == found
