"""What a storage makes of a real S3 server whose requests fail, stall and lose their answers."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from reconciler.errors import (
    AlreadyExistsError,
    ChangedError,
    NotFoundError,
    PermissionDeniedError,
    StorageError,
)
from reconciler.runtime import open_storage
from reconciler.storage.api import Storage
from tests.selection import long
from tests.servers.proxy import Fault, FaultyProxy

pytestmark = pytest.mark.oracle
KINDS = ("lose", "drop", "hang", "cut", "halve")


@pytest.fixture
def storage(proxied_bucket, s3_proxy) -> Storage:
    """A storage that has tried exclusive creation already."""
    storage = open_storage(
        f"{proxied_bucket.url}/t", proxied_bucket.options | {"requestTimeout": "1s"}
    )
    storage.create("warm", b"up")
    s3_proxy.requests.clear()
    return storage


def methods(proxy: FaultyProxy) -> list[str]:
    return [request.method for request in proxy.requests]


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (503, "SlowDown"),
        (409, "ConditionalRequestConflict"),
        long(429, "TooManyRequests"),
        long(500, "InternalError"),
    ],
)
def test_a_refusal_for_a_while_is_tried_again(storage, s3_proxy, status, code):
    s3_proxy.faults.append(Fault("status", times=2, status=status, code=code))
    storage.create("f", b"x")

    assert storage.read("f") == b"x"
    assert methods(s3_proxy)[:3] == ["PUT"] * 3


@pytest.mark.parametrize("kind", ["cut", long("drop"), long("hang")])
def test_a_read_without_a_whole_answer_is_tried_again(storage, s3_proxy, kind):
    storage.create("f", b"x" * 1000)
    s3_proxy.faults.append(Fault(kind, lambda request: request.method == "GET"))
    assert storage.read("f") == b"x" * 1000
    s3_proxy.faults.append(Fault(kind, lambda request: request.method == "GET"))
    assert storage.read_range("f", 10, 500) == b"x" * 500


def test_a_read_is_one_request_and_so_is_that_of_a_file_that_is_missing(storage, s3_proxy):
    storage.read("warm")
    with pytest.raises(NotFoundError):
        storage.read("missing")

    assert methods(s3_proxy) == ["GET", "GET"]


def test_a_listing_page_is_tried_again(storage, s3_proxy):
    storage.create("p/f", b"x")
    s3_proxy.faults.append(Fault("drop", lambda request: request.method == "GET", times=2))

    assert [folder.path for folder in storage.walk(lambda _: True)] == ["", "p"]


def test_an_endpoint_that_never_answers_is_one_error_within_the_budget(proxied_bucket, s3_proxy):
    s3_proxy.faults.append(Fault("hang", times=1000))
    limits = {"requestTimeout": "1s", "retryFor": "2s"}
    storage = open_storage(f"{proxied_bucket.url}/t", proxied_bucket.options | limits)
    began = time.monotonic()
    with pytest.raises(
        StorageError, match=r"t/f: the store did not answer .*gave up after \d tries"
    ):
        storage.read("f")

    assert time.monotonic() - began < 8
    assert len(s3_proxy.requests) <= 4


def test_throttling_that_lasts_is_one_error(proxied_bucket, s3_proxy):
    s3_proxy.faults.append(Fault("status", times=1000))
    storage = open_storage(f"{proxied_bucket.url}/t", proxied_bucket.options | {"retryFor": "1s"})
    with pytest.raises(StorageError, match=r"503 \(SlowDown made by the proxy\); gave up after"):
        storage.read_range("f", 0, 10)


def test_expired_credentials_are_one_clear_error(storage, s3_proxy):
    s3_proxy.faults.append(Fault("status", times=1000, status=400, code="ExpiredToken"))
    with pytest.raises(PermissionDeniedError, match=r"credentials have expired .* renew them"):
        storage.read_range("f", 0, 10)

    assert len(s3_proxy.requests) == 1


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("lose", b""),
        *(long(kind, data) for kind in KINDS for data in (b"", b"bytes") if kind != "lose" or data),
    ],
)
def test_a_creation_whose_answer_is_lost_succeeds(storage, s3_proxy, kind, data):
    s3_proxy.faults.append(Fault(kind, lambda request: request.method == "PUT"))
    storage.create("f", data)

    assert storage.read("f") == data


@pytest.mark.parametrize("data", [b"", long(b"bytes")])
def test_another_writers_file_of_equal_bytes_is_not_ones_own(storage, s3_proxy, data):
    other = open_storage(replace(storage.ref, writer=""))  # gets a writer of its own
    other.create("f", data)
    s3_proxy.faults.append(Fault("drop", lambda request: request.method == "PUT"))
    with pytest.raises(AlreadyExistsError, match="f: already exists"):
        storage.create("f", data)


def test_parts_and_their_completion_may_lose_their_answers(storage, s3_proxy, tmp_path):
    local = tmp_path / "local"
    local.write_bytes(b"0123456789abcdef" * (65 * 2**16))
    for method in ("PUT", "POST"):
        s3_proxy.faults.append(
            Fault("lose", lambda r, m=method: r.method == m and "uploadId" in r.path)
        )
    storage.create_from("f", str(local))

    assert storage.stat("f").size == 65 * 2**20


def test_a_store_is_tried_once_and_processes_that_open_its_reference_trust_it(storage, s3_proxy):
    open_storage(storage.ref).create("p/f", b"x")

    assert methods(s3_proxy) == ["PUT"]


def test_the_probe_that_a_kill_has_left_is_removed(proxied_bucket, s3_proxy):
    s3_proxy.faults.append(Fault("status", lambda r: r.method == "DELETE", status=400, code="No"))
    open_storage(proxied_bucket.url + "/t", proxied_bucket.options).create("f", b"x")
    assert len(proxied_bucket.object_keys()) == 2
    open_storage(proxied_bucket.url + "/t", proxied_bucket.options).create("g", b"x")

    assert proxied_bucket.object_keys() == ["t/f", "t/g"]


def test_a_refused_creation_is_told_where_nobody_may_look(storage, s3_proxy):
    storage.create("f", b"x")
    s3_proxy.faults.append(
        Fault("status", lambda r: r.method == "HEAD", times=9, status=403, code="AccessDenied")
    )
    with pytest.raises(AlreadyExistsError, match="f: already exists"):
        storage.create("f", b"y")


@pytest.mark.parametrize("kind", ["lose", *(long(kind) for kind in KINDS if kind != "lose")])
def test_a_replacement_whose_answer_is_lost_succeeds_with_its_version(storage, s3_proxy, kind):
    first = storage.replace_version("f", b"1", None)
    s3_proxy.faults.append(Fault(kind, lambda request: request.method == "PUT"))
    second = storage.replace_version("f", b"2", first)

    assert (storage.read_version("f").data, storage.read_version("f").version) == (b"2", second)
    assert storage.replace_version("f", b"3", second) != second


def test_another_writers_replacement_with_equal_bytes_is_not_ones_own(storage, s3_proxy):
    first = storage.replace_version("f", b"1", None)
    open_storage(replace(storage.ref, writer="")).replace_version("f", b"2", first)
    s3_proxy.faults.append(Fault("drop", lambda request: request.method == "PUT"))
    with pytest.raises(ChangedError):
        storage.replace_version("f", b"2", first)


def test_a_conflict_of_two_replacements_is_tried_again(storage, s3_proxy):
    first = storage.replace_version("f", b"1", None)
    s3_proxy.faults.append(
        Fault(
            "status",
            lambda request: request.method == "PUT",
            times=6,
            status=409,
            code="ConditionalRequestConflict",
        )
    )
    storage.replace_version("f", b"2", first)

    assert storage.read("f") == b"2"


def test_a_bulk_deletion_that_fails_for_good_is_one_request_and_one_error(storage, s3_proxy):
    s3_proxy.faults.append(
        Fault("status", lambda r: r.method == "POST", times=99, status=400, code="MalformedXML")
    )
    with pytest.raises(StorageError, match=r"/t/a: .*; 2 more files of the request stayed too"):
        storage.delete_many(["a", "b", "c"])

    assert methods(s3_proxy) == ["POST"]


def test_files_are_deleted_singly_where_a_store_has_no_bulk_deletion(storage, s3_proxy):
    for name in "ab":
        storage.create(name, b"x")
    s3_proxy.requests.clear()
    s3_proxy.faults.append(
        Fault("status", lambda r: r.method == "POST", times=99, status=501, code="NotImplemented")
    )
    deletions = storage.delete_many(["a", "b"])

    assert [None, None] == [deletion.error for deletion in deletions]
    assert sorted(methods(s3_proxy)) == ["DELETE", "DELETE", "POST"]
    assert storage.list("") == [entry for entry in storage.list("") if entry.name == "warm"]


def test_reads_that_always_break_off_end_within_the_budget(proxied_bucket, s3_proxy):
    options = proxied_bucket.options | {"retryFor": "1s"}
    storage = open_storage(f"{proxied_bucket.url}/t", options)
    storage.create("f", b"x" * 1000)
    s3_proxy.faults.append(Fault("cut", lambda request: request.method == "GET", times=1000))
    began = time.monotonic()
    with pytest.raises(StorageError, match=r"t/f: .*answer broke off .*gave up after"):
        storage.read("f")

    assert time.monotonic() - began < 6


@pytest.mark.parametrize("leftover", ["probe.00000001-7265-636f-6e63-000000000000",
                                      "probe.00001234-7265-636f-6e63-00000000000f"])  # fmt: skip
def test_the_probes_that_a_kill_has_left_are_removed(proxied_bucket, leftover):
    place = open_storage(proxied_bucket.url + "/t", proxied_bucket.options)
    place.replace(leftover, b"?")
    place.replace("probe.00000000-7265-636f-6e63-000000000000", b"?")
    storage = open_storage(proxied_bucket.url + "/t", proxied_bucket.options)
    storage.create("f", b"x")
    storage.replace_version("g", b"x", None)

    assert proxied_bucket.object_keys() == ["t/f", "t/g"]


@pytest.mark.parametrize("call", ["read", "list", "create"])
def test_a_bucket_that_is_missing_is_named(s3_bucket, call):
    storage = open_storage(f"s3://no-such-lake/t{call}", s3_bucket.options)
    arguments = {"read": ("f",), "list": ("",), "create": ("f", b"x")}[call]
    with pytest.raises(StorageError) as caught:
        getattr(storage, call)(*arguments)

    expected = "the bucket s3://no-such-lake: does not exist; check its name and the endpoint"
    assert expected == str(caught.value)


def test_what_a_store_refuses_has_its_code_and_its_words(storage, s3_proxy):
    s3_proxy.faults.append(Fault("status", status=400, code="AuthorizationHeaderMalformed"))
    with pytest.raises(StorageError) as caught:
        storage.read("f")

    refused = "the store refused it (AuthorizationHeaderMalformed: made by the proxy)"
    assert str(caught.value).endswith(f"/t/f: {refused}")


def test_a_name_that_the_client_takes_for_a_version_of_another_object_is_refused(s3_bucket):
    storage = open_storage(f"{s3_bucket.url}/t", s3_bucket.options)
    storage.create("a", b"kept")
    for call in (storage.delete, storage.read, lambda path: storage.delete_many([path])):
        with pytest.raises(StorageError, match=r"contains \?versionId=.*; rename it"):
            call("a?versionId=1/b")

    assert b"kept" == storage.read("a")
