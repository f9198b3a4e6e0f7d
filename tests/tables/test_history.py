"""The history of tables that real Hudi wrote and that plans changed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest

import reconciler
import reconciler.status.history
from reconciler.errors import FormatError
from reconciler.render.history import history_json, history_text
from reconciler.render.terminal import Terminal
from reconciler.state.measured_queries import QUERIES_KEY, MeasuredQuery, encode_measurements
from reconciler.status.audit_lines import read_audit_lines
from reconciler.status.history import read_history
from reconciler.status.history_model import HistoryChange, HistoryEntry, TableHistory
from reconciler.storage.open import open_storage
from tests.applied_table import apply_with_audit
from tests.command import run
from tests.trees import unpack

TESTS = Path(__file__).parents[1]
SCHEMA = json.loads((TESTS.parent / "schemas/history.v1.json").read_text())
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: orders}
spec:
  path: orders
  timezone: UTC
  retention: {commits: 2}
  concurrency: {lock: {provider: filesystem, path: .hoodie}}
"""


def lay(folder: Path, scenario: str) -> Path:
    unpack(TESTS / "cases/clean" / scenario / "table.zip", folder / "orders", hollow=True)
    (folder / "orders.yaml").write_text(SPEC)
    return folder


@pytest.fixture(scope="module")
def applied(tmp_path_factory):
    """A table on which a plan with a clean was applied; nothing here changes it."""
    folder = lay(tmp_path_factory.mktemp("applied"), "cow_basic__1.2.0")
    plan = apply_with_audit(folder / "orders.yaml", folder / "audit.jsonl")
    return folder, plan


def history(folder, *, audit=False, limit=20, **options):
    [spec] = reconciler.load_specs(folder / "orders.yaml")
    lines = (folder / "audit.jsonl").read_bytes().splitlines() if audit else ()
    audited = read_audit_lines(lines, spec.name, spec.path)
    return read_history(open_storage(spec.path), spec, limit=limit, audited=audited, **options)


def test_an_apply_names_its_plan_its_actor_and_what_it_removed(applied):
    folder, plan = applied
    found = history(folder)
    [entry] = found.entries
    [change] = entry.changes

    assert (plan.digest, "data-core", "1234abc") == (
        entry.plan_digest,
        entry.actor,
        entry.spec_commit,
    )
    assert plan.tables[0].spec_digest == entry.spec_digest
    assert ("clean", plan.tables[0].impact.files_removed) == (change.action, change.files_removed)
    assert found.is_whole


def test_the_audit_record_adds_bytes_and_what_was_planned(applied):
    folder, plan = applied
    [entry] = history(folder, audit=True).entries
    [audited] = entry.audited
    impact = plan.tables[0].impact

    assert ("done", 0, "prod") == (audited.status, audited.exit_code, audited.environment)
    assert (impact.files_removed, impact.bytes_removed) == (
        audited.files_removed,
        audited.bytes_removed,
    )
    assert audited.planned["bytes"] == impact.bytes_removed


def test_all_instants_are_listed_newest_first_and_limited(applied):
    folder, _ = applied
    every = history(folder, with_others=True)
    times = [entry.at for entry in every.entries]
    three = history(folder, with_others=True, limit=3)

    assert (7, sorted(times, reverse=True)) == (len(times), times)
    assert (times[:3], False) == ([entry.at for entry in three.entries], three.is_whole)
    assert [None] * 6 == [entry.plan_digest for entry in every.entries[1:]]


def test_since_leaves_older_ones_out(applied):
    folder, _ = applied
    local = history(folder, with_others=True, since=datetime(2026, 11, 21, 4, 41, 5))  # noqa: DTZ001
    there = datetime(2026, 11, 21, 5, 41, 5, tzinfo=UTC) - timedelta(hours=1)

    assert 3 == len(local.entries)
    assert local == history(folder, with_others=True, since=there)


@pytest.mark.parametrize("scenario", ["cow_archived__0.15.0", "cow_archived__1.2.0"])
def test_archived_instants_follow_the_active_ones(scenario, tmp_path):
    folder = lay(tmp_path, scenario)
    found = history(folder, with_others=True, limit=100)
    [spec] = reconciler.load_specs(folder / "orders.yaml")
    start = reconciler.observe(spec).timeline.start
    older = [entry for entry in found.entries if entry.at < start]
    changes = [change for entry in found.entries for change in entry.changes]

    assert older
    assert all(one.changes[0].files_written or one.changes[0].files_removed for one in older)
    assert len(changes) == len({(change.instant, change.action) for change in changes})
    assert any(change.action == "clean" and change.files_removed for change in changes)


def test_a_damaged_file_of_the_timeline_is_named(tmp_path):
    folder = lay(tmp_path, "cow_basic__1.2.0")
    [first, *_] = sorted((folder / "orders/.hoodie/timeline").glob("*.commit"))
    first.write_bytes(b"Obj\x01broken")

    with pytest.raises(FormatError, match=first.name):
        history(folder, with_others=True)


def test_a_clean_with_an_empty_file_is_listed_without_figures(tmp_path):
    folder = lay(tmp_path, "cow_empty_completed_clean__0.15.0")
    found = history(folder, with_others=True)
    cleans = [one for entry in found.entries for one in entry.changes if one.action == "clean"]

    assert False in {one.is_recorded for one in cleans}
    assert "its file is empty, so what it removed is not known" in (
        " ".join(history_text(found, Terminal()).split())
    )


@pytest.mark.parametrize(
    "value", ["x\x1b[31m", "0001-01-01T00:00+14:00", -1, 1.5, True, ["a"], {"a": 1}, float("nan")]
)
def test_audit_lines_with_wrong_values_are_skipped_or_shown_as_they_are(value, applied):
    folder, _ = applied
    started, ended = map(json.loads, (folder / "audit.jsonl").read_bytes().splitlines())
    [spec] = reconciler.load_specs(folder / "orders.yaml")
    lines = []
    for field in ended:
        run_id = {} if field == "run" else {"run": field}
        died = {**started, **run_id, "planDigest": "x", field: value}
        lines += [died, {**started, **run_id}, {**ended, **run_id, field: value}]
    audited = read_audit_lines(map(to_line, lines), spec.name, spec.path)
    found = read_history(open_storage(spec.path), spec, limit=99, audited=audited)
    document = json.loads(history_json(found, created_at="2026-01-01T00:00:00Z", tool="t"))

    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert "\x1b" not in history_text(found, Terminal())


def to_line(document) -> bytes:
    return json.dumps(document).encode()


def test_a_run_that_died_and_one_that_was_refused_are_entries(applied):
    folder, _ = applied
    started, ended = map(json.loads, (folder / "audit.jsonl").read_bytes().splitlines())
    other = f"sha256:{'0' * 64}"
    died = {**started, "run": "2", "planDigest": other}
    blocked = {**ended, "run": "3", "instants": [], "status": "blocked", "exitCode": 3}
    lines = [json.dumps(one).encode() for one in (died, blocked)]
    [spec] = reconciler.load_specs(folder / "orders.yaml")
    audited = read_audit_lines([*lines, b'{"cut', b"[]"], spec.name, spec.path)
    found = read_history(open_storage(spec.path), spec, limit=9, audited=audited)
    statuses = {run.status: entry for entry in found.entries for run in entry.audited}

    assert {"died", "blocked"} == set(statuses)
    assert () == statuses["died"].changes
    assert () == read_audit_lines(lines, "other", spec.path)


def test_savepoints_that_a_run_removed_or_made_are_shown_from_its_record(applied):
    folder, _ = applied
    started, ended = map(json.loads, (folder / "audit.jsonl").read_bytes().splitlines())
    pin = {"name": "month-end", "until": None, "files": 2, "bytes": 2048, "leftOut": None}
    steps = [
        {"kind": "savepoint", "how": how, "instant": at, "savepoint": {**pin, "change": change}}
        for how, change, at in [
            ("completed", "remove", "20260101000000000"),
            ("completed", "create", "20260102000000000"),
            ("nothing", "remove", None),
        ]
    ]
    alone = {"run": "2", "at": "2027-01-01T00:00:00+00:00"}
    lines = [started, {**ended, "steps": [*ended["steps"], *steps]}]
    lines += [{**started, **alone}, {**ended, **alone, "steps": steps[:1], "instants": []}]
    [spec] = reconciler.load_specs(folder / "orders.yaml")
    audited = read_audit_lines(map(to_line, lines), spec.name, spec.path)
    found = read_history(open_storage(spec.path), spec, limit=9, audited=audited)
    removed, made = (one for one in found.entries[1].audited[0].savepoints)
    text = " ".join(history_text(found, Terminal()).split())

    assert ("remove", "create", 2048) == (removed.change, made.change, made.bytes)
    assert [1, 2] == [len(entry.audited[0].savepoints) for entry in found.entries]
    assert 2 == text.count(
        "- savepoint 20260101000000000: removed month-end (pinned 2 files, 2.0 KiB)"
    )
    assert "+ savepoint 20260102000000000: made month-end (pins 2 files, 2.0 KiB)" in text


@pytest.mark.parametrize(
    ("action", "operation", "replaced", "sign"),
    [
        ("clean", None, 0, "-"),
        ("rollback", None, 0, "-"),
        ("replacecommit", "DELETE_PARTITION", 3, "-"),
        ("replacecommit", "CLUSTER", 3, "~"),
        ("replacecommit", "insert_overwrite", 1, "~"),
        ("commit", "compact", 0, "~"),
        ("commit", "UPSERT", 0, "+"),
        ("savepoint", None, 0, "+"),
    ],
)
def test_a_change_has_the_sign_of_a_plan(action, operation, replaced, sign):
    change = HistoryChange(
        instant="1", action=action, completed=None, operation=operation, files_removed=0,
        files_written=0, rows_written=0, bytes_written=0, groups_replaced=replaced,
    )  # fmt: skip
    entry = HistoryEntry(at="1", plan_digest=None, changes=(change,))
    history = TableHistory(name="t", path="/t", entries=(entry,), is_whole=True, with_others=True)

    assert f"\n  {sign} {action}" in history_text(history, Terminal())


def test_queries_show_what_was_predicted_and_measured(applied, monkeypatch):
    folder, _ = applied
    query = MeasuredQuery(
        query="one", files=3, bytes=2048, of_files=9, of_bytes=9999,
        predicted_files=2, predicted_bytes=1024,
    )  # fmt: skip
    known = {QUERIES_KEY: encode_measurements([query])}
    real = reconciler.status.history.parse_measurements
    monkeypatch.setattr("reconciler.status.history.parse_measurements", lambda _: real(known))
    text = history_text(history(folder), Terminal())

    assert "one reads 3 of 9 files, 2.0 KiB; predicted: 2 files, 1.0 KiB" in text


def test_json_is_as_its_schema_says(applied):
    found = history(applied[0], audit=True, with_others=True)
    document = json.loads(history_json(found, created_at="2026-01-01T00:00:00+00:00", tool="t"))

    jsonschema.validate(document, SCHEMA)
    assert len(found.entries) == len(document["entries"])


def test_the_command_reads_audit_records(applied, capsys):
    folder, plan = applied
    audit = ("--audit", folder / "audit.jsonl")

    assert run("history", folder / "orders.yaml", *audit) == 0
    shown = capsys.readouterr().out
    assert plan.digest in shown
    assert "by data-core, spec commit 1234abc" in shown
    assert "audit done (exit code 0)" in shown


def test_a_table_without_applies_says_so(tmp_path, capsys):
    folder = lay(tmp_path, "cow_basic__1.2.0")

    assert run("history", folder / "orders.yaml") == 0
    assert "Nothing was applied by reconciler; --all also shows" in capsys.readouterr().out
    assert run("history", folder / "orders.yaml", "--since", "2026-11-22") == 0
    assert "by reconciler since 2026-11-22 00:00; --all" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["--since", "yesterday"], 64, "--since yesterday: not a valid time"),
        (["--since", "0001-01-01T00:00+14:00"], 64, "0001-01-01T00:00+14:00: not a valid time"),
        (["--audit", "nowhere.jsonl"], 1, "nowhere.jsonl: does not exist; name an audit record"),
        (
            ["--audit", str(TESTS.parent / "pyproject.toml")],
            64,
            "pyproject.toml: has no audit line",
        ),
        (["--limit", "0"], 64, "limit"),
    ],
)
def test_wrong_options_are_one_error(arguments, code, problem, applied, capsys):
    assert run("history", applied[0] / "orders.yaml", *arguments) == code
    assert problem in capsys.readouterr().err
