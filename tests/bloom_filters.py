"""Build bloom filters in one call."""

from __future__ import annotations

from typing import Any

from reconciler.hudi.codecs.bloom import BloomBuilder, BloomFilter, BloomShape


def build_bloom_filter(keys: Any, shape: BloomShape) -> BloomFilter:
    """Build the filter of a string array without nulls, in the order of the file's rows."""
    builder = BloomBuilder(shape)
    builder.add(keys)
    return builder.build()
