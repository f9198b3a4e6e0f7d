"""Credentials for S3 that expire while a clean runs, and those that a program gives again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from itertools import count
from pathlib import Path

import pytest

from reconciler.errors import PermissionDeniedError
from reconciler.runtime import open_storage
from tests.bench.make_table import Shape
from tests.crash.drill import TestClock
from tests.s3_tables import apply, list_leftovers, load_spec, make_objects, make_opener, upload
from tests.servers.proxy import Fault, running_proxy
from tests.servers.s3 import KEY, SECRET
from tests.store_specs import write_specs

pytestmark = [pytest.mark.oracle, pytest.mark.long]
SHAPE = Shape(partitions=2, groups=1, versions=4)
LOCKS = {"file": "{provider: filesystem, singleWriter: true}", "storage": "{provider: storage}"}
#: prints credentials that expire within a minute, until its file of turns is used up
PROGRAM = """\
import datetime, json, pathlib, sys
turns = pathlib.Path(sys.argv[1])
left = int(turns.read_text())
turns.write_text(str(left - 1))
if left <= 0:
    sys.exit("no more credentials")
end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=30)
print(json.dumps({{"Version": 1, "AccessKeyId": {key!r}, "SecretAccessKey": {secret!r},
    "Expiration": end.isoformat()}}))
"""


class Expiry:
    """From a change on, every request is refused because the credentials have expired."""

    def __init__(self, at: int) -> None:
        self.at, self.changes = at, count(1)
        self.is_over = False
        self.fault = Fault("status", self.selects, times=10**6, status=400, code="ExpiredToken")

    def selects(self, request) -> bool:
        is_change = request.method in ("PUT", "POST", "DELETE")
        self.is_over = self.is_over or (is_change and next(self.changes) == self.at)
        return self.is_over


@pytest.mark.parametrize("lock", LOCKS)
def test_credentials_that_expire_at_a_change_end_an_apply_and_the_next_completes(
    tmp_path, monkeypatch, s3_server, s3_proxy, lock
):
    objects = make_objects(tmp_path / "t", SHAPE)
    ended = 0
    for at in count(1, 2):
        bucket = s3_server.make_bucket(s3_proxy.endpoint)
        upload(bucket, s3_server.endpoint, objects)
        spec, opener = load_spec(tmp_path, bucket, LOCKS[lock]), make_opener(bucket)
        monkeypatch.setattr("reconciler.runtime.open_storage", opener)
        expiry, clock = Expiry(at), TestClock()
        s3_proxy.faults[:] = [expiry.fault]
        result = apply(spec, opener, clock)
        s3_proxy.faults.clear()
        if not expiry.is_over:  # there are fewer changes
            break
        if result.error is not None:
            ended += 1
            assert "expired" in result.error, (at, result.error)
        clock.sleep(2 * 3600)  # the first run is long gone
        result = apply(spec, opener, clock, run=2)

        assert result.error is None, (at, result)
        assert [] == list_leftovers(bucket, opener), at
    assert at > 12
    assert ended > 4


def test_expired_credentials_are_named_also_where_an_answer_has_no_reason(s3_bucket, s3_server):
    with running_proxy(s3_server.endpoint) as proxy:
        storage = open_storage(
            f"{s3_bucket.url}/t", s3_bucket.options | {"endpoint_url": proxy.endpoint}
        )
        proxy.faults.append(Fault("status", times=1000, status=400, code="ExpiredToken"))
        with pytest.raises(PermissionDeniedError, match="as for expired credentials; renew them"):
            storage.stat("f")


@pytest.fixture
def turns(tmp_path, monkeypatch):
    """A profile whose program gives short-lived credentials, so often as the file says."""
    program, turns = tmp_path / "program.py", tmp_path / "turns"
    program.write_text(PROGRAM.format(key=KEY, secret=SECRET))
    config = f"""\
        [profile lake]
        credential_process = {sys.executable} {program} {turns}
        """
    (tmp_path / "config").write_text(textwrap.dedent(config))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    turns.write_text("1000")
    return turns


@pytest.fixture
def options(s3_bucket):
    return {
        "endpoint": s3_bucket.endpoint,
        "profile": "lake",
        "region": "us-east-1",
        "pathStyle": "true",
    }


def test_credentials_of_a_profile_are_renewed_while_a_run_goes_on(turns, options, s3_bucket):
    storage = open_storage(f"{s3_bucket.url}/t", options)
    for number in range(3):
        storage.create(f"f{number}", b"x")
        assert storage.read(f"f{number}") == b"x"

    assert int(turns.read_text()) < 998
    assert json.loads(json.dumps(storage.list(""), default=str))


def test_credentials_that_cannot_be_renewed_are_one_clear_error(turns, options, s3_bucket):
    storage = open_storage(f"{s3_bucket.url}/t", options)
    storage.create("f", b"x")
    turns.write_text("0")
    with pytest.raises(PermissionDeniedError, match=r"t/f: .*no more credentials.*renew them"):
        storage.read("f")


def test_a_plan_without_new_credentials_says_so_in_one_line(
    turns, options, tmp_path, monkeypatch, s3_bucket
):
    monkeypatch.chdir(tmp_path)
    write_specs(tmp_path, s3_bucket.url, ["t"], options | {"pathStyle": True})
    turns.write_text("0")
    done = subprocess.run(
        [sys.executable, "-m", "reconciler", "plan", "specs", "--env", "test"],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )

    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.splitlines()
    assert "there are no credentials for the store" in line
