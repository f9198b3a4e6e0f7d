from __future__ import annotations

import os
import socket
import subprocess
import sys
from datetime import UTC
from pathlib import Path

import pytest

from reconciler import runtime
from reconciler.errors import SpecError
from reconciler.spec.model import FromEnv, Option
from tests.command import run


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


@pytest.mark.parametrize(
    ("named", "home", "expected"),
    [
        ("/var/cache", "/no/such/home", "/var/cache/reconciler"),
        ("relative", "{}", "{}/.cache/reconciler"),
        ("~/caches", "{}", "{}/.cache/reconciler"),
        ("", "{}", "{}/.cache/reconciler"),
        (None, "{}", "{}/.cache/reconciler"),
        (None, "/no/such/home", None),
        (None, "", None),
        (None, ".", None),
        (None, f"/{'a' * 300}", None),  # the system refuses to look for it
    ],
)
def test_caches_are_where_the_user_keeps_them(monkeypatch, tmp_path, named, home, expected):
    monkeypatch.setenv("HOME", home.format(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if named is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", named)
    found = runtime.find_cache_folder()

    assert (None if expected is None else Path(expected.format(tmp_path))) == found


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


class FakeSystem:
    """A C library whose setting of huge pages is that of this test. ``calls``: its new values."""

    def __init__(self, *, is_disabled: bool = False) -> None:
        self.is_disabled, self.calls = is_disabled, list[int]()

    def prctl(self, operation, value, *_others):
        if operation == DISABLE_HUGE_PAGES:
            self.is_disabled = bool(value.value)
            self.calls.append(value.value)
        return int(self.is_disabled)


DISABLE_HUGE_PAGES = 41


@pytest.mark.parametrize(
    ("command", "expected"), [("plan", [1, 0]), ("status", [1, 0]), ("apply", []), ("read", [])]
)
def test_commands_that_only_look_use_small_pages_and_give_the_setting_back(
    monkeypatch, tmp_path, command, expected
):
    system = FakeSystem()
    monkeypatch.setattr("ctypes.CDLL", lambda _name: system)

    assert 1 == run(command, str(tmp_path / "missing.yaml"))
    assert expected == system.calls


def test_small_pages_that_somebody_else_chose_stay(monkeypatch):
    system = FakeSystem(is_disabled=True)
    monkeypatch.setattr("ctypes.CDLL", lambda _name: system)
    with runtime.small_pages():
        pass

    assert [] == system.calls


PRINT_SETTING = """
import ctypes
from reconciler import runtime
def find(): return getattr(ctypes.CDLL(None), "prctl", lambda *_: -1)(42, 0, 0, 0, 0)
can_change = 0 == getattr(ctypes.CDLL(None), "prctl", lambda *_: -1)(41, 0, 0, 0, 0)
before = find()
with runtime.small_pages():
    print(before, find(), can_change)
print(find())
"""


def test_the_system_knows_of_small_pages():
    done = subprocess.run(
        [sys.executable, "-c", PRINT_SETTING],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )

    assert done.stdout in ("0 1 True\n0\n", "-1 -1 False\n-1\n")


@pytest.mark.parametrize("error", [AttributeError, OSError, TypeError, ImportError])
def test_a_system_without_such_a_setting_is_left_as_it_is(monkeypatch, error):
    def load(_name):
        raise error

    monkeypatch.setattr("ctypes.CDLL", load)

    with runtime.small_pages():
        pass


def test_a_python_without_ctypes_plans(monkeypatch):
    monkeypatch.setitem(sys.modules, "ctypes", None)

    with runtime.small_pages():
        pass
