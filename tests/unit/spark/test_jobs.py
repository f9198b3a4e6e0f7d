"""Waiting at the end of a Spark job; the context is a stand-in for Spark's."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from reconciler.errors import ReconcilerError
from reconciler.spark.jobs import run_job_group
from reconciler.spark.workers import set_up_workers


def context_of(looks: list[int], *, speculates: bool) -> SimpleNamespace:
    """Return a context with one stage of one job; each check sees so many running tasks."""
    tracker = SimpleNamespace(
        getJobIdsForGroup=lambda _group: [1],
        getJobInfo=lambda _job: SimpleNamespace(stageIds=[1]),
        getStageInfo=lambda _stage: SimpleNamespace(numActiveTasks=looks.pop(0)),
    )
    return SimpleNamespace(
        getConf=lambda: {"spark.speculation": str(speculates).lower()},
        getLocalProperty=lambda _key: None,
        setLocalProperty=lambda _key, _value: None,
        setJobGroup=lambda _group, _described: None,
        cancelJobGroup=lambda _group: None,
        statusTracker=lambda: tracker,
    )


@pytest.mark.parametrize(
    ("alone", "speculates", "left"), [(True, True, 0), (True, False, 2), (False, True, 2)]
)
def test_overtaken_attempts_are_waited_for_where_they_would_do_harm(alone, speculates, left):
    looks = [1, 0]
    with run_job_group(
        context_of(looks, speculates=speculates), "it", str, waits_for_all_attempts=alone
    ):
        pass

    assert left == len(looks)


class Py4JNetworkError(Exception):
    """Stands in for what Spark's client raises when Java has ended."""


def test_the_end_of_java_is_one_line():
    with (
        pytest.raises(ReconcilerError, match="the Java process of Spark's driver has ended"),
        run_job_group(context_of([0], speculates=False), "it", str),
    ):
        raise Py4JNetworkError("Answer from Java side is empty\n  at f")


def collect_and_be_interrupted():
    """Fail as PySpark does: it calls Java once more before an interrupt leaves it."""
    try:
        raise KeyboardInterrupt
    finally:
        raise Py4JNetworkError("Answer from Java side is empty")


def test_an_interrupt_that_a_broken_connection_hides_is_raised():
    with (
        pytest.raises(KeyboardInterrupt),
        run_job_group(context_of([0], speculates=False), "it", str),
    ):
        collect_and_be_interrupted()


def test_jobs_are_cancelled_although_the_first_connection_is_broken():
    context, calls = context_of([0], speculates=False), []

    def cancel(group):
        calls.append(group)
        if len(calls) < 3:
            raise Py4JNetworkError("Answer from Java side is empty")

    context.cancelJobGroup = cancel
    with pytest.raises(KeyboardInterrupt), run_job_group(context, "it", str):
        raise KeyboardInterrupt

    assert 3 == len(calls)
    assert 1 == len(set(calls))


def test_another_error_stays_as_it_is():
    with (
        pytest.raises(KeyError, match="k"),
        run_job_group(context_of([0], speculates=False), "it", str),
    ):
        raise KeyError("k")


def test_a_session_that_has_ended_is_named():
    context = context_of([], speculates=False)
    context._jsc = None

    with pytest.raises(ReconcilerError, match="the Spark session has ended; start one"):
        set_up_workers(context)
    with (
        pytest.raises(ReconcilerError, match="the Spark session has ended; start one"),
        run_job_group(context, "it", str),
    ):
        pass
