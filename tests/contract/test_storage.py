"""Check what every storage promises, for each of them.

Three of them are servers that the tests start themselves: of S3, and under ``./ci/test --all`` of
GCS and Azure. RECONCILER_TEST_STORES adds stores: a space-separated list of URLs of empty prefixes.
RECONCILER_TEST_STORE_OPTIONS holds their options as JSON.
"""

from __future__ import annotations

import json
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from reconciler.errors import (
    AlreadyExistsError,
    ChangedError,
    NotFoundError,
    StorageError,
    UnsupportedError,
)
from reconciler.storage import exclusive_creation
from reconciler.storage.api import DeletionResult, Storage
from reconciler.storage.conditional_replace import compute_version
from reconciler.storage.open import open_storage
from reconciler.storage.read_only import ReadOnlyStorage
from reconciler.storage.remote import RemoteStorage
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageFault

_number = count()
_EMULATED = (
    *(pytest.mark.oracle, pytest.mark.long),
    # the clients hand bytes to aiohttp, which wants files above a MiB
    pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning"),
)
_STORES = [
    *("local", "memory", pytest.param("s3", marks=pytest.mark.oracle)),
    *(pytest.param(store, marks=_EMULATED) for store in ("gs", "azure")),
    *os.environ.get("RECONCILER_TEST_STORES", "").split(),
]
_OPTIONS = json.loads(os.environ.get("RECONCILER_TEST_STORE_OPTIONS", "{}"))


@pytest.fixture(params=_STORES)
def storage(request, tmp_path) -> Storage:
    match request.param:
        case "local":
            return open_storage(str(tmp_path / "table"))
        case "memory":
            return open_storage(f"memory://tables/{os.getpid()}-{next(_number)}")
        case "s3":
            bucket = request.getfixturevalue("s3_bucket")
            return open_storage(f"{bucket.url}/table", bucket.options)
        case "gs" | "azure" as name:
            server = request.getfixturevalue("google_server" if name == "gs" else "azure_server")
            place = server.make_bucket() if name == "gs" else server.make_container()
            return open_storage(f"{place}/table", server.options)
        case url:
            return open_storage(f"{url}/{os.getpid()}-{next(_number)}", _OPTIONS)


def everything(storage: Storage, descend=lambda _: True) -> dict[str, int]:
    return {
        f"{folder.path}/{name}": size
        for folder in storage.walk(descend)
        for name, size in zip(folder.names, folder.sizes, strict=True)
    }


def test_what_was_created_is_read_back(storage):
    storage.create("a/b/f.bin", b"\x00\xff bytes")

    assert storage.read("a/b/f.bin") == b"\x00\xff bytes"


def test_an_empty_file_can_be_created_and_read(storage):
    storage.create("empty", b"")

    assert storage.read("empty") == b""
    assert storage.stat("empty").size == 0


def test_creating_twice_raises_and_keeps_the_first(storage):
    storage.create("f", b"first")
    with pytest.raises(AlreadyExistsError, match="f: already exists"):
        storage.create("f", b"second")
    with pytest.raises(AlreadyExistsError):
        storage.create("f", b"")

    assert storage.read("f") == b"first"


def test_one_of_many_concurrent_creators_wins(storage):
    if "://" in storage.location and storage.location.startswith("memory"):
        pytest.skip("fsspec's memory store looks before it writes")

    def attempt(number: int) -> bool:
        try:
            storage.create("contended", b"%d" % number * 1000)
        except AlreadyExistsError:
            return False
        return True

    storage.create("warm", b"up")
    with ThreadPoolExecutor(8) as pool:
        won = [number for number, ok in enumerate(pool.map(attempt, range(8))) if ok]

    assert len(won) == 1
    assert storage.read("contended") == b"%d" % won[0] * 1000


@pytest.mark.parametrize("size", [0, 1, 3_000_001])
def test_a_local_file_is_copied_to_the_table(storage, tmp_path, size):
    local = tmp_path / "local"
    data = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    local.write_bytes(data)
    storage.create_from("a/b/f.bin", str(local))

    assert storage.read("a/b/f.bin") == data
    assert local.read_bytes() == data
    assert [(entry.name, entry.size) for entry in storage.list("a/b")] == [("f.bin", size)]


def test_a_file_of_many_chunks_is_copied_to_the_table(storage, tmp_path, monkeypatch):
    monkeypatch.setattr(exclusive_creation, "_MAX_WHOLE_READ", 1000)
    local = tmp_path / "local"
    local.write_bytes(bytes(range(250)) * 40)
    storage.create_from("f", str(local))
    with pytest.raises(AlreadyExistsError, match="f: already exists"):
        storage.create_from("f", str(local))

    assert storage.read("f") == bytes(range(250)) * 40


@pytest.mark.parametrize("megabytes", [64, 101])
def test_a_file_above_the_limit_of_one_request_is_copied_whole(storage, tmp_path, megabytes):
    if not isinstance(storage, RemoteStorage) or storage.location.startswith("memory"):
        pytest.skip("has no requests")
    local = tmp_path / "local"
    local.write_bytes(b"0123456789abcdef" * (megabytes * 2**16) + b"end")
    storage.create_from("f", str(local))
    with pytest.raises(AlreadyExistsError, match="f: already exists"):
        storage.create_from("f", str(local))

    assert storage.stat("f").size == megabytes * 2**20 + 3
    assert storage.read_range("f", megabytes * 2**20 - 2, 9) == b"efend"
    assert [entry.name for entry in storage.list("")] == ["f"]


def test_a_local_file_never_replaces_another(storage, tmp_path):
    local = tmp_path / "local"
    local.write_bytes(b"second")
    storage.create("f", b"first")
    with pytest.raises(AlreadyExistsError, match="f: already exists"):
        storage.create_from("f", str(local))

    assert storage.read("f") == b"first"
    assert everything(storage) == {"/f": 5}


def test_a_missing_local_file_is_named_and_nothing_is_created(storage, tmp_path):
    storage.create("f", b"first")
    with pytest.raises(StorageError, match="no-such-file"):
        storage.create_from("g", str(tmp_path / "no-such-file"))

    assert everything(storage) == {"/f": 5}


def require_versions(storage: Storage) -> None:
    """Skip what GCS and Azure cannot do, once they have said so."""
    if storage.location.startswith(("gs:", "abfs:")):
        with pytest.raises(UnsupportedError, match="replace a file on the condition"):
            storage.replace_version("p/lock.json", b"x", None)
        assert storage.stat("p/lock.json") is None
        pytest.skip("has no versions to replace")


def test_a_version_is_replaced_once(storage):
    require_versions(storage)
    first = storage.replace_version("p/lock.json", b"one", None)
    second = storage.replace_version("p/lock.json", b"two", first)

    found = storage.read_version("p/lock.json")
    assert (found.data, found.version) == (b"two", second)
    with pytest.raises(ChangedError, match=r"lock\.json"):
        storage.replace_version("p/lock.json", b"late", first)
    with pytest.raises(ChangedError):
        storage.replace_version("p/lock.json", b"new", None)
    assert storage.read("p/lock.json") == b"two"


def test_a_missing_file_has_no_version_to_replace(storage):
    require_versions(storage)
    with pytest.raises(ChangedError):
        storage.replace_version("p/lock.json", b"x", compute_version(b"x"))
    with pytest.raises(NotFoundError):
        storage.read_version("p/lock.json")


def test_one_of_many_replaces_a_version(storage):
    require_versions(storage)
    version = storage.replace_version("p/lock.json", b"free", None)

    def replace(number: int) -> bool:
        try:
            storage.replace_version("p/lock.json", b"%d" % number, version)
        except ChangedError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(replace, range(16)))

    assert won.count(True) == 1
    assert storage.read("p/lock.json") == b"%d" % won.index(True)


def test_replacing_writes_whether_or_not_it_exists(storage):
    storage.replace("p/f", b"old and longer")
    storage.replace("p/f", b"new")

    assert storage.read("p/f") == b"new"


def test_ranges_count_from_the_start_or_the_end(storage):
    storage.create("f", b"0123456789")

    assert storage.read_range("f", 2, 3) == b"234"
    assert storage.read_range("f", -4, 2) == b"67"
    assert storage.read_range("f", 8, 10) == b"89"
    assert storage.read_range("f", -99, 4) == b"0123"


def test_reading_a_missing_file_names_the_path(storage):
    storage.create("f", b"x")
    with pytest.raises(NotFoundError, match="nothing/here"):
        storage.read("nothing/here")
    with pytest.raises(NotFoundError, match="nothing/here"):
        storage.read_range("nothing/here", 0, 1)
    with pytest.raises(NotFoundError, match="nothing/here"):
        storage.read_range("nothing/here", -1, 1)


def test_a_listing_shows_children_only_in_order(storage):
    for path in ("b", "a/x", "a/y/z", ".hoodie/hoodie.properties"):
        storage.create(path, b"12")

    listed = [(entry.name, entry.size, entry.is_folder) for entry in storage.list("")]

    assert listed == [(".hoodie", 0, True), ("a", 0, True), ("b", 2, False)]
    assert [entry.name for entry in storage.list("a")] == ["x", "y"]


def test_listing_a_missing_folder_raises(storage):
    storage.create("f", b"x")
    if "://" not in storage.location:
        with pytest.raises(NotFoundError, match="nothing"):
            storage.list("nothing")


def test_a_missing_table_is_an_error(storage):
    with pytest.raises(NotFoundError, match="does not exist"):
        storage.list("")
    with pytest.raises(NotFoundError, match="does not exist"):
        list(storage.walk(lambda _: True))

    assert storage.stat("hoodie.properties") is None


def test_a_walk_names_every_file_with_its_size(storage):
    for path in ("f", "p=1/a", "p=1/q=2/b", ".hoodie/c"):
        storage.create(path, b"x" * len(path))

    assert everything(storage) == {"/f": 1, "p=1/a": 5, "p=1/q=2/b": 9, ".hoodie/c": 9}


def test_a_walk_skips_folders_that_are_not_entered(storage):
    for path in ("p=1/a", ".hoodie/metadata/b", ".hoodie/c"):
        storage.create(path, b"x")
    visited = []

    def descend(path: str) -> bool:
        visited.append(path)
        return path != ".hoodie"

    assert everything(storage, descend) == {"p=1/a": 1}
    assert sorted(visited) == [".hoodie", "p=1"]


def test_a_walk_yields_the_root_and_each_folder_once(storage):
    for path in ("p=1/q=1/a", "p=1/q=2/b"):
        storage.create(path, b"x")

    walked = sorted(folder.path for folder in storage.walk(lambda _: True))

    assert walked == ["", "p=1", "p=1/q=1", "p=1/q=2"]


def test_checksum_and_temporary_files_are_not_listed(storage):
    uuid = "0f8fad5b-d9cb-469f-a165-70867728950e"
    for name in ("f", ".f.crc", f"1.commit.{uuid}"):
        storage.replace(f"p/{name}", b"x")

    assert [entry.name for entry in storage.list("p")] == ["f"]
    assert everything(storage) == {"p/f": 1}


def test_stat_distinguishes_files_folders_and_nothing(storage):
    storage.create("p/f", b"123")

    file, folder = storage.stat("p/f"), storage.stat("p")

    assert (file.name, file.size, file.is_folder) == ("f", 3, False)
    assert (folder.name, folder.is_folder) == ("p", True)
    assert file.modified_ms > 1_600_000_000_000
    assert storage.stat("p/g") is None


def test_deleting_returns_whether_the_file_existed(storage):
    storage.create("f", b"x")
    storage.create("g", b"x")

    assert storage.delete("f") is True
    assert storage.delete("f") is False
    assert storage.stat("f") is None


def test_a_folder_is_not_deleted_as_a_file(storage):
    storage.create("p/f", b"x")
    with pytest.raises(StorageError, match="p"):
        storage.delete("p")

    assert storage.read("p/f") == b"x"


def test_deleting_many_answers_in_order(storage):
    for path in ("p=1/a", "p=1/b", "p=2/a", "keep"):
        storage.create(path, b"x")

    outcomes = storage.delete_many(["p=2/a", "p=1/gone", "p=1/a", "nowhere/f"])

    # a bulk delete does not tell what was there, and a listing of each folder would cost more
    is_unknown = storage.location.startswith("s3:")
    assert outcomes == [
        DeletionResult("p=2/a", existed=True),
        DeletionResult("p=1/gone", existed=is_unknown),
        DeletionResult("p=1/a", existed=True),
        DeletionResult("nowhere/f", existed=is_unknown),
    ]
    assert everything(storage) == {"p=1/b": 1, "/keep": 1}


def test_deleting_many_takes_names_literally(storage):
    for name in ("a*", "ab", "[c]", "c", "d?", "de", "e%20f", "e f", "ü", "#1"):
        storage.create(f"p/{name}", b"x")

    outcomes = storage.delete_many(["p/a*", "p/[c]", "p/d?", "p/e%20f", "p/ü", "p/#1"])

    assert [outcome.existed for outcome in outcomes] == [True] * 6
    assert sorted(everything(storage)) == ["p/ab", "p/c", "p/de", "p/e f"]


def test_deleting_more_than_a_batch_deletes_all(storage):
    paths = [f"p/{number}" for number in range(1203 if "s3:" in storage.location else 30)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda path: storage.replace(path, b"x"), paths))
    storage.create("keep", b"x")

    assert all(outcome.existed for outcome in storage.delete_many(paths))
    assert everything(storage) == {"/keep": 1}


def test_deleting_no_files_returns_nothing(storage):
    assert storage.delete_many([]) == []


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "a//b", "./a", "a/.", "a\0b"])
def test_nothing_outside_the_root_can_be_named(storage, path):
    storage.create("f", b"x")
    for act in (storage.read, storage.stat, storage.delete, storage.list, storage.remove_folder):
        with pytest.raises(StorageError):
            act(path)
    with pytest.raises(StorageError):
        storage.create(path, b"x")
    with pytest.raises(StorageError):
        storage.replace(path, b"x")
    with pytest.raises(StorageError):
        storage.create_from(path, __file__)

    (outcome,) = storage.delete_many([path])

    assert outcome.error is not None
    assert outcome.existed is False


def test_a_folder_is_removed_only_when_it_is_empty(storage):
    storage.create("p/q/f", b"x")
    storage.create("keep", b"x")

    assert storage.remove_folder("p/q") is False
    storage.delete("p/q/f")
    assert storage.remove_folder("p/q") is True
    assert storage.remove_folder("p/q") is True
    assert storage.stat("p/q") is None


def test_the_root_is_never_removed(storage):
    with pytest.raises(StorageError):
        storage.remove_folder("")


def test_changes_of_another_storage_are_visible_at_once(storage):
    other = open_storage(storage.ref)
    storage.create("p/a", b"x")
    assert [entry.name for entry in other.list("p")] == ["a"]
    storage.create("p/b", b"x")
    storage.delete("p/a")

    assert [entry.name for entry in other.list("p")] == ["b"]
    assert everything(other) == {"p/b": 1}
    assert other.stat("p/a") is None


def test_a_storage_and_its_wrappers_pickle(storage):
    storage.create("f", b"x")
    wrapped = RecordingStorage(
        ReadOnlyStorage(FaultyStorage(storage, StorageFault(at=1), OSError("stop")))
    )

    for original in (storage, wrapped):
        copy = pickle.loads(pickle.dumps(original))
        assert copy.location == storage.location
        assert copy.read("f") == b"x"
