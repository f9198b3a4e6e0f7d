"""Make the metadata table of a test table say something else, in a newer log block."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from reconciler.hudi.codecs import hfile_writer
from reconciler.hudi.codecs.log_blocks import (
    BlockType,
    HeaderKey,
    encode_block,
    encode_deletes,
)
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.metadata.index_keys import (
    build_bloom_keys,
    build_stats_keys,
    find_record_groups,
    hash_name,
)
from reconciler.hudi.metadata.indexed_columns import learn_wrappers
from reconciler.hudi.metadata.listing import encode_listing, partition_key, read_metadata_listing
from reconciler.hudi.metadata.record_encoder import ColumnRange, RecordEncoder
from reconciler.hudi.metadata.table import open_live_metadata
from reconciler.storage.open import open_storage


@dataclass(frozen=True)
class MetadataLiar:
    """Adds records to the metadata table of a table on a local disk."""

    folder: object

    @cached_property
    def table(self):
        storage = open_storage(str(self.folder))
        properties = load_properties(storage)
        return open_live_metadata(storage, properties, load_timeline(storage, properties))

    @cached_property
    def schema(self):
        return read_metadata_listing(self.table).schema

    @property
    def records(self):
        return RecordEncoder(schema=self.schema, path="metadata")

    def add(self, partition, cells=(), *, deleted=()):
        """Add a log block of cells, or of deleted keys, after all others of its file groups."""
        slices = self.table.list_slices(partition)
        keys = [key.decode() for key, _value in cells] or list(deleted)
        groups = find_record_groups(pa.array(keys, pa.string()), len(slices)).tolist()
        for number, file_slice in enumerate(slices):
            mine = [at for at, group in enumerate(groups) if group == number]
            if not mine:
                continue
            if cells:
                content = hfile_writer.encode_hfile(sorted(cells[at] for at in mine), self.schema)
                block = self._encode(BlockType.HFILE_DATA, content)
            else:
                content = encode_deletes([keys[at] for at in mine], partition)
                block = self._encode(BlockType.DELETE, content)
            self._append(partition, file_slice, block)

    def _encode(self, kind, content):
        header = [(HeaderKey.INSTANT_TIME, self.instant), (HeaderKey.SCHEMA, self.schema)]
        return encode_block(kind, header, content)

    @property
    def instant(self):
        """The newest instant of the metadata table that the data table has completed."""
        known = {instant.requested for instant in self.table.timeline.commits}
        return max(i.requested for i in self.table.data.commits if i.requested in known)

    def _append(self, partition, file_slice, block):
        folder = self.folder / ".hoodie/metadata" / partition
        if self.table.version >= 8:
            base, version = self.instant, 90
        else:
            base, version = file_slice.newest_instant, 90
        while (folder / f".{file_slice.file_group}_{base}.log.{version}_9-9-9").exists():
            version += 1
        name = f".{file_slice.file_group}_{base}.log.{version}_9-9-9"
        (folder / name).write_bytes(block)

    # --- one entry each ---------------------------------------------------------------------------

    def list_file(self, partition, name, size):
        """List a file with a size; None removes it."""
        cells = encode_listing(self.schema, {partition_key(partition): {name: size}})
        self.add("files", cells)

    def set_range(self, partition, name, column, least, greatest, *, values=9, nulls=0):
        wrappers = learn_wrappers(self.table, [column])
        wanted = ColumnRange(
            column=column, least=least, greatest=greatest, values=values, nulls=nulls
        )
        path = partition_key(partition)
        if name is None:
            cells = self.records.encode_partition_stats(path, [wanted], wrappers)
            self.add("partition_stats", cells)
        else:
            cells = self.records.encode_column_stats(path, name, [wanted], wrappers)
            self.add("column_stats", cells)

    def remove_range(self, partition, name, column):
        path = partition_key(partition)
        if name is None:
            self.add("partition_stats", deleted=[hash_name(column) + hash_name(path)])
        else:
            self.add("column_stats", deleted=build_stats_keys([column], path, [name]))

    def set_filter(self, partition, name, code, text):
        cell = self.records.encode_bloom_filter(
            partition_key(partition), name, self.instant, code, text
        )
        self.add("bloom_filters", [cell])

    def remove_filter(self, partition, name):
        self.add("bloom_filters", deleted=build_bloom_keys(partition_key(partition), [name]))

    def set_location(self, key, partition, name):
        value = self.records.encode_record_location(partition, name, 1_764_000_000_000)
        self.add("record_index", [(key.encode(), value)])

    def remove_location(self, key):
        self.add("record_index", deleted=[key])


def summarize(found):
    """Return metadata partition, kind, partition, file and column or key of each difference."""
    return [
        (one.metadata_partition, one.kind, one.partition, one.file, one.column or one.key)
        for one in found.differences
    ]
