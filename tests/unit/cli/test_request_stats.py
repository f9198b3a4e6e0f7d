from __future__ import annotations

import json

import pytest

from reconciler.storage.open import open_storage
from tests.bench.make_table import Shape, make_table
from tests.command import run

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec: {{path: "{path}", timezone: UTC, retention: {{commits: 2}}}}
"""
SHAPE = Shape(partitions=2, groups=1, versions=3)
NOW = "2026-01-02T00:00:00+00:00"


@pytest.fixture
def local(tmp_path):
    """The spec of a small table on this disk."""
    make_table(tmp_path / "t", SHAPE)
    spec = tmp_path / "local.yaml"
    spec.write_text(SPEC.format(path=tmp_path / "t"))
    return spec


@pytest.fixture
def remote(tmp_path):
    """The spec of the same table in a store."""
    make_table(tmp_path / "t", SHAPE)
    storage = open_storage("memory://stats/t")
    for path in (tmp_path / "t").rglob("*"):
        if path.is_file():
            storage.replace(str(path.relative_to(tmp_path / "t")), path.read_bytes())
    spec = tmp_path / "remote.yaml"
    spec.write_text(SPEC.format(path="memory://stats/t"))
    return spec


def test_a_plan_ends_with_its_requests_on_standard_error(remote, capsys):
    assert run("plan", remote, "--now", NOW, "--format", "json", "--stats", "--quiet") == 0
    said = capsys.readouterr()

    assert "requests to stores: 3 (2 listings, 1 read)" == said.err.splitlines()[-1]
    assert "requests" not in json.loads(said.out)


def test_nothing_is_said_of_requests_without_the_option(remote, capsys):
    run("plan", remote, "--now", NOW)

    assert "requests" not in capsys.readouterr().err


def test_a_local_table_takes_none(local, capsys):
    run("plan", local, "--now", NOW, "--stats")

    assert "requests to stores: none" in capsys.readouterr().err


def test_a_record_of_the_log_names_the_event(remote, capsys):
    run("plan", remote, "--now", NOW, "--stats", "--log-format", "json")
    last = json.loads(capsys.readouterr().err.splitlines()[-1])

    assert ("info", "requests") == (last["level"], last["event"])


def test_an_apply_that_fails_shows_its_requests_too(remote, tmp_path, capsys):
    run("plan", remote, "--now", NOW, "-o", tmp_path / "plan.json")
    open_storage("memory://stats/t").delete(".hoodie/hoodie.properties")
    capsys.readouterr()
    code = run("apply", tmp_path / "plan.json", "--digest", "sha256:" + "0" * 64, "--stats")

    assert 4 == code
    assert "requests to stores: none" in capsys.readouterr().err
