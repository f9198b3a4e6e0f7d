"""Real Hudi that writes repeatedly in its own process, while something else runs here."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final, Self

from tests.oracle.clustered_tables import Subject
from tests.oracle.hudi import HudiFailedError, keep_commits
from tests.oracle.our_clustering import apply_here, assert_done, make_plan

if TYPE_CHECKING:
    from reconciler.executor.result import ApplyResult

#: writes that have to be done beside clusterings
_WRITES: Final = 3
_CLIENT: Final = "org.apache.hudi.client.transaction."
#: optimistic concurrency, by the lock that an apply takes too
CONCURRENT: Final = {
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
class ConcurrentWriter:
    """Upserts a few keys at a time until it is stopped; writes with conflicts are tried again.

    In a test: ``with ConcurrentWriter(subject, options) as writer: ...``; afterwards the subject's
    model has every write that Hudi completed. ``log``: when each began, what it wrote, the instant
    files that it added, and why it was refused. Any error but a conflict fails the test at the end.
    """

    subject: Subject
    options: Mapping[str, str]
    seed: int = 1
    done: int = 0
    refused: int = 0
    log: list[str] = field(default_factory=list)
    problem: BaseException | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
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

    def _run(self) -> None:
        work = self._work()
        try:
            rows = next(work)
            while not self._stop.is_set():
                is_done = self._write(rows)
                rows = next(work) if is_done else rows
        except BaseException as problem:  # noqa: BLE001 - raised where the test is
            self.problem = problem

    def _write(self, rows: Mapping[str, int]) -> bool:
        """Whether Hudi said it was done."""
        before, begun, why = {*self.subject.table.instants()}, datetime.now(UTC), ""
        try:
            self.subject.write(rows, options={**CONCURRENT, **self.options})
        except HudiFailedError as problem:
            if not any(word in line for word in _CONFLICT for line in problem.causes):
                raise
            is_done, why = False, " | ".join(problem.causes)
            move_clock_on(self.subject)
        else:
            is_done = True
        new = sorted({*self.subject.table.instants()} - before)
        self.log.append(f"{begun:%H:%M:%S.%f} {dict(rows)} {new} {why[:400] or 'done'}")
        self.done, self.refused = self.done + is_done, self.refused + (not is_done)
        return is_done

    def _work(self) -> Iterator[dict[str, int]]:
        """Some known keys and now and then a new one; numbers that no row had yet."""
        random, number = Random(self.seed), 100
        while True:
            number += 1
            keys = random.sample(sorted(self.subject.model), random.randint(1, 3))
            new = [f"{random.choice('abd')}{number}"] if random.random() < 0.5 else []
            yield dict.fromkeys([*keys, *new], number)


def move_clock_on(subject: Subject) -> None:
    """No write is on its way, and the heartbeats that refused ones have left stand still for long.

    Such a write stays requested and says nothing of its groups, until Hudi's clean rolls it back.
    """
    for heartbeat in (subject.path / ".hoodie/.heartbeat").glob("[0-9]*"):
        with suppress(FileNotFoundError):
            if not heartbeat.stat().st_size:  # ours tell who we are
                os.utime(heartbeat, (1, 1))


def check_no_update_is_lost(
    subject: Subject, options: Mapping[str, str], folder: Path, *, most_s: float = 240
) -> None:
    """Clusters over and over while a writer upserts without a pause, until both have got on.

    ``most_s``: seconds for that.
    """
    results, until = [], time.monotonic() + most_s
    with ConcurrentWriter(subject, options) as writer:
        while writer.problem is None and time.monotonic() < until:
            plan = make_plan(subject)
            if not plan.tables[0].steps:
                time.sleep(0.2)  # until there is another commit
                continue
            results.append(apply_here(plan))
            if writer.done >= _WRITES and _count_clustered(results):
                break
    outcomes = [outcome for result in results for outcome in result.tables[0].outcomes]
    left = [one for outcome in outcomes for one in outcome.rewritten.left]
    said = f"{writer.done} writes done and {writer.refused} refused, {len(results)} applies"
    print(f"{said}, {_count_clustered(results)} published, {len(left)} groups left", flush=True)
    print(*writer.log, *outcomes, sep="\n", flush=True)

    errors = [result.tables[0].error for result in results]
    assert {0, 4} >= {result.exit_code for result in results}, errors
    assert [] == [one for one in left if not one.because]
    assert all((result.exit_code == 4) == _leaves_table(result) for result in results), outcomes
    assert writer.done >= _WRITES, said
    assert _count_clustered(results), outcomes
    subject.assert_rows(folder / "read", said)  # files of writes that were refused are listed
    subject.hudi.clean(subject.with_services(CONCURRENT), keep_commits(50))
    assert_done(apply_here(make_plan(subject)))
    subject.assert_right(folder / "again", "when all was quiet")


def _count_clustered(results: Sequence[ApplyResult]) -> int:
    """How many clusterings were published, with a group at least."""
    outcomes = [outcome for result in results for outcome in result.tables[0].outcomes]
    return sum(one.how == "completed" and one.rewritten.groups > 0 for one in outcomes)


def _leaves_table(result: ApplyResult) -> bool:
    """Whether groups were dropped."""
    return any(outcome.rewritten.left for outcome in result.tables[0].outcomes)
