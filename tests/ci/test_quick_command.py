"""What runs the command in these tests says what the installed one says."""

from __future__ import annotations

import subprocess

import pytest

from tests.ci.lake import make_lake
from tests.selection import long
from tests.warm import INSTALLED


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    return make_lake(tmp_path_factory.mktemp("lake"))


def said(program, lake, *arguments, **more):
    done = subprocess.run(
        [program, *arguments],
        cwd=lake.repository,
        env={"PATH": "/usr/bin:/bin", "HOME": str(lake.home), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
        **more,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("--version", 0),
        ("plan specs/sales.orders.yaml --env prod --format json --now 2026-12-01T00:00:00Z", 0),
        long("plan specs --env nowhere", 1),
        long("lint specs --env prod", 0),
        long("lint README.md", 1),
        ("show -", 1),
        ("show", 64),
        ("apply no-such-plan.json", 1),
    ],
)
def test_the_quick_command_is_the_command(lake, warm_program, arguments, code):
    by_itself = said(INSTALLED, lake, *arguments.split(), input="no plan at all")
    quick = said(warm_program, lake, *arguments.split(), input="no plan at all")

    assert by_itself == quick
    assert code == quick[0]
