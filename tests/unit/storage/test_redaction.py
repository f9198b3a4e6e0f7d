"""Check that no message repeats a secret, in any spelling."""

from __future__ import annotations

import json

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from reconciler.errors import PermissionDeniedError, StorageError
from reconciler.storage.api import StorageRef
from reconciler.storage.open import open_storage
from reconciler.storage.redaction import redact_secrets

SAS = "sv=2024-11-04&sig=aGVsbG8gd29ybGQ%2Bmore%3D"
KEY = "AccountName=lake;AccountKey=c2VjcmV0K3NlY3JldA==;EndpointSuffix=core.windows.net"


@pytest.mark.parametrize(
    ("text", "secret", "expected"),
    [
        ("key hunter2 is wrong", "hunter2", "key *** is wrong"),
        ("hunter2hunter2", "hunter2", "******"),
        ("GET /t?sig=aGVsbG8gd29ybGQ%2Bmore%3D", SAS, "GET /t?sig=***"),
        ("signature aGVsbG8gd29ybGQ+more= is old", SAS, "signature *** is old"),
        ("AccountKey c2VjcmV0K3NlY3JldA== does not fit", KEY, "AccountKey *** does not fit"),
        ("c2VjcmV0K3NlY3JldA%3D%3D", KEY, "***"),
        ("bad hunter2", json.dumps({"kwargs": [{"secret": "hunter2"}]}), "bad ***"),
        ("an open door", "an", "an open door"),
        ("nothing", "{broken", "nothing"),
    ],
)
def test_a_secret_is_redacted(text, secret, expected):
    assert expected == redact_secrets(text, [secret])


class Talkative(MemoryFileSystem):
    """A client whose errors repeat its options."""

    protocol = "talkative"

    def __init__(self, secret: str, **more: object) -> None:
        super().__init__(**more)
        self.secret = secret
        if secret == "never-starts":
            raise ValueError(f"no client starts with {secret}")

    def cat_file(self, *_: object, **__: object) -> bytes:
        raise PermissionError(f"{self.secret} may not read")

    def ls(self, *_: object, **__: object) -> list[str]:
        raise RuntimeError(f"https://store/?token={self.secret}")


@pytest.fixture
def opened():
    fsspec.register_implementation("talkative", Talkative, clobber=True)

    def of(secret: str):
        return open_storage(StorageRef("talkative://t", (("secret", secret),), (secret,)))

    return of


def test_the_error_of_a_client_that_does_not_start_has_no_secret(opened):
    with pytest.raises(StorageError) as caught:
        opened("never-starts")

    assert (
        "talkative://t: the client of talkative:// did not start: "
        "ValueError: no client starts with ***"
    ) == str(caught.value)


def test_the_error_of_a_refused_read_has_no_secret(opened):
    with pytest.raises(PermissionDeniedError) as caught:
        opened("hunter2").read("a")

    assert "talkative://t/a: *** may not read" == str(caught.value)


def test_any_other_error_has_no_secret(opened):
    with pytest.raises(StorageError) as caught:
        opened("hunter2").list("")

    assert "talkative://t: RuntimeError: https://store/?token=***" == str(caught.value)


def test_a_reference_shows_neither_options_nor_secrets():
    ref = StorageRef("s3://b/t", (("secret", "hunter2"),), ("hunter2",))

    assert "StorageRef(location='s3://b/t')" == repr(ref)
