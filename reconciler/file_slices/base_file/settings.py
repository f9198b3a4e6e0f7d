"""The settings that all base files of a table share: codec, bloom filter, calendar.

The table does not record them; they are options of writers. So they are read from an existing file.
Source: HoodieBloomFilterWriteSupport, HoodieParquetConfig and the defaults of HoodieStorageConfig.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, Self

from reconciler.file_slices.merge.calendar import UNSPECIFIED, Calendar
from reconciler.hudi.codecs.bloom import BloomFilter, BloomShape
from reconciler.lazy_dataclass import dataclass

BLOOM: Final = "org.apache.hudi.bloomfilter"
BLOOM_CODE: Final = "hoodie_bloom_filter_type_code"
MIN_KEY: Final = "hoodie_min_record_key"
MAX_KEY: Final = "hoodie_max_record_key"
AVRO_SCHEMA: Final = "parquet.avro.schema"
MODEL: Final = "writer.model.name"
#: parquet-mr's codecs that pyarrow can write -> pyarrow's names
_CODECS: Final = {
    "UNCOMPRESSED": "none",
    "SNAPPY": "snappy",
    "GZIP": "gzip",
    "BROTLI": "brotli",
    "LZ4": "lz4",
    "LZ4_RAW": "lz4",
    "ZSTD": "zstd",
}
#: Java's compression levels; pyarrow's default for gzip takes three times as long
_LEVELS: Final = {"gzip": 6, "zstd": 3}
_HUDI_DEFAULT_BLOOM: Final = BloomShape.from_options()


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseFileSettings:
    """The settings of writing a base file. The defaults are those of Hudi's writers.

    ``has_keys``: False for a table without meta columns, whose files store only their own name.
    ``bloom`` is None for files without a filter. ``has_key_range``: False for the Parquet blocks of
    log files, which are searched by no key. ``group_rows`` and ``group_bytes`` (of Arrow
    memory) end a row group, whichever comes first. One of fewer than ``least_group_rows`` may have
    twice as many bytes: each row group has its dictionaries, which few rows do not earn back.
    """

    codec: str = "gzip"
    level: int | None = None
    bloom: BloomShape | None = _HUDI_DEFAULT_BLOOM
    has_keys: bool = True
    has_key_range: bool = True
    calendar: Calendar = UNSPECIFIED
    group_rows: int = 1_000_000
    group_bytes: int = 64 * 1024 * 1024
    least_group_rows: int = 32 * 1024

    @classmethod
    def from_footer(cls, footer: Any, path: str) -> Self:
        """Read the settings from a base file's pyarrow FileMetaData.

        The writer's settings for row groups are not in it. Raises FormatError naming ``path``.
        """
        metadata = footer.metadata or {}
        bloom = None
        if text := metadata.get(BLOOM.encode()):
            code = metadata.get(BLOOM_CODE.encode(), b"SIMPLE").decode(errors="replace")
            bloom = BloomFilter.parse(text, code, path).shape
        has_keys = bloom is not None or MIN_KEY.encode() in metadata
        settings = cls(bloom=bloom, has_keys=has_keys, calendar=Calendar.from_footer(metadata))
        if footer.num_row_groups and footer.num_columns:
            name = footer.row_group(0).column(0).compression
            return replace(settings, codec=_CODECS.get(name, "gzip"))
        return settings

    def matches_encoding(self, compression: str, created_by: str) -> bool:
        """Return whether pyarrow wrote a column chunk with this codec, as we do."""
        return created_by.startswith("parquet-cpp") and _CODECS.get(compression) == self.codec

    @property
    def most_group_bytes(self) -> int:
        """The bytes that end a row group, however few rows it has."""
        return 2 * self.group_bytes

    @property
    def compression_level(self) -> int | None:
        return _LEVELS.get(self.codec) if self.level is None else self.level
