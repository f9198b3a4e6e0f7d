"""Read the keys in the indexes of a metadata table."""

from __future__ import annotations

from reconciler.hudi.codecs import hfile_reader
from reconciler.hudi.codecs.log_blocks import BlockType, read_delete_keys


def read_index_keys(metadata, partition):
    """Return the keys of an index partition after merging its log blocks."""
    slices = metadata.list_slices(partition)
    return {key for newest in slices for key in read_slice_keys(metadata, newest)}


def read_slice_keys(metadata, newest):
    """Return the keys of one file slice after merging its log blocks."""
    found = {}
    if newest.base:
        path = newest.file_path(newest.base[0])
        found |= hfile_reader.parse_hfile(metadata.source.read(path), path).scan_all()
    for block in metadata.read_visible_blocks(newest):
        if block.type is BlockType.DELETE:
            for key in read_delete_keys(block):
                found.pop(key.encode(), None)
        else:
            found |= hfile_reader.parse_hfile(block.content, block.path).scan_all()
    return {key.decode() for key in found}
