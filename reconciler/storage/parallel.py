"""Run several pieces of work at a time on threads, and collect their results on one thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import field
from queue import Empty, SimpleQueue
from typing import Final, Generic, TypeVar

from reconciler.lazy_dataclass import dataclass

#: the main thread sees a signal that another thread got only when it wakes up
_WAKE_UP_S: Final = 0.5

#: tasks of Python and Arrow that one process runs at a time: threads share a lock between calls
MOST_THREADS: Final = 8

T = TypeVar("T")
R = TypeVar("R")


class StopRequest:
    """A request to end work at its next safe point."""

    def __init__(self) -> None:
        self._asked = threading.Event()

    def request(self) -> None:
        self._asked.set()

    def check(self) -> None:
        """Raise KeyboardInterrupt once it is requested; a signal reaches only the main thread."""
        if self._asked.is_set():
            raise KeyboardInterrupt


def run_parallel(
    work: Callable[[T], R],
    items: Iterable[T],
    *,
    parallelism: int,
    on_done: Callable[[R], None] | None = None,
    on_stop: Callable[[int], None] | None = None,
    wait_s: float | None = None,
) -> list[R]:
    """Return the work's results, in the order of the items.

    ``on_done`` is called with each result as soon as it is there. One at a time, or one item, runs
    on the caller's thread. Otherwise ``on_done`` is called on it, in the order in which work ends.
    When that thread is interrupted, or a piece of work raises, no other begins. ``on_stop`` is
    called with how many are under way, and may stop them. They are waited for, each ``wait_s`` at
    most, and then the error is raised.
    """
    todo = list(items)
    if parallelism == 1 or len(todo) <= 1:
        results = []
        for item in todo:
            results.append(work(item))
            if on_done is not None:
                on_done(results[-1])
        return results
    pool = _ThreadPool(work=work, todo=deque(enumerate(todo)))
    try:
        pool.start(min(parallelism, len(todo)))
        done: dict[int, R] = {}
        while len(done) < len(todo):
            number, done[number] = pool.next()
            if on_done is not None:
                on_done(done[number])
    except BaseException:
        pool.todo.clear()
        try:
            if on_stop is not None:
                on_stop(pool.count_alive)
        finally:
            pool.wait(wait_s)
        raise
    return [done[number] for number in range(len(todo))]


@dataclass(slots=True, kw_only=True)
class _ThreadPool(Generic[T, R]):
    """Threads that take work from a queue; Python does not wait for them when it ends."""

    work: Callable[[T], R]
    todo: deque[tuple[int, T]]
    done: SimpleQueue[tuple[int, R] | BaseException] = field(default_factory=SimpleQueue)
    threads: list[threading.Thread] = field(default_factory=list)

    def start(self, count: int) -> None:
        for number in range(count):
            # the caller's context variables hold on every thread
            run = copy_context().run
            name = f"reconciler-{number + 1}"
            thread = threading.Thread(target=run, args=(self._run,), name=name, daemon=True)
            self.threads.append(thread)  # before an interruption can come in between
            thread.start()

    def next(self) -> tuple[int, R]:
        """Return the next result; raises what the work has raised."""
        while True:
            with suppress(Empty):
                done = self.done.get(timeout=_WAKE_UP_S)
                break
        if isinstance(done, BaseException):
            raise done
        return done

    @property
    def count_alive(self) -> int:
        return sum(thread.is_alive() for thread in self.threads)

    def wait(self, wait_s: float | None) -> None:
        for thread in self.threads:
            while thread.is_alive():
                thread.join(_WAKE_UP_S if wait_s is None else wait_s)
                if wait_s is not None:
                    break

    def _run(self) -> None:
        while True:
            try:
                number, item = self.todo.popleft()
            except IndexError:
                return
            try:
                self.done.put((number, self.work(item)))
            except BaseException as error:  # noqa: BLE001 (``next`` raises it on the caller's thread)
                self.done.put(error)
                return


def group_by_key(items: Sequence[T], key: Callable[[T], Hashable]) -> list[list[T]]:
    """Return the items in groups of equal keys.

    >>> group_by_key(["a1", "b1", "a2"], lambda name: name[0])
    [['a1', 'a2'], ['b1']]
    """
    groups: dict[Hashable, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())
