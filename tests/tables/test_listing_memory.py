"""A plan from remembered listings is the plan without them, whatever happens in between."""

from __future__ import annotations

import os
import random
import shutil
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.hudi.load import load_listing, load_properties, load_timeline
from reconciler.planners.compose import plan_table
from reconciler.plans.document import dump_plan
from reconciler.plans.plan import Plan
from reconciler.spec.model import Policy, Retention, TableSpec
from reconciler.state import listing_memory
from reconciler.state.listing_memory import ListingCache
from reconciler.state.observe import observe
from reconciler.storage import folder_states
from reconciler.storage.cache_folder import CacheFolder
from reconciler.storage.folder_states import ClockReading
from reconciler.storage.local import LocalStorage
from tests.bench.make_table import Shape, make_table
from tests.trees import unpack

NOW = datetime(2026, 1, 2, tzinfo=UTC)
LATER_NS = 10_000_000_000
#: longer than a tick of the clock that stamps folders
TICK_S = 0.012
SHAPE = Shape(partitions=3, groups=2, versions=4)
PENDING = "20260101230000000"


@pytest.fixture(autouse=True)
def _remember_small_tables(monkeypatch):
    monkeypatch.setattr(listing_memory, "_LEAST_FILES", 1)


@pytest.fixture
def table(tmp_path) -> Path:
    make_table(tmp_path / "t", SHAPE)
    time.sleep(TICK_S)
    return tmp_path / "t"


@pytest.fixture
def cache(tmp_path) -> ListingCache:
    return ListingCache(cache=CacheFolder(tmp_path / "cache"), clock=read_clock(tmp_path))


@pytest.fixture
def listed(monkeypatch) -> list[str]:
    """Return the folders that are listed from here on."""
    found: list[str] = []
    scan = LocalStorage.scan_folder
    monkeypatch.setattr(
        LocalStorage, "scan_folder", lambda storage, path: found.append(path) or scan(storage, path)
    )
    return found


def read_clock(folder: Path, *, later_ns: int = LATER_NS, offset_ns: int = 0) -> ClockReading:
    """Return the clock as it is some time later, for a file system that counts as reliable."""
    device = folder.stat().st_dev
    mounts = f"1 1 {os.major(device)}:{os.minor(device)} / / rw - ext4 /dev/x rw\n"
    now_ns = time.time_ns() + later_ns
    return ClockReading(boot="b", now_ns=now_ns, offset_ns=offset_ns, mounts=mounts)


def plan_bytes(table: Path, cache: ListingCache | None = None) -> bytes:
    spec = TableSpec(
        name="t",
        path=str(table),
        retention=Retention(policy=Policy.COMMITS, keep=2),
        document={"path": str(table), "retention": {"commits": 2}},
    )
    storage, now_ms = LocalStorage(str(table)), round(NOW.timestamp() * 1000)
    state = observe(storage, spec, observed_ms=now_ms, listing_cache=cache)
    made = plan_table(spec, state, NOW)
    return dump_plan(Plan(created_at=NOW.isoformat(), tool="test", tables=(made,)))


def list_data_files(table: Path) -> list[Path]:
    return sorted(table.glob("*/*.parquet"))


# --- what may happen to a table ------------------------------------------------------------------


def add_file(table: Path, chance: random.Random) -> None:
    name = SHAPE.name(chance.randrange(3), 9, chance.randrange(4))
    (chance.choice(sorted(table.glob("p*"))) / name).write_bytes(bytes(chance.randrange(99)))


def delete_file(table: Path, chance: random.Random) -> None:
    chance.choice(list_data_files(table)).unlink()


def rename_file(table: Path, chance: random.Random) -> None:
    file = chance.choice(list_data_files(table))
    file.rename(file.with_name(SHAPE.name(2, 7, chance.randrange(4))))


def rewrite_in_same_size(table: Path, chance: random.Random) -> None:
    file = chance.choice(list_data_files(table))
    size = file.stat().st_size
    file.write_bytes(chance.randbytes(size))


def replace_file(table: Path, chance: random.Random) -> None:
    file = chance.choice(list_data_files(table))
    (table / "new").write_bytes(bytes(chance.randrange(99)))
    (table / "new").replace(file)


def add_pending_file(table: Path, chance: random.Random) -> None:
    for state in ("commit.requested", "inflight"):
        (table / SHAPE.timeline_folder / f"{PENDING}.{state}").touch()
    folder = chance.choice(sorted(table.glob("p*")))
    name = SHAPE.name(0, 0, 0).replace(SHAPE.instants[0], PENDING)
    (folder / name).write_bytes(b"x" * chance.randrange(9))


def grow_pending_files(table: Path, chance: random.Random) -> None:
    for file in table.glob(f"*/*{PENDING}.parquet"):
        with file.open("ab") as out:
            out.write(b"x" * chance.randrange(1, 9))


def complete_pending_write(table: Path, _: random.Random) -> None:
    timeline = table / SHAPE.timeline_folder
    if (timeline / f"{PENDING}.inflight").exists():
        last = timeline / f"{SHAPE.instants[-1]}_{SHAPE.completions[-1]}.commit"
        shutil.copyfile(last, timeline / f"{PENDING}_{PENDING[:-3]}900.commit")


def add_partition(table: Path, chance: random.Random) -> None:
    folder = table / f"p9{chance.randrange(9)}"
    folder.mkdir(exist_ok=True)
    (folder / ".hoodie_partition_metadata").write_bytes(b"")
    (folder / SHAPE.name(1, 1, chance.randrange(4))).write_bytes(b"xy")


def empty_partition(table: Path, chance: random.Random) -> None:
    for file in chance.choice(sorted(table.glob("p*"))).glob("*.parquet"):
        file.unlink()


def remove_partition(table: Path, chance: random.Random) -> None:
    folders = sorted(table.glob("p*"))
    if len(folders) > 2:
        shutil.rmtree(chance.choice(folders[1:]))


def nest_folder(table: Path, chance: random.Random) -> None:
    inner = chance.choice(sorted(table.glob("p*"))) / "inner"
    inner.mkdir(exist_ok=True)
    (inner / SHAPE.name(0, 5, chance.randrange(4))).write_bytes(b"xyz")


def add_stray_file(table: Path, chance: random.Random) -> None:
    (chance.choice(sorted(table.glob("p*"))) / f"stray{chance.randrange(9)}").touch()


def toggle_metafile(table: Path, chance: random.Random) -> None:
    folder = chance.choice(sorted(table.glob("p*"))[1:])
    file, away = folder / ".hoodie_partition_metadata", folder / "metafile_away"
    source, target = (file, away) if file.exists() else (away, file)
    if source.exists():
        source.rename(target)


def restore_copy(table: Path, _: random.Random) -> None:
    """Replace the table by a copy with the times of the original."""
    copy = table.with_name("copy")
    shutil.copytree(table, copy)
    shutil.rmtree(table)
    copy.rename(table)


def put_other_table(table: Path, chance: random.Random) -> None:
    shutil.rmtree(table)
    make_table(table, replace(SHAPE, groups=chance.randrange(1, 4)))


def set_times_back(table: Path, chance: random.Random) -> None:
    """Change a folder, and give it the time of modification that it had."""
    folder = chance.choice(sorted(table.glob("p*")))
    status = folder.stat()
    (folder / SHAPE.name(0, 6, chance.randrange(4))).write_bytes(b"x")
    os.utime(folder, ns=(status.st_atime_ns, status.st_mtime_ns))


def swap_folders(table: Path, chance: random.Random) -> None:
    one, other = chance.sample(sorted(table.glob("p*")), 2)
    one.rename(table / "swap")
    other.rename(one)
    (table / "swap").rename(other)


def change_nothing(_: Path, __: random.Random) -> None:
    """Leave everything as it is."""


CHANGES = (
    *(add_file, delete_file, rename_file, rewrite_in_same_size, replace_file, add_pending_file),
    *(grow_pending_files, complete_pending_write, add_partition, empty_partition),
    *(remove_partition, nest_folder, add_stray_file, toggle_metafile, restore_copy),
    *(put_other_table, set_times_back, swap_folders, change_nothing),
)


# --- the law -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_a_remembered_plan_is_the_plan_whatever_changes(seed, table, cache):
    chance = random.Random(seed)
    for _ in range(12):
        change = chance.choice(CHANGES)
        change(table, chance)
        time.sleep(TICK_S)
        now = replace(cache, clock=read_clock(table))

        assert plan_bytes(table) == plan_bytes(table, now), change.__name__


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_each_change_alone_is_seen(change, table, cache):
    plan_bytes(table, cache)
    change(table, random.Random(1))
    time.sleep(TICK_S)

    assert plan_bytes(table) == plan_bytes(table, cache)


def test_a_second_plan_lists_no_folder(table, cache, listed):
    first = plan_bytes(table, cache)
    listed.clear()

    assert first == plan_bytes(table, cache)
    assert [] == listed


def test_after_a_change_only_its_folder_is_listed(table, cache, listed):
    plan_bytes(table, cache)
    (table / "p000001" / SHAPE.name(1, 8, 1)).write_bytes(b"x")
    time.sleep(TICK_S)
    listed.clear()
    plan_bytes(table, cache)

    assert ["p000001"] == listed


def test_folders_that_have_just_changed_are_not_remembered(table, cache):
    """A later change in the same tick of the clock would not show."""
    just_now = replace(cache, clock=read_clock(table, later_ns=0))
    plan_bytes(table, just_now)

    assert not list(cache.cache.folder.glob("*"))


def test_folders_on_another_file_system_are_not_remembered(table, cache, listed, monkeypatch):
    """Such as a link to a mounted object store, whose folders may have no such times."""
    read, far = folder_states._read_state, min(path.name for path in table.glob("p*"))

    def read_from_afar(storage, path):
        device, *rest = read(storage, path)
        return (device + (path == far), *rest)

    monkeypatch.setattr(folder_states, "_read_state", read_from_afar)
    plan_bytes(table, cache)
    listed.clear()
    plan_bytes(table, cache)

    assert [far] == listed


def test_files_of_a_pending_write_are_not_remembered(table, cache, listed):
    add_pending_file(table, random.Random(1))
    (folder,) = {file.parent.name for file in table.glob(f"*/*{PENDING}.parquet")}
    time.sleep(TICK_S)
    plan_bytes(table, cache)
    listed.clear()
    plan_bytes(table, cache)

    assert [folder] == listed


def test_log_files_that_do_not_name_their_write_are_not_remembered(tmp_path, cache, listed):
    """Before version 8 a name does not tell whether the write of a log file is complete."""
    unpack(Path(__file__).parent / "v6_mor_overlap_done.zip", tmp_path)
    properties = min(tmp_path.rglob("hoodie.properties"), key=lambda file: len(file.parts))
    table = properties.parents[1]
    time.sleep(TICK_S)
    plan_bytes(table, cache)
    listed.clear()
    plan_bytes(table, cache)

    assert list(table.glob(".*.log.*"))
    assert [""] == listed


@pytest.mark.parametrize(
    "clock",
    [
        {"offset_ns": -3_000_000_000},
        {"offset_ns": 3_000_000_000},
    ],
    ids=["set back", "set forward"],
)
def test_nothing_is_remembered_across_a_clock_that_was_set(clock, table, cache, listed):
    plan_bytes(table, cache)
    listed.clear()
    plan_bytes(table, replace(cache, clock=read_clock(table, **clock)))

    assert ["", "p000000", "p000001", "p000002"] == sorted(listed)


def test_a_folder_that_becomes_a_partition_is_listed(table, cache):
    """A metadata table may name a folder that was none before, which nothing on disk shows."""
    (table / "late").mkdir()
    (table / "late" / SHAPE.name(0, 0, 0)).write_bytes(b"x")
    time.sleep(TICK_S)
    storage = LocalStorage(str(table))
    properties = load_properties(storage)
    timeline = load_timeline(storage, properties)
    first, second = (
        load_listing(storage, properties, known, (), cache.open(storage, properties, timeline))
        for known in ((), ("late",))
    )

    assert [24, 25] == [len(listing.files) for listing in (first, second)]


def test_nothing_is_remembered_after_a_reboot(table, cache, listed):
    plan_bytes(table, cache)
    rebooted = replace(cache, clock=replace(cache.clock, boot="another"))
    listed.clear()
    plan_bytes(table, rebooted)

    assert len(listed) == 1 + SHAPE.partitions


def test_a_file_system_that_is_not_known_is_not_trusted(table, cache):
    mounts = cache.clock.mounts.replace("ext4", "fuse.s3fs")
    plan_bytes(table, replace(cache, clock=replace(cache.clock, mounts=mounts)))

    assert not cache.cache.folder.exists()


@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_cache_is_no_cache(seed, table, cache):
    chance = random.Random(seed)
    expected = plan_bytes(table, cache)
    (file,) = cache.cache.folder.iterdir()
    content = bytearray(file.read_bytes())
    at = chance.randrange(len(content))
    if seed % 2:
        content[at] ^= 1 << chance.randrange(8)
    else:
        del content[at:]
    file.write_bytes(content)

    assert expected == plan_bytes(table, cache)


def test_only_plans_use_remembered_listings():
    """What deletes files lists every folder itself."""
    package = Path(listing_memory.__file__).parents[1]
    users = {
        str(file.relative_to(package))
        for file in package.rglob("*.py")
        if "listing_cache" in file.read_text()
    }

    assert users == {"api.py", "runtime.py", "state/observe.py", "status/observation.py"}
