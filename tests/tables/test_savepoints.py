"""Savepoints beside those that real Hudi made, and savepoints whose bytes are damaged."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from reconciler.errors import FormatError
from reconciler.hudi.timeline.savepoint import SavepointMetadata
from reconciler.planners.clean.planner import plan_clean
from reconciler.planners.compose import plan_table
from reconciler.planners.savepoint_costs import find_costs
from reconciler.planners.savepoints.pinned_files import find_pinned_rows, group_by_partition
from reconciler.spec.model import DeclaredSavepoint, Policy, Retention, TableSpec
from reconciler.state.savepoint_comment import format_savepoint_comment, parse_savepoint_comment
from tests.command import run
from tests.our_savepoints import (
    list_savepoint_files,
    list_writes,
    make_spec,
    read_record,
    read_state,
)
from tests.selection import examples, long
from tests.trees import unpack

TABLES = Path(__file__).parent
CASES = TABLES.parent / "cases" / "clean"
NOW = datetime(2026, 12, 1, tzinfo=UTC)
#: tables with a savepoint of Hudi
SAVED = {
    "v6_cow_part": TABLES / "v6_cow_part.zip",
    "v6_mor_nopart": TABLES / "v6_mor_nopart.zip",
    "v8_mor_nopart": TABLES / "v8_mor_nopart.zip",
    "v9_cow_part": TABLES / "v9_cow_part.zip",
    "mor_savepoint__0.15.0": CASES / "mor_savepoint__0.15.0" / "table.zip",
    "mor_savepoint__1.2.0": CASES / "mor_savepoint__1.2.0" / "table.zip",
    "cow_restored__1.0.2": CASES / "cow_restored__1.0.2" / "table.zip",
    "cow_savepoint__0.15.0": CASES / "cow_savepoint__0.15.0" / "table.zip",
}
FEW = ("v6_cow_part", "v8_mor_nopart", "mor_savepoint__1.2.0")


@pytest.fixture
def unpacked(tmp_path):
    def find(name: str) -> Path:
        unpack(SAVED[name], tmp_path / name, hollow=True)
        roots = (one.parent.parent for one in (tmp_path / name).rglob("hoodie.properties"))
        return next(root for root in roots if ".hoodie" not in root.parts)

    return find


@pytest.mark.parametrize("name", [name if name in FEW else long(name) for name in SAVED])
def test_a_savepoint_names_the_files_that_hudi_named(unpacked, name):
    table = unpacked(name)
    state, theirs = read_state(table), read_record(table)
    (instant,) = [one.instant for one in state.savepoints]
    ours = group_by_partition(state, find_pinned_rows(state, instant))

    assert theirs.files.keys() <= ours.keys()
    for path, names in ours.items():
        known = set(theirs.files.get(path, ()))
        later = set(names) - known  # log files of a slice that Hudi wrote afterwards
        assert known <= set(names)
        assert all(".log." in one and is_later(one, theirs) for one in later)


def is_later(name, record):
    """Return whether the instant of a log file's name is later than the record."""
    instant = name.split("_")[1].partition(".")[0]
    made = datetime.strptime(f"{instant:0<20}", "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
    return made.timestamp() * 1000 > record.made_ms - 5000


@pytest.mark.parametrize("keep", [1, 2])
@pytest.mark.parametrize("name", [name if name in FEW else long(name) for name in SAVED])
def test_what_only_a_savepoint_keeps_goes_without_it(unpacked, name, keep):
    spec = TableSpec(
        name="t", path="/t", timezone="UTC", retention=Retention(policy=Policy.COMMITS, keep=keep)
    )
    state = read_state(unpacked(name))
    first = state.savepoints[0]
    second = replace(first, instant=list_instants(state)[-1], files=newest_files(state))
    state = state.with_savepoints((first, second))
    costs = find_costs(spec, state, NOW, None)

    for number, rows in enumerate(costs):
        others = tuple(one for at, one in enumerate(state.savepoints) if at != number)
        before = plan_clean(spec.retention, state).is_removed
        after = plan_clean(spec.retention, state.with_savepoints(others)).is_removed
        assert np.array_equal(after & ~before, rows)


def list_instants(state):
    return [instant.requested for instant in state.commits_timeline]


def newest_files(state):
    rows = find_pinned_rows(state, list_instants(state)[len(list_instants(state)) // 2])
    return frozenset(np.array(state.files.name.to_pylist(), object)[rows])


DAMAGE = examples(20, many=1000)


@pytest.mark.parametrize("state", ["inflight", "completed"])
def test_a_damaged_savepoint_is_an_error_that_names_it_or_still_protects(unpacked, state):
    table = unpacked("v6_cow_part")
    (name,) = (one for one in list_savepoint_files(table) if one.endswith(".savepoint"))
    folder = table / ".hoodie"
    record = replace(
        SavepointMetadata.parse((folder / name).read_bytes(), name),
        comment='reconciler savepoint "q" at 2026-09-30 until 2027-01-31',
    )
    whole = record.encode()
    if state == "inflight":
        (folder / name).unlink()
    path = folder / (name if state == "completed" else f"{name}.inflight")
    spec = TableSpec(name="t", path=str(table), timezone="UTC", savepoints=())
    rng = random.Random(7)
    for number in range(DAMAGE):
        path.write_bytes(damage(whole, number, rng))
        observed = read_or_error(table)
        if isinstance(observed, FormatError):
            assert (state, True) == ("completed", observed.path.endswith(path.name))
            continue
        assert [name.partition(".")[0]] == [one.instant for one in observed.savepoints]
        plan = plan_table(spec, observed, NOW)
        assert all(step.instant == name.partition(".")[0] for step in plan.steps)


def read_or_error(table):
    try:
        return read_state(table)
    except FormatError as error:
        return error


def damage(data: bytes, number: int, rng: random.Random) -> bytes:
    """Return the bytes cut, flipped or emptied."""
    at = rng.randrange(len(data))
    if number % 20 == 0:
        return b""
    if number % 2:
        return data[:at]
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def test_an_empty_inflight_file_is_another_tools(unpacked):
    table = unpacked("v6_cow_part")
    (name,) = (one for one in list_savepoint_files(table) if one.endswith(".savepoint"))
    (table / ".hoodie" / name).unlink()
    (savepoint,) = read_state(table).savepoints

    assert (False, None) == (savepoint.completed, savepoint.declared)


def test_a_comment_is_read_as_it_was_written():
    for name in ("q", 'a "b" \\', "é\n", "until 2027-01-31", " at 2026-01-01"):
        for at in ("2026-09-30", "2026-09-30T12:00", "2026-09-30 12:00:00.5Z"):
            for until in (None, "2027-01-31", "2027-01-31 00:00+05:30"):
                declared = DeclaredSavepoint(name=name, at=at, until=until)
                assert declared == parse_savepoint_comment(format_savepoint_comment(declared))
    assert parse_savepoint_comment('reconciler savepoint "q') is None
    assert parse_savepoint_comment("") is None


def test_every_write_that_hudi_completed_has_a_completion(unpacked):
    table = unpacked("v8_mor_nopart")
    writes = list_writes(table)

    assert sorted(writes) == writes
    assert len(list_instants(read_state(table))) == len(writes)


def test_the_commands_make_and_remove_a_savepoint_without_spark(unpacked, tmp_path, monkeypatch):
    def refuse(*_args, **_options):
        raise AssertionError("Spark was started")

    monkeypatch.setattr("reconciler.cli.spark_start.open_spark_session", refuse)
    table = unpacked("v8_mor_nopart")
    (old,) = {name[:17] for name in list_savepoint_files(table)}
    instant, completed = list_writes(table)[-1]
    made = make_spec(table, f'name: q, at: "{completed}"')

    assert 2 == run("plan", made.source, "-o", tmp_path / "p.json", "--detailed-exitcode")
    assert 0 == run("apply", tmp_path / "p.json")
    assert {old, instant} == {name[:17] for name in list_savepoint_files(table)}
    assert 0 == run("plan", made.source, "--detailed-exitcode")
    assert 0 == run("status", made.source)
    make_spec(table)
    assert 0 == run("apply", made.source, "--auto-approve")
    assert {old} == {name[:17] for name in list_savepoint_files(table)}
