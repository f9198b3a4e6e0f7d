"""What a webhook is told, on tables that real Hudi wrote; no JVM."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler import runtime
from reconciler.errors import BlockedError, BusyError, PartialError, ReconcilerError, StaleError
from tests.command import run
from tests.trees import unpack
from tests.unit.cli.code_hosts.server import Server, serving

ROOT = Path(__file__).parents[3]
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: {name}}}
spec:
  path: {name}
  timezone: UTC
  retention: {{commits: {commits}}}
"""
NOW = ("--now", "2026-11-22T00:00:00+00:00")
OK = [(200, {}, b"ok")]


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv("RECONCILER_WEBHOOK", raising=False)
    monkeypatch.setattr(runtime.SystemClock, "sleep", lambda *_: None)
    with serving() as server:
        server.answers = list(OK)
        yield server


@pytest.fixture
def specs(tmp_path) -> Path:
    packed = ROOT / "tests/cases/clean/cow_basic__1.2.0/table.zip"
    unpack(packed, tmp_path / "orders")
    (tmp_path / "orders.yaml").write_text(SPEC.format(name="orders", commits=2))
    return tmp_path


def told(server: Server) -> dict[str, Any]:
    ((method, path, headers, body),) = server.asked
    assert ("POST", "/hook/SECRET?token=SECRET") == (method, path)
    assert "application/json" == headers["Content-Type"]
    return json.loads(body)


def test_a_plan_with_changes_tells_of_drift(server, specs, tmp_path, capsys):
    file = tmp_path / "plan.json"

    assert run("plan", specs, *NOW, "--webhook", server.url, "-o", file) == 0
    found = told(server)

    assert "reconciler plan: 1 drifted of 1 table: orders (drifted)" == found["text"]
    assert ("drift", "plan", 0, None) == (
        found["event"],
        found["command"],
        found["exitCode"],
        found["environment"],
    )
    assert json.loads(file.read_bytes())["digest"] == found["planDigest"]
    assert str(specs / "orders") == found["tables"][0]["path"]
    assert found["tables"][0]["because"][0].startswith("retention.commits: ")
    assert "SECRET" not in "".join(capsys.readouterr())


def test_nothing_is_told_when_all_is_fine(server, specs):
    (specs / "orders.yaml").write_text(SPEC.format(name="orders", commits=100))

    assert run("plan", specs, *NOW, "--webhook", server.url) == 0
    assert run("status", specs, *NOW, "--webhook", server.url) == 0
    assert [] == server.asked


def test_a_status_tells_of_what_it_shows(server, specs):
    (specs / "gone.yaml").write_text(SPEC.format(name="gone", commits=2))

    assert run("status", specs, *NOW, "--webhook", server.url) == 1
    found = told(server)

    assert [("gone", "failed"), ("orders", "drift")] == [
        (table["name"], table["event"]) for table in found["tables"]
    ]
    assert ("failed", 1, 2) == (found["event"], found["exitCode"], found["tableCount"])
    assert found["planDigest"] is None


def test_an_apply_tells_of_what_it_refuses(server, specs, tmp_path):
    file = tmp_path / "plan.json"
    assert run("plan", specs, *NOW, "-o", file) == 0

    assert run("apply", file, "--webhook", server.url) == 3
    found = told(server)

    assert ("blocked", "apply", 3) == (found["event"], found["command"], found["exitCode"])
    assert json.loads(file.read_bytes())["digest"] == found["planDigest"]
    assert "apply needs concurrency.lock" in found["tables"][0]["because"][0]


def test_the_environment_variable_is_the_default_and_never_shown(
    server, specs, monkeypatch, capsys
):
    monkeypatch.setenv("RECONCILER_WEBHOOK", server.url)

    assert run("plan", specs, *NOW) == 0
    assert "drift" == told(server)["event"]
    assert run("plan", "--help") == 0
    said = capsys.readouterr()
    assert "RECONCILER_WEBHOOK" in said.out
    assert "SECRET" not in said.out + said.err


def test_an_empty_environment_variable_is_none(server, specs, monkeypatch):
    monkeypatch.setenv("RECONCILER_WEBHOOK", "")

    assert run("plan", specs, *NOW) == 0
    assert [] == server.asked


def test_an_environment_is_named(server, specs):
    (specs / "environments").mkdir()
    (specs / "environments/prod.yaml").write_text(
        "apiVersion: reconciler/v1\nkind: Environment\nmetadata: {name: prod}\n"
        f"spec: {{tables: {{orders: {specs}/orders}}}}\n"
    )

    assert run("plan", specs, *NOW, "--env", "prod", "--webhook", server.url) == 0
    assert "prod" == told(server)["environment"]


@pytest.mark.parametrize(
    ("error", "event"),
    [
        (ReconcilerError("Spark did not start"), "failed"),
        (ZeroDivisionError("by zero"), "failed"),
        (BlockedError("no"), "blocked"),
        (StaleError("no"), "stale"),
        (PartialError("no"), "partial"),
        (BusyError("no"), "busy"),
    ],
)
def test_what_stops_the_whole_command_is_told(error, event, server, specs, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("reconciler.api.plan", broken)
    code = run("plan", specs, *NOW, "--webhook", server.url)
    found = told(server)

    assert getattr(error, "exit_code", 1) == code == found["exitCode"]
    assert event == found["event"]
    assert str(error) in found["error"]


def test_how_it_was_called_and_who_interrupted_it_is_not_told(server, specs, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    assert run("plan", specs, "--name", "none", "--webhook", server.url) == 64
    monkeypatch.setattr("reconciler.api.plan", interrupted)
    assert run("plan", specs, "--webhook", server.url) == 130
    assert [] == server.asked


def test_the_next_command_has_no_hook_of_the_last_one(server, specs):
    assert run("plan", specs, "--name", "none", "--webhook", server.url) == 64
    assert run("show", specs / "no-plan.json") == 1
    assert [] == server.asked


def test_a_webhook_that_fails_is_a_warning_and_nothing_else(server, specs, capsys):
    server.answers = [(503, {}, b"SECRET"), (503, {}, b"SECRET"), (503, {}, b"SECRET")]

    assert run("plan", specs, *NOW, "--detailed-exitcode", "--webhook", server.url) == 2
    said = capsys.readouterr()

    assert 3 == len(server.asked)
    assert said.err.endswith(
        f"warning: webhook delivery failed: http://127.0.0.1:{server.server_port}: answered 503\n"
    )
    assert "SECRET" not in said.out + said.err


def test_a_webhook_that_is_gone_leaves_the_error_its_exit_code(server, specs, capsys, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise BusyError("ann has the lock")

    monkeypatch.setattr("reconciler.api.plan", broken)
    server.answers = [(404, {}, b"")]

    assert run("plan", specs, *NOW, "--log-format", "json", "--webhook", server.url) == 6
    error, warning = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert ("error", "ann has the lock") == (error["level"], error["message"])
    assert ("warning", "webhook") == (warning["level"], warning["event"])


def test_even_a_mistake_in_telling_changes_nothing(server, specs, capsys, monkeypatch):
    def broken(*_: object) -> None:
        raise ValueError(server.url)

    monkeypatch.setattr("reconciler.cli.code_hosts.http.send", broken)

    assert run("plan", specs, *NOW, "--webhook", server.url) == 0
    assert capsys.readouterr().err.endswith("warning: webhook delivery failed: ValueError\n")


@pytest.mark.parametrize("url", ["ftp://h/SECRET", "SECRET", "https://u:SECRET@h/", "http://h/\n"])
def test_what_is_no_url_is_a_usage_error_that_does_not_repeat_it(url, specs, capsys):
    assert run("plan", specs, *NOW, "--webhook", url) == 64

    said = capsys.readouterr()
    assert said.err.startswith("error: --webhook (or RECONCILER_WEBHOOK): ")
    assert "SECRET" not in said.out + said.err
