"""Waiting at the end of a Spark job; the context is a stand-in for Spark's."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from reconciler.spark.jobs import run_job_group


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
