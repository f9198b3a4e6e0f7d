from __future__ import annotations

from types import SimpleNamespace

from reconciler.spark.worker_tasks import run_on_all_executors


def make_context(executors, slots=2):
    status = SimpleNamespace(size=lambda: executors + 1)
    java = SimpleNamespace(getExecutorMemoryStatus=lambda: status)
    return SimpleNamespace(defaultParallelism=slots, _jsc=SimpleNamespace(sc=lambda: java))


def test_a_job_is_repeated_until_every_executor_has_answered():
    rounds = iter(["aa", "aa", "ab", "bb"])

    assert ["a", "b"] == run_on_all_executors(make_context(2), lambda _: next(rounds), str)
    assert ["bb"] == list(rounds)


def test_an_executor_that_is_always_busy_is_left_out():
    asked = []

    assert ["a"] == run_on_all_executors(make_context(2), lambda n: asked.append(n) or "a", str)
    assert [2, 2, 2, 2] == asked


def test_there_is_a_task_for_each_of_many_executors():
    asked = []
    run_on_all_executors(make_context(100, 400), lambda n: asked.append(n) or "a", str)

    assert {100} == set(asked)
