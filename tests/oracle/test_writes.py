"""We and real Hudi write to one table in turns, and each finds what both have written.

``ROUNDS=20`` goes on for longer. After every turn both read the rows that a plain model has.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest

import reconciler
from reconciler import runtime
from reconciler.spec.model import TableSpec
from reconciler.writer.request import WriteMode
from tests.applying import ImpatientClock
from tests.oracle.bundles import TABLE_VERSION
from tests.oracle.hudi import (
    COMPACT_METADATA,
    FEW_GROUPS,
    INDEXES,
    HudiTable,
    RealHudi,
    directory_listing,
    keep_commits,
)
from tests.oracle.our_clustering import apply_here
from tests.oracle.our_writer import make_spec, read_rows, write
from tests.selection import long, rounds
from tests.storage_wrappers import RecordingStorage

pytestmark = pytest.mark.oracle
#: one for each table version
VERSIONS = ("0.15.0", "1.0.2", "1.2.0")
ROUNDS = rounds("ROUNDS", few=2, many=9)
ALL = INDEXES | FEW_GROUPS
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
#: Hudi rolls nothing back that its metadata table was compacted after
LATE = {"hoodie.metadata.compact.max.delta.commits": "50"}
FILLING = {"hoodie.parquet.small.file.limit": str(100 << 20)}
#: a target that every file of ours has reached: it is mostly the bloom filter
FULL = 500_000
FOLDERS = "abc"


@dataclass
class Both:
    """A table of two writers, and the rows that it has by key."""

    hudi: RealHudi
    table: HudiTable
    spec: TableSpec
    random: Random
    model: dict[str, list[Any]] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    ts: int = 0
    number: int = 0

    def new(self, count: int = 2) -> list[list[Any]]:
        """Rows of keys that nobody has seen."""
        found = []
        for _ in range(count):
            self.number += 1
            folder = self.random.choice(FOLDERS)
            found.append(self.row(f"{folder}{self.number}", folder))
        return found

    def old(self, count: int = 2) -> list[list[Any]]:
        """Rows for keys that are there, newer than those."""
        known = sorted(self.model)
        keys = self.random.sample(known, min(count, len(known)))
        return [self.row(key, key[0]) for key in keys]

    def row(self, key: str, folder: str) -> list[Any]:
        self.ts += 1
        text = None if self.ts % 7 == 0 else f"v\u010d{self.ts}"
        return [key, folder, self.ts, text, self.ts / 4]

    def put(self, rows: list[list[Any]]) -> None:
        self.model |= {row[0]: row for row in rows}

    def drop(self, rows: list[list[Any]]) -> None:
        for row in rows:
            self.model.pop(row[0], None)

    def assert_right(self) -> None:
        """Both find the rows, whatever is skipped; the metadata table lists what is there."""
        rows = sorted(self.model.values(), key=repr)
        young = self.ts * 3 // 4
        assert rows == read_rows(self.table)
        assert rows == self.hudi.rows(self.table, metadata=True)
        assert [row for row in rows if row[2] > young] == self.hudi.rows(
            self.table, metadata=True, where=f"ts > {young} and n > {young / 4}"
        )
        there, listed = directory_listing(self.table.path), self.hudi.listing(self.table)
        # Hudi goes on listing a partition that a clean removed, without files, where both the base
        # file and the log of its metadata table name it: its payload takes it from the log alone
        # nor does it list a partition of which a rollback has left an empty folder
        there = {path: files for path, files in there.items() if files or path in listed}
        assert there == {path: files for path, files in listed.items() if files or path in there}


# what we do


def we_upsert(it: Both) -> None:
    rows = [*it.old(), *it.new()]
    write(it.spec, rows)
    it.put(rows)


def we_insert(it: Both) -> None:
    rows = it.new(3)
    write(it.spec, rows, WriteMode.INSERT)
    it.put(rows)


def we_bulk_insert(it: Both) -> None:
    rows = it.new(3)
    write(it.spec, rows, WriteMode.BULK_INSERT)
    it.put(rows)


def we_delete(it: Both) -> None:
    rows = it.old()
    write(it.spec, rows, WriteMode.DELETE)
    it.drop(rows)


def we_overwrite_a_partition(it: Both) -> None:
    folder = it.random.choice(FOLDERS)
    rows = [row for row in it.new(6) if row[1] == folder] or [it.row(f"{folder}over", folder)]
    write(it.spec, rows, WriteMode.INSERT_OVERWRITE)
    it.model = {key: row for key, row in it.model.items() if row[1] != folder}
    it.put(rows)


def we_delete_a_partition(it: Both) -> None:
    folder = it.random.choice(FOLDERS)
    write(it.spec, [], WriteMode.DELETE_PARTITION, partitions=[folder_of(it, folder)])
    it.model = {key: row for key, row in it.model.items() if row[1] != folder}


def we_write_and_hudi_rolls_it_back(it: Both) -> None:
    write(it.spec, [*it.old(), *it.new()])
    it.hudi.rollback(it.table, it.table.last_instant())


# what Hudi does


def hudi_upserts(index: str) -> Callable[[Both], None]:
    def act(it: Both) -> None:
        rows = [*it.old(3), *it.new(1)]
        index_type = {"hoodie.index.type": index}
        it.hudi.write(it.table, rows, options={**it.options, **index_type, **filling(it)})
        it.put(rows)

    act.__name__ = f"hudi_upserts_by_{index.lower()}"
    return act


def hudi_inserts(it: Both) -> None:
    rows = it.new(2)
    it.hudi.write(it.table, rows, "insert", {**it.options, **filling(it), **COMPACT_METADATA})
    it.put(rows)


def hudi_deletes(it: Both) -> None:
    rows = it.old(2)
    it.hudi.write(it.table, rows, "delete", it.options)
    it.drop(rows)


def hudi_clusters(it: Both) -> None:
    if clustering := it.hudi.schedule(it.table, "CLUSTER", it.options):
        it.hudi.cluster(it.table, clustering)


def hudi_cleans(it: Both) -> None:
    it.hudi.clean(it.table, keep_commits(1) | it.options)


def hudi_writes_and_rolls_it_back(it: Both) -> None:
    instant = it.hudi.write(it.table, [*it.old(), *it.new()], options=it.options)
    it.hudi.rollback(it.table, instant)


OURS = [
    we_upsert,
    we_upsert,
    we_insert,
    we_bulk_insert,
    we_delete,
    we_overwrite_a_partition,
    we_delete_a_partition,
    we_write_and_hudi_rolls_it_back,
]
HUDIS = [
    hudi_upserts("BLOOM"),
    hudi_upserts("SIMPLE"),
    hudi_inserts,
    hudi_deletes,
    hudi_clusters,
    hudi_cleans,
    hudi_writes_and_rolls_it_back,
]
BY_RECORD_INDEX = hudi_upserts("RECORD_INDEX")


def filling(it: Both) -> dict[str, str]:
    return FILLING if it.random.random() < 0.5 else {}


def folder_of(it: Both, value: str) -> str:
    assert it.spec.table is not None
    return f"p={value}" if it.spec.table.hive_style else value


def turns(
    ours: list[Any], hudis: list[Any], random: Random, rounds: int
) -> Iterator[Callable[[Both], None]]:
    """One of ours, one of Hudi's: each kind before any comes again."""
    for number in range(rounds):
        for kinds in (ours, hudis):
            at = number % len(kinds)
            if at == 0:
                random.shuffle(kinds)
            yield kinds[at]


def play(it: Both, ours: list[Any], hudis: list[Any], rounds: int = ROUNDS) -> None:
    for turn in turns([*ours], [*hudis], it.random, rounds):
        target = it.random.choice([FULL, 120 << 20])
        index = it.spec.table.index
        it.spec = make_spec(
            it.table,
            it.spec.table.version,
            merge_on_read=it.spec.table.type == "MERGE_ON_READ",
            hive_style=it.spec.table.hive_style,
            target=target,
            buckets=None if index is None else index.buckets,
        )
        try:
            turn(it)
            it.assert_right()
        except BaseException as problem:
            problem.add_note(f"after {turn.__name__}, round of ts {it.ts}")
            raise


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_and_we_write_in_turns_to_a_table_that_we_made(real_hudi, tmp_path, version):
    hudi, seed = real_hudi(version), int(os.environ.get("SEED", "1"))
    is_hive = version != "1.0.2"
    table = hudi.table(tmp_path / "t", options=LATE | (HIVE if is_hive else {}))
    spec = make_spec(table, TABLE_VERSION[version], hive_style=is_hive)
    it = Both(hudi=hudi, table=table, spec=spec, random=Random(f"{version} {seed}"))
    rows = it.new(6)
    write(spec, rows)
    it.put(rows)
    it.assert_right()

    play(it, OURS, HUDIS)


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_and_we_write_in_turns_to_a_table_with_every_index(real_hudi, tmp_path, version):
    hudi, seed = real_hudi(version), int(os.environ.get("SEED", "1"))
    table = hudi.table(tmp_path / "t", options=LATE | ALL)
    spec = make_spec(table, TABLE_VERSION[version])
    it = Both(hudi=hudi, table=table, spec=spec, random=Random(f"{version} {seed} all"))
    it.options = ALL
    rows = it.new(6)
    hudi.write(table, rows, options=COMPACT_METADATA)
    it.put(rows)
    live = table.metadata_partitions()
    assert {"bloom_filters", "column_stats", "record_index"} < set(live)

    play(it, OURS, [*HUDIS, BY_RECORD_INDEX, BY_RECORD_INDEX])

    assert live == table.metadata_partitions()


# writes that die


class KilledError(BaseException):
    """Nothing catches it."""


class Dying(RecordingStorage):
    """Dies at the first change of a path that matches; files are created whole or not."""

    def __init__(self, inner, path):
        super().__init__(inner)
        self.path, self.is_dead = re.compile(path), False

    def _intercept(self, call, act, torn=None):
        self.is_dead = self.is_dead or (call.mutates and bool(self.path.match(call.paths[0])))
        if self.is_dead:
            raise KilledError
        return super()._intercept(call, act, torn)


#: what was done last before a write dies, and the path that it does not come to change
DEATHS = {
    "requested": r"\.hoodie/(timeline/)?\d+\.inflight$",
    "a marker": r"[abc]/.*\.parquet$",
    "all files": r"\.hoodie/metadata/",
    "metadata begun": r"\.hoodie/metadata/.*\.log\.",
    "metadata told": r"\.hoodie/(timeline/)?\d+(_\d+)?\.commit$",
}


def die(it: Both, path: str) -> None:
    """A write of ours that ends at a call, of a process that is gone."""
    someone = replace(runtime.current_process(), pid=2**22 - 1, started="a process that is gone")
    rows = it.old(3) + it.new(1)
    with pytest.raises(KilledError):
        write(it.spec, rows, around=lambda store: Dying(store, path), process=someone)


def is_pending(table: HudiTable, instant: str) -> bool:
    names = [name for name in table.instants() if name.startswith(instant)]
    return bool(names) and all(name.endswith(("requested", "inflight")) for name in names)


LAZY = {
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.clean.failed.writes.policy": "LAZY",
}


@pytest.mark.parametrize("version", ["0.15.0", long("1.0.2"), "1.2.0"])
def test_hudi_goes_on_after_a_write_that_died_and_rolls_it_back(real_hudi, tmp_path, version):
    hudi = real_hudi(version)
    table = hudi.table(tmp_path / "t", options=ALL)
    spec = make_spec(table, TABLE_VERSION[version])
    it = Both(hudi=hudi, table=table, spec=spec, random=Random(version), options=ALL)
    rows = it.new(6)
    hudi.write(table, rows)
    it.put(rows)
    it.new(VERSIONS.index(version))  # other policies for other deaths

    for number, (done, path) in enumerate(DEATHS.items()):
        die(it, path)
        instant = table.last_instant()
        assert is_pending(table, instant), done
        rows = sorted(it.model.values(), key=repr)
        assert rows == hudi.rows(table, metadata=True), done
        assert rows == read_rows(table), done
        is_lazy = (number + VERSIONS.index(version)) % 2 == 0
        beat = table.path / ".hoodie" / ".heartbeat" / instant
        os.utime(beat, (beat.stat().st_mtime - 3600,) * 2)

        hudi_upserts_with(it, LAZY if is_lazy else {})
        if is_lazy:
            assert is_pending(table, instant), done
            assert sorted(it.model.values(), key=repr) == hudi.rows(table, metadata=True), done
            hudi.clean(table, keep_commits(1) | ALL | LAZY)
        assert not is_pending(table, instant), done
        it.assert_right()
        we_upsert(it)
    it.assert_right()


def test_hudi_goes_on_after_an_apply_has_taken_dead_writes_back(real_hudi, tmp_path):
    hudi = real_hudi("1.2.0")
    table = hudi.table(tmp_path / "t", options=LATE | ALL)
    spec = make_spec(table, TABLE_VERSION["1.2.0"])
    it = Both(hudi=hudi, table=table, spec=spec, random=Random(7), options=ALL)
    rows = it.new(6)
    hudi.write(table, rows, options=COMPACT_METADATA)
    it.put(rows)

    for done, path in DEATHS.items():
        die(it, path)
        instant = table.last_instant()
        plan = reconciler.plan(spec)
        assert ["rollback"] == [step.kind for step in plan.tables[0].steps], done

        result = apply_here(plan, clock=ImpatientClock())

        assert 0 == result.exit_code, (done, result.tables)
        assert not [name for name in table.instants() if name.startswith(instant)], done
        it.assert_right()
        hudi_upserts_with(it, {})
        it.assert_right()
        assert () == reconciler.plan(spec).tables[0].steps, done


def hudi_upserts_with(it: Both, options: dict[str, str]) -> None:
    rows = [*it.old(3), *it.new(1)]
    it.hudi.write(it.table, rows, options={**it.options, **options})
    it.put(rows)
