from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from reconciler.errors import ReconcilerError
from reconciler.spark import interpreters
from reconciler.spark.interpreters import check_interpreters, get_own_interpreter, parse_answers

OWN = get_own_interpreter()
CONTEXT = SimpleNamespace(pythonExec="python3")


def answer(monkeypatch, *answers):
    monkeypatch.setattr(interpreters, "ask_interpreters", lambda _: list(answers))


def ask(python, folder):
    """Return what the program for an executor prints here."""
    command = ["sh", "-c", interpreters._SCRIPT, python, interpreters._QUESTION]
    done = subprocess.run(
        command, cwd=folder, input="0\n", capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_a_python_answers_with_what_it_is(tmp_path):
    (line,) = ask(sys.executable, tmp_path)

    assert [(line.split("\t")[0], OWN)] == parse_answers([line])
    assert str(tmp_path) == line.split("\t")[1]


def test_a_host_without_the_program_answers_too(tmp_path):
    (line,) = ask("/no/such/python", tmp_path)

    assert [None] == [found for _, found in parse_answers([line])]


def test_hosts_like_the_driver_are_fine(monkeypatch):
    answer(monkeypatch, ("a", OWN), ("b", OWN))
    check_interpreters(CONTEXT, sends_packages=True)


def test_all_hosts_with_another_python_are_named_in_one_line(monkeypatch):
    older, arm = replace(OWN, version="3.9"), replace(OWN, platform="linux-aarch64")
    answer(monkeypatch, ("c", older), ("a", older), ("b", None), ("d", OWN), ("e", arm))
    with pytest.raises(ReconcilerError) as raised:
        check_interpreters(CONTEXT, sends_packages=True)

    said = str(raised.value)
    assert f"Spark's workers (python3) need the driver's Python, {OWN}, and have " in said
    assert f"{older} on a, c; " in said
    assert f"{arm} on e; " in said
    assert "no such program on b; " in said
    assert f"; set PYSPARK_PYTHON to a Python {OWN.version} there, or send a packed" in said
    assert "\n" not in said


def test_packages_of_the_workers_own_may_be_for_another_platform(monkeypatch):
    answer(monkeypatch, ("a", replace(OWN, platform="linux-aarch64", libc="")))
    check_interpreters(CONTEXT, sends_packages=False)
