"""What ties an apply to what was reviewed, and the record it leaves: real tables, no JVM."""

from __future__ import annotations

import json
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import jsonschema
import pytest

from reconciler import canonical_json, runtime
from reconciler.cli import apply_executors, run_apply
from reconciler.cli.audit import AuditFile
from reconciler.executor.deletion import LocalDeleter
from reconciler.hudi.load import load_properties, load_timeline, read_instant_file
from reconciler.storage.open import open_storage
from tests.command import run
from tests.trees import unpack

CASES = Path(__file__).parents[2] / "cases" / "clean"
SCHEMA = json.loads((Path(__file__).parents[3] / "schemas/audit.v1.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: {name}}}
spec:
  path: ../tables/{path}
  timezone: UTC
  retention: {{commits: {commits}}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""
NOW = ("--now", "2026-11-22T00:00:00+00:00")
#: what an apply writes is of the clock's time, whatever it counts from
LATER = ("--now", "2099-01-01T00:00:00+00:00")
#: what CI of this test may say of itself
CI = (
    *("GITHUB_TRIGGERING_ACTOR", "GITHUB_ACTOR", "GITLAB_USER_LOGIN", "BUILD_USER_ID"),
    *("AIRFLOW_CTX_DAG_OWNER", "GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT"),
)


class Repository:
    """Specs of two tables, and the plan that was made of them."""

    def __init__(self, root: Path) -> None:
        self.root, self.specs = root, root / "specs"
        self.plan, self.audit = root / "plan.json", root / "audit.jsonl"
        self.specs.mkdir()
        (root / "tables").mkdir()
        for name in ("a", "b"):
            unpack(CASES / "cow_basic__1.2.0" / "table.zip", root / "tables" / name)
            self.declare(name)

    def declare(self, name: str, *, commits: int = 2, path: str | None = None) -> None:
        spec = SPEC.format(name=name, path=path or name, commits=commits)
        (self.specs / f"{name}.yaml").write_text(spec)

    def files(self) -> dict[str, bytes]:
        found = (self.root / "tables").rglob("*")
        return {str(path): path.read_bytes() for path in found if path.is_file()}

    def document(self) -> dict:
        return json.loads(self.plan.read_text())

    @property
    def digest(self) -> str:
        return self.document()["digest"]

    def lines(self) -> list[dict]:
        found = [json.loads(line) for line in self.audit.read_text().splitlines()]
        for line in found:
            VALIDATOR.validate(line)
        return found

    def git(self, *arguments: str) -> str:
        who = ("-c", "user.name=x", "-c", "user.email=x@example.com")
        done = subprocess.run(
            ["git", "-C", self.root, *who, *arguments], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Repository:
    for name in CI:
        monkeypatch.delenv(name, raising=False)
    found = Repository(tmp_path)
    assert run("plan", found.specs, *NOW, "-o", found.plan) == 0
    return found


@pytest.fixture
def in_process(monkeypatch):
    """Work is done in this process instead of by Spark."""
    monkeypatch.setattr(
        run_apply, "open_executors", lambda *_, **__: ready(LocalDeleter(open_storage))
    )


def ready(executor: LocalDeleter) -> AbstractContextManager[apply_executors.Executors]:
    return nullcontext(apply_executors.Executors(executor))


def apply(repository: Repository, *more: object) -> int:
    return run(
        "apply",
        *(repository.plan, "--specs", repository.specs, "--audit", repository.audit),
        *(*NOW, *more),
    )


# --- the plan and what was reviewed --------------------------------------------------------------


def edited(repository: Repository, *, resealed: bool) -> None:
    """One more file is named in the plan, by hand."""
    document = repository.document()
    (step,) = document["tables"][0]["steps"]
    files = step["partitions"][0]["files"]
    files.append({**files[-1], "name": files[-1]["name"].replace(".parquet", "x.parquet")})
    if resealed:
        for table in document["tables"]:
            table["stepsDigest"] = canonical_json.digest_document(table["steps"])
        covered = {k: v for k, v in document.items() if k not in ("digest", "createdAt", "tool")}
        document["digest"] = canonical_json.digest_document(covered)
    repository.plan.write_bytes(canonical_json.to_bytes(document) + b"\n")


def refused(repository: Repository, capsys, *more: object) -> str:
    """What is said when nothing at all is done; Spark does not start for it."""
    before = repository.files()
    capsys.readouterr()

    assert apply(repository, *more) == 4
    assert repository.files() == before
    said = capsys.readouterr()
    assert "starting Spark" not in said.err
    return said.out + said.err


def test_a_plan_edited_by_hand_is_refused(repository, capsys):
    edited(repository, resealed=False)

    assert refused(repository, capsys) == (
        f"error: {repository.plan}: was edited after it was made (its digest does not match). "
        "Nothing was applied. Edit the spec and plan again\n"
    )


def test_a_plan_edited_with_care_is_not_the_approved_one(repository, capsys):
    approved = repository.digest
    edited(repository, resealed=True)

    assert refused(repository, capsys, "--digest", approved) == (
        f"error: the plan's digest is {repository.digest}, and {approved} was approved; apply the "
        "approved plan, or review this one\n"
    )
    assert [("refused", 4)] == [(line["event"], line["exitCode"]) for line in repository.lines()]


def test_a_refusal_that_cannot_be_written_down_is_said(repository, capsys):
    edited(repository, resealed=True)
    approved = f"sha256:{0:064}"

    assert run("apply", repository.plan, "--digest", approved, "--audit", "/dev/full") == 4
    assert capsys.readouterr().err.splitlines()[0] == (
        "warning: this refusal is not in the audit file: /dev/full: cannot append an audit line: "
        "No space left on device"
    )


def test_a_plan_of_another_repository_is_refused(repository, capsys):
    for name in ("a", "b"):
        (repository.specs / f"{name}.yaml").unlink()
    repository.declare("other", path="a")

    assert refused(repository, capsys) == (
        "error: the plan is of other specs than these: none of its 2 tables (a, b) is declared by "
        "them; name with --specs the ones that it was made from, or plan again from these\n"
    )
    (line,) = repository.lines()
    assert line["error"].startswith("the plan is of other specs than these")


def test_a_plan_older_than_its_specs_is_refused_table_by_table(repository, capsys):
    repository.declare("a", commits=3)
    repository.declare("b", path="a2")
    said = " ".join(refused(repository, capsys).split())

    assert (
        "the spec of a is no longer the reviewed one (retention.commits is 3 now and was 2); plan "
        "again" in said
    )
    assert f"b is at {repository.root}/tables/a2 now and was reviewed at" in said
    assert "2 tables: 2 skipped" in said
    assert [("finished", "stale", 4)] * 2 == [
        (line["event"], line["status"], line["exitCode"]) for line in repository.lines()
    ]


@pytest.mark.usefixtures("in_process")
def test_what_is_still_as_reviewed_runs_beside_what_is_not(repository):
    repository.declare("a", commits=3)
    (repository.root / "specs" / "c.yaml").write_text(SPEC.format(name="c", path="b2", commits=1))

    assert apply(repository, "--digest", repository.digest) == 4
    ends = {
        line["table"]: line["status"] for line in repository.lines() if line["event"] == "finished"
    }
    assert ends == {"a": "stale", "b": "done"}


@pytest.mark.usefixtures("in_process")
def test_a_table_that_is_declared_no_more_stays(repository, capsys):
    (repository.specs / "a.yaml").unlink()
    before = {k: v for k, v in repository.files().items() if "/tables/a/" in k}

    assert apply(repository) == 4
    assert "no spec declares a any more" in capsys.readouterr().out
    assert {k: v for k, v in repository.files().items() if "/tables/a/" in k} == before


def test_a_plan_that_names_what_is_outside_is_no_plan(repository, capsys):
    document = repository.document()
    (step,) = document["tables"][0]["steps"]
    step["partitions"][0]["path"] = "../b"
    repository.plan.write_bytes(canonical_json.to_bytes(document) + b"\n")
    before = repository.files()
    capsys.readouterr()

    assert apply(repository) == 1
    assert repository.files() == before
    assert "starting Spark" not in capsys.readouterr().err


def test_the_path_of_another_table_is_another_table(repository, capsys):
    """Whoever edits the path of a plan, and seals it again, is stopped by the specs."""
    document = repository.document()
    document["tables"][0]["path"] = document["tables"][1]["path"]
    covered = {k: v for k, v in document.items() if k not in ("digest", "createdAt", "tool")}
    document["digest"] = canonical_json.digest_document(covered)
    document["tables"] = document["tables"][:1]
    covered["tables"] = document["tables"]
    document["digest"] = canonical_json.digest_document(covered)
    repository.plan.write_bytes(canonical_json.to_bytes(document) + b"\n")

    assert "and was reviewed at" in " ".join(refused(repository, capsys).split())


@pytest.mark.parametrize("name", ["\x1b[2J\x1b]0;x\x07", "a\nerror: all is well", "\x9b31m\u202e"])
@pytest.mark.usefixtures("in_process")
def test_names_of_a_plan_move_no_cursor(repository, name, capsys):
    document = repository.document()
    document["tables"] = document["tables"][:1]
    document["tables"][0]["name"] = name
    covered = {k: v for k, v in document.items() if k not in ("digest", "createdAt", "tool")}
    document["digest"] = canonical_json.digest_document(covered)
    repository.plan.write_bytes(canonical_json.to_bytes(document) + b"\n")
    capsys.readouterr()

    assert apply(repository) == 4
    assert run("apply", repository.plan, *NOW, "--audit", repository.audit) == 0
    assert run("show", repository.plan) == 0
    said = capsys.readouterr()
    everything = said.out + said.err
    assert "\nerror: all is well" not in everything
    assert not [c for c in everything if c != "\n" and (ord(c) < 32 or 126 < ord(c) < 160)]
    assert "\u202e" not in everything
    assert {name} == {line["table"] for line in repository.lines() if "table" in line}
    assert repository.audit.read_bytes().isascii()


@pytest.mark.usefixtures("in_process")
def test_an_environment_has_comments_and_lines_of_its_own(repository, capsys):
    (repository.root / "environments").mkdir()
    (repository.root / "environments" / "prod.yaml").write_text(
        "apiVersion: reconciler/v1\nkind: Environment\nmetadata: {name: prod}\n"
        "spec: {pattern: '../tables/{name}'}\n"
    )
    prod = ("--env", "prod", "--format", "markdown")
    capsys.readouterr()
    assert run("plan", repository.specs, *NOW, "-o", repository.plan, *prod) == 0
    planned = capsys.readouterr().out
    assert run("show", repository.plan, *prod) == 0

    assert capsys.readouterr().out == planned
    assert planned.startswith(
        "<!-- reconciler:plan:prod -->\n### reconciler plan · prod · 2 tables"
    )
    assert "reconciler apply plan.json --specs specs --env prod \\\n  --digest sha256:" in planned
    assert apply(repository, *prod, "--digest", repository.digest) == 0
    assert capsys.readouterr().out.startswith("<!-- reconciler:apply:prod -->\n")
    assert {"prod"} == {line["environment"] for line in repository.lines()}


# --- the record ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("in_process")
def test_every_table_leaves_its_beginning_and_its_end(repository):
    assert apply(repository, "--actor", "ann", "--spec-commit", "abcdef1") == 0
    lines = repository.lines()

    assert [("started", "a"), ("finished", "a"), ("started", "b"), ("finished", "b")] == [
        (line["event"], line["table"]) for line in lines
    ]
    assert {("ann", "abcdef1", repository.digest, None)} == {
        (line["actor"], line["specCommit"], line["planDigest"], line["environment"])
        for line in lines
    }
    assert 1 == len({line["run"] for line in lines})
    planned = lines[0]["planned"]
    done = {"files": lines[1]["filesRemoved"], "bytes": lines[1]["bytesRemoved"]}
    assert {**done, "bytesRewritten": 0} == planned
    assert planned["files"] > 0


@pytest.mark.usefixtures("in_process")
def test_the_instants_say_who_and_from_which_specs(repository):
    assert apply(repository, "--actor", "ann", "--spec-commit", "abcdef1") == 0
    (instant,) = repository.lines()[1]["instants"]
    storage = open_storage(str(repository.root / "tables" / "a"))
    properties = load_properties(storage)
    timeline = load_timeline(storage, properties)
    found = [file for file in timeline.files if file.instant.requested == instant]

    assert len(found) == 3
    for file in found:
        data, _ = read_instant_file(storage, properties, file)
        if data:  # an inflight clean is empty in this version
            assert b"reconciler.actor\x06ann" in data
            assert b"reconciler.spec.commit\x0eabcdef1" in data


@pytest.mark.usefixtures("in_process")
def test_a_second_apply_appends(repository):
    assert apply(repository) == 0
    assert apply(repository, *LATER) == 0
    lines = repository.lines()

    assert 2 == len({line["run"] for line in lines})
    assert 8 == len(lines)


@pytest.mark.usefixtures("in_process")
def test_tables_that_are_applied_at_once_have_whole_lines(repository):
    assert apply(repository, "--parallelism", "2") == 0
    lines = repository.lines()

    for name in ("a", "b"):
        events = [line["event"] for line in lines if line["table"] == name]
        assert events == ["started", "finished"]
    assert 4 == len(lines)


@pytest.mark.usefixtures("in_process")
def test_a_line_torn_by_a_crash_does_not_spoil_the_next(repository):
    repository.audit.write_bytes(b'{"format":1,"ev')

    assert apply(repository) == 0
    torn, *lines = repository.audit.read_bytes().splitlines()
    assert torn == b'{"format":1,"ev'
    assert 4 == len([VALIDATOR.validate(json.loads(line)) for line in lines])


@pytest.mark.usefixtures("in_process")
def test_an_interrupted_table_says_so(repository, monkeypatch):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalDeleter, "delete_files", interrupt)

    assert apply(repository) == 130
    assert [("started", "a", None), ("finished", "a", "interrupted")] == [
        (line["event"], line["table"], line.get("status")) for line in repository.lines()
    ]


@pytest.mark.usefixtures("in_process")
def test_nothing_is_done_where_nothing_can_be_recorded(repository, capsys):
    before = repository.files()

    assert run("apply", repository.plan, *NOW, "--audit", "/dev/full") == 1
    assert (
        "/dev/full: cannot append an audit line: No space left on device" in capsys.readouterr().out
    )
    assert repository.files() == before


@pytest.mark.parametrize(
    ("place", "says"),
    [("", "is a folder"), ("none/audit.jsonl", "does not exist; create the folder")],
)
def test_an_audit_file_that_cannot_be_is_said_before_the_work(repository, place, says, capsys):
    before = repository.files()

    assert run("apply", repository.plan, *NOW, "--audit", repository.root / place) == 1
    said = capsys.readouterr()
    assert says in said.err
    assert said.err.count("\n") == 1
    assert repository.files() == before


@pytest.mark.usefixtures("in_process")
def test_work_that_could_not_be_recorded_is_an_error(repository, monkeypatch, capsys):
    from reconciler.cli.audit import AuditFile  # noqa: PLC0415
    from reconciler.errors import StorageError  # noqa: PLC0415

    append = AuditFile.append

    def full(self, line: bytes) -> None:
        if b'"finished"' in line:
            raise StorageError(
                "audit.jsonl", "cannot append an audit line: No space left on device"
            )
        append(self, line)

    monkeypatch.setattr(AuditFile, "append", full)

    assert apply(repository) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "what was done is not in the audit record: audit.jsonl: cannot append an audit line" in said
    )
    assert "removed 4 files" in said


# --- who and from which commit -------------------------------------------------------------------


def told(repository: Repository, *more: object) -> tuple[str | None, str | None]:
    """Actor and commit of a run that finds nothing more to do."""
    repository.audit.unlink(missing_ok=True)
    apply(repository, *more)
    line = repository.lines()[0]
    return line["actor"], line["specCommit"]


@pytest.mark.usefixtures("in_process")
def test_the_actor_is_who_was_named_or_ci_or_the_user(repository, monkeypatch):
    assert told(repository)[0] == runtime.user_name()
    monkeypatch.setenv("GITLAB_USER_LOGIN", "bob")
    assert told(repository)[0] == "bob"
    monkeypatch.setenv("GITHUB_ACTOR", "cy\x1b[2J")
    assert told(repository)[0] == "cy [2J"
    assert told(repository, "--actor", "ann")[0] == "ann"


@pytest.mark.usefixtures("in_process")
def test_the_commit_is_what_git_says_of_the_specs(repository, monkeypatch):
    assert told(repository)[1] is None
    monkeypatch.setenv("CI_COMMIT_SHA", "c" * 40)
    assert told(repository)[1] == "c" * 40

    repository.git("init", "-q")
    repository.git("add", "specs")
    repository.git("commit", "-qm", "specs")
    head = repository.git("rev-parse", "HEAD")
    assert told(repository)[1] == head
    (repository.root / "untracked").write_text("of CI")
    assert told(repository)[1] == head
    (repository.root / "policies").mkdir()
    (repository.root / "policies" / "notes.txt").write_text("x")
    assert told(repository)[1] == f"{head}-dirty"
    assert told(repository, "--spec-commit", "abcdef1-dirty")[1] == "abcdef1-dirty"


@pytest.mark.usefixtures("in_process")
def test_no_file_system_monitor_of_the_repository_is_run(repository):
    repository.git("init", "-q")
    repository.git("add", "specs")
    repository.git("commit", "-qm", "specs")
    spy = repository.root / "spy"
    spy.write_text(f"#!/bin/sh\ntouch {repository.root}/was_run\n")
    spy.chmod(0o755)
    repository.git("config", "core.fsmonitor", str(spy))

    assert told(repository)[1] is not None
    assert not (repository.root / "was_run").exists()


@pytest.mark.parametrize(
    "options", [("--spec-commit", "HEAD"), ("--actor", " "), ("--actor", "a\nb")]
)
def test_what_is_no_name_or_commit_is_a_usage_error(repository, options, capsys):
    assert apply(repository, *options) == 64
    assert options[0] in capsys.readouterr().err
    assert not repository.audit.exists()


@pytest.mark.usefixtures("in_process")
def test_the_comment_says_who_and_from_what(repository, capsys):
    capsys.readouterr()
    more = ("--actor", "@ann", "--spec-commit", "abcdef1", "--format", "markdown")

    assert apply(repository, *more) == 0
    said = capsys.readouterr().out
    assert said.startswith("<!-- reconciler:apply:default -->\n### reconciler apply · 2 tables:")
    assert "applied by <code>&#64;&#8288;ann</code> · specs at <code>abcdef1</code>" in said


def test_a_step_tells_how_long_it_took(repository, monkeypatch):
    class Slow(LocalDeleter):
        def delete_files(self, *arguments, **named):
            time.sleep(0.05)
            return super().delete_files(*arguments, **named)

    monkeypatch.setattr(run_apply, "open_executors", lambda *_, **__: ready(Slow(open_storage)))

    assert apply(repository) == 0
    first, second = (line for line in repository.lines() if line["event"] == "finished")
    assert [True, True] == [
        0.05 <= line["steps"][0]["seconds"] <= line["seconds"] for line in (first, second)
    ]


def test_runs_that_append_at_the_same_time_leave_whole_lines_and_nothing_else(tmp_path):
    journal = AuditFile(tmp_path / "audit.jsonl")
    line = b"x" * 20_000 + b"\n"
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(journal.append, line) for _ in range(800)]:
            done.result()

    assert line * 800 == journal.path.read_bytes()
