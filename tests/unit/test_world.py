from __future__ import annotations

import os
import socket
import subprocess
import sys
from datetime import UTC
from pathlib import Path

from reconciler import world


def test_this_process_is_running():
    me = world.process()

    assert (me.pid, me.tool) == (os.getpid(), world.tool())
    assert me.who
    assert me.is_running(me.pid, me.started)


def test_a_process_that_ended_is_not_running():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()

    assert not world.is_running(process.pid, "")


def test_a_dead_process_that_nobody_has_reaped_is_not_running():
    waiting = [sys.executable, "-c", "input()"]
    with subprocess.Popen(waiting, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        started = world._started(process.pid)
        assert world.is_running(process.pid, started)
        process.kill()
        while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            pass

        assert not world.is_running(process.pid, started)


def test_a_later_process_with_the_same_number_is_another():
    me = world.process()

    assert not world.is_running(me.pid, me.started + "1")


def test_a_process_whose_start_is_unknown_counts_as_running():
    assert world.is_running(os.getpid(), "")


def test_two_runs_have_two_names():
    assert world.token() != world.token()


def test_the_present_has_a_zone_and_the_clock_tells_the_same():
    assert world.now().tzinfo is UTC
    assert abs(world.epoch_ms(world.now()) - world.SystemClock().now_ms()) < 10_000


def test_a_machine_of_the_same_name_is_another_host(monkeypatch):
    here = world.process().host
    monkeypatch.setattr(world, "_boot", lambda: "another-machine")

    assert world.process().host != here
    assert world.process().host.split("/")[0] == here.split("/")[0]


def test_what_does_not_tell_its_boot_is_known_by_name_alone(monkeypatch):
    def untold() -> str:
        raise FileNotFoundError

    monkeypatch.setattr(world, "_boot", untold)

    assert world.process().host == socket.gethostname()
