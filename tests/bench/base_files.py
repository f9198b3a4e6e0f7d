"""Measure how fast bloom filters and base files are written: ``python -m tests.bench.base_files``.

Keys per second and CPU seconds per million rows, medians of three, on one core. The file has Hudi's
meta columns and four of data; the first codec and the filter are Hudi's defaults.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.file_slices.merge.avro_schema import META_COLUMNS
from reconciler.hudi.codecs.bloom import BloomShape
from tests.base_files import write_base_file
from tests.bloom_filters import build_bloom_filter

AVRO = {
    "type": "record",
    "name": "t",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "customer", "type": ["null", "long"]},
        {"name": "amount", "type": ["null", "double"]},
    ],
}


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds of a call, the median of three."""
    found = []
    for _ in range(3):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return statistics.median(found)


def make_uuids(count: int, random: np.random.Generator) -> pa.Array:
    bits = random.bytes(16 * count)
    return pa.array([str(uuid.UUID(bytes=bits[at : at + 16])) for at in range(0, len(bits), 16)])


def make_rows(keys: pa.Array, random: np.random.Generator) -> pa.RecordBatch:
    count = len(keys)
    text = {
        META_COLUMNS[0]: pa.array(["20240101000000000"] * count),
        META_COLUMNS[1]: pa.array([f"20240101000000000_3_{n}" for n in range(count)]),
        META_COLUMNS[2]: keys,
        META_COLUMNS[3]: pa.array(["day=2024-01-01"] * count),
    }
    moments = pa.array(random.integers(10**15, 2 * 10**15, count)).cast(pa.timestamp("us", "UTC"))
    data = {
        "id": keys,
        "ts": moments,
        "customer": pa.array(random.integers(0, 100_000, count)),
        "amount": pa.array(random.random(count).round(2)),
    }
    return pa.RecordBatch.from_pydict(text | data)


def write_files(batches: list[pa.RecordBatch], schema: FileSchema, form: BaseFileSettings) -> None:
    write_base_file(batches, io.BytesIO(), "f1-0_0-1-2_20240101000000000.parquet", schema, form)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    count = parser.parse_args().rows
    pa.set_cpu_count(1)
    random = np.random.default_rng(7)
    keys = make_uuids(count, random)
    numbers = pa.array(range(count)).cast(pa.string())
    for name, column in (("UUIDs", keys), ("numbers", numbers)):
        for shape in (BloomShape.from_options(), BloomShape.from_options("SIMPLE", entries=count)):
            spent = cpu_seconds(partial(build_bloom_filter, column, shape))
            print(f"bloom filter {shape.code}, {name}: {count / spent / 1e6:.1f} M keys/s")
    batch = make_rows(keys, random)
    batches = [batch.slice(at, 65_536) for at in range(0, count, 65_536)]
    schema = FileSchema.from_avro(json.dumps(AVRO), "bench")
    for codec in ("gzip", "snappy", "zstd"):
        for bloom in (BloomShape.from_options(), None):
            form = replace(BaseFileSettings(), codec=codec, bloom=bloom)
            spent = cpu_seconds(partial(write_files, batches, schema, form))
            what = "with" if bloom else "without"
            print(f"base file, {codec}, {what} filter: {spent / count * 1e6:.2f} s per M rows")


if __name__ == "__main__":
    main()
