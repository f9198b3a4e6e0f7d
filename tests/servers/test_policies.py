"""The policies of S3 that docs/stores.md shows are what the requests need, and no more."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from reconciler.storage.open import open_storage

PAGE = (Path(__file__).parents[2] / "docs" / "stores.md").read_text()
DOCUMENTS = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
PLAN, APPLY = (
    {action for statement in document["Statement"] for action in statement["Action"]}
    for document in DOCUMENTS
    if "Statement" in document
)


def find_action(request) -> str:
    """Return the permission that S3 asks of a request."""
    if request.method == "GET" and "list-type=2" in request.path:
        return "s3:ListBucket"
    if request.method == "DELETE" or (
        request.method == "POST" and request.path.endswith("?delete")
    ):
        return "s3:DeleteObject"
    return {"GET": "s3:GetObject", "HEAD": "s3:GetObject", "PUT": "s3:PutObject"}[request.method]


@pytest.mark.oracle
def test_requests_of_reads_and_writes_need_what_the_policies_allow(proxied_bucket, s3_proxy):
    storage = open_storage(f"{proxied_bucket.url}/sales/orders", proxied_bucket.options)

    def list_actions(*calls) -> set[str]:
        s3_proxy.requests.clear()
        for call in calls:
            call()
        return {find_action(request) for request in s3_proxy.requests}

    writes = list_actions(
        lambda: storage.create("p/f", b"x"),
        lambda: storage.replace("p/g", b"x"),
        lambda: storage.replace_version("lock.json", b"x", None),
        lambda: storage.delete("p/g"),
    )
    reads = list_actions(
        lambda: list(storage.walk(lambda _: True)),
        lambda: storage.list("p"),
        lambda: storage.read("p/f"),
        lambda: storage.read_range("p/f", -1, 1),
        lambda: storage.stat("p/gone"),
        lambda: storage.read_version("lock.json"),
    )
    deletions = list_actions(lambda: storage.delete_many(["p/f", "lock.json"]))

    assert reads == PLAN
    assert reads | writes | deletions == APPLY - {"s3:AbortMultipartUpload"}


def test_what_a_plan_may_do_an_apply_may_do_in_every_store():
    google, azure = DOCUMENTS[2:4], DOCUMENTS[4:]

    assert PLAN < APPLY
    assert set(google[0]["includedPermissions"]) < set(google[1]["includedPermissions"])
    assert set(azure[0]["DataActions"]) < set(azure[1]["DataActions"])
    assert len(DOCUMENTS) == 6
