"""Whole plans of an endpoint of S3 that accepts requests and never answers, or throttles."""

from __future__ import annotations

import re
import time

import pytest

from reconciler.errors import StorageError
from reconciler.runtime import open_storage
from reconciler.storage.silent_endpoints import SILENT_ENDPOINTS
from tests.command import run
from tests.servers.proxy import Fault
from tests.store_specs import write_specs

pytestmark = pytest.mark.oracle


def plan(tmp_path, monkeypatch, bucket, names, **more):
    """Run the plan command and return its exit code and its seconds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEST_KEY", bucket.options["key"])
    monkeypatch.setenv("TEST_SECRET", bucket.options["secret"])
    monkeypatch.setattr("reconciler.storage.request_budget._REPORTS._last", None)
    options = {
        "endpoint": bucket.endpoint,
        "key": {"fromEnv": "TEST_KEY"},
        "secret": {"fromEnv": "TEST_SECRET"},
        "region": "us-east-1",
        **more,
    }
    write_specs(tmp_path, bucket.url, names, options)
    began = time.monotonic()
    code = run("plan", "specs", "--env", "test", "--stats")
    return code, time.monotonic() - began


@pytest.mark.long
@pytest.mark.parametrize("names", [("one",), ("one", "two", "three")])
def test_a_plan_of_an_endpoint_that_never_answers_ends_within_60_s(
    tmp_path, monkeypatch, capsys, proxied_bucket, s3_proxy, names
):
    s3_proxy.faults.append(Fault("hang", times=1000))
    code, seconds = plan(tmp_path, monkeypatch, proxied_bucket, names)
    err = capsys.readouterr().err

    assert code == 1
    assert seconds < 60
    assert [f"planning: {name}: error" for name in sorted(names)] == sorted(
        re.findall(r"planning: \w+: error", err)
    )
    assert "Traceback" not in err


def test_a_plan_says_that_it_repeats_requests_and_why(
    tmp_path, monkeypatch, capsys, proxied_bucket, s3_proxy
):
    monkeypatch.setattr("reconciler.storage.request_budget._SILENT_S", 0.2)
    s3_proxy.faults.append(Fault("status", times=1000))
    code, _ = plan(tmp_path, monkeypatch, proxied_bucket, ["one"], retryFor="1s")
    out, err = capsys.readouterr()

    assert code == 1
    assert re.search(
        r"warning: repeating \w+ of /\S*: the store answered 503 \([^)]*\); "
        r"\d s of retryFor are left\n",
        err,
    )
    assert err.count("repeating") == 1
    assert re.search(r"gave up after \d tries, repeated for \d s \(retryFor 1 s\)", out + err)
    assert re.search(r"requests to stores: .*\d repeated requests?", err)


@pytest.mark.long
def test_a_silent_endpoint_is_waited_for_once_by_all_tables_of_a_plan(
    tmp_path, monkeypatch, capsys, proxied_bucket, s3_proxy
):
    s3_proxy.faults.append(Fault("hang", times=1000))
    names = [f"t{number}" for number in range(9)]
    brief = {"retryFor": "1s", "requestTimeout": "1s"}
    code, _ = plan(tmp_path, monkeypatch, proxied_bucket, names, **brief)
    out, err = capsys.readouterr()
    text = " ".join(out.split())

    assert code == 1
    assert len(names) == err.count(": error")
    assert len(s3_proxy.requests) < len(names)
    assert text.count(f"{s3_proxy.endpoint} was silent") > len(names) // 2
    assert "is not asked again for a minute (ReadTimeoutError)" in text


def test_a_client_that_was_answered_repeats_its_requests_and_finds_no_silence(
    proxied_bucket, s3_proxy
):
    options = proxied_bucket.options | {"retryFor": "1s", "requestTimeout": "1s"}
    one, other = (open_storage(f"{proxied_bucket.url}/t", options) for _ in range(2))
    one.create("file", b"1")
    with SILENT_ENDPOINTS.remember():
        s3_proxy.faults.append(Fault("drop", times=1000))
        with pytest.raises(StorageError, match="gave up after"):
            one.read("file")
        with pytest.raises(StorageError, match="gave up after"):
            other.read("file")
        with pytest.raises(StorageError, match="was silent"):
            open_storage(f"{proxied_bucket.url}/t", options).read("file")
        with pytest.raises(StorageError, match="gave up after"):
            one.read("file")
        s3_proxy.faults.clear()

        assert b"1" == one.read("file") == other.read("file")
