"""The wheel and the source distribution: a clean environment runs the command and the demo.

Dependencies come from the environment of the tests; the package itself only from the wheel, which
``build`` makes from the source distribution.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
import typer

from tests.oracle.bundles import java
from tests.trees import unpack

ROOT = Path(__file__).parents[2]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "NOTICE", "reconciler")


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """The folder of both distributions, built from a copy of the project."""
    project = tmp_path_factory.mktemp("project")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, project / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, project / name)
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", project],
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    return project / "dist"


@pytest.fixture(scope="module")
def command(distributions, tmp_path_factory):
    """The command of a new environment in which only the wheel was installed."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    [wheel] = distributions.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index"]
    # else pip finds the project there, and installs nothing
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([*pip, "--no-deps", wheel], check=True, env=outside)
    [packages] = folder.glob("lib/python*/site-packages")
    # a path of a .pth file is not searched for further .pth files, so the project stays outside
    (packages / "dependencies.pth").write_text(f"{Path(typer.__file__).parents[1]}\n")
    return folder / "bin" / "reconciler"


def run(program, *arguments, folder):
    environment = {name: os.environ[name] for name in ("JAVA_HOME",) if name in os.environ}
    path = f"{Path(program).parent}:{os.environ['PATH']}"
    return subprocess.run(
        [program, *arguments],
        cwd=folder,
        env={**environment, "PATH": path, "HOME": str(folder), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_both_distributions_have_the_licence_and_every_file_of_the_package(distributions):
    [wheel] = distributions.glob("*.whl")
    [source] = distributions.glob("*.tar.gz")
    wanted = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "reconciler").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
    with tarfile.open(source) as archive:
        in_source = {name.partition("/")[2] for name in archive.getnames()}

    assert set() == wanted - in_wheel
    assert set() == wanted - in_source
    for name in ("LICENSE", "NOTICE"):
        assert name in in_source
        assert [path for path in in_wheel if path.endswith(f"/licenses/{name}")]


def test_the_installed_command_runs_without_the_project(command, tmp_path):
    version = run(command, "--version", folder=tmp_path)
    schema = run(command, "lint", "--schema", folder=tmp_path)
    where = run(
        command.with_name("python"), "-c", "import reconciler; print(reconciler.__file__)",
        folder=tmp_path,
    )  # fmt: skip

    assert 0 == version.returncode, version.stderr
    assert version.stdout.startswith("hudi-reconciler ")
    assert 0 == schema.returncode, schema.stderr
    assert '"HudiTable"' in schema.stdout
    assert str(command.parents[1]) in where.stdout


@pytest.mark.spark
def test_the_installed_command_runs_the_demo(command, tmp_path):
    done = run(command, "demo", folder=tmp_path)

    assert 0 == done.returncode, done.stdout + done.stderr
    assert "1 table: 1 unchanged" in done.stdout


#: rows go through Python workers: written, merged from log files, deleted by a clean
WORK_OF_WORKERS = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
import reconciler

mor = sys.argv[1]
Path("t.yaml").write_text('''
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: t}
spec:
  path: ./t
  retention: {fileVersions: 1}
  concurrency: {lock: {provider: none}}
  table:
    {type: COPY_ON_WRITE, version: 9, recordKey: [id], partitionBy: [p], ordering: [ts],
     hiveStyle: false}
''')
session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
specs = reconciler.load_specs("t.yaml")
for ts in range(3):
    rows = session.range(5).selectExpr("id", "'a' p", f"{ts} ts")
    print("written", reconciler.write(rows, specs[0]).status)
done = reconciler.apply(reconciler.plan(specs), spark=session)
print("applied", done.exit_code, len(list(Path("t/a").glob("*.parquet"))))
print("merged", reconciler.read(session, mor).count() > 0)
"""


@pytest.mark.spark
def test_workers_of_a_session_that_a_script_made_run_the_python_of_the_script(command, tmp_path):
    unpack(ROOT / "tests" / "tables" / "v9_mor_part.zip", tmp_path / "mor")
    [table] = [path.parent.parent for path in tmp_path.glob("mor/**/.hoodie/hoodie.properties")
               if ".hoodie/metadata" not in str(path)]  # fmt: skip
    (tmp_path / "script.py").write_text(WORK_OF_WORKERS)
    home = Path(java()).resolve().parents[1]
    done = subprocess.run(
        [command.with_name("python"), tmp_path / "script.py", table],
        cwd=tmp_path,
        env={"JAVA_HOME": str(home), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert 0 == done.returncode, done.stdout + done.stderr
    assert ["written completed"] * 3 + ["applied 0 1", "merged True"] == done.stdout.splitlines()
