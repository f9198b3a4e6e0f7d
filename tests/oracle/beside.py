"""Real Hudi writing in a process of its own, over and over, while something else goes on here."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final, Self

from tests.oracle.hudi import HudiFailedError
from tests.oracle.layouts import Subject

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

    def __enter__(self) -> Self:
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
                if self._write(rows):
                    rows = next(work)
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
