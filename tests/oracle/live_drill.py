"""A live table: real Hudi writes it, reconciler keeps it, and both are killed at random.

The writer upserts, inserts and deletes rows, compacts and clusters. Some of its processes are
killed in the middle of that, as are runs of reconciler. A reader looks all the time. At the end the
table is as if nobody had been killed: the rows are right, nothing is pending, and the metadata
table lists every file of the folders.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import IO, Any, Final

import psutil

from reconciler.hudi.timeline.commit import CommitMetadata
from reconciler.hudi.timeline.owner import Owner
from tests.oracle.concurrent_writer import CONCURRENT, WRITERS_FIRST
from tests.oracle.hudi import HudiFailedError, HudiTable, RealHudi, directory_listing

_SPEC: Final = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: live}
spec:
  path: table
  timezone: UTC
  retention: {commits: 6, failedWrites: LAZY}
  timeline: {keep: 10..16}
  orphans: {olderThan: 24h}
  metadata: {verify: each-apply}
  concurrency:
    lock: {provider: filesystem, expire: 1}
    staleAfter: 10m
    pending: {clustering: rollback, after: 1h}
"""
#: before 1.2, Hudi's inline clustering rolls back a pending one of reconciler without a lock, so
#: one of the two must not cluster
_CLUSTERING: Final = "  clustering: {columns: [ts], when: always, afterCommits: 6}\n"
#: the key of a commit's extra metadata that has the number of the batch, as Hudi adds it
_BATCH: Final = "drill.batch"
_OPTIONS: Final = {
    **CONCURRENT,
    **WRITERS_FIRST,
    "hoodie.write.lock.num_retries": "240",
    "hoodie.write.lock.filesystem.expire": "1",
    "hoodie.datasource.write.commitmeta.key.prefix": "drill.",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "4",
    "hoodie.clustering.inline": "true",
    "hoodie.clustering.inline.max.commits": "7",
    "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true",
}
#: what Hudi says of a write that lost to another one, or that came across another's work
_CONFLICTS: Final = (
    "HoodieWriteConflictException",
    "HoodieClusteringUpdateException",
    "ConcurrentModificationException",
    "Cannot resolve conflicts",
    "Not allowed to update the clustering file group",
    "Error getting all file groups in pending clustering",
    # 1.0 looked for the plan of a clustering that was completed meanwhile
    "No value present in Option",
)
#: what 1.2 says when a process first compacts the metadata table, and then writes to it: its cache
#: has two of one schema then, and it compares them by identity (HoodieMetadataPayload)
_TWO_SCHEMAS: Final = "out of bounds for length 7"
_DAY_S: Final = 86_400
_COLUMNS: Final = ("id", "p", "ts", "x", "n")

Row = list[Any]
Rows = Mapping[str, Row]


@dataclass(slots=True)
class Model:
    """The rows after every batch that was committed, and those of a batch that is on its way."""

    states: list[Rows] = field(default_factory=lambda: [{}])
    begun: list[Rows] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, state: Rows) -> None:
        with self.lock:
            self.begun.append(state)

    def commit(self, state: Rows) -> None:
        with self.lock:
            self.states.append(state)

    def mark(self) -> tuple[int, int]:
        """Return what a read that begins now may see at least, for ``list_possible``."""
        with self.lock:
            return len(self.states) - 1, max(0, len(self.begun) - 1)

    def list_possible(self, mark: tuple[int, int]) -> list[list[Row]]:
        """Return the rows that a read may have seen that began at the mark and has ended now."""
        with self.lock:
            found = [*self.states[mark[0] :], *self.begun[mark[1] :]]
        return [sort_rows(state) for state in found]


def sort_rows(rows: Rows) -> list[Row]:
    return sorted(rows.values(), key=repr)


class Keeper:
    """A process of reconciler that plans and applies when it is told to."""

    def __init__(self, folder: Path) -> None:
        self._log: IO[str] = (folder / "keeper.log").open("a")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.oracle.drill_run", "spec.yaml"],
            cwd=folder,
            env={**os.environ, "TZ": "UTC", "PYTHONPATH": str(Path(__file__).parents[2])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._read()

    def run(self, *, kill_after_s: float | None = None) -> dict[str, Any] | None:
        """Plan and apply once; None if the process was killed meanwhile."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        timer = threading.Timer(kill_after_s or 0, self._process.kill)
        if kill_after_s is not None:
            timer.start()
        try:
            return self._read()
        finally:
            timer.cancel()

    def close(self) -> None:
        self._process.kill()
        with self._process:
            pass
        self._log.close()

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def _read(self) -> dict[str, Any] | None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        if self._process.wait() != -signal.SIGKILL:
            raise AssertionError(f"reconciler ended:\n{Path(self._log.name).read_text()[-4000:]}")
        return None


@dataclass(slots=True, kw_only=True)
class LiveTable:
    """The table, whoever works on it, and what happened. ``log``: a line for each event."""

    folder: Path
    table: HudiTable
    writer: RealHudi
    reader: RealHudi
    random: Random
    model: Model = field(default_factory=Model)
    log: list[str] = field(default_factory=list)
    batches: int = 0
    writes: int = 0
    killed_writes: int = 0
    applies: int = 0
    killed_applies: int = 0
    reads: int = 0
    problems: list[BaseException] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self, seconds: float) -> None:
        """Let all of them work for a while; raises what went wrong."""
        self.write(kill_after_s=None)
        keepers = [Keeper(self.folder)]
        threads = [
            threading.Thread(target=self._repeat, args=(work,), daemon=True)
            for work in (self._write_sometimes_killed, self._keep(keepers), self._look)
        ]
        for thread in threads:
            thread.start()
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.problems:
            time.sleep(0.2)
        self._stop.set()
        for thread in threads:
            thread.join(400)
        keepers.pop().close()
        if self.problems:
            raise self.problems[0]

    def settle(self) -> None:
        """Write once more undisturbed, and apply until there is nothing to do; check the table."""
        self.write(kill_after_s=None)
        self.age_dead_writers()
        self._age_unlisted_files()
        keeper, rounds = Keeper(self.folder), 0
        try:
            while (answer := keeper.run()) is not None and answer["planned"]:
                self.say(f"settling: {answer}")
                self.age_dead_writers()
                rounds += 1
                assert answer["code"] in {0, 4}, answer
                assert rounds <= 6, "plans do not become empty"
        finally:
            keeper.close()
        self.say(f"settled: {answer}")
        self.check_end()

    def check_end(self) -> None:
        """Check the rows, that nothing is pending, and that each file is listed."""
        expected = sort_rows(self.model.states[-1])
        for metadata in (False, True):
            assert self.reader.rows(self.table, metadata=metadata) == expected, metadata
        assert [] == list_pending(self.table)
        assert directory_listing(self.table.path) == self.reader.listing(self.table)

    def write(self, *, kill_after_s: float | None) -> bool:
        """Let Hudi write one batch; return whether it is the table's."""
        operation, rows, state = self._make_batch()
        self.batches += 1
        number, before = self.batches, self._list_instants()
        options = {**self.table.options, "hoodie.datasource.write.operation": operation}
        options[_BATCH] = str(number)
        self.model.begin(state)
        problem = ""
        timer = threading.Timer(kill_after_s or 0, self._kill_writer)
        if kill_after_s is not None:
            self.writer.ask("ping")
            timer.start()
        try:
            self.writer.ask("write", table=self.table, rows=rows, options=options)
        except HudiFailedError as error:
            problem = " | ".join(error.causes)
            if _TWO_SCHEMAS in problem:  # each write of this process would fail
                self._kill_writer()
                self.writer.close()
            elif not any(word in problem for word in _CONFLICTS):
                raise
        except (TimeoutError, OSError) as error:
            if kill_after_s is None:
                raise
            problem = f"killed after {kill_after_s:.1f} s"
            self.killed_writes += 1
            del error
        finally:
            timer.cancel()
        self._wait_for_writer_to_end()
        is_done = self._is_committed(number, before)
        self.say(f"batch {number} {operation} {problem[:300] or 'done'}; committed: {is_done}")
        assert is_done or problem, f"batch {number} is not on the timeline"
        if is_done:
            self.model.commit(state)
            self.writes += 1
        if problem:
            self.age_dead_writers()
        return is_done

    def age_dead_writers(self) -> None:
        """Let what Hudi's dead processes have left look old; no write is on its way."""
        home, old = self.table.path / ".hoodie", time.time() - _DAY_S
        folders = (".heartbeat", "metadata/.hoodie/.heartbeat")
        beats = [home / "lock", *(file for one in folders for file in home.glob(f"{one}/[0-9]*"))]
        pending = {name.split(".")[0] for name in list_pending(self.table)}
        markers = [file for one in pending for file in home.glob(f".temp/{one}/**/*")]
        states = [self.table.timeline / name for name in list_pending(self.table)]
        for file in [*beats, *markers, *states]:
            with suppress(FileNotFoundError, IsADirectoryError):
                if Owner.parse(file.read_bytes()) is None:
                    os.utime(file, (old, old))

    def say(self, text: str) -> None:
        line = f"{time.strftime('%H:%M:%S')} {text}"
        self.log.append(line)
        print(line, flush=True)

    def _repeat(self, work: Any) -> None:
        try:
            while not self._stop.is_set() and not self.problems:
                work()
        except BaseException as problem:  # noqa: BLE001 - raised where the drill is
            self.problems.append(problem)

    def _write_sometimes_killed(self) -> None:
        is_killed = self.random.random() < 0.35
        self.write(kill_after_s=self.random.uniform(0.1, 6) if is_killed else None)

    def _keep(self, keepers: list[Keeper]) -> Any:
        """Return what runs reconciler once, in a process that is killed in every third run."""
        random = Random(self.random.random())

        def keep() -> None:
            keeper = keepers[-1]
            if keeper.has_ended:
                keepers.pop().close()
                keepers.append(Keeper(self.folder))
                return
            is_killed = random.random() < 0.35
            answer = keeper.run(kill_after_s=random.uniform(0.1, 3) if is_killed else None)
            self.applies += 1
            if answer is None:
                self.killed_applies += 1
                self.say("apply killed")
                return
            if answer["planned"]:
                self.say(f"apply {answer}")
            assert answer["code"] in {0, 2, 3, 4, 5, 6}, answer
            time.sleep(random.uniform(0, 1))

        return keep

    def _look(self) -> None:
        """Read once; what is read was the table's at one moment of the read."""
        mark = self.model.mark()
        metadata = self.reads % 2 == 0
        found = self.reader.rows(self.table, metadata=metadata)
        possible = self.model.list_possible(mark)
        self.reads += 1
        if found not in possible:
            nearest = min(possible, key=lambda one: len(_differ(one, found)))
            raise AssertionError(
                f"read {self.reads} (metadata {metadata}) differs: {_differ(nearest, found)}"
            )
        time.sleep(1)

    def _make_batch(self) -> tuple[str, list[Row], Rows]:
        """Return an operation, its rows, and the table's rows afterwards."""
        state, number = dict(self.model.states[-1]), self.batches + 1
        keys = self.random.sample(sorted(state), min(len(state), self.random.randint(1, 4)))
        operation = self.random.choices(["upsert", "insert", "delete"], [6, 3, 1])[0]
        if operation == "delete" and len(state) > 8:
            rows = [state.pop(key) for key in keys]
            return operation, [[*row[:2], number, *row[3:]] for row in rows], state
        new = [f"k{number}-{one}" for one in range(self.random.randint(1, 3))]
        chosen = new if operation == "insert" else [*keys, *new]
        rows = []
        for key in chosen:
            partition = state[key][1] if key in state else self.random.choice("abc")
            rows.append([key, partition, number, f"v{number}", float(number)])
        return (
            "insert" if operation == "insert" else "upsert",
            rows,
            state | {row[0]: row for row in rows},
        )

    def _list_instants(self) -> set[str]:
        return {*self.table.instants()} if self.table.path.exists() else set()

    def _is_committed(self, number: int, before: set[str]) -> bool:
        for name in self._list_instants() - before:
            if not name.endswith(("commit", ".deltacommit")) or name.endswith(".replacecommit"):
                continue
            with suppress(FileNotFoundError):
                data = (self.table.timeline / name).read_bytes()
                if data and CommitMetadata.parse(data, name).extra.get(_BATCH) == str(number):
                    return True
        return False

    def _kill_writer(self) -> None:
        """Kill Hudi's process and its JVM, as a machine that is switched off does."""
        process = self.writer._process
        if process is None:
            return
        with suppress(psutil.NoSuchProcess):
            parent = psutil.Process(process.pid)
            for child in [*parent.children(recursive=True), parent]:
                with suppress(psutil.NoSuchProcess):
                    child.kill()

    def _wait_for_writer_to_end(self) -> None:
        process = self.writer._process
        if process is not None and process.poll() is not None:
            self.writer.close()

    def _age_unlisted_files(self) -> None:
        """Let files that the metadata table does not list look older than a day."""
        listed = self.reader.listing(self.table)
        old = time.time() - 2 * _DAY_S
        for partition, files in directory_listing(self.table.path).items():
            for name in files.keys() - listed.get(partition, {}).keys():
                self.say(f"not listed: {partition}/{name}")
                os.utime(self.table.path / partition / name, (old, old))


def list_pending(table: HudiTable) -> list[str]:
    """Return the timeline files of instants without a completed file."""
    names = table.instants()
    done = {name.split(".")[0].split("_")[0] for name in names if not is_pending_file(name)}
    return [name for name in names if is_pending_file(name) and name.split(".")[0] not in done]


def is_pending_file(name: str) -> bool:
    return name.endswith((".requested", ".inflight"))


def _differ(one: list[Row], other: list[Row]) -> list[Row]:
    return [row for row in [*one, *other] if (row in one) != (row in other)]


@contextmanager
def live_table(
    version: str, folder: Path, seed: int, options: Mapping[str, str] | None = None
) -> Iterator[LiveTable]:
    """Make the table of a drill with a release of Hudi; ``options``: of its writer."""
    folder.mkdir(parents=True, exist_ok=True)
    is_clustered = version.startswith("1.2")
    (folder / "spec.yaml").write_text(_SPEC + (_CLUSTERING if is_clustered else ""))
    writer, reader = RealHudi(version), RealHudi(version)
    has_logs = version >= "1.0"  # before, deleted rows come back where Hudi clusters log files
    said = {**_OPTIONS, "hoodie.compact.inline": str(has_logs).lower(), **(options or {})}
    table = writer.table(folder / "table", merge_on_read=has_logs, options=said)
    live = LiveTable(folder=folder, table=table, writer=writer, reader=reader, random=Random(seed))
    try:
        yield live
    finally:
        live._kill_writer()
        writer.close()
        reader.close()
