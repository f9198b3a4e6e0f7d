"""Run a small task on every executor of a session."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final, TypeVar

from reconciler.spark.executor_wait import count_executors

_Result = TypeVar("_Result")

_LEAST_TASKS: Final = 8
_MOST_TASKS: Final = 500
#: Spark gives tasks to whom it likes, so an executor may get none of the first ones
_MAX_ROUNDS: Final = 4


def run_on_all_executors(
    context: Any,
    run: Callable[[int], Sequence[_Result]],
    identify: Callable[[_Result], Iterable[Hashable]],
) -> list[_Result]:
    """Return the results of a job, which is repeated until every executor has run a task of it.

    ``run`` takes the number of tasks. ``identify``: the parts that name a result's executor; one
    result of each is returned. An executor that always has other work is left out.
    """
    found: dict[tuple[Hashable, ...], _Result] = {}
    for _ in range(_MAX_ROUNDS):
        at_least = min(context.defaultParallelism, _LEAST_TASKS)
        tasks = max(at_least, min(count_executors(context), _MOST_TASKS), 1)
        for result in run(tasks):
            found.setdefault(tuple(identify(result)), result)
        if len(found) >= min(count_executors(context), _MOST_TASKS):
            break
    return list(found.values())
