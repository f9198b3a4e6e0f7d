"""Real Hudi writing in a process of its own, over and over, while something else goes on here."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final, Self

from tests.oracle.hudi import HudiFailedError, keep_commits
from tests.oracle.layouts import Subject
from tests.oracle.our_clustering import applied_here, assert_done, planned

_CLIENT: Final = "org.apache.hudi.client.transaction."
#: optimistic concurrency, by the lock that an apply takes too
TOGETHER: Final = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": f"{_CLIENT}lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.num_retries": "60",
    "hoodie.write.lock.wait_time_ms_between_retry": "500",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.clean.failed.writes.policy": "LAZY",
    # a conflict is told, and this writer begins again by itself
    "hoodie.write.num.retries.on.conflict.failures": "0",
}
#: writers do not give way to a clustering that is pending, which has to look after itself
WRITERS_FIRST: Final = {
    "hoodie.write.lock.conflict.resolution.strategy": (
        f"{_CLIENT}PreferWriterConflictResolutionStrategy"
    ),
    "hoodie.clustering.updates.strategy": (
        "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy"
    ),
}
#: what a writer hears of a conflict
_CONFLICT: Final = (
    "HoodieWriteConflictException",
    "HoodieClusteringUpdateException",
    "ConcurrentModificationException",
    "Cannot resolve conflicts",
    "Not allowed to update the clustering file group",
    # it had seen a clustering whose plan was taken back before it was read
    "Error getting all file groups in pending clustering",
)


@dataclass(slots=True)
class Writer:
    """Upserts a few keys at a time until it is stopped; what fails of a conflict is tried again.

    In a test: ``with Writer(subject, options) as writer: ...``; then the subject's model has every
    write that Hudi said was done. Anything but a conflict fails the test at the end.
    """

    subject: Subject
    options: Mapping[str, str]
    seed: int = 1
    done: int = 0
    conflicts: int = 0
    problem: BaseException | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _wrote: threading.Condition = field(default_factory=threading.Condition)
    _thread: threading.Thread | None = None
    _may_write: threading.Event = field(default_factory=threading.Event)
    _writing: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Self:
        self._may_write.set()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        assert self._thread
        self._thread.join(300)
        assert not self._thread.is_alive()
        if self.problem is not None:
            raise self.problem

    @contextmanager
    def between_writes(self) -> Iterator[None]:
        """While no write is on its way: the one that is comes to its end, the next one waits."""
        self._may_write.clear()
        try:
            with self._writing:
                yield
        finally:
            self._may_write.set()

    def wait_for(self, attempts: int, timeout: float = 60) -> None:
        """Until so many more attempts have come to an end, or it has stopped."""
        with self._wrote:
            until = self.done + self.conflicts + attempts
            self._wrote.wait_for(
                lambda: self.problem is not None or self.done + self.conflicts >= until, timeout
            )

    def _run(self) -> None:
        work = self._work()
        try:
            rows = next(work)
            while not self._stop.is_set():
                self._may_write.wait()
                with self._writing:
                    is_done = self._write(rows)
                rows = next(work) if is_done else rows
        except BaseException as problem:  # noqa: BLE001 - raised where the test is
            self.problem = problem
            with self._wrote:
                self._wrote.notify_all()

    def _write(self, rows: Mapping[str, int]) -> bool:
        """Whether Hudi said it was done."""
        try:
            self.subject.write(rows, options={**TOGETHER, **self.options})
        except HudiFailedError as problem:
            if not any(word in line for word in _CONFLICT for line in problem.causes):
                raise
            is_done = False
        else:
            is_done = True
        with self._wrote:
            self.done, self.conflicts = self.done + is_done, self.conflicts + (not is_done)
            self._wrote.notify_all()
        return is_done

    def _work(self) -> Iterator[dict[str, int]]:
        """Some known keys and now and then a new one; numbers that no row had yet."""
        random, number = Random(self.seed), 100
        while True:
            number += 1
            keys = random.sample(sorted(self.subject.model), random.randint(1, 3))
            new = [f"{random.choice('abd')}{number}"] if random.random() < 0.5 else []
            yield dict.fromkeys([*keys, *new], number)


def no_update_is_lost(subject: Subject, options: Mapping[str, str], folder: Path) -> None:
    """Clusters over and over while a writer upserts, and once between two writes.

    A writer that never rests may have every group in its hands, each time that we look.
    """
    results = []
    with Writer(subject, options) as writer:
        while writer.done < 3 and writer.conflicts < 8 and writer.problem is None:
            results.append(applied_here(planned(subject)))
        with writer.between_writes():
            _roll_back_refused_writes(subject)
            results.append(applied_here(planned(subject)))
        writer.wait_for(1 + max(0, 3 - writer.done))
        results.append(applied_here(planned(subject)))
    outcomes = [outcome for result in results for outcome in result.tables[0].outcomes]
    clustered = sum(outcome.instant is not None for outcome in outcomes)

    assert {0, 4} >= {result.exit_code for result in results}
    assert writer.done > 2
    assert clustered > 0, outcomes
    subject.assert_right(folder / "read", f"after {writer.done} writes beside {clustered}")
    _roll_back_refused_writes(subject)
    assert_done(applied_here(planned(subject)))
    subject.assert_right(folder / "again", "when all was quiet")


def _roll_back_refused_writes(subject: Subject) -> None:
    """Time goes by, and then Hudi's clean rolls back the writes that it refused.

    Such a write stays requested, says nothing of its groups, and so holds up all of them.
    """
    for heartbeat in (subject.path / ".hoodie/.heartbeat").glob("[0-9]*"):
        os.utime(heartbeat, (1, 1))
    subject.hudi.clean(subject.served(TOGETHER), keep_commits(50))
