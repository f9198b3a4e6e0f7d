"""Looking upwards from a spec for the repository's folders."""

from __future__ import annotations

import pytest

from reconciler.spec.spec_files import find_parent_folder


@pytest.fixture
def repo(tmp_path):
    (tmp_path / "policies").mkdir()
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    (root / "specs" / "sales").mkdir(parents=True)
    return root


def test_a_folder_is_found_beside_the_specs(repo):
    (repo / "policies").mkdir()

    assert repo / "policies" == find_parent_folder(repo / "specs" / "sales", "policies")


def test_the_nearest_folder_is_taken(repo):
    (repo / "policies").mkdir()
    (repo / "specs" / "policies").mkdir()

    assert repo / "specs" / "policies" == find_parent_folder(repo / "specs" / "sales", "policies")


def test_the_folder_itself_counts(repo):
    (repo / "specs" / "policies").mkdir()

    assert repo / "specs" / "policies" == find_parent_folder(repo / "specs", "policies")


def test_what_lies_around_a_repository_is_not_of_it(repo):
    assert find_parent_folder(repo / "specs", "policies") is None


def test_a_worktree_is_a_repository_too(repo):
    (repo / ".git").rmdir()
    (repo / ".git").write_text("gitdir: /elsewhere\n")

    assert find_parent_folder(repo / "specs", "policies") is None


def test_without_a_repository_the_search_goes_on_upwards(repo, tmp_path):
    (repo / ".git").rmdir()

    assert tmp_path / "policies" == find_parent_folder(repo / "specs" / "sales", "policies")


def test_a_file_of_that_name_is_passed_over(repo):
    (repo / "policies").mkdir()
    (repo / "specs" / "policies").write_text("")

    assert repo / "policies" == find_parent_folder(repo / "specs", "policies")


def test_relative_folders_start_from_the_current_one(repo, monkeypatch):
    (repo / "policies").mkdir()
    monkeypatch.chdir(repo / "specs")

    assert repo / "policies" == find_parent_folder(repo.relative_to(repo), "policies")
