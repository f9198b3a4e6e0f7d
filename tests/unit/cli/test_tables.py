"""The commands on tables that real Hudi wrote; no JVM."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

from reconciler.storage import open as opening
from tests.command import run
from tests.storage_wrappers import RecordingStorage
from tests.trees import unpack

CASES = Path(__file__).parents[2] / "cases" / "clean"
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: {name}}}
spec:
  path: {path}
  timezone: UTC
  retention: {{commits: {commits}}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""
NOW = ("--now", "2026-11-22T00:00:00+00:00")
#: what an apply writes is of the clock's time, whatever it counts from
LATER = ("--now", "2099-01-01T00:00:00+00:00")


def unpack_case(case: str, folder: Path) -> Path:
    return unpack(CASES / case / "table.zip", folder)


@pytest.fixture
def table(tmp_path) -> Path:
    return unpack_case("cow_basic__1.2.0", tmp_path / "orders")


@pytest.fixture
def spec(table) -> Path:
    path = table.parent / "orders.yaml"
    path.write_text(SPEC.format(name="orders", path="orders", commits=2))
    return path


def fingerprint(folder: Path) -> dict[str, tuple[int, str]]:
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in sorted(folder.rglob("*"))
    }


def test_changes_are_told_by_the_exit_code_when_asked(spec):
    assert run("plan", spec, *NOW) == 0
    assert run("plan", spec, *NOW, "--detailed-exitcode") == 2

    spec.write_text(SPEC.format(name="orders", path="orders", commits=100))

    assert run("plan", spec, *NOW, "--detailed-exitcode") == 0


def test_standard_output_carries_the_format_and_nothing_else(spec, tmp_path, capsysbinary):
    assert run("plan", spec, *NOW, "--format", "json", "-o", tmp_path / "plan.json") == 0
    out = capsysbinary.readouterr().out

    assert out == (tmp_path / "plan.json").read_bytes()
    (planned,) = json.loads(out)["tables"]
    assert [step["kind"] for step in planned["steps"]] == ["clean"]
    assert planned["impact"]["filesRemoved"] > 0


def test_the_same_time_and_table_give_the_same_bytes(spec, tmp_path):
    for name in ("a.json", "b.json"):
        assert run("plan", spec, *NOW, "-o", tmp_path / name) == 0

    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_a_saved_plan_is_shown_as_it_was_planned(spec, tmp_path, capsys):
    for kind in ("text", "markdown", "json"):
        run("plan", spec, *NOW, "-o", tmp_path / "plan.json", "--format", kind)
        planned = capsys.readouterr().out

        assert run("show", tmp_path / "plan.json", "--format", kind) == 0
        assert capsys.readouterr().out == planned


def declare_files(spec):
    spec.write_text(f"{spec.read_text()}  files: {{target: 1MiB, small: 512KiB}}\n")


def sizes_of(file):
    (planned,) = json.loads(file.read_text())["tables"]
    return planned["fileSizes"]


def test_file_sizes_are_shown_where_they_are_declared(spec, tmp_path, capsys):
    run("plan", spec, *NOW)
    assert "file sizes" not in capsys.readouterr().out
    declare_files(spec)
    run("plan", spec, *NOW, "-o", tmp_path / "plan.json")

    said = capsys.readouterr().out
    assert "  = file sizes  2 base files, 848.9 KiB; 2 small (below 512.0 KiB;" in said
    assert "      a          1 of 1 small   424.5 KiB\n" in said
    assert "      written last by: upsert 2 files (2 small)\n" in said
    assert ["UPSERT"] == [
        each["operation"] for each in sizes_of(tmp_path / "plan.json")["operations"]
    ]
    run("show", tmp_path / "plan.json")
    assert said == capsys.readouterr().out


def test_the_next_rows_are_simulated_and_not_written(spec, table, tmp_path, capsys):
    before = fingerprint(table)
    asked = ("--simulate-insert", "1000,p=9")
    run("plan", spec, *NOW, *asked, "-o", tmp_path / "plan.json", "--format", "markdown")

    said = capsys.readouterr().out
    assert "= next insert  1 000 rows in 1 partition: 1 000 into 1 new file" in said
    found = sizes_of(tmp_path / "plan.json")["nextInsert"]
    assert (1000, 1, 1) == (found["rows"], found["into"], found["total"]["new"])
    assert "all rows into p=9; 554 bytes per row plus 434103 per file" in found["because"]
    assert before == fingerprint(table)


def test_a_write_that_cannot_be_read_stops_no_plan(spec, table, capsys):
    declare_files(spec)
    newest = max((table / ".hoodie" / "timeline").glob("*.commit"))
    newest.write_bytes(b"")
    os.utime(newest, (1, 1))

    assert 3 == run("plan", spec, *NOW)  # the rewrite for file sizes alone is refused
    said = " ".join(capsys.readouterr().out.split())
    assert "- clean 4 files" in said
    assert "recent writes and the size of a row are unknown: " in said
    assert f"{newest.name}: is empty, so the files it wrote are unknown" in said


def test_a_plan_can_be_shown_when_the_table_is_gone(spec, table, tmp_path):
    run("plan", spec, *NOW, "-o", tmp_path / "plan.json")
    shutil.rmtree(table)

    assert run("show", tmp_path / "plan.json") == 0


def test_planning_changes_nothing(spec, table, monkeypatch):
    recorded = []
    opened = opening.open_storage

    def recording(*arguments, **options):
        recorded.append(RecordingStorage(opened(*arguments, **options)))
        return recorded[-1]

    monkeypatch.setattr(opening, "open_storage", recording)
    before = fingerprint(table)
    for path in [table, *table.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert run("plan", spec, *NOW, "--detailed-exitcode") == 2
        assert run("status", spec) == 0
        assert run("init", "--from", table) == 0
    finally:
        for path in [table, *table.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)

    assert fingerprint(table) == before
    assert recorded
    assert [call for storage in recorded for call in storage.mutations] == []


def test_a_table_that_cannot_be_read_does_not_stop_the_others(spec, capsys):
    spec.with_name("gone.yaml").write_text(SPEC.format(name="gone", path="gone", commits=2))

    assert run("plan", spec.parent, *NOW, "--format", "json", "--detailed-exitcode") == 1
    tables = {each["name"]: each for each in json.loads(capsys.readouterr().out)["tables"]}
    assert "gone" in tables["gone"]["error"]
    assert tables["orders"]["error"] is None
    assert tables["orders"]["impact"]["filesRemoved"] > 0


def test_damaged_files_are_named_without_a_traceback(spec, table, capsys):
    (table / ".hoodie" / "hoodie.properties").write_bytes(b"\xff\x00garbage")

    assert run("plan", spec, *NOW) == 1
    said = capsys.readouterr()
    assert "hoodie.properties" in said.out
    assert "Traceback" not in said.out + said.err


def test_specs_are_applied_without_review_only_when_told_to(spec, table, capsys):
    before = fingerprint(table)

    assert run("apply", spec, *NOW) == 64
    assert "--auto-approve" in capsys.readouterr().err
    assert fingerprint(table) == before


def test_another_plan_than_the_approved_one_is_stale(spec, table, tmp_path, capsys):
    run("plan", spec, *NOW, "-o", tmp_path / "plan.json")
    before = fingerprint(table)

    assert run("apply", tmp_path / "plan.json", "--digest", f"sha256:{0:064}") == 4
    assert "apply the approved plan" in capsys.readouterr().err
    assert fingerprint(table) == before


def test_applying_an_empty_plan_starts_no_spark(spec, table, capsys):
    spec.write_text(SPEC.format(name="orders", path="orders", commits=100))
    before = fingerprint(table)

    assert run("apply", spec, *NOW, "--auto-approve") == 0
    assert "Spark" not in capsys.readouterr().err
    assert fingerprint(table) == before


def test_a_table_whose_spec_changed_is_left_out(spec, table, tmp_path, monkeypatch):
    from reconciler.cli import run_apply  # noqa: PLC0415
    from reconciler.executor.deletion import LocalDeleter  # noqa: PLC0415

    hands = ready(LocalDeleter(opening.open_storage))
    monkeypatch.setattr(run_apply, "open_executors", lambda *_, **__: hands)
    run("plan", spec, *NOW, "-o", tmp_path / "plan.json")
    before = fingerprint(table)
    spec.write_text(SPEC.format(name="orders", path="orders", commits=3))

    assert run("apply", tmp_path / "plan.json", "--specs", spec, *NOW) == 4
    assert fingerprint(table) == before


@pytest.mark.parametrize("why", ["another spec", "no lock", "a damaged spec"])
def test_what_needs_no_spark_is_judged_without(why, spec, table, tmp_path, capsys):
    text, document = spec.read_text(), tmp_path / "plan.json"
    if why == "no lock":
        spec.write_text(text.partition("  concurrency")[0])
    run("plan", spec, *NOW, "-o", document)
    before, today = fingerprint(table), ()
    if why == "another spec":
        spec.write_text(text.replace("commits: 2", "commits: 3"))
        today = ("--specs", spec)
    if why == "a damaged spec":
        found = json.loads(document.read_text())
        found["tables"][0]["spec"]["retention"] = {"commits": "many"}
        document.write_text(json.dumps(found))
    capsys.readouterr()

    assert run("apply", document, *today, *NOW) in (1, 3, 4)
    assert "starting Spark" not in capsys.readouterr().err
    assert fingerprint(table) == before


def test_plan_apply_plan_ends_empty(spec, tmp_path, monkeypatch, capsys):
    from reconciler.cli import run_apply  # noqa: PLC0415
    from reconciler.executor.deletion import LocalDeleter  # noqa: PLC0415

    hands = ready(LocalDeleter(opening.open_storage))
    monkeypatch.setattr(run_apply, "open_executors", lambda *_, **__: hands)
    run("plan", spec, *NOW, "-o", tmp_path / "plan.json")
    planned = json.loads((tmp_path / "plan.json").read_text())["tables"][0]
    names = [
        tmp_path / "orders" / partition["path"] / file["name"]
        for partition in planned["steps"][0]["partitions"]
        for file in partition["files"]
    ]
    assert all(name.exists() for name in names)

    assert run("apply", tmp_path / "plan.json", *NOW) == 0
    capsys.readouterr()

    assert not any(name.exists() for name in names)
    assert run("plan", spec, *LATER, "--detailed-exitcode") == 0


def ready(executor):
    from reconciler.cli import apply_executors  # noqa: PLC0415 - as the command does

    return nullcontext(apply_executors.Executors(executor))


@pytest.mark.parametrize(
    "case", ["cow_basic__1.2.0", "cow_archived__1.2.0", "cow_mdt_incremental__1.2.0"]
)
def test_the_first_spec_of_a_live_table_plans_nothing(case, tmp_path):
    table = unpack_case(case, tmp_path / "live")
    path = tmp_path / "live.yaml"

    assert run("init", "--from", table, "-o", path) == 0
    assert run("plan", path, "--detailed-exitcode") == 0
    assert run("lint", path) == 0
    assert "retention" in path.read_text()


def test_a_retention_that_holds_already_is_declared(tmp_path, capsys):
    archive = CASES.parents[1] / "tables" / "v9_cow_nopart.zip"
    unpack(archive, tmp_path)

    assert run("init", "--from", tmp_path / "v9_cow_nopart") == 0
    assert "  retention:\n    commits: 1\n" in capsys.readouterr().out


def test_a_table_between_two_states_is_blocked(tmp_path, capsys):
    archive = CASES.parents[1] / "tables" / "v6_restore_pending.zip"
    unpack(archive, tmp_path)
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.format(name="torn", path="v6_restore_pending", commits=1))

    assert run("plan", path, "-o", tmp_path / "plan.json") == 3
    assert "pendingRestore" in capsys.readouterr().out
    assert run("apply", tmp_path / "plan.json") == 3
    assert run("status", path) == 0
    assert "torn  blocked" in capsys.readouterr().out


def test_status_is_for_people_and_for_programs(spec, capsys):
    assert run("status", spec) == 0
    assert "orders" in capsys.readouterr().out
    assert run("status", spec, "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["tables"][0]["name"] == "orders"


def test_status_names_what_holds_a_clean_back_and_what_to_do(tmp_path, capsys):
    unpack_case("cow_lazy_failed_write__1.2.0", tmp_path / "held")
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.format(name="held", path="held", commits=1))

    assert run("status", path) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "! warning pending commit 20261121050421595 limits the earliest instant to retain" in said
    )
    assert "roll it back or let its writer finish [pendingWrite]" in said


def test_status_names_who_holds_the_lock_and_leaves_it(spec, table, capsys):
    (table / ".hoodie" / "lock").write_bytes(b"")
    before = fingerprint(table)

    assert run("status", spec) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"locked {table}/.hoodie/lock is held by a writer that left no name" in said
    assert fingerprint(table) == before


def test_a_free_lock_is_said_to_be_free(spec, capsys):
    assert run("unlock", spec, "--yes") == 0
    assert "not locked" in capsys.readouterr().out


def test_a_lock_is_removed_after_saying_whose_it_is(spec, table, capsys):
    lock = table / ".hoodie" / "lock"
    lock.write_bytes(b"")

    assert run("unlock", spec) == 64
    assert lock.exists()
    assert "is held by" in capsys.readouterr().out
    assert run("unlock", spec, "--yes") == 0
    assert not lock.exists()
    assert "the lock was removed" in capsys.readouterr().out


def test_unlock_takes_the_one_table_that_selectors_leave(spec, table, capsys):
    other = spec.with_name("other.yaml")
    other.write_text(SPEC.format(name="other", path="other", commits=1))
    lock = table / ".hoodie" / "lock"
    lock.write_bytes(b"")

    assert run("unlock", spec.parent, "--yes") == 64
    assert capsys.readouterr().err == (
        "error: 2 tables selected, but unlock takes one; choose it with --name\n"
    )
    assert run("unlock", spec.parent, "--name", "ord*", "--yes") == 0
    assert not lock.exists()


def test_a_plan_is_written_where_it_is_told(spec, tmp_path, capsys):
    assert run("plan", spec, *NOW, "-o", tmp_path) == 1
    assert "is a folder" in capsys.readouterr().err
    assert run("plan", spec, *NOW, "-o", "/dev/null") == 0
    assert Path("/dev/null").is_char_device()
