"""Rules of the house that no linter knows; each names the file and line that breaks it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.spark import test_spark_releases

PACKAGE = Path(__file__).parents[2] / "reconciler"
MODULES = sorted(PACKAGE.rglob("*.py"))
#: what reads the clock, the environment or randomness
THE_WORLD = {
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("datetime", "today"),
    ("date", "today"),
    ("time", "time"),
    ("time", "time_ns"),
    ("time", "monotonic"),
    ("time", "monotonic_ns"),
    ("time", "perf_counter"),
    ("time", "localtime"),
    ("time", "gmtime"),
    ("os", "environ"),
    ("os", "getenv"),
    ("os", "urandom"),
    ("uuid", "uuid1"),
    ("uuid", "uuid4"),
}
RANDOM = {"random", "secrets"}
GOD_MODULES = {"utils", "helpers", "manager", "common", "misc", "base"}


@cache
def list_nodes(source: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(source)))


def reads_of_the_world(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of every read of the clock, the environment or randomness."""
    for node in list_nodes(source):
        match node:
            case ast.Attribute(attr=name, value=ast.Name(id=owner) | ast.Attribute(attr=owner)):
                if (owner, name) in THE_WORLD or owner in RANDOM:
                    yield node.lineno, f"{owner}.{name}"
            case ast.ImportFrom(module=module, names=names) if module:
                for alias in names:
                    if (module, alias.name) in THE_WORLD or module in RANDOM:
                        yield node.lineno, f"{module}.{alias.name}"


def uses_of_dataclass(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of every use of Python's ``dataclass``."""
    for node in list_nodes(source):
        match node:
            case ast.ImportFrom(module="dataclasses", names=names):
                yield from ((node.lineno, one.name) for one in names if one.name == "dataclass")
            case ast.Attribute(attr="dataclass", value=ast.Name(id=owner)):
                yield node.lineno, f"{owner}.dataclass"


def in_words(module: Path, found: Iterator[tuple[int, str]]) -> list[str]:
    return [f"{module.relative_to(PACKAGE.parent)}:{line}: {what}" for line, what in found]


@pytest.mark.parametrize(
    "source",
    [
        "import datetime\ndatetime.datetime.now(tz)",
        "from datetime import datetime\ndatetime.now()",
        "from time import time",
        "import os\nos.environ['HOME']",
        "import random\nrandom.random()",
        "import uuid\nuuid.uuid4()",
        "import numpy as np\nnp.random.default_rng()",
    ],
)
def test_a_read_of_the_world_is_seen(source):

    assert list(reads_of_the_world(source))


def test_only_runtime_reads_the_clock_the_environment_or_randomness():
    others = [module for module in MODULES if module != PACKAGE / "runtime.py"]
    found = [read for m in others for read in in_words(m, reads_of_the_world(m.read_text()))]

    assert [] == found


@pytest.mark.parametrize(
    "source",
    [
        "from dataclasses import dataclass",
        "from dataclasses import (\n    field,\n    dataclass as made,\n)",
        "import dataclasses as dc\n@dc.dataclass(frozen=True)\nclass A: ...",
    ],
)
def test_a_use_of_the_dataclass_of_python_is_seen(source):
    assert list(uses_of_dataclass(source))


def test_every_module_defers_its_annotations():
    bare = [
        str(m)
        for m in MODULES
        if m.name != "__init__.py" and "from __future__ import annotations" not in m.read_text()
    ]

    assert [] == bare


def test_dataclasses_are_those_that_are_quick_to_import():
    others = [module for module in MODULES if module != PACKAGE / "lazy_dataclass.py"]

    assert [] == [use for m in others for use in in_words(m, uses_of_dataclass(m.read_text()))]


def test_package_markers_stay_empty():
    full = [
        str(m) for m in MODULES if m.name == "__init__.py" and m.parent != PACKAGE and m.read_text()
    ]

    assert [] == full


def test_no_function_is_longer_than_60_lines_and_no_module_longer_than_400():
    long = [f"{m}: {n} lines" for m in MODULES if (n := len(m.read_text().splitlines())) > 400]
    for module in MODULES:
        for node in list_nodes(module.read_text()):
            if isinstance(node, ast.FunctionDef) and node.end_lineno:
                lines = node.end_lineno - node.body[0].lineno + 1  # a signature is no work
                long += [f"{module}:{node.lineno} {node.name}: {lines} lines"] * (lines > 60)

    assert [] == long


def test_folders_that_the_tests_with_a_jvm_leave_out_have_none_of_them():
    left_out = re.findall(r"--ignore=(\S+)", (PACKAGE.parent / "ci/test").read_text())
    files = [file for folder in left_out for file in (PACKAGE.parent / folder).rglob("test_*.py")]
    marked = re.compile(r"\bmark\.(spark|oracle)\b|\bPYSPARK\b")
    here = Path(__file__)

    assert {"reconciler", "tests/unit", "tests/laws", "tests/cases"} == {*left_out}
    assert [] == [str(f) for f in files if f != here and marked.search(f.read_text())]


def test_every_test_with_spark_says_on_which_releases_of_spark_it_runs():
    told = {name for files in test_spark_releases.PARTS.values() for name in files}
    told |= {"test_spark_releases.py", *test_spark_releases.USUAL_ALONE}

    assert told == {file.name for file in (PACKAGE.parent / "tests/spark").glob("test_*.py")}


def test_no_module_is_a_drawer():

    assert [] == [str(m) for m in MODULES if m.stem in GOD_MODULES]
