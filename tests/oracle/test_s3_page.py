"""``docs/how-to/s3.md`` on an S3 server: the commands print what the page shows."""

from __future__ import annotations

import re
import shlex
import zlib
from contextlib import nullcontext
from pathlib import Path

import pytest

from reconciler.cli import apply_executors, run_apply
from reconciler.executor.deletion import LocalDeleter
from reconciler.runtime import open_storage
from tests.command import run
from tests.pages import ShownFile, assert_shown, read_story
from tests.servers.s3 import KEY, REGION, SECRET
from tests.trees import unpack

pytestmark = [pytest.mark.oracle, pytest.mark.long]
TABLE = Path(__file__).parents[1] / "cases" / "clean" / "cow_basic__1.2.0" / "table.zip"
#: later than every instant of the table, whatever the clock says
NOW = ("--now", "2099-01-01T00:00:00Z")


@pytest.fixture
def bucket(s3_bucket, tmp_path):
    """A bucket with the table of the page."""
    client = s3_bucket.client()
    folder = unpack(TABLE, tmp_path / "table", hollow=True)
    for file in filter(Path.is_file, folder.rglob("*")):
        data = file.read_bytes()
        if file.name == "hoodie.properties":
            data = rename(data)
        key = f"sales/orders/{file.relative_to(folder).as_posix()}"
        client.put_object(Bucket=s3_bucket.name, Key=key, Body=data)
    return s3_bucket


def test_the_page_on_s3(bucket, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAKE_KEY", KEY)
    monkeypatch.setenv("LAKE_SECRET", SECRET)
    workers = apply_executors.Executors(LocalDeleter(open_storage))
    monkeypatch.setattr(run_apply, "open_executors", lambda *_, **__: nullcontext(workers))
    places = {
        "https://s3.example.com": bucket.endpoint,
        "eu-central-1": REGION,
        "s3://lake": bucket.url,
    }

    for shown in read_story("how-to/s3.md"):
        if isinstance(shown, ShownFile):
            (tmp_path / shown.path).parent.mkdir(exist_ok=True)
            (tmp_path / shown.path).write_text(replace(shown.text, places))
            continue
        command, *words = shlex.split(replace(shown.line, places))[1:]
        assert 0 == run(command, *words, *(NOW if command == "plan" else ())), shown.line
        printed = capsys.readouterr()
        assert_shown(shown, (printed.out or printed.err).replace(bucket.url, "s3://lake"))

    left = bucket.client().list_objects_v2(Bucket=bucket.name, Prefix="sales/orders/")
    assert 5 == sum(entry["Key"].endswith(".parquet") for entry in left["Contents"])


def rename(properties: bytes) -> bytes:
    """Call the table sales.orders, with the checksum that Hudi has for the name."""
    checksum = zlib.crc32(b"sales.orders")
    named = b"table.name=orders\nhoodie.database.name=sales\n"
    return re.sub(
        rb"(table\.checksum=)\d+",
        rb"\g<1>%d" % checksum,
        properties.replace(b"table.name=t\n", named),
    )


def replace(text, places) -> str:
    for shown, here in places.items():
        text = text.replace(shown, here)
    return text
