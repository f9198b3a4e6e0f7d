from __future__ import annotations

import pytest

from reconciler.errors import PermissionDeniedError
from reconciler.storage.local import LocalStorage
from reconciler.storage.read_only import ReadOnlyStorage
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageFault


@pytest.fixture
def storage(tmp_path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


def test_nothing_changes_through_a_read_only_storage(storage):
    storage.create("f", b"x")
    read_only = ReadOnlyStorage(storage)
    for act in (
        lambda: read_only.create("g", b""),
        lambda: read_only.create_from("g", __file__),
        lambda: read_only.replace("f", b""),
        lambda: read_only.delete("f"),
        lambda: read_only.delete_many(["f"]),
        lambda: read_only.remove_folder("p"),
    ):
        with pytest.raises(PermissionDeniedError, match="read-only"):
            act()

    assert read_only.read("f") == b"x"
    assert [entry.name for entry in read_only.list("")] == ["f"]


def test_a_recording_storage_records_every_call(storage):
    recording = RecordingStorage(storage)
    recording.create("f", b"x")
    recording.read("f")
    recording.delete_many(["f", "g"])

    assert recording.counts == {"create": 1, "read": 1, "delete_many": 1}
    assert [call.paths for call in recording.mutations] == [("f",), ("f", "g")]


@pytest.mark.parametrize(("how", "left"), [("before", None), ("after", b"1234"), ("torn", b"12")])
def test_a_fault_occurs_at_its_call_and_stays(storage, how, left):
    faulty = FaultyStorage(storage, StorageFault(at=2, mode=how), ConnectionError("gone"))
    faulty.create("first", b"1234")
    faulty.read("first")
    with pytest.raises(ConnectionError, match="gone"):
        faulty.create("second", b"1234")
    with pytest.raises(ConnectionError):
        faulty.create("third", b"1234")

    found = storage.read("second") if storage.stat("second") else None
    assert found == left
    assert storage.stat("third") is None
    assert faulty.call_count == 3


@pytest.mark.parametrize(("how", "left"), [("before", None), ("after", b"1234"), ("torn", b"12")])
def test_a_fault_occurs_while_a_local_file_is_copied(storage, tmp_path, how, left):
    local = tmp_path / "local"
    local.write_bytes(b"1234")
    faulty = FaultyStorage(storage, StorageFault(at=1, mode=how), ConnectionError("gone"))
    with pytest.raises(ConnectionError, match="gone"):
        faulty.create_from("f", str(local))

    assert left == (storage.read("f") if storage.stat("f") else None)


def test_a_fault_may_be_temporary(storage):
    faulty = FaultyStorage(
        storage, StorageFault(at=1, among="calls", is_permanent=False), ConnectionError()
    )
    with pytest.raises(ConnectionError):
        faulty.stat("f")
    faulty.create("f", b"x")

    assert storage.read("f") == b"x"
