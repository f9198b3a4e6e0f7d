"""Standard error as JSON lines."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
import threading
import warnings
from datetime import datetime
from pathlib import Path

import pytest

from reconciler.cli import logs, run_apply, terminal
from reconciler.cli.logs import LogFormat
from tests.command import run

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: orders}
spec:
  path: orders
  retention: {commits: 3}
"""


@pytest.fixture
def spec(tmp_path) -> Path:
    path = tmp_path / "orders.yaml"
    path.write_text(SPEC)
    return path


def records(err: str) -> list[dict[str, str]]:
    """Every line, without its time."""
    found = [json.loads(line) for line in err.splitlines()]
    for record in found:
        assert datetime.fromisoformat(record.pop("time")).tzinfo is not None
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        ("--log-format", "json", "plan"),
        ("plan", "--log-format=json"),
        ("plan", "--log-format", "text", "--log-format", "json"),
    ],
)
def test_the_option_may_stand_anywhere_and_the_last_one_wins(arguments, spec, capsys):
    assert run(*arguments, spec) == 1
    found = records(capsys.readouterr().err)

    assert ["progress"] == [record["event"] for record in found]
    assert "orders" == found[0]["table"]
    assert found[0]["message"].startswith("planning: orders: error: ")


def test_behind_two_hyphens_it_is_no_option(spec, capsys):
    assert run("lint", "--", spec, "--log-format") == 1
    assert "--log-format" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("lint", "--log-format", "xml"), "error: --log-format xml: choose text or json\n"),
        (("lint", "--log-format"), "error: --log-format: choose text or json\n"),
    ],
)
def test_another_format_is_a_usage_error(arguments, said, capsys):
    assert run(*arguments) == 64
    assert said == capsys.readouterr().err


def test_a_usage_error_is_a_record(capsys):
    assert run("plan", "--log-format", "json", "--no-such-option") == 64

    (record,) = records(capsys.readouterr().err)
    assert ("error", "error") == (record["level"], record["event"])
    assert record["message"].startswith("No such option")


def test_every_problem_of_the_specs_is_a_record(spec, capsys):
    spec.write_text(SPEC + "  sise: 3\n  tiemzone: UTC\n")

    assert run("plan", spec, "--log-format", "json") == 1
    found = records(capsys.readouterr().err)

    assert ["error"] * 3 == [record["level"] for record in found]
    assert "2 problems in the specs" == found[-1]["message"]


def test_an_interruption_is_a_record(monkeypatch, spec, capsys):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("reconciler.api.plan", interrupted)

    assert run("plan", spec, "--log-format", "json") == 130
    assert [{"level": "error", "event": "interrupted", "message": "interrupted"}] == records(
        capsys.readouterr().err
    )


def test_a_traceback_is_one_record(monkeypatch, spec, capsys):
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("reconciler.api.plan", broken)

    assert run("plan", spec, "--log-format", "json", "--debug") == 1
    trace, error = records(capsys.readouterr().err)
    assert ("debug", "traceback") == (trace["level"], trace["event"])
    assert trace["message"].startswith("Traceback (most recent call last):\n")
    assert error["message"].startswith("ZeroDivisionError: by zero; this is a bug")


def test_the_next_command_speaks_to_people_again(spec, capsys):
    run("lint", "--log-format", "json", spec.parent / "none")
    capsys.readouterr()
    run("lint", spec.parent / "none")

    assert capsys.readouterr().err.startswith("error: ")


@pytest.fixture
def as_json():
    with logs.open_logs() as speak:
        speak(LogFormat.JSON)
        yield


@pytest.mark.usefixtures("as_json")
def test_fields_say_what_they_are_about_and_the_message_does_not_repeat_it(capsys):
    terminal.log_message("warning: orders: small", level="warning", event="size", table="orders")
    terminal.log_message("nothing is applied")
    run_apply.TerminalProgress().report_wait("orders", "the lock, held by ann")

    assert [
        {"level": "warning", "event": "size", "table": "orders", "message": "small"},
        {"level": "info", "message": "nothing is applied"},
        {
            "level": "info",
            "event": "wait",
            "table": "orders",
            "message": "waiting for the lock, held by ann",
        },
    ] == records(capsys.readouterr().err)


@pytest.mark.usefixtures("as_json")
def test_control_characters_are_escaped_and_make_no_line(capsys):
    terminal.log_message("a\x1b[31mb\nc\u202ed\u2028e\udce9")
    err = capsys.readouterr().err

    assert err.isascii()
    assert err.count("\n") == 1
    assert "a\x1b[31mb\nc\u202ed\u2028e\udce9" == records(err)[0]["message"]


@pytest.mark.usefixtures("as_json")
def test_progress_is_lines_even_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with run_apply.TerminalProgress().phase("orders", "delete", 3) as done:
        done(1)

    assert [
        {
            "level": "info",
            "event": "progress",
            "table": "orders",
            "message": "deleting files: 3 files",
        }
    ] == records(capsys.readouterr().err)


@pytest.mark.usefixtures("as_json")
def test_a_question_is_a_record(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)

    assert terminal.ask_yes_no("Apply this?", "say --auto-approve")
    assert [
        {
            "level": "info",
            "event": "question",
            "message": "Apply this? Only 'yes' will be accepted:",
        }
    ] == records(capsys.readouterr().err)


def test_a_warning_about_a_spec_is_one(spec, capsys):
    spec.write_text(SPEC + "  files: {target: 1MiB, small: 2MiB}\n")
    run("plan", spec, "--log-format", "json")
    warning, progress = records(capsys.readouterr().err)

    assert ("warning", "info") == (warning["level"], progress["level"])
    assert "files.small" in warning["message"]


@pytest.mark.usefixtures("as_json")
def test_what_libraries_and_python_say_is_a_record(capsys):
    logging.getLogger("fsspec").warning("slow %s", "store")
    warnings.showwarning(UserWarning("old"), UserWarning, "a.py", 1)
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()

    assert [
        {"level": "warning", "event": "log", "message": "slow store"},
        {"level": "warning", "event": "log", "message": "old"},
        {
            "level": "error",
            "event": "log",
            "message": "a thread ended: ZeroDivisionError('division by zero')",
        },
    ] == records(capsys.readouterr().err)


SPEAKER = """\
import subprocess, sys, threading
from reconciler.cli import logs
from reconciler.cli.terminal import log_message

with logs.open_logs() as speak:
    speak(logs.LogFormat(sys.argv[1]))
    with logs.redirect_child_output(drops_notice="drop" in sys.argv):
        program = subprocess.Popen(["sh", "-c", sys.argv[2]])
        log_message("ours")
    program.wait()
    for thread in threading.enumerate()[1:]:  # what repeats it; no process waits for that to end
        thread.join(10)
    log_message("ours again")
print("result")
"""


def speak_beside_a_program(
    log_format: str, program: str, *more: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SPEAKER, log_format, program, *more],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )


NOTICE = "WARNING: Using incubator modules: jdk.incubator.vector"


@pytest.mark.parametrize(("log_format", "more", "times"), [("text", ("drop",), 0), ("text", (), 1),
                                                          ("json", ("drop",), 0)])  # fmt: skip
def test_the_notice_of_every_java_that_spark_4_starts_is_left_out(log_format, more, times):
    program = f"echo '{NOTICE}' >&2; echo 'WARNING: another: é' >&2; printf 'no end' >&2"
    said = speak_beside_a_program(log_format, program, *more)

    assert "result\n" == said.stdout
    assert times == said.stderr.count(NOTICE)
    assert "WARNING: another: é" in said.stderr or r"WARNING: another: \u00e9" in said.stderr
    assert "no end" in said.stderr
    assert "ours again" in said.stderr


def test_what_a_started_program_says_is_a_record_too():
    program = "echo Picked up OPTIONS; echo 'spark: ERROR Executor: no' >&2"
    said = speak_beside_a_program("json", program)
    found = records(said.stderr)

    assert "result\n" == said.stdout
    assert [
        {"level": "info", "message": "ours"},
        {"level": "info", "message": "ours again"},
    ] == [record for record in found if "event" not in record]
    assert [
        {"level": "warning", "event": "spark", "message": "Picked up OPTIONS"},
        {"level": "error", "event": "spark", "message": "spark: ERROR Executor: no"},
    ] == [record for record in found if "event" in record]


def test_what_a_started_program_says_to_people_stays_as_it_is():
    said = speak_beside_a_program("text", "echo out; echo err >&2")

    assert "result\n" == said.stdout
    assert {"ours", "ours again", "out", "err"} == set(said.stderr.splitlines())
