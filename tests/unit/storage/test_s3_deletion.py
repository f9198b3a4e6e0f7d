"""A bulk deletion whose answer refuses keys."""

from __future__ import annotations

import pytest

from reconciler.errors import StorageError
from reconciler.storage.api import StorageRef
from reconciler.storage.remote import RemoteStorage
from reconciler.storage.request_budget import report_repeats
from reconciler.storage.requests import OF_THIS_PROCESS
from tests.flat_store import LOCATION, ROOT, FlatStore


class RefusingStore(FlatStore):
    """Refuses keys: ``answers`` has, for each request, the code of each key that it refuses."""

    answers: list[dict[str, str]]

    def call_s3(self, method, **arguments):
        codes = self.answers.pop(0) if self.answers else {}
        objects = arguments["Delete"]["Objects"]
        self.asked.append([one["Key"] for one in objects])
        refused = [one["Key"] for one in objects if one["Key"] in codes]
        arguments["Delete"] = {
            "Objects": [one for one in objects if one["Key"] not in refused] or objects[:1]
        }
        if len(refused) < len(objects):
            super().call_s3(method, **arguments)
        return {"Errors": [{"Key": key, "Code": codes[key], "Message": "m"} for key in refused]}


def refuse(*answers, retry_for="30s"):
    store = RefusingStore()
    store.create_all(dict.fromkeys("abc", b"x"))
    store.answers, store.asked = list(answers), []
    ref = StorageRef(LOCATION, (("retryFor", retry_for),))
    return store, RemoteStorage(ref, store, ROOT, store.open)


def test_keys_that_a_store_refuses_for_a_while_are_sent_again_in_bulk():
    store, storage = refuse({"t/a": "SlowDown", "t/c": "InternalError"}, {"t/c": "SlowDown"})
    before = OF_THIS_PROCESS.copy()
    deletions = storage.delete_many(["a", "b", "c"])

    assert [None] * 3 == [deletion.error for deletion in deletions]
    assert [["t/a", "t/b", "t/c"], ["t/a", "t/c"], ["t/c"]] == store.asked
    assert {} == store.objects
    assert 0 == store.counts["DELETE"]
    assert 2 == (OF_THIS_PROCESS.copy() - before)["repeat"]


def test_a_key_that_a_store_refuses_for_good_is_not_sent_again():
    store, storage = refuse({"t/b": "AccessDenied"})
    deletions = storage.delete_many(["a", "b", "c"])

    assert [None, "AccessDenied: m", None] == [deletion.error for deletion in deletions]
    assert 1 == len(store.asked)


def test_keys_that_stay_refused_are_one_error_with_the_first_and_the_number_of_the_rest():
    store, storage = refuse(*[{"t/b": "SlowDown", "t/c": "SlowDown"}] * 99, retry_for="1s")
    with pytest.raises(
        StorageError,
        match=r"/t/b: the store answered SlowDown: m; gave up after \d tries, repeated for .*"
        r"; 1 more file of the request stayed too",
    ):
        storage.delete_many(["a", "b", "c"])

    assert 0 == store.counts["DELETE"]


def test_a_deletion_that_is_repeated_for_long_is_reported_once(monkeypatch):
    monkeypatch.setattr("reconciler.storage.request_budget._SILENT_S", 0.2)
    monkeypatch.setattr("reconciler.storage.request_budget._REPORTS._last", None)
    _store, storage = refuse(*[{"t/b": "SlowDown"}] * 3)
    reports = []
    with report_repeats(reports.append):
        storage.delete_many(["a", "b", "c"])

    (report,) = reports
    assert "repeating the deletion of 1 of 3 objects: the store answered SlowDown: m; " in report
    assert report.endswith(" s of retryFor are left")


def test_a_name_that_was_not_asked_for_is_an_error():
    store, storage = refuse()
    store.call_s3 = lambda *_, **__: {"Errors": [{"Key": "other", "Code": "AccessDenied"}]}
    with pytest.raises(StorageError, match="did not delete 'other', which it was not asked"):
        storage.delete_many(["a"])
