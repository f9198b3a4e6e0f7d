from __future__ import annotations

import signal
import threading
import time
from contextvars import ContextVar

import pytest

from reconciler.storage.parallel import StopRequest, run_parallel

TOLD: ContextVar[str] = ContextVar("TOLD", default="nothing")


def test_results_come_in_the_order_of_the_items_and_are_heard_of_as_they_come():
    second_is_done = threading.Event()
    heard = []

    def work(item: int) -> int:
        if item == 1:
            assert second_is_done.wait(10)
        return item * 10

    def on_done(result: int) -> None:
        heard.append(result)
        second_is_done.set()

    assert [10, 20] == run_parallel(work, [1, 2], parallelism=2, on_done=on_done)
    assert [20, 10] == heard


def test_no_more_run_at_a_time_than_allowed():
    guard = threading.Lock()
    running, most = 0, 0
    two_run = threading.Barrier(2)

    def work(_item: int) -> None:
        nonlocal running, most
        with guard:
            running += 1
            most = max(most, running)
        two_run.wait(10)  # breaks unless two are here together
        with guard:
            running -= 1

    run_parallel(work, range(20), parallelism=2)

    assert 2 == most


def test_one_at_a_time_stays_on_the_callers_thread():
    found = run_parallel(lambda _: threading.current_thread(), range(3), parallelism=1)

    assert [threading.current_thread()] * 3 == found


def test_one_item_needs_no_thread():
    assert [threading.current_thread()] == run_parallel(
        lambda _: threading.current_thread(), ["x"], parallelism=8
    )


def test_results_are_heard_of_on_the_callers_thread():
    heard = []
    run_parallel(
        str, range(4), parallelism=2, on_done=lambda _: heard.append(threading.current_thread())
    )

    assert [threading.current_thread()] * 4 == heard


def test_what_the_caller_has_set_holds_on_every_thread():
    token = TOLD.set("debug")
    try:
        found = run_parallel(lambda _: TOLD.get(), range(4), parallelism=4)
    finally:
        TOLD.reset(token)

    assert ["debug"] * 4 == found


@pytest.mark.parametrize("at_once", [1, 4])
def test_nothing_to_do_is_done(at_once):
    assert [] == run_parallel(str, [], parallelism=at_once)


def test_after_an_interruption_nothing_begins_and_what_runs_is_told_and_waited_for():
    stop = StopRequest()
    begun = threading.Barrier(3)
    ended, told = [], []

    def work(item: int) -> None:
        begun.wait(10)
        try:
            while True:
                stop.check()
        finally:
            ended.append(item)

    def on_stop(under_way: int) -> None:
        told.append(under_way)
        stop.request()

    def interrupt() -> None:
        begun.wait(10)
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            run_parallel(work, range(50), parallelism=2, on_stop=on_stop)
    finally:
        signal.signal(signal.SIGINT, before)

    assert [2] == told
    assert [0, 1] == sorted(ended)


def test_an_error_of_whoever_listens_stops_the_work():
    ended = []

    def work(item: int) -> None:
        time.sleep(0.001)
        ended.append(item)

    def on_done(_result: None) -> None:
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        run_parallel(work, range(1000), parallelism=2, on_done=on_done)

    assert len(ended) < 1000
    assert [] == [t for t in threading.enumerate() if t.name.startswith("reconciler-")]


def test_an_error_of_the_work_goes_on_to_the_caller():
    def work(item: int) -> None:
        if item == 3:
            raise ValueError("three")

    with pytest.raises(ValueError, match="three"):
        run_parallel(work, range(10), parallelism=2)


def test_who_has_no_patience_does_not_wait():
    let_go = threading.Event()

    def work(item: int) -> None:
        if item:
            raise ValueError("no")
        let_go.wait(10)

    try:
        with pytest.raises(ValueError, match="no"):
            run_parallel(work, range(2), parallelism=2, wait_s=0.01)
        waiting = [t for t in threading.enumerate() if t.name.startswith("reconciler-")]
    finally:
        let_go.set()

    assert 1 == len(waiting)
    assert waiting[0].daemon
