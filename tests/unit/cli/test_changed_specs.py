"""``--changed-since``: which tables differ from where HEAD and a commit parted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from reconciler.cli import app
from reconciler.cli.options import Selectors
from reconciler.cli.selection import select_specs
from reconciler.errors import ReconcilerError, UsageError

TABLE = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: {name}, labels: {{team: {team}}}}}
spec:
  path: ../warehouse/{name}
  retention: {{commits: {commits}}}
"""
DEFAULTS = """\
apiVersion: reconciler/v1
kind: TableDefaults
metadata: {{name: core}}
selector: {{labels: {{team: core}}}}
spec:
  readers: {{longestQuery: {longest}}}
"""
POLICY = """\
apiVersion: reconciler/v1
kind: Policy
metadata: {name: platform}
spec:
"""
WAIVER = """\
  waivers:
    - {rule: maxFilesRemoved, table: b, until: "2099-12-31", reason: agreed}
"""
ENVIRONMENT = """\
apiVersion: reconciler/v1
kind: Environment
metadata: {name: prod}
spec:
  tables: {a: "s3://lake/a", b: "s3://lake/b", c: "s3://lake/c"}
  storageOptions: {client_kwargs: '{"region_name": "eu-west-1"}'}
"""


class Repository:
    """A checked out repository with a folder of specs."""

    def __init__(self, top: Path) -> None:
        self.top, self.specs = top, top / "specs"

    def begin(self) -> None:
        """The tables a (team core), b and c, committed on main."""
        self.git("init", "-q", "-b", "main")
        for name, team in (("a", "core"), ("b", "web"), ("c", "web")):
            self.table(name, team=team)
        self.write("specs/defaults.yaml", DEFAULTS.format(longest="1h"))
        self.commit()

    def git(self, *arguments: str) -> str:
        return subprocess.run(
            ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *arguments],
            cwd=self.top,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def write(self, path: str, text: str) -> None:
        file = self.top / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def table(self, name: str, *, team: str = "core", commits: int = 10, file: str = "") -> None:
        text = TABLE.format(name=name, team=team, commits=commits)
        self.write(f"specs/{file or name}.yaml", text)

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x")

    def changed(self, ref: str = "main", *paths: Path, env: str | None = None) -> list[str]:
        found = select_specs(paths or (self.specs,), Selectors(changed_since=ref), env)
        return [spec.name for spec in found.tables]


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Repository:
    for variable in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    top = tmp_path / "repository"
    top.mkdir()
    made = Repository(top)
    made.begin()
    return made


def test_nothing_changed_is_no_mistake(repository, capsys):
    assert [] == repository.changed()
    assert "0 of 3 tables selected\n" == capsys.readouterr().err


def test_edits_count_before_they_are_committed_and_after(repository):
    repository.git("checkout", "-q", "-b", "shorter")
    repository.table("a", commits=5)

    assert ["a"] == repository.changed()

    repository.commit()

    assert ["a"] == repository.changed()


def test_only_what_is_read_counts(repository):
    remarked = "# a remark\n" + TABLE.format(name="b", team="web", commits=10)
    repository.write("specs/b.yaml", remarked)
    repository.table("c", team="web", file="moved/c")
    (repository.specs / "c.yaml").unlink()
    # a relative path is another from another folder
    repository.write(
        "specs/moved/c.yaml",
        TABLE.format(name="c", team="web", commits=10).replace("../warehouse", "../../warehouse"),
    )

    assert [] == repository.changed()


def test_another_place_is_a_change(repository):
    repository.write(
        "specs/b.yaml",
        TABLE.format(name="b", team="web", commits=10).replace("warehouse/b", "warehouse/b2"),
    )

    assert ["b"] == repository.changed()


def test_what_is_new_is_changed(repository):
    repository.table("d")

    assert ["d"] == repository.changed()


def test_what_others_did_meanwhile_on_the_branch_compared_with_is_no_change_of_ours(repository):
    repository.git("checkout", "-q", "-b", "ours")
    repository.table("a", commits=5)
    repository.commit()
    repository.git("checkout", "-q", "main")
    repository.table("b", team="web", commits=7)
    repository.commit()
    repository.git("checkout", "-q", "ours")

    assert ["a"] == repository.changed("main")


def test_defaults_change_the_tables_that_they_change(repository):
    repository.write("specs/defaults.yaml", DEFAULTS.format(longest="2h"))

    assert ["a"] == repository.changed()


def test_defaults_that_change_nothing_for_a_table_do_not_count(repository):
    repository.write("specs/defaults.yaml", DEFAULTS.format(longest="60m"))

    assert [] == repository.changed()


def test_a_policy_changes_the_tables_that_it_covers(repository):
    repository.write("policies/platform.yaml", f"{POLICY}  maxFilesRemoved: 5\n  protected: [c]\n")
    repository.commit()
    repository.write("policies/platform.yaml", f"{POLICY}  maxFilesRemoved: 6\n  protected: [c]\n")

    assert ["a", "b", "c"] == repository.changed()
    assert ["a"] == repository.changed("main", repository.specs / "a.yaml")


@pytest.mark.parametrize(
    ("more", "changed"), [(WAIVER, ["b"]), ("  protected: [c, x]\n", ["c"]), ("# remark\n", [])]
)
def test_what_a_policy_says_of_one_table_changes_one(more, changed, repository):
    repository.write("policies/platform.yaml", f"{POLICY}  maxFilesRemoved: 5\n")
    repository.commit()
    repository.write("policies/platform.yaml", f"{POLICY}  maxFilesRemoved: 5\n{more}")

    assert changed == repository.changed()


def test_a_policy_that_is_new_or_gone_is_a_change(repository):
    repository.write("policies/platform.yaml", f"{POLICY}  maxFilesRemoved: 5\n")

    assert ["a", "b", "c"] == repository.changed()

    repository.commit()
    (repository.top / "policies/platform.yaml").unlink()

    assert ["a", "b", "c"] == repository.changed()


def test_an_environment_changes_the_tables_that_it_moves(repository):
    for name, team in (("a", "core"), ("b", "web"), ("c", "web")):
        text = TABLE.format(name=name, team=team, commits=10)
        repository.write(f"specs/{name}.yaml", text.replace(f"  path: ../warehouse/{name}\n", ""))
    repository.write("environments/prod.yaml", ENVIRONMENT)
    repository.commit()

    assert [] == repository.changed(env="prod")

    repository.write("environments/prod.yaml", ENVIRONMENT.replace("lake/b", "pond/b"))

    assert ["b"] == repository.changed(env="prod")

    repository.write("environments/prod.yaml", ENVIRONMENT.replace("eu-west-1", "eu-west-2"))

    assert ["a", "b", "c"] == repository.changed(env="prod")


def test_removed_specs_are_said(repository, capsys):
    (repository.specs / "b.yaml").unlink()

    assert [] == repository.changed()
    assert (
        "since main, 1 spec was removed (b): its table is unmanaged, and nothing is deleted\n"
        "0 of 2 tables selected\n"
    ) == capsys.readouterr().err


def test_removed_specs_of_tables_that_nobody_asked_for_are_not_said(repository, capsys):
    (repository.specs / "b.yaml").unlink()
    select_specs([repository.specs], Selectors(names=["a", "c"], changed_since="main"))

    assert "0 of 2 tables selected\n" == capsys.readouterr().err


def test_other_selectors_choose_first(repository):
    repository.table("a", commits=5)
    found = select_specs([repository.specs], Selectors(labels=["team=web"], changed_since="main"))

    assert () == found.tables
    assert (0, 3) == (found.selection.tables, found.selection.total)
    assert ("-l team=web", "--changed-since main") == found.selection.by
    with pytest.raises(UsageError, match="none of 3 tables matches the selectors"):
        select_specs([repository.specs], Selectors(names=["x"], changed_since="main"))


def test_specs_of_then_that_do_not_load_change_everything_and_that_is_said(repository, capsys):
    repository.write("specs/b.yaml", "apiVersion: reconciler/v1\nkind: HudiTabel\n")
    repository.commit()
    repository.table("b", team="web")

    assert ["a", "b", "c"] == repository.changed("HEAD")
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(
        "changes since HEAD are unknown, so every table counts as changed: the specs of "
        "that commit do not load: "
    )
    assert "b.yaml:2:7: kind: expected one of" in first
    assert "3 of 3 tables selected" == second


def test_a_folder_that_was_not_there_is_all_new(repository):
    repository.write("more/z.yaml", TABLE.format(name="z", team="web", commits=1))

    assert ["z"] == repository.changed("main", repository.top / "more")


def test_a_folder_without_tables_then_is_all_new(repository):
    repository.write("more/defaults.yaml", DEFAULTS.format(longest="1h").replace("core", "more"))
    repository.commit()
    repository.write("more/z.yaml", TABLE.format(name="z", team="web", commits=1))

    assert ["z"] == repository.changed("main", repository.top / "more")


def test_links_are_followed_then_as_now(repository, tmp_path):
    (repository.top / "linked").mkdir()
    (repository.top / "linked/a.yaml").symlink_to("../specs/a.yaml")
    (repository.top / "linked/more").symlink_to("../specs/../specs")
    (repository.top / "around").symlink_to("around")
    (repository.top / "linked/away").symlink_to(tmp_path)
    repository.commit()
    (repository.top / "linked/away").unlink()
    tmp_path.joinpath("door").symlink_to(repository.specs)
    linked = repository.top / "linked"

    assert [] == repository.changed("main", linked)
    assert [] == repository.changed("main", tmp_path / "door")

    repository.table("a", commits=5)

    assert ["a"] == repository.changed("main", linked)
    assert ["a"] == repository.changed("main", tmp_path / "door")


def test_names_of_files_are_nobodys_options(repository):
    repository.write("specs/--upload-pack=x\n; b.yaml", TABLE.format(name="z", team="w", commits=1))
    repository.commit()

    assert [] == repository.changed()


def test_a_hook_of_another_repository_is_not_asked(repository, tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))

    assert [] == repository.changed()


@pytest.mark.parametrize("ref", ["--upload-pack=touch x", "-x"])
def test_an_option_is_no_commit(ref, repository):
    with pytest.raises(UsageError, match="expected a branch, tag or commit, not an option"):
        repository.changed(ref)


@pytest.mark.parametrize("ref", ["nowhere", "main:specs", "main..HEAD", "^main", "", "a b"])
def test_an_unknown_commit_is_a_usage_error(ref, repository):
    with pytest.raises(UsageError) as caught:
        repository.changed(ref)

    assert (
        f"--changed-since {ref}: {ref} is not a commit of {repository.top}; fetch it first"
        == str(caught.value)
    )


def test_no_repository_is_a_usage_error(tmp_path):
    (tmp_path / "a.yaml").write_text(TABLE.format(name="a", team="x", commits=1))
    with pytest.raises(UsageError, match=r"a\.yaml: is in no git repository"):
        select_specs([tmp_path / "a.yaml"], Selectors(changed_since="main"))


def test_what_git_says_is_passed_on(repository, monkeypatch):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(UsageError, match="specs: git: fatal: detected dubious ownership in"):
        repository.changed()


def test_longer_ids_are_read_too(repository, tmp_path):
    folder = tmp_path / "sha256"
    subprocess.run(
        ["git", "init", "-q", "-b", "main", "--object-format=sha256", folder], check=True
    )
    shutil.copytree(repository.specs, folder / "specs")
    other = Repository(folder)
    other.commit()

    assert [] == other.changed()

    other.table("a", commits=5)

    assert ["a"] == other.changed()


def test_a_worktree_is_a_repository_of_its_own(repository, tmp_path):
    folder = tmp_path / "worktree"
    repository.git("worktree", "add", "-q", "-b", "ours", folder)
    other = Repository(folder)
    other.table("a", commits=5)

    assert ["a"] == other.changed("main")
    assert [] == repository.changed("ours")


def test_a_repository_without_a_commit_is_a_usage_error(tmp_path):
    (tmp_path / "a.yaml").write_text(TABLE.format(name="a", team="x", commits=1))
    subprocess.run(["git", "init", "-q", "-b", "main", tmp_path], check=True)
    with pytest.raises(UsageError, match="main is not a commit of"):
        select_specs([tmp_path], Selectors(changed_since="main"))


def test_paths_of_two_repositories_are_a_usage_error(repository, tmp_path):
    (tmp_path / "z.yaml").write_text(TABLE.format(name="z", team="x", commits=1))
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    with pytest.raises(UsageError, match="are in different git repositories"):
        repository.changed("main", repository.specs, tmp_path / "z.yaml")


def test_histories_without_a_commit_in_common_are_an_error(repository):
    repository.git("checkout", "-q", "--orphan", "other")
    repository.table("a", commits=5)
    repository.commit()
    with pytest.raises(ReconcilerError) as caught:
        repository.changed("main")

    assert "--changed-since main: main and HEAD have no commit in common" == str(caught.value)


def shallow(repository: Repository, folder: Path, *refs: str) -> Repository:
    """A clone as a CI makes it: the tips alone."""
    repository.git("checkout", "-q", "-b", "ours")
    repository.table("a", commits=5)
    repository.commit()
    repository.git("checkout", "-q", "main")
    repository.table("b", team="web", commits=5)
    repository.commit()
    folder.mkdir()
    clone = Repository(folder)
    clone.git("init", "-q")
    clone.git("remote", "add", "origin", repository.top.as_uri())
    for ref in refs:
        clone.git("fetch", "-q", "--depth", "1", "origin", f"{ref}:refs/remotes/origin/{ref}")
    clone.git("checkout", "-q", "--detach", "origin/ours")
    return clone


def test_a_shallow_clone_says_how_deep_it_must_be(repository, tmp_path):
    clone = shallow(repository, tmp_path / "clone", "main", "ours")
    with pytest.raises(ReconcilerError) as caught:
        clone.changed("origin/main")

    assert (
        "--changed-since origin/main: origin/main and HEAD have no commit in common; this clone "
        "is shallow: fetch all of it (fetch-depth: 0, or git fetch --unshallow)"
    ) == str(caught.value)


def test_a_shallow_clone_without_the_branch_says_so_too(repository, tmp_path):
    clone = shallow(repository, tmp_path / "clone", "ours")
    with pytest.raises(UsageError, match=r"not a commit of .*; this clone is shallow: .*depth: 0"):
        clone.changed("origin/main")


def test_what_a_partial_clone_lacks_is_not_fetched(repository, tmp_path, capsys):
    repository.git("config", "uploadpack.allowFilter", "true")
    repository.table("a", commits=7)
    repository.commit()
    folder = tmp_path / "partial"
    url = repository.top.as_uri()
    subprocess.run(["git", "clone", "-q", "--filter=blob:none", url, folder], check=True)
    clone = Repository(folder)
    before = clone.git("count-objects", "-v")

    assert ["a", "b", "c"] == clone.changed("HEAD~1")
    assert "is not in this clone" in capsys.readouterr().err
    assert before == clone.git("count-objects", "-v")


def test_git_that_is_missing_is_said(repository, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ReconcilerError) as caught:
        repository.changed()

    assert "--changed-since needs git, which is not installed" == str(caught.value)


@pytest.mark.parametrize("kind", ["text", "markdown", "json"])
def test_a_plan_of_no_changed_table_is_made_shown_and_applied(kind, repository, tmp_path, capsys):
    file = tmp_path / "plan.json"
    selected = (str(repository.specs), "--changed-since", "main")

    assert 0 == app.run(
        ["plan", *selected, "-o", str(file), "--format", kind, "--detailed-exitcode"]
    )
    planned = capsys.readouterr().out
    assert 0 == app.run(["show", str(file), "--format", kind])
    assert planned == capsys.readouterr().out
    if kind != "json":
        assert "0 of 3 tables" in planned

    assert 0 == app.run(["apply", str(file), "--format", kind])
    applied = capsys.readouterr().out
    if kind == "json":
        by = ["--changed-since main"]
        expected = {"tables": 0, "of": 3, "by": by, "removed": []}
        assert expected == json.loads(planned)["selection"]
        assert expected == json.loads(applied)["selection"]
    else:
        assert "0 of 3 tables" in applied


@pytest.mark.parametrize(
    "command", [["lint"], ["status"], ["apply", "--auto-approve"]], ids=lambda command: command[0]
)
def test_every_command_says_that_no_table_changed(command, repository, capsys):
    assert 0 == app.run([*command, str(repository.specs), "--changed-since", "main"])
    assert "0 of 3 tables" in capsys.readouterr().out
