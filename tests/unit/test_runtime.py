from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from datetime import UTC
from pathlib import Path

import pytest

from reconciler import runtime
from reconciler.errors import SpecError
from reconciler.spec.model import FromEnv, Option


def test_this_process_is_running():
    me = runtime.current_process()

    assert (me.pid, me.tool) == (os.getpid(), runtime.tool_name())
    assert me.who
    assert me.is_running(me.pid, me.started)


def test_a_process_that_ended_is_not_running():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()

    assert not runtime.is_running(process.pid, "")


def test_a_number_that_no_process_has_is_of_none():
    """What a heartbeat says may be damaged."""
    assert not runtime.is_running(10**30, "")


def test_a_dead_process_that_nobody_has_reaped_is_not_running():
    waiting = [sys.executable, "-c", "input()"]
    with subprocess.Popen(waiting, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        started = runtime._process_start(process.pid)
        assert runtime.is_running(process.pid, started)
        process.kill()
        while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            pass

        assert not runtime.is_running(process.pid, started)


def test_a_later_process_with_the_same_number_is_another():
    me = runtime.current_process()

    assert not runtime.is_running(me.pid, me.started + "1")


def test_a_process_whose_start_is_unknown_counts_as_running():
    assert runtime.is_running(os.getpid(), "")


def test_two_runs_have_two_names():
    assert runtime.new_token() != runtime.new_token()


def test_the_present_has_a_zone_and_the_clock_tells_the_same():
    assert runtime.now().tzinfo is UTC
    assert abs(runtime.to_epoch_ms(runtime.now()) - runtime.SystemClock().now_ms()) < 10_000


def test_a_machine_of_the_same_name_is_another_host(monkeypatch):
    here = runtime.current_process().host
    monkeypatch.setattr(runtime, "_boot_id", lambda: "another-machine")

    assert runtime.current_process().host != here
    assert runtime.current_process().host.split("/")[0] == here.split("/")[0]


def test_what_does_not_tell_its_boot_is_known_by_name_alone(monkeypatch):
    def untold() -> str:
        raise FileNotFoundError

    monkeypatch.setattr(runtime, "_boot_id", untold)

    assert runtime.current_process().host == socket.gethostname()


OPTIONS: dict[str, Option] = {
    "region": "eu",
    "secret": FromEnv(variable="LAKE_SECRET", declared_at="prod.yaml:7:5"),
    "token": FromEnv(variable="LAKE_TOKEN", declared_at="prod.yaml:8:5"),
}


def test_options_get_what_variables_hold(monkeypatch):
    monkeypatch.setenv("LAKE_SECRET", "hunter2")
    monkeypatch.setenv("LAKE_TOKEN", "tuesday")

    ref = runtime.open_storage("memory://t", OPTIONS).ref

    assert (("region", "eu"), ("secret", "hunter2"), ("token", "tuesday")) == ref.options
    assert ("hunter2", "tuesday") == ref.secrets


def test_every_variable_that_is_not_set_is_named_with_its_place(monkeypatch):
    monkeypatch.delenv("LAKE_SECRET", raising=False)
    monkeypatch.setenv("LAKE_TOKEN", "")

    with pytest.raises(SpecError) as caught:
        runtime.open_storage("memory://t", OPTIONS)

    assert (
        "prod.yaml:7:5: the variable LAKE_SECRET is not set; set it where reconciler runs\n"
        "prod.yaml:8:5: the variable LAKE_TOKEN is not set; set it where reconciler runs"
    ) == str(caught.value)


def test_options_without_variables_are_no_secrets():
    ref = runtime.open_storage("memory://t", {"region": "eu"}).ref

    assert ((("region", "eu"),), ()) == (ref.options, ref.secrets)


PRINT_STATUS = """
import ctypes, sys
from pathlib import Path
from tests.command import run
ctypes.CDLL(None).prctl(41, 0, 0, 0, 0)  # as what has started the tests may have had it
run(sys.argv[1], "missing.yaml")
print(Path("/proc/self/status").read_text())
"""


@pytest.mark.parametrize(("command", "expected"), [("plan", "0"), ("status", "0"), ("apply", "1")])
def test_huge_pages_are_for_commands_that_rewrite_files(command, expected):
    program = [sys.executable, "-c", PRINT_STATUS, command]
    root = Path(__file__).parents[2]
    found = subprocess.run(program, check=True, capture_output=True, text=True, cwd=root)

    assert [expected] == re.findall(r"^THP_enabled:\s*(\d)$", found.stdout, re.MULTILINE)


@pytest.mark.parametrize("error", [AttributeError, OSError, TypeError])
def test_a_system_without_such_a_setting_is_left_as_it_is(monkeypatch, error):
    def load(_name):
        raise error

    monkeypatch.setattr("ctypes.CDLL", load)

    runtime.avoid_huge_pages()
