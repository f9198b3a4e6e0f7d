from __future__ import annotations

import errno
import fcntl
import os
import resource
from pathlib import Path

import pytest

from reconciler.errors import (
    AlreadyExistsError,
    NotFoundError,
    PermissionDeniedError,
    StorageError,
    UnsupportedError,
)
from reconciler.hudi.timeline.instant import Instant
from reconciler.storage import paths
from reconciler.storage.conditional_replace import replace_if_unchanged
from reconciler.storage.local import LocalStorage

NAME = "20240101000000000_20240101000001000.clean"


@pytest.fixture
def storage(tmp_path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


def write(folder: Path, name: str, data: bytes = b"x") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def test_deleting_a_file_deletes_its_checksum_file(storage, tmp_path):
    for name in ("f", ".f.crc", "g", ".g.crc", "h", ".h.crc"):
        write(tmp_path / "p", name)

    storage.delete("p/f")
    storage.delete_many(["p/g"])

    assert sorted(os.listdir(tmp_path / "p")) == [".h.crc", "h"]


def test_a_replaced_or_created_file_has_no_checksum_of_older_bytes(storage, tmp_path):
    for name in ("f", ".f.crc", ".g.crc"):
        write(tmp_path, name)

    storage.replace("f", b"new")
    storage.create("g", b"new")

    assert sorted(os.listdir(tmp_path)) == ["f", "g"]


def test_the_checksum_of_an_unchanged_file_stays(storage, tmp_path):
    write(tmp_path, "f")
    write(tmp_path, ".f.crc")
    with pytest.raises(AlreadyExistsError):
        storage.create("f", b"y")

    assert (tmp_path / ".f.crc").exists()


def test_a_checksum_goes_before_its_file(storage, tmp_path, monkeypatch):
    write(tmp_path, "f")
    write(tmp_path, ".f.crc")
    removed = []
    monkeypatch.setattr(os, "unlink", lambda path: removed.append(os.path.basename(path)))
    storage.delete("f")

    assert removed == [".f.crc", "f"]


def test_no_temporary_file_is_left(storage, tmp_path):
    storage.create(NAME, b"a")
    storage.replace(NAME, b"b")
    with pytest.raises(AlreadyExistsError):
        storage.create(NAME, b"c")

    assert os.listdir(tmp_path) == [NAME]


def test_a_temporary_name_is_no_instant_and_not_listed():
    name = paths.make_temporary_path(NAME)

    assert name != paths.make_temporary_path(NAME)
    assert Instant.parse(name) is None
    assert paths.is_hidden(name)


def test_a_temporary_name_that_is_taken_is_passed_over(storage, tmp_path, monkeypatch):
    names = iter([str(tmp_path / "taken"), str(tmp_path / "free")])
    write(tmp_path, "taken", b"theirs")
    monkeypatch.setattr("reconciler.storage.local.make_temporary_path", lambda _: next(names))

    storage.create("f", b"ours")

    assert sorted(os.listdir(tmp_path)) == ["f", "taken"]
    assert (tmp_path / "taken").read_bytes() == b"theirs"


def test_a_full_disk_leaves_nothing_behind(storage, tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"/f: No space left on device"):
        storage.create("f", b"x")
    with pytest.raises(StorageError, match="No space left"):
        storage.replace("f", b"x")

    assert os.listdir(tmp_path) == []


def test_a_disk_without_hard_links_is_named(storage, tmp_path, monkeypatch):
    def refuse(_from, _to):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(StorageError, match="has no hard links"):
        storage.create("f", b"x")

    assert os.listdir(tmp_path) == []


def test_a_disk_that_locks_no_folders_cannot_compare(storage, tmp_path, monkeypatch):
    def refuse(_handle, _operation):
        raise OSError(errno.EBADF, "Bad file descriptor")  # as NFS for a folder

    version = storage.replace_version("p/f", b"1", None)
    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(UnsupportedError, match=r"p/f: its folder cannot be locked"):
        storage.replace_version("p/f", b"2", version)
    replace_if_unchanged(storage, "p/f", b"3", version)

    assert b"3" == (tmp_path / "p/f").read_bytes()


def test_refused_access_names_the_path(storage, monkeypatch):
    def refuse(_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    for function in ("scandir", "listdir"):
        monkeypatch.setattr(os, function, refuse)
    with pytest.raises(PermissionDeniedError, match=r"/p: Permission denied"):
        storage.list("p")
    with pytest.raises(PermissionDeniedError):
        list(storage.walk(lambda _: True))


def test_a_path_through_a_file_says_what_to_correct(storage, tmp_path):
    write(tmp_path, "f")
    with pytest.raises(StorageError) as error:
        storage.read("f/g")

    assert str(error.value) == (
        f"{tmp_path}/f/g: Not a directory; its path leads through a file, correct the path"
    )


def test_one_refused_deletion_does_not_stop_the_others(storage, tmp_path, monkeypatch):
    write(tmp_path / "p", "f")
    write(tmp_path / "p", "g")
    remove = os.unlink

    def refuse(path):
        if path.endswith("/f"):
            raise PermissionError(errno.EACCES, "Permission denied")
        remove(path)

    monkeypatch.setattr(os, "unlink", refuse)
    first, second = storage.delete_many(["p/f", "p/g"])

    assert first.error == (
        f"{tmp_path}/p/f: Permission denied; give this user access to it and the folders above"
    )
    assert (first.existed, second.existed, second.error) == (False, True, None)


def test_files_that_vanish_during_a_walk_are_left_out(storage, tmp_path):
    write(tmp_path / "p", "f")
    write(tmp_path / "q", "f")
    names = []
    for folder in storage.walk(lambda _: True):
        names += folder.names
        if folder.path in ("p", "q"):
            for other in {"p", "q"} - {folder.path}:
                (tmp_path / other / "f").unlink()
                (tmp_path / other).rmdir()

    assert names == ["f"]


def test_a_symbolic_link_in_the_table_is_reported_and_not_followed(tmp_path):
    outside = tmp_path / "outside"
    write(outside, "f")
    table = tmp_path / "table"
    write(table, "g")
    (table / "p=1").symlink_to(outside)
    storage = LocalStorage(str(table))

    for act in (lambda: list(storage.walk(lambda _: True)), lambda: storage.list("")):
        with pytest.raises(StorageError, match=r"table/p=1: is a symbolic link"):
            act()
    for act in (storage.read, storage.delete, storage.stat):
        with pytest.raises(StorageError, match="symbolic link"):
            act("p=1/f")
    with pytest.raises(StorageError, match="symbolic link"):
        storage.create("p=1/new", b"x")
    with pytest.raises(StorageError):
        storage.remove_folder("p=1")
    (outcome,) = storage.delete_many(["p=1/f"])
    assert "symbolic link" in outcome.error

    assert os.listdir(outside) == ["f"]


@pytest.mark.parametrize("path", ["a/link/f", "a/link/b/f", "link/f"])
def test_nothing_below_a_symbolic_link_is_touched(storage, tmp_path, path):
    below, folder = tmp_path / path.partition("link")[0], path.rpartition("/")[0]
    write(tmp_path.parent / f"{tmp_path.name} outside" / folder, "f")
    below.mkdir(exist_ok=True)
    (below / "link").symlink_to(tmp_path.parent / f"{tmp_path.name} outside")

    with pytest.raises(StorageError, match=f"{folder}: is behind a symbolic link"):
        storage.read(path)


def test_a_linked_file_is_not_read(storage, tmp_path):
    write(tmp_path, "real")
    (tmp_path / "linked").symlink_to(tmp_path / "real")

    with pytest.raises(StorageError, match="symbolic link"):
        storage.read("linked")


def test_the_table_itself_may_lie_behind_a_link(tmp_path):
    write(tmp_path / "real" / "p", "f")
    (tmp_path / "table").symlink_to(tmp_path / "real")
    storage = LocalStorage(str(tmp_path / "table"))

    assert storage.read("p/f") == b"x"
    assert storage.delete_many(["p/f"])[0].existed is True


def test_a_folder_of_orphaned_checksums_is_empty(storage, tmp_path):
    write(tmp_path / "p", ".gone.crc")

    assert storage.remove_folder("p") is True
    assert not (tmp_path / "p").exists()


def test_a_folder_with_a_half_published_file_stays(storage, tmp_path):
    write(tmp_path / "p", "f.0f8fad5b-d9cb-469f-a165-70867728950e")
    write(tmp_path / "p", ".gone.crc")

    assert storage.remove_folder("p") is False
    assert len(os.listdir(tmp_path / "p")) == 2


def test_a_replaced_file_keeps_its_mode(storage, tmp_path):
    write(tmp_path, "f")
    (tmp_path / "f").chmod(0o640)
    storage.replace("f", b"y")

    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o640


def test_a_file_where_a_folder_should_be_is_named(storage, tmp_path):
    write(tmp_path, "f")
    with pytest.raises(StorageError, match="Not a directory"):
        storage.list("f")
    with pytest.raises(StorageError):
        storage.create("f/g", b"x")
    with pytest.raises(NotFoundError):
        storage.list("g")


def test_a_full_disk_names_the_table_and_not_the_copied_file(storage, tmp_path):
    (tmp_path / "local").write_bytes(b"x" * 10_000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(StorageError, match="File too large") as failed:
            storage.create_from("f", str(tmp_path / "local"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert str(tmp_path / "f") == failed.value.path
    assert not (tmp_path / "f").exists()


def test_a_folder_that_is_gone_is_told_as_by_every_other_call(tmp_path):
    with pytest.raises(NotFoundError, match="p=1"):
        LocalStorage(str(tmp_path)).stat_folder("p=1")
