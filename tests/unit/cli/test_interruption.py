from __future__ import annotations

import logging
import signal

import pytest

from reconciler.cli import app, apply_executors, interruption, run_apply, spark
from reconciler.plans.plan import Plan


@pytest.fixture(autouse=True)
def fresh():
    interruption.reset()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    yield
    signal.signal(signal.SIGINT, before)
    interruption.reset()


def test_an_interruption_is_remembered_whatever_handler_somebody_has_set():
    before = signal.getsignal(signal.SIGINT)
    with interruption.watch_interrupts() as watch:
        signal.signal(signal.SIGINT, lambda *_: None)
        watch()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)

    assert interruption.is_interrupted()
    assert signal.getsignal(signal.SIGINT) is before


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interruption.watch_interrupts():
            signal.raise_signal(signal.SIGINT)
            found = signal.getsignal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)

    assert found is signal.SIG_IGN
    assert not interruption.is_interrupted()


class _Swallowing:
    """Spark's answer to an interruption: its jobs are cancelled, and that is an error."""

    def delete_files(self, *_, **__):
        with interruption.watch_interrupts():
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                raise RuntimeError("Job 0 cancelled") from None


def test_an_error_that_follows_from_an_interruption_is_the_interruption():
    cancelled = []
    executor = apply_executors.InterruptibleWorkers(_Swallowing(), lambda: cancelled.append("jobs"))
    with pytest.raises(KeyboardInterrupt):
        executor.delete_files(None, [], progress=print)

    assert cancelled == ["jobs"]


def test_only_the_bridge_to_java_is_silenced():
    place = "/lib/site-packages/{}/java_gateway.py"
    said = [
        spark._is_not_from_py4j(logging.makeLogRecord({"pathname": place.format(name)}))
        for name in ("py4j", "botocore")
    ]

    assert said == [False, True]


def test_an_interrupted_apply_says_what_to_do(monkeypatch, capsys):
    def interrupted(*_, **__):
        interruption._STATE.is_interrupted = True
        raise RuntimeError("Job 0 cancelled")

    monkeypatch.setattr(run_apply, "apply_plan", interrupted)
    monkeypatch.setattr(
        "reconciler.cli.apply.read_plan", lambda _: Plan(created_at="", tool="", tables=())
    )

    assert app.run(["apply", "plan.json"]) == 130
    assert capsys.readouterr().err == (
        "interrupted; run the same apply again: it finishes or undoes the work\n"
    )
