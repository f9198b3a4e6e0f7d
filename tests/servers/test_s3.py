"""The S3 server of the tests, and the proxy before it."""

from __future__ import annotations

import pytest

from tests.servers.proxy import Fault

pytestmark = pytest.mark.oracle


def test_a_bucket_is_empty_and_refuses_a_second_creation(s3_bucket):
    client = s3_bucket.client()
    assert s3_bucket.object_keys() == []
    client.put_object(Bucket=s3_bucket.name, Key="a/f", Body=b"x", IfNoneMatch="*")
    with pytest.raises(client.exceptions.ClientError, match="PreconditionFailed"):
        client.put_object(Bucket=s3_bucket.name, Key="a/f", Body=b"y", IfNoneMatch="*")

    assert s3_bucket.object_keys() == ["a/f"]


def test_the_proxy_loses_the_answer_to_a_request_that_was_done(proxied_bucket, s3_proxy):
    s3_proxy.faults.append(Fault("lose", lambda request: request.method == "PUT"))
    proxied_bucket.client().put_object(Bucket=proxied_bucket.name, Key="f", Body=b"x")

    assert [request.method for request in s3_proxy.requests] == ["PUT", "PUT"]
    assert proxied_bucket.object_keys() == ["f"]


def test_the_proxy_cuts_an_answer(proxied_bucket, s3_proxy):
    client = proxied_bucket.client()
    client.put_object(Bucket=proxied_bucket.name, Key="f", Body=b"x" * 1000)
    s3_proxy.faults.append(Fault("cut", lambda request: request.method == "GET"))
    with pytest.raises(Exception, match="500"):
        client.get_object(Bucket=proxied_bucket.name, Key="f")["Body"].read()

    assert client.get_object(Bucket=proxied_bucket.name, Key="f")["Body"].read() == b"x" * 1000
