"""Base files that show whether a bucket index is declared as it is, whole and damaged."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.errors import FormatError, UnsupportedError
from reconciler.hudi.files.key_buckets import BucketRule
from reconciler.storage.open import open_storage
from reconciler.writer.index_bucket_witness import BucketWitness, check_witness
from tests.selection import examples

PATH = "a/00000003-f-0_1_2.parquet"


def make_rule(buckets=4):
    return BucketRule(buckets=buckets, fields=("id",), record_key=("id",), table_version=9)


def find_keys(bucket, count=300):
    keys = [f"ké{number}" for number in range(count * 8)]
    buckets = make_rule().find_buckets(pa.array(keys)).tolist()
    return [key for key, found in zip(keys, buckets, strict=True) if found == bucket][:count]


def encode_file(keys, **ends):
    table = pa.table({"_hoodie_record_key": pa.array(keys, pa.string())})
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata(ends), sink, compression="none")
    return sink.getvalue().to_pybytes()


def check(folder, data, rule=None):
    (folder / "a").mkdir(exist_ok=True)
    (folder / PATH).write_bytes(data)
    witness = BucketWitness(path=PATH, size=len(data), bucket=3)
    check_witness(witness, rule or make_rule(), open_storage(str(folder)))


def test_keys_of_the_bucket_are_no_problem(tmp_path):
    keys = find_keys(3)
    check(tmp_path, encode_file(keys, hoodie_min_record_key=min(keys)))


def test_a_key_of_another_bucket_is_named_with_the_file(tmp_path):
    first, *_ = find_keys(1)
    with pytest.raises(UnsupportedError, match=f"{PATH}: bucket 3 has the key '{first}', which"):
        check(tmp_path, encode_file([*find_keys(3, 40), first]))
    with pytest.raises(UnsupportedError, match="belongs to bucket 1 with 4 buckets of id"):
        check(tmp_path, encode_file([], hoodie_max_record_key=first))


def test_twice_as_many_buckets_are_noticed_by_any_file(tmp_path):
    with pytest.raises(UnsupportedError, match="with 8 buckets of id"):
        check(tmp_path, encode_file(find_keys(3)), make_rule(8))


def test_a_damaged_file_is_named_or_read(tmp_path):
    keys, random, refused = find_keys(3), Random(4), []
    whole = encode_file(keys, hoodie_min_record_key=min(keys))
    for _ in range(examples(20, many=1000)):
        data = bytearray(whole)
        if random.random() < 0.3:
            del data[random.randrange(1, len(data)) :]
        else:
            for _ in range(random.randrange(1, 6)):
                data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        try:
            check(tmp_path, bytes(data))
        except (FormatError, UnsupportedError) as problem:
            refused.append(str(problem))
    assert refused
    assert all(PATH in problem for problem in refused)
