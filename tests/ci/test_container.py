"""The container file by its structure: what goes in, as whom it runs, and nothing secret."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FILE = ROOT / "ci" / "container" / "Dockerfile"
SECRET = re.compile(r"secret|token|passw|credential|_key\b|\bkey=", re.IGNORECASE)


class Step(NamedTuple):
    word: str
    rest: str


def steps() -> list[Step]:
    """The instructions, each on one line."""
    text = re.sub(r"\\\n\s*", "", FILE.read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [Step(*line.split(maxsplit=1)) for line in lines]


def rest_of(word: str) -> list[str]:
    return [step.rest for step in steps() if step.word == word]


def test_the_images_are_the_argument_that_comes_first_and_it_is_pinned():
    first, *others = steps()

    assert Step("ARG", "PYTHON_IMAGE=python:3.11-slim-bookworm") == first
    assert ["${PYTHON_IMAGE} AS build", "${PYTHON_IMAGE}"] == rest_of("FROM")
    assert {"ARG", "FROM", "ENV", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT", "CMD"} == {
        step.word for step in others
    }


def test_it_runs_as_nobody_in_particular():
    after = [step.word for step in steps()]
    last = after[after.index("USER") :]

    assert ["10001:10001"] == rest_of("USER")
    assert not {"RUN", "COPY", "FROM"} & set(last)


def test_it_starts_the_command_itself_so_that_signals_reach_it():

    assert ['["reconciler"]'] == rest_of("ENTRYPOINT")


def test_nothing_secret_is_an_argument_or_a_variable():
    said = [rest for word in ("ARG", "ENV") for rest in rest_of(word)]

    assert [] == [rest for rest in said if SECRET.search(rest)]


def test_what_is_copied_is_what_the_package_is_built_from_and_all_that_is_sent():
    copied = [
        source
        for rest in rest_of("COPY")
        if not rest.startswith("--from")
        for source in rest.split()[:-1]
    ]
    sent = Path(f"{FILE}.dockerignore").read_text(encoding="utf-8").splitlines()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    assert ["pyproject.toml", "README.md", "LICENSE", "NOTICE", "reconciler"] == copied
    assert ["*", *(f"!{source}" for source in copied)] == [
        line for line in sent if line[:1] in ("*", "!") and line != "**/__pycache__"
    ]
    assert project["project"]["readme"] in copied
    assert set(project["project"]["license-files"]) <= set(copied)
    assert project["tool"]["setuptools"]["packages"]["find"]["include"] == ["reconciler*"]


def test_the_extras_exist_and_the_python_is_new_enough():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    [extras] = [rest for rest in rest_of("ARG") if rest.startswith("EXTRAS=")]

    assert extras.removeprefix("EXTRAS=") in project["optional-dependencies"]
    assert project["requires-python"] == ">=3.11"
