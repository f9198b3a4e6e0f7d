"""Rebuild the bloom filters of real Hudi's base files from the same keys."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.hudi.codecs.bloom import BloomFilter
from tests.bloom_filters import build_bloom_filter
from tests.trees import unpack

TABLES = Path(__file__).parent
#: tables of three versions of Hudi: inserts, updates, bulk inserts and clustering
FILTERS = {
    "v6_cow_part": ["DYNAMIC_V0", "SIMPLE"],
    "v6_keygen": ["SIMPLE"],
    "v8_mor_part": ["DYNAMIC_V0", "SIMPLE"],
    "v9_cow_part": ["DYNAMIC_V0", "SIMPLE"],
    "v9_keygen": ["SIMPLE"],
}


def footers(folder):
    """Return path, footer metadata and record keys of every base file with rows."""
    for path in sorted(folder.rglob("*.parquet")):
        file = pq.ParquetFile(path)
        if ".hoodie" not in path.parts and file.metadata.num_rows:
            (column,) = file.read(["_hoodie_record_key"])
            said = {key.decode(): value.decode() for key, value in file.metadata.metadata.items()}
            yield str(path), said, column.combine_chunks()


@pytest.mark.parametrize("name", FILTERS)
def test_the_same_keys_make_the_filter_that_hudi_wrote(tmp_path, name):
    unpack(TABLES / f"{name}.zip", tmp_path)
    codes = set()
    for path, said, keys in footers(tmp_path):
        code = said.get("hoodie_bloom_filter_type_code", "SIMPLE")
        text = said["org.apache.hudi.bloomfilter"]
        found = BloomFilter.parse(text, code, path)
        codes.add(code)

        assert text == found.text
        assert text == build_bloom_filter(keys, found.shape).text
        assert found.contains(keys).all()
        assert not found.contains(pa.array([f"no key {n}" for n in range(100)])).any()

    assert FILTERS[name] == sorted(codes)
