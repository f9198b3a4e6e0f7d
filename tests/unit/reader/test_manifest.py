from __future__ import annotations

import json
from urllib.parse import unquote

import pyarrow as pa
import pytest

from reconciler.reader.manifest import make_manifest, quote_path


def test_a_manifest_is_a_version_and_an_object_a_file():
    found = make_manifest("s3a://b/t", pa.array(["x", "p=1/y"]), pa.array([7, 8]), pa.array([0, 1]))
    version, *lines = found.decode().split("\n")
    common = {"isDir": False, "blockReplication": 1, "blockSize": 134217728, "action": "add"}

    assert "v1" == version
    assert [
        {"path": "s3a://b/t/x", "size": 7, "modificationTime": 0, **common},
        {"path": "s3a://b/t/p=1/y", "size": 8, "modificationTime": 1, **common},
    ] == [json.loads(line) for line in lines]


@pytest.mark.parametrize(
    "path", ['a b"c', "100%", "%20", "a\\b", "é/[x]{y}?#", "a\nb", "~+&=:@!$'()*,;"]
)
def test_a_path_comes_back_from_its_quotes(path):
    line = make_manifest("file://", pa.array([path]), pa.array([1]), pa.array([0])).split(b"\n")[1]

    assert f"file:///{path}" == unquote(json.loads(line)["path"])
    assert not set(quote_path(path)) & set(' "\\[]{}?#\n')


def test_a_path_that_needs_no_quotes_stays():

    assert "/t/p=1/é-ü_0.parquet" == quote_path("/t/p=1/é-ü_0.parquet")
