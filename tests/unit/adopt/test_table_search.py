"""Tables are found below folders, URLs and globs, and nothing of theirs is listed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

import pytest

from reconciler.adopt.table_search import find_tables
from reconciler.errors import PermissionDeniedError, StorageError, UsageError
from reconciler.storage.open import open_storage
from tests.storage_wrappers import RecordingStorage


@pytest.fixture(scope="module")
def workers() -> Iterator[Executor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture
def find(workers, tmp_path):
    def found(*places, depth=None):
        search = find_tables(
            [str(place) for place in places], open_storage, workers=workers, depth=depth
        )
        assert search.problems == []
        return [os.path.relpath(table, tmp_path) for table in search.tables]

    return found


def table(path: Path) -> Path:
    (path / ".hoodie").mkdir(parents=True)
    (path / ".hoodie" / "hoodie.properties").write_text("#\n")
    (path / "p=1").mkdir()
    return path


def test_tables_are_found_at_any_depth_and_not_within_tables(tmp_path, find):
    table(tmp_path / "a")
    table(tmp_path / "b" / "c" / "d")
    table(tmp_path / "a" / "nested")
    table(tmp_path / "a" / ".hoodie" / "metadata")

    assert find(tmp_path) == ["a", "b/c/d"]
    assert find(tmp_path / "a") == ["a"]


def test_a_depth_bounds_the_search(tmp_path, find):
    table(tmp_path / "a")
    table(tmp_path / "b" / "c")

    assert find(tmp_path, depth=1) == ["a"]
    assert find(tmp_path, depth=2) == ["a", "b/c"]
    assert find(tmp_path / "a", depth=0) == ["a"]


def test_hidden_folders_are_passed_over(tmp_path, find):
    table(tmp_path / ".trash" / "a")
    table(tmp_path / "b")

    assert find(tmp_path) == ["b"]


def test_a_folder_of_hoodie_files_without_properties_is_no_table(tmp_path, find):
    (tmp_path / "a" / ".hoodie").mkdir(parents=True)
    table(tmp_path / "a" / "b")

    assert find(tmp_path) == ["a/b"]


def test_a_table_whose_properties_are_being_replaced_is_one(tmp_path, find):
    at = table(tmp_path / "a") / ".hoodie"
    (at / "hoodie.properties").rename(at / "hoodie.properties.backup")

    assert find(tmp_path) == ["a"]


def test_links_are_followed_once(tmp_path, find):
    table(tmp_path / "a" / "t")
    (tmp_path / "a" / "again").symlink_to(tmp_path / "a")
    (tmp_path / "b").symlink_to(tmp_path / "a" / "t")
    (tmp_path / "self").symlink_to(tmp_path / "self")

    assert len(find(tmp_path)) == 1


def test_places_may_overlap(tmp_path, find):
    table(tmp_path / "a" / "t")
    table(tmp_path / "b" / "t")

    assert find(tmp_path / "a", tmp_path, tmp_path / "a" / "t") == ["a/t", "b/t"]


def test_globs_choose_folders_and_hidden_ones_only_by_name(tmp_path, find):
    for name in ("x/orders_1", "y/orders_2", "y/clients", ".z/orders_3"):
        table(tmp_path / name)

    assert find(tmp_path / "*" / "orders*") == ["x/orders_1", "y/orders_2"]
    assert find(tmp_path / "[y]") == ["y/clients", "y/orders_2"]
    assert find(tmp_path / ".*" / "orders_?") == [".z/orders_3"]


def test_a_folder_with_a_wildcard_in_its_name_is_itself(tmp_path, find):
    table(tmp_path / "a*")
    table(tmp_path / "ab")

    assert find(tmp_path / "a*") == ["a*"]


@pytest.mark.parametrize("place", ["", "none*", "f", "f/**"])
def test_a_place_without_a_table_is_a_mistake(place, tmp_path, find):
    (tmp_path / "f").mkdir()

    with pytest.raises(UsageError, match="--from"):
        find(f"{tmp_path}/{place}")


def test_a_metadata_table_is_no_place_to_adopt(tmp_path, find):
    with pytest.raises(UsageError, match="is a metadata table"):
        find(table(tmp_path / "a" / ".hoodie" / "metadata"))


def test_a_place_that_is_not_there_is_named(tmp_path, find):
    with pytest.raises(StorageError, match="nowhere: does not exist"):
        find(tmp_path / "nowhere")


class Partly(RecordingStorage):
    def list(self, folder):
        if folder == "b":
            raise PermissionDeniedError("memory://partly/lake/b", "is not allowed")
        return super().list(folder)


def test_a_folder_that_cannot_be_listed_does_not_stop_the_search(workers):
    storage = open_storage("memory://partly/lake")
    for path in ("a", "b/c"):
        storage.create(f"{path}/.hoodie/hoodie.properties", b"#\n")
    search = find_tables(
        ["memory://partly/lake"], lambda at: Partly(open_storage(at)), workers=workers
    )

    assert search.tables == ["memory://partly/lake/a"]
    assert search.problems == ["memory://partly/lake/b: is not allowed"]


def test_in_a_store_no_file_of_a_table_is_listed(workers):
    storage = open_storage("memory://discover/lake")
    for path in ("sales/orders", "crm/deep/clients"):
        storage.create(f"{path}/.hoodie/hoodie.properties", b"#\n")
        storage.create(f"{path}/dt=1/f.parquet", b"?")
    storage.create("sales/notes.txt", b"?")
    recorded = []

    def opened(location):
        recorded.append(RecordingStorage(open_storage(location)))
        return recorded[-1]

    search = find_tables(["memory://discover/lake"], opened, workers=workers)
    listed = [call.paths[0] for each in recorded for call in each.calls if call.method == "list"]

    assert search.tables == [
        "memory://discover/lake/crm/deep/clients",
        "memory://discover/lake/sales/orders",
    ]
    assert sorted(listed) == ["", "crm", "crm/deep", "sales"]


def test_in_a_store_globs_choose_folders(workers):
    storage = open_storage("memory://globbed/lake")
    for path in ("sales/orders", "crm/orders", "crm/clients"):
        storage.create(f"{path}/.hoodie/hoodie.properties", b"#\n")
    search = find_tables(["memory://globbed/lake/*/o*"], open_storage, workers=workers)

    assert search.tables == [
        "memory://globbed/lake/crm/orders",
        "memory://globbed/lake/sales/orders",
    ]


def test_a_bucket_cannot_be_a_glob(workers):
    with pytest.raises(UsageError, match="wildcards are not possible in the bucket"):
        find_tables(["memory://b*/lake"], open_storage, workers=workers)


def test_people_hear_how_far_the_search_is(tmp_path, workers):
    table(tmp_path / "a")
    table(tmp_path / "b" / "c")
    heard = []
    find_tables(
        [str(tmp_path)], open_storage, workers=workers, on_progress=lambda *n: heard.append(n)
    )

    assert heard == [(1, 0), (2, 1), (3, 1), (4, 2)]
