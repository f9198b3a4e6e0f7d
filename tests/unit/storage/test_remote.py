from __future__ import annotations

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from reconciler.errors import PermissionDeniedError, StorageError, UnsupportedError
from reconciler.storage.api import StorageRef
from reconciler.storage.open import open_storage
from reconciler.storage.remote import RemoteStorage


class Overwriting(MemoryFileSystem):
    """A client that ignores the condition, as old clients do."""

    def pipe_file(self, path, value, mode="overwrite", **kwargs):  # noqa: ARG002
        super().pipe_file(path, value)


class Unaware(MemoryFileSystem):
    def pipe_file(self, path, value):
        super().pipe_file(path, value)


class NoCredentialsError(Exception):
    pass


class Locked(MemoryFileSystem):
    def ls(self, path, detail=True, **kwargs):  # noqa: ARG002
        raise NoCredentialsError("Unable to locate credentials")

    find = ls


class Caching(MemoryFileSystem):
    """A client that answers from its first listing until its cache is invalidated."""

    listed = None

    def ls(self, path, detail=True, **kwargs):
        if self.listed is None:
            self.listed = super().ls(path, detail, **kwargs)
        return self.listed

    def find(self, path, **kwargs):
        if self.listed is None:
            self.listed = super().find(path, **kwargs)
        return self.listed

    def invalidate_cache(self, path=None):  # noqa: ARG002
        self.listed = None


def remote(filesystem: type[MemoryFileSystem], url: str = "s3://bucket/t") -> RemoteStorage:
    return RemoteStorage(StorageRef(url), filesystem(global_store=False), "/bucket/t", open_storage)


@pytest.mark.parametrize("client", [Overwriting, Unaware])
def test_a_store_that_overwrites_is_never_written_to(client):
    storage = remote(client)
    with pytest.raises(UnsupportedError, match=r"s3://bucket/t/f: .* cannot create .* exclusively"):
        storage.create("f", b"x")

    assert storage.stat("f") is None
    assert storage._fs.store == {}


def test_a_store_without_atomic_creation_is_read_only():
    storage = remote(MemoryFileSystem, "sftp://host/t")
    for write in (storage.create, storage.replace):
        with pytest.raises(UnsupportedError, match="for reading only"):
            write("f", b"x")


def test_a_listing_is_never_an_old_one():
    storage = remote(Caching, "gs://bucket/t")
    storage._creates_exclusively = True
    for number in range(2):
        storage.create(f"f{number}", b"x")
        assert len(storage.list("")) == number + 1
        (walked,) = storage.walk(lambda _: True)
        assert len(walked.names) == number + 1


def test_missing_credentials_are_a_permission_error():
    storage = remote(Locked)
    with pytest.raises(PermissionDeniedError, match=r"s3://bucket/t/p: Unable to locate"):
        storage.list("p")
    with pytest.raises(PermissionDeniedError):
        list(storage.walk(lambda _: True))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nosuch://a/b", "nosuch:// is not a supported store"),
        ("s3://", "names no bucket"),
        ("file://host/a", "names a host"),
        ("", "empty location"),
    ],
)
def test_a_location_that_names_no_store_is_refused(url, message):
    with pytest.raises(StorageError, match=message):
        open_storage(url)


@pytest.mark.parametrize(
    ("url", "extra"), [("s3a://b/t", "s3"), ("gs://b/t", "gcs"), ("abfss://c@a/t", "azure")]
)
@pytest.mark.parametrize("problem", [ImportError, ValueError])  # ValueError: unknown to fsspec
def test_the_extra_of_a_client_that_is_not_installed_is_named(url, extra, problem, monkeypatch):
    def missing(_):
        raise problem

    monkeypatch.setattr("fsspec.get_filesystem_class", missing)
    with pytest.raises(StorageError, match=rf"; pip install 'hudi-reconciler\[{extra}\]'"):
        open_storage(url)


def test_options_are_never_printed():
    storage = open_storage("memory://t", {})
    ref = StorageRef("s3://b/t", (("secret", "hunter2"),))

    assert "hunter2" not in repr(ref)
    assert repr(storage) == "RemoteStorage('memory://t')"


def test_other_spellings_of_a_location_are_one():
    assert open_storage("file:///tmp/a b%20c/").location == "/tmp/a b c"
    assert open_storage("/tmp//x/").location == open_storage("file:/tmp/x").location


def test_no_option_turns_on_a_cache(monkeypatch):
    given = {}

    class Told(MemoryFileSystem):
        def __init__(self, **options: object) -> None:
            given.update(options)
            super().__init__()

    monkeypatch.setattr("fsspec.get_filesystem_class", lambda _: Told)
    wishes = {"use_listings_cache": "true", "anon": "true"}
    open_storage("other://b/t", wishes)

    assert given == {"use_listings_cache": False, "anon": True}


def test_numbers_arrive_as_numbers_and_keys_as_text(monkeypatch):
    given = {}

    class Told(MemoryFileSystem):
        def __init__(self, **options: object) -> None:
            given.update(options)
            super().__init__()

    monkeypatch.setattr("fsspec.get_filesystem_class", lambda _: Told)
    wishes = {"max_concurrency": "4", "read_timeout": "2.5", "key": "123", "retryFor": "1m"}
    open_storage("other://b/t", wishes)

    assert given == {
        "use_listings_cache": False, "max_concurrency": 4, "read_timeout": 2.5, "key": "123"
    }  # fmt: skip


def test_an_option_that_is_no_number_is_named(monkeypatch):
    monkeypatch.setattr("fsspec.get_filesystem_class", lambda _: MemoryFileSystem)
    with pytest.raises(StorageError, match="max_concurrency: 'many' is not a number"):
        open_storage("other://b/t", {"max_concurrency": "many"})
    with pytest.raises(StorageError, match="'soon' is not a duration"):
        open_storage("other://b/t", {"retryFor": "soon"})
    with pytest.raises(StorageError, match="requestTimeout: '0s' is no time to wait; the least"):
        open_storage("other://b/t", {"requestTimeout": "0s"})


def test_a_client_of_hdfs_without_java_says_what_to_set(monkeypatch):
    class Searching(MemoryFileSystem):
        def __init__(self, **_):
            raise OSError("Unable to load libjvm dlopen(/usr/lib/jvm/libjvm.so) failed: " * 30)

    monkeypatch.setattr("fsspec.get_filesystem_class", lambda _: Searching)
    with pytest.raises(StorageError) as caught:
        open_storage(StorageRef("hdfs://nn/lake/t"))

    assert str(caught.value) == (
        "hdfs://nn/lake/t: the client of hdfs:// did not start: it finds no Java and Hadoop; set "
        "JAVA_HOME, HADOOP_HOME and CLASSPATH (hadoop classpath)"
    )
