"""Compare active and archived timelines of real tables with Hudi's own answers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.hudi.load import (
    find_newest_archived_time,
    load_archived_completion_times,
    load_archived_instants,
    load_properties,
    load_timeline,
)
from reconciler.hudi.table.properties import (
    compute_checksum,
    format_java_properties,
    parse_java_properties,
)
from reconciler.hudi.timeline.instant import COMMITS, Action
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from tests.trees import unpack

TABLES = Path(__file__).parent
ANSWERED = sorted(path.name.removesuffix(".expected.json") for path in TABLES.glob("*.json"))
#: a zip stores times rounded down to even seconds
ZIPPED_SECONDS = 2


@pytest.fixture(scope="module", params=ANSWERED)
def table(request, tmp_path_factory):
    """A table and Hudi's answers about it."""
    name, folder = request.param, tmp_path_factory.mktemp("tables")
    unpack(TABLES / f"{name}.zip", folder, hollow=True)
    said = json.loads((TABLES / f"{name}.expected.json").read_text())
    return open_storage(str(folder / name)), said


def completed(rows, actions=tuple(Action)):
    """Return Hudi's completion times by requested time and action."""
    return {(r[0], r[1]): r[3] for r in rows or () if r[2] == "COMPLETED" and r[1] in actions}


def moment(time):
    return datetime.strptime(f"{time}000", "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)


def test_every_active_instant_has_the_state_that_hudi_reports(table):
    storage, said = table
    timeline = load_timeline(storage, load_properties(storage))

    assert sorted(tuple(row[:3]) for row in said["timeline"]["active"]) == sorted(
        (i.requested, i.action, i.state) for i in timeline.instants
    )


def test_completion_times_are_those_of_hudi(table):
    storage, said = table
    state = observe(storage, None, observed_ms=0)
    hudi = completed(said["timeline"]["active"])
    commits = {time: end for (time, action), end in hudi.items() if action in COMMITS}

    if state.layout == 2:
        ours = {(i.requested, i.action): i.completed for i in state.timeline.instants}
        assert hudi == {key: end for key, end in ours.items() if end}
        assert commits == {time: state.completions[time] for time in commits}
        assert {} == state.v6_completions
    else:
        assert {} == state.completions
        assert commits.keys() == state.v6_completions.keys()
        for time, end in commits.items():
            late = moment(end) - moment(state.v6_completions[time])
            assert 0 <= late.total_seconds() < ZIPPED_SECONDS


def test_the_archive_holds_the_instants_that_hudi_finds(table):
    storage, said = table
    properties = load_properties(storage)
    hudi = completed(said["timeline"].get("archived"))
    archived = load_archived_instants(storage, properties)

    assert hudi == {(i.requested, i.action): i.completed for i in archived}
    assert sorted(hudi) == [(i.requested, i.action) for i in archived]
    newest = find_newest_archived_time(storage, properties)
    assert max((time for time, _ in hudi), default=None) == newest


def test_one_archived_completion_is_found_without_the_others(table):
    storage, said = table
    properties = load_properties(storage)
    hudi = {time: end for (time, _), end in completed(said["timeline"]["archived"]).items()}
    wanted = sorted(hudi)[-1:]

    found = load_archived_completion_times(storage, properties, wanted)

    assert ({time: hudi[time] for time in wanted} if properties.layout == 2 else {}) == found


def test_properties_equal_hudis_and_print_as_they_were_read(table):
    storage, said = table
    data = storage.read(".hoodie/hoodie.properties")
    properties = load_properties(storage)

    assert said["table_version"] == properties.table_version
    assert properties.raw["hoodie.table.checksum"] == str(compute_checksum(properties.raw))
    assert properties.raw == parse_java_properties(format_java_properties(properties.raw), "")
    lines = [line for line in data.decode("latin-1").splitlines() if line[0] != "#"]
    assert sorted(lines) == sorted(format_java_properties(properties.raw).decode().splitlines())


def test_there_is_something_to_compare():

    assert len(ANSWERED) >= 30
