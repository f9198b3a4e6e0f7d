from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reconciler.cli import app, error_reports
from reconciler.errors import (
    BlockedError,
    BusyError,
    PartialError,
    SpecError,
    StaleError,
    StorageError,
    UsageError,
)
from tests.command import run

COMMANDS = (
    *("init", "lint", "fmt", "plan", "show", "diff", "apply", "status", "explain", "history"),
    *("report", "verify", "advise", "simulate", "options", "read", "write", "comment", "sync"),
    *("unlock", "demo"),
)
NOT_BUILT = ("destroy", "refresh")
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: orders, labels: {team: core}}
spec:
  path: orders
  retention: {commits: 3}
"""


@pytest.fixture
def spec(tmp_path) -> Path:
    path = tmp_path / "orders.yaml"
    path.write_text(SPEC)
    return path


def test_help_names_what_is_built_and_nothing_else(capsys):
    assert run("--help") == 0
    listed = [
        line.split()[0]
        for line in capsys.readouterr()
        .out.split("Commands:")[1]
        .split("Exit codes")[0]
        .splitlines()
        if line.strip()
    ]

    assert listed == list(COMMANDS)


def test_the_list_of_commands_is_that_of_their_own_help():
    listed, whole = (
        CliRunner().invoke(program, ["--help"], prog_name="reconciler").output
        for program in (app.build_outline(), app.build_program())
    )

    assert whole == listed


def test_help_imports_no_command():
    code = (
        "import sys; from reconciler.cli.app import run; run(['--help'])\n"
        "print({'reconciler.cli.plan', 'asyncio', 'numpy', 'yaml'} & sys.modules.keys())"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert said.stdout.endswith("set()\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command, capsys):
    assert run(command, "--help") == 0

    said = capsys.readouterr()
    assert f"reconciler {command}" in said.out
    assert said.err == ""


@pytest.mark.parametrize("arguments", [[], *([command] for command in COMMANDS)])
def test_help_has_a_short_name(arguments, capsys):
    assert run(*arguments, "-h") == 0
    assert "Usage: reconciler" in capsys.readouterr().out


@pytest.mark.parametrize("command", NOT_BUILT)
def test_what_is_not_built_is_not_a_command(command, capsys):
    assert run(command) == 64
    assert f"No such command '{command}'" in capsys.readouterr().err


def test_help_is_shown_to_who_says_nothing_and_it_is_a_usage_error(capsys):
    assert run() == 64
    assert "Commands:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plan", ""], "an argument is empty"),
        (["apply", ""], "an argument is empty"),
        (["plan", "x", "-o", "-"], "-o -: to write to standard output, use --format json"),
        (["apply", "plan.json", "--digest", "foo"], "--digest foo: expected the full digest"),
        (["plan"], "Missing argument 'SPEC_OR_DIR"),
        (["plan", "--nope", "x"], "No such option: --nope"),
        (["plan", "--changed-until", "main", "x"], "No such option: --changed-until"),
        (["plan", "--environment", "prod", "x"], "No such option: --environment"),
        (["plan", "x", "--format", "xml"], "'xml' is not one of"),
        (["plan", "x", "--now", "yesterday"], "--now yesterday: not a valid time"),
        (["plan", "x", "--now", "2026-01-01T00:00:00"], "no UTC offset"),
        (["plan", "x", "--simulate-insert", "many"], "many: expected a number of rows from 1"),
        (["plan", "x", "--simulate-insert", "0"], "0: expected a number of rows from 1"),
        (["plan", "x", "--simulate-insert", "-5"], "-5: expected a number of rows from 1"),
        (["plan", "x", "--simulate-insert", "9" * 5000], "expected a number of rows from 1"),
        (
            ["plan", "x", "--simulate-insert", "5,"],
            "5,: the text after the comma is not a partition path",
        ),
        (
            ["plan", "x", "--simulate-insert", "5,../x"],
            "the text after the comma is not a partition path",
        ),
        (["apply", "x", "--executor", "other"], "'other' is not one of"),
        (["apply", "x", "--parallelism", "0"], "--parallelism"),
        (["apply", "x", "--spark-conf", "memory=2g"], "--spark-conf memory: write it as"),
        (["apply", "x", "--specs", "y"], "--specs: needs a plan file"),
        (["apply", "plan.json", "--name", "a*"], "--name: a plan is applied as reviewed"),
        (["apply", "plan.json", "x"], "plan.json is a plan; apply takes either one plan"),
        (["status", "--format", "markdown", "x"], "'markdown' is not one of"),
    ],
)
def test_a_wrong_command_line_exits_with_64_and_one_line(arguments, message, capsys):
    assert run(*arguments) == 64

    said = capsys.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SpecError("a"), 1),
        (StorageError("p", "a"), 1),
        (BlockedError("a"), 3),
        (StaleError("a"), 4),
        (PartialError("a"), 5),
        (BusyError("a"), 6),
        (UsageError("a"), 64),
    ],
)
def test_an_error_decides_the_exit_code_and_takes_one_line(error, code, capsys):
    assert error_reports.report_error(error) == code
    assert capsys.readouterr().err == f"error: {error}\n"


def failing(error):
    def raise_it(*_, **__):
        raise error

    return raise_it


def test_a_mistake_of_the_program_says_how_to_report_it(spec, capsys, monkeypatch):
    monkeypatch.setattr("reconciler.cli.selection.read_specs", failing(ZeroDivisionError("oops")))

    assert run("lint", spec) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: ZeroDivisionError: oops; this is a bug in reconciler")
    assert "Traceback" not in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("first", [True, False])
def test_debug_shows_the_traceback_wherever_it_stands(first, spec, capsys, monkeypatch):
    monkeypatch.setattr("reconciler.cli.selection.read_specs", failing(ZeroDivisionError("oops")))
    arguments = ["--debug", "lint", spec] if first else ["lint", spec, "--debug"]

    assert run(*arguments) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_interruption_is_clean(spec, capsys, monkeypatch):
    monkeypatch.setattr("reconciler.cli.selection.read_specs", failing(KeyboardInterrupt()))

    assert run("lint", spec) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_reader_that_has_read_enough_is_no_error(spec):
    lint = [sys.executable, "-m", "reconciler", "lint", str(spec)]
    with subprocess.Popen(lint, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        err = process.stderr.read()

    assert process.returncode == 141
    assert err == b""


@pytest.mark.parametrize("arguments", [["lint"], ["plan", "-o", "/dev/full"]])
def test_a_full_disk_is_no_mistake_of_the_program(arguments, spec):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "reconciler", *arguments, spec],
            stdout=None if "-o" in arguments else full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    said = done.stderr.splitlines()
    where = "/dev/full" if "-o" in arguments else "standard output"

    assert done.returncode == 1
    assert said[-1] == f"error: {where}: No space left on device"
    assert "a bug in reconciler" not in done.stderr


def test_messages_that_nobody_can_read_stop_no_work(spec):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "reconciler", "lint", spec, "--name", "o*"],
            stdout=subprocess.PIPE,
            stderr=full,
            check=False,
        )

    assert (0, b"1 of 1 table, no problems\n") == (done.returncode, done.stdout)


def test_an_error_of_the_machine_is_no_mistake_of_the_program(capsys):
    error = OSError(24, "Too many open files", "a.yaml")

    assert error_reports.report_error(error) == 1
    assert capsys.readouterr().err == "error: a.yaml: Too many open files\n"


def test_a_plan_is_written_to_no_folder_that_is_not_there(spec, tmp_path, capsys):
    assert run("plan", spec, "-o", tmp_path / "none" / "plan.json") == 1

    said = capsys.readouterr().err
    assert said == f"error: {tmp_path}/none: does not exist; create the folder first\n"
    assert not (tmp_path / "none").exists()


def test_one_table_is_counted_as_one(spec, capsys):
    run("lint", spec, "--name", "o*")
    run("lint", spec, "--name", "x")
    first, second = capsys.readouterr().err.splitlines()

    assert first == "1 of 1 table selected"
    assert second.startswith("error: the only table does not match the selectors; change --name")


def test_help_imports_nothing_heavy():
    program = (
        "import sys\nfrom reconciler.cli import app\napp.run(['plan', '--help'])\n"
        "heavy = {'numpy', 'pyarrow', 'pyspark', 'pandas', 'fastavro', 'fsspec', 'yaml', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stderr == "[]\n"


def test_selectors_choose_and_say_how_many(spec, capsys):
    spec.with_name("b.yaml").write_text(SPEC.replace("orders", "sales.b").replace("core", "web"))

    for arguments, count in [
        (["--name", "sales.*"], 1),
        (["--name", "sales.*", "--name", "ord*"], 2),
        (["--exclude", "ord*"], 1),
        (["-l", "team=web"], 1),
    ]:
        assert run("lint", spec.parent, *arguments) == 0
        said = capsys.readouterr()
        assert said.err == f"{count} of 2 tables selected\n"
        assert said.out == f"{count} of 2 tables, no problems\n"


@pytest.mark.parametrize(
    "arguments", [["--name", "x"], ["--exclude", "*"], ["-l", "team=other"], ["-l", "team"]]
)
def test_a_selector_that_leaves_nothing_is_a_usage_error(arguments, spec):
    assert run("lint", spec, *arguments) == 64


def test_problems_of_specs_are_listed_with_their_places(spec, capsys):
    spec.write_text(SPEC.replace("retention", "retenton").replace("path:", "pth:"))

    assert run("plan", spec) == 1
    err = capsys.readouterr().err
    assert "orders.yaml:6:3: spec.retenton: unknown field; did you mean 'retention'?\n" in err
    assert err.endswith("problems in the specs\n")


def test_an_empty_folder_is_an_error(tmp_path, capsys):
    assert run("plan", tmp_path) == 1
    assert "no spec file (*.yaml or *.yml) in this folder" in capsys.readouterr().err


def test_init_writes_a_form_that_is_a_spec(tmp_path, capsys):
    path = tmp_path / "new.yaml"

    assert run("init", "-o", path) == 0
    assert run("lint", path) == 0
    assert run("init", "-o", path) == 1
    assert "is not overwritten" in capsys.readouterr().err


def test_showing_what_is_no_plan_names_the_file(spec, capsys):
    assert run("show", spec) == 1
    assert str(spec) in capsys.readouterr().err
    assert run("show", spec.parent) == 1
    assert "is a folder" in capsys.readouterr().err
    assert run("show", spec.parent / "none.json") == 1
    assert "none.json: does not exist" in capsys.readouterr().err


def test_unlocking_needs_a_lock_in_the_spec(spec, capsys):
    assert run("unlock", spec, "--yes") == 1
    assert "declares no lock" in capsys.readouterr().err


@pytest.mark.parametrize("label", ["team", "=core", "team!=core", "team==core"])
def test_a_label_that_is_no_equation_selects_nothing(label, spec, capsys):
    assert run("lint", spec, "-l", label) == 64
    assert capsys.readouterr().err == f"error: -l {label}: write it as label=value\n"
