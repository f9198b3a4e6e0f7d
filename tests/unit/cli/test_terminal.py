from __future__ import annotations

import io
import threading

import pytest

from reconciler.cli import run_apply, terminal
from reconciler.errors import UsageError
from reconciler.render import words
from reconciler.storage.parallel import run_parallel


class Person(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("said", "meant"), [("yes\n", True), ("y\n", False), ("YES\n", False), ("", False)]
)
def test_only_yes_is_yes(said, meant, monkeypatch):
    monkeypatch.setattr("sys.stdin", Person(said))

    assert terminal.ask_yes_no("Apply?", "say --auto-approve") is meant


def test_nobody_to_ask_is_a_usage_error(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    with pytest.raises(UsageError, match="say --auto-approve"):
        terminal.ask_yes_no("Apply?", "say --auto-approve")


def test_progress_is_lines_where_there_is_no_terminal(capsys):
    with terminal.show_progress("planning", 2, "tables") as tell:
        tell(1, "a: nothing to do")
        tell(1, "")

    assert capsys.readouterr().err == "planning: a: nothing to do\n"


def test_progress_is_a_bar_on_a_terminal(monkeypatch):
    screen = Person()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with terminal.show_progress("planning", 2, "tables") as tell:
        tell(2, "[a]: nothing [b] to do")

    assert "[a]: nothing [b] to do" in screen.getvalue()


def test_bars_of_several_threads_share_the_screen(monkeypatch):
    screen = Person()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    both = threading.Barrier(2)

    def work(table: str) -> None:
        with terminal.show_progress("deleting", 2, "files", table=table) as tell:
            both.wait(10)
            tell(1, f"of {table}")
            both.wait(10)

    run_parallel(work, ["orders", "lines"], parallelism=2)
    with terminal.show_progress("planning", 1, "tables") as tell:
        tell(1, "again")

    assert "orders: deleting of orders" in screen.getvalue()
    assert "lines: deleting of lines" in screen.getvalue()
    assert "planning again" in screen.getvalue()


@pytest.mark.parametrize(
    ("name", "value", "colored"),
    [("NO_COLOR", "1", False), ("TERM", "dumb", False), ("X", "", True)],
)
def test_colour_is_for_terminals_that_want_it(name, value, colored, monkeypatch):
    monkeypatch.setattr("sys.stdout", Person())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv(name, value)

    assert terminal.find_terminal().has_color is colored


def test_a_wait_for_a_lock_is_told(capsys):
    run_apply.TerminalProgress().report_wait(
        "orders", "the lock, held by ann on a, last sign of life 7 s ago"
    )

    assert capsys.readouterr().err == (
        "orders: waiting for the lock, held by ann on a, last sign of life 7 s ago\n"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("t: ::set-output name=code::0", "t: :\\x3aset-output name=code::0"),
        ("x ##[add-mask]sales", "x #\\x23[add-mask]sales"),
        ("##vso[task.setvariable variable=a]b", "#\\x23vso[task.setvariable variable=a]b"),
        ("arn:aws:s3:::lake, std::string", "arn:aws:s3:::lake, std::string"),
    ],
)
def test_what_is_said_commands_no_pipeline(text, said, capsys):
    terminal.log_message(text)

    assert f"{said}\n" == capsys.readouterr().err
    assert said == words.escape_text(text)
