"""What the indexes of a metadata table hold, for tests that look at what became of entries."""

from __future__ import annotations

from reconciler.hudi import hfile
from reconciler.hudi.logfile import BlockType, delete_keys


def index_keys(metadata, partition):
    """The keys that an index holds after its blocks are merged."""
    slices = metadata.slices(partition)
    return {key for newest in slices for key in slice_keys(metadata, newest)}


def slice_keys(metadata, newest):
    """The same of one file slice."""
    found = {}
    if newest.base:
        path = newest.path(newest.base[0])
        found |= hfile.parse(metadata.source.read(path), path).items()
    for block in metadata.blocks(newest):
        if block.type is BlockType.DELETE:
            for key in delete_keys(block):
                found.pop(key.encode(), None)
        else:
            found |= hfile.parse(block.content, block.path).items()
    return {key.decode() for key in found}
