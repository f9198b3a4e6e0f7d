"""Orphan files among those of tables that real Hudi wrote: what is found, and what damage hides."""

from __future__ import annotations

import random
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

import reconciler
from reconciler import api
from reconciler.errors import FormatError
from reconciler.hudi.load import load_archived_instants, load_properties
from reconciler.hudi.timeline import archive_v1, archive_v2
from reconciler.hudi.timeline.instant import COMMITS
from reconciler.hudi.timeline.plans import parse_rolled_back_time
from reconciler.planners.orphans import find_orphans
from reconciler.plans.document import dump_plan, load_plan
from reconciler.plans.model import OrphansStep
from reconciler.runtime import open_storage
from reconciler.state import orphan_reader
from reconciler.state.observe import observe
from reconciler.state.orphan_facts import find_unknown_rows
from reconciler.state.orphan_reader import read_orphan_facts
from tests.command import run
from tests.orphans import DECLARED, add_orphan, make_old, write_spec
from tests.selection import EVERY_CASE, examples, take_turn
from tests.storage_wrappers import RecordingStorage
from tests.tables.test_payload_damage import Archive, files_of
from tests.trees import unpack

TABLES = Path(__file__).parent
NOW = datetime(2026, 12, 1, tzinfo=UTC)
#: with an archived timeline: the last write, an instant after it, one in the archive's reach, and
#: one before the archive
ARCHIVED = {
    "v6_cow_nopart": archive_v1.find_archived_writes,
    "v9_cow_nopart": archive_v2.find_archived_writes,
}


@pytest.fixture
def unpacked(tmp_path):
    """Unpacks a table with content and gives its folder."""
    return lambda name: unpack(TABLES / f"{name}.zip", tmp_path) / name


def make_plan(table, **options):
    plan = reconciler.plan(write_spec(table, **options))
    (found,) = load_plan(dump_plan(plan), "plan.json").tables
    assert found.error is None
    return found


def get_names(plan):
    steps = [step for step in plan.steps if isinstance(step, OrphansStep)]
    return [name for step in steps for name in step.files.name.to_pylist()]


def next_instant(instant, more=1):
    return str(int(instant) + more)


def find_times(table):
    """Return the oldest archived instant, the newest archived write, and the newest write."""
    storage = open_storage(str(table))
    archived = load_archived_instants(storage, load_properties(storage))
    newest = max(one.requested for one in archived if one.action in COMMITS)
    commits = observe(storage, None, observed_ms=0).timeline.commits
    return min(one.requested for one in archived), newest, commits[-1].requested


NAMES = sorted(path.name.removesuffix(".expected.json") for path in TABLES.glob("v*.expected.json"))


@pytest.mark.parametrize("name", take_turn(NAMES, of=4))
def test_no_file_of_a_table_that_hudi_wrote_is_an_orphan(unpacked, name):
    """A pending write holds nothing back here, because no file is even a candidate."""
    table = unpacked(name)
    state = observe(open_storage(str(table)), None, observed_ms=2**45, with_orphans=True)

    assert 0 == len(state.orphan_facts.undecided)
    assert LEFT_BY_HUDI.get(name, []) == [
        state.files.name[row].as_py() for row in state.orphan_facts.rows.tolist()
    ]


#: what real Hudi left behind in a table
LEFT_BY_HUDI: dict[str, list[str]] = {}


@pytest.mark.parametrize("name", ARCHIVED)
def test_an_unknown_write_is_judged_by_where_the_timeline_and_its_archive_begin(unpacked, name):
    table = unpacked(name)
    oldest, newest, last = find_times(table)
    after, within = add_orphan(table, next_instant(last)), add_orphan(table, next_instant(newest))
    before = add_orphan(table, next_instant(oldest, -1))
    plan = make_plan(table)
    warnings = [note.because for note in plan.warnings if note.rule == "orphans"]

    assert [after] == get_names(plan)
    assert 2 == len(warnings)
    assert warnings[0].startswith(f"{within} (")
    assert "for committed and read it now" in warnings[0]
    assert warnings[1].startswith("1 file (")
    assert f"the archived timeline begins only at {oldest}" in warnings[1]
    assert before not in " ".join(warnings)


@pytest.mark.parametrize("name", ARCHIVED)
def test_a_file_of_an_archived_write_is_none(unpacked, name):
    table = unpacked(name)
    storage = open_storage(str(table))
    archived = load_archived_instants(storage, load_properties(storage))
    for instant in archived:
        if instant.action in COMMITS:
            add_orphan(table, instant.requested)
    plan = make_plan(table)

    assert [] == get_names(plan)
    assert [] == [note for note in plan.warnings if note.rule == "orphans"]


@pytest.mark.parametrize("name", ARCHIVED)
def test_without_its_archive_a_table_loses_no_file(unpacked, name):
    table = unpacked(name)
    _oldest, newest, last = find_times(table)
    add_orphan(table, next_instant(last))
    add_orphan(table, newest)  # of an archived write
    folder = load_properties(open_storage(str(table))).archive_folder
    shutil.rmtree(table / folder)
    plan = make_plan(table)
    said = " ".join(note.because for note in plan.warnings)

    assert [] == get_names(plan)
    assert f"{folder} holds no instant, although the table has files from before its" in said
    assert "1 file (" in said


def test_one_of_two_files_of_a_write_and_group_stays_with_the_reason(unpacked):
    table = unpacked("v9_cow_nopart")
    _oldest, _newest, last = find_times(table)
    (named,) = (path for path in table.glob("*.parquet") if last in path.name)
    stray = table / named.name.replace("_0-", "_9-")
    shutil.copyfile(named, stray)
    make_old(stray)
    (warning,) = (note for note in make_plan(table).warnings if note.rule == "orphans")

    assert "its commit does not name it" in warning.because
    assert warning.because.startswith(stray.name)


def test_a_table_without_unknown_files_costs_no_request(unpacked):
    table = unpacked("v9_cow_part")
    counts = []
    for with_orphans in (False, True):
        storage = RecordingStorage(open_storage(str(table)))
        observe(storage, None, observed_ms=0, with_orphans=with_orphans)
        counts.append(storage.counts)

    assert counts[0] == counts[1]


def test_a_command_names_them_and_removes_them(unpacked, capsys):
    table = unpacked("v9_cow_nopart")
    name = add_orphan(table, next_instant(find_times(table)[2]))
    write_spec(table)
    spec, plan = table.parent / "spec.yaml", table.parent / "plan.json"

    assert 0 == run("status", spec)
    assert "1 file, 4.7 KiB, that no write names" in capsys.readouterr().out
    assert 0 == run("plan", spec, "-o", plan)
    assert "1 file to remove that no write knows" in capsys.readouterr().out
    assert 0 == run("apply", plan)
    assert "orphans  removed 1 file, 4.7 KiB" in capsys.readouterr().out
    assert not (table / name).exists()
    assert 0 == run("plan", spec, "--detailed-exitcode")


def test_a_status_names_them_without_the_block(unpacked):
    table = unpacked("v9_cow_nopart")
    name = add_orphan(table, next_instant(find_times(table)[2]))
    spec = write_spec(table, more="")
    (status,) = api.status(spec)

    assert [name] == [one.name for one in status.orphans.listed]
    assert (1, 1) == (status.orphans.files, status.orphans.removable_files)
    assert () == reconciler.plan(spec).tables[0].steps


def test_a_large_archive_is_read_only_for_a_spec_with_the_block(unpacked, monkeypatch):
    table = unpacked("v6_cow_nopart")
    name = add_orphan(table, next_instant(find_times(table)[2]))
    add_orphan(table, find_times(table)[1])  # of an archived write
    monkeypatch.setattr(orphan_reader, "UNDECLARED_ARCHIVE", 1)
    (status,) = api.status(write_spec(table, more=""))
    because = "the archived timeline has 0 MiB, and is read only for a spec with an orphans block"

    assert (1, 0, 1) == (
        status.orphans.files,
        status.orphans.removable_files,
        status.orphans.undecided_files,
    )
    assert (because, because) == (status.orphans.why_undecided, status.orphans.reasons[0].because)
    assert [name] == get_names(make_plan(table))


# damage


def list_archive_files(name):
    """Return the files of a table's archive that hold instants, with their content."""
    parts = ("/archived/", "/history/")
    files = files_of(name)
    inside = (path for path in files if any(part in path for part in parts))
    return files, sorted(path for path in inside if not path.endswith((".crc", "_version_")))


def damage(data, rng):
    """Return cut, flipped or emptied bytes."""
    kind = rng.randrange(3)
    if kind == 0 or not data:
        return b""
    at = rng.randrange(len(data))
    if kind == 1:
        return data[:at]
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


@pytest.mark.parametrize("name", ARCHIVED)
def test_a_damaged_archive_is_an_error_that_names_it_or_tells_the_truth(name):
    find, (files, paths) = ARCHIVED[name], list_archive_files(name)
    folder = next(path for path in paths if "parquet" in path or "commits" in path).rpartition("/")
    whole = Archive(files, paths[0], files[paths[0]])
    times = {str(20261121040000000 + n) for n in range(3)}
    read = archive_v1.read_archive if "v6" in name else archive_v2.read_history
    times |= {instant.requested for instant in read(whole, folder[0])}
    truth = find(whole, folder[0], times)
    rng = random.Random(20261126)
    for _ in range(examples(40, many=1000)):
        path = rng.choice(paths)
        source = Archive(files, path, damage(files[path], rng))
        try:
            # a flipped digit makes another instant of one, and then it is not known
            is_right = find(source, folder[0], times).known <= truth.known
        except FormatError as error:
            is_right = error.path.startswith(folder[0])
        assert is_right, path


@pytest.mark.parametrize("name", ARCHIVED)
def test_a_cut_archive_keeps_every_file(unpacked, name):
    table = unpacked(name)
    last = find_times(table)[2]
    add_orphan(table, next_instant(last))
    folder = table / load_properties(open_storage(str(table))).archive_folder
    files = [path for path in folder.iterdir() if path.name.endswith(("-1", "parquet"))]
    for path in files if EVERY_CASE else files[:1]:
        path.write_bytes(path.read_bytes()[:-9])
    # the part of the archive that could know the write must be whole; of layout 2, that is none
    plan = make_plan(table)

    assert (name == "v6_cow_nopart") == (get_names(plan) == [])
    if name == "v6_cow_nopart":
        assert "the archived timeline cannot be read" in plan.warnings[0].because


@pytest.mark.parametrize("is_pending", [False, True])
def test_a_damaged_plan_of_a_rollback_is_named_or_keeps_nothing(unpacked, is_pending):
    """Of a completed rollback it only gives the reason; a pending one may be about to remove it."""
    table = unpacked("v9_cow_part")
    timeline = table / ".hoodie" / "timeline"
    (plan,) = timeline.glob("*.rollback.requested")
    rollback = plan.name.partition(".")[0]
    if is_pending:
        next(timeline.glob(f"{rollback}_*.rollback")).unlink()
    data, rng = plan.read_bytes(), random.Random(7)
    target = parse_rolled_back_time(data, plan.name)
    name = add_orphan(table, target, partition="p0")
    storage, properties = open_storage(str(table)), load_properties(open_storage(str(table)))
    state = observe(storage, None, observed_ms=2**42)
    (row,) = find_unknown_rows(state.files, state.timeline).tolist()
    assert name.endswith(state.files.name[row].as_py())
    for number in range(examples(12, many=1000)):
        plan.write_bytes(damage(data, rng) if number else data)
        state = observe(storage, None, observed_ms=2**42)
        facts = read_orphan_facts(storage, properties, state, None)
        report = find_orphans(state.with_facts(orphan_facts=facts), 86400, NOW)
        ((goes, because),) = zip(report.is_removable, report.because.to_pylist(), strict=True)

        if not number:
            said = "a rollback of its write is pending" if is_pending else f"rollback {rollback}"
            assert (goes, because.startswith(said)) == (not is_pending, True)
        assert goes or is_pending
        assert plan.name in because or "rollback of its write" in because or goes


def test_a_file_that_the_metadata_table_lists_is_no_orphan(unpacked):
    table = unpacked("v9_cow_nopart")
    name = add_orphan(table, next_instant(find_times(table)[2]))
    storage, properties = open_storage(str(table)), load_properties(open_storage(str(table)))
    state = observe(storage, None, observed_ms=0)

    class Listing:
        def read_folders(self, partitions):
            assert {""} == partitions
            return [("", [name], [1])]

    facts = [read_orphan_facts(storage, properties, state, one) for one in (None, Listing())]

    assert [[False], [True]] == [one.is_listed.tolist() for one in facts]


def test_the_block_is_declared_as_in_the_schema():
    assert "orphans: {olderThan: 3d}" == DECLARED
