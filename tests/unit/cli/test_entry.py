"""The start of the command, while its modules are still being read."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from reconciler import __main__
from reconciler.cli import app, entry

ROOT = Path(__file__).parents[3]


#: a command that is done while a thread of Arrow still reads what Python gives it
READING = """
import builtins, io, os, sys, threading, time
import pyarrow as pa, pyarrow.csv as pc
from reconciler.cli import app, entry

class Slow(io.BytesIO):
    def read(self, count=-1):
        if threading.current_thread() is not threading.main_thread():
            time.sleep(0.1)
        return super().read(count)

class TakesLongToGo:
    def __del__(self, sleep=time.sleep):
        sleep(1)

def command():
    rows = pa.PythonFile(Slow(b"a,b\\n" + b"1,2\\n" * 500_000), "r")
    builtins.kept = TakesLongToGo(), pc.open_csv(rows, pc.ReadOptions(block_size=1 << 16))
    sys.stdout.write("done")
    return 3

app.main = command
entry.main()
"""


@pytest.fixture(autouse=True)
def at_exit(monkeypatch):
    """What the program asks to be called when it ends: not when the tests do."""
    asked = []
    monkeypatch.setattr(entry.atexit, "register", asked.append)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(entry, "leave_pandas_out", lambda: None)
    return asked


class _Interrupting:
    """Ctrl-C in the middle of an import."""

    def find_spec(self, name, *_):
        if name == "reconciler.cli.app":
            raise KeyboardInterrupt


@pytest.mark.parametrize("main", [entry.main, __main__.main])
def test_an_interruption_while_modules_are_read_is_one_line(main, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "reconciler.cli.app")
    monkeypatch.setattr(sys, "meta_path", [_Interrupting(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        main()

    said = capsys.readouterr()
    assert (130, "", "interrupted\n") == (ended.value.code, said.out, said.err)


def test_an_interruption_before_the_command_begins_is_one_line(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "main", interrupted)
    with pytest.raises(SystemExit) as ended:
        entry.main()

    assert (130, "interrupted\n") == (ended.value.code, capsys.readouterr().err)


def test_an_interruption_with_nobody_to_tell_ends_all_the_same(monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "main", interrupted)
    monkeypatch.setattr(sys, "stderr", None)
    with pytest.raises(SystemExit) as ended:
        entry.main()

    assert ended.value.code == 130


def test_the_code_of_the_command_is_the_code_of_the_program(monkeypatch):
    monkeypatch.setattr(app, "main", lambda: 3)
    with pytest.raises(SystemExit) as ended:
        entry.main()

    assert ended.value.code == 3


def test_a_code_that_is_raised_is_the_code_of_the_program(monkeypatch, at_exit):
    """As where nobody reads its output any more."""
    monkeypatch.setattr(app, "main", lambda: sys.exit(141))
    with pytest.raises(SystemExit) as ended:
        entry.main()

    assert 141 == ended.value.code == at_exit[0].code


def test_threads_that_still_read_do_not_abort_a_command_that_is_done():
    ended = subprocess.run([sys.executable, "-c", READING], capture_output=True, check=False)

    assert (3, b"done", b"") == (ended.returncode, ended.stdout, ended.stderr)


def test_a_mistake_of_ours_is_not_taken_for_success(monkeypatch, at_exit):
    monkeypatch.setattr(app, "main", lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        entry.main()

    assert 1 == at_exit[0].code


def test_the_installed_command_starts_there():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert {"reconciler": "reconciler.cli.entry:main"} == project["scripts"]


def test_versions_of_boto3_are_found_beside_those_of_s3fs():
    """pip 23 gives up on s3fs and boto3 unless aiobotocore is chosen before boto3."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extra = project["optional-dependencies"]["s3"]
    s3 = [re.split("[^a-z0-9]", requirement)[0] for requirement in extra]

    assert ["aiobotocore", "s3fs"] == s3
