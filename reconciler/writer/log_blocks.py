"""Read what kind of data blocks the writers of a table put into its log files."""

from __future__ import annotations

from typing import Final

import numpy as np

from reconciler.errors import UnsupportedError
from reconciler.hudi.codecs.log_blocks import BlockType, find_blocks
from reconciler.hudi.files.table_files import FileKind
from reconciler.hudi.files.view import FileView
from reconciler.storage.api import Storage

#: log files that are looked at: those of deletions alone tell nothing
_MAX_FILES: Final = 8


def read_data_block_type(storage: Storage, view: FileView) -> BlockType:
    """Return the type of the newest data block; Avro, Hudi's default, if there is none.

    Reads a few bytes of some log files. Raises UnsupportedError for a type that is not written
    here, StorageError.
    """
    files = view.files
    rows = np.flatnonzero(files.kind == FileKind.LOG)
    newest = rows[np.lexsort((files.version[rows], files.instant[rows]))][::-1]
    for row in newest[:_MAX_FILES].tolist():
        path, size = files.locate_file(row)
        for kind in (block.type for block in find_blocks(storage.read_range, path, size)):
            if kind in (BlockType.AVRO_DATA, BlockType.PARQUET_DATA):
                return kind
            if kind is BlockType.HFILE_DATA:
                raise UnsupportedError(
                    f"{path}: the table's log files have HFile blocks, which only Hudi writes for "
                    "tables of rows; write it with Hudi"
                )
    return BlockType.AVRO_DATA
