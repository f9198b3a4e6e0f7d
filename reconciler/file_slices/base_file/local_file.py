"""Write a base file on the local disk, then move it into the table after its marker.

A file that a task has not finished is never in the table, and a file of the table that no completed
write names has a marker by which it is found. Source: HoodieWriteHandle.createMarkerFile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa

from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.file_slices.base_file.writer import BaseFileWriter
from reconciler.hudi.files.names import make_file_path
from reconciler.hudi.timeline.markers import CREATE, marker_path
from reconciler.storage.api import Storage

#: the largest size of a file as a multiple of its target, as in Hudi's writers
MAX_FACTOR: Final = 1.15


@contextmanager
def open_local_file(
    path: Path, schema: FileSchema, settings: BaseFileSettings, ranges: tuple[str, ...]
) -> Iterator[BaseFileWriter]:
    """Open a writer of a base file at a local path; the block closes the writer.

    ``ranges``: columns whose ranges the writer collects. An error abandons the file.
    """
    with pa.OSFile(str(path), "wb") as sink:
        writer = BaseFileWriter(sink, path.name, schema, settings, ranges=ranges)
        try:
            yield writer
        except BaseException:
            writer.abandon()
            raise


def publish_local_file(
    local: Path, storage: Storage, instant: str, partition: str, kind: str = CREATE
) -> None:
    """Create the marker of a finished local file, move the file into its partition, remove it here.

    ``instant``: the pending write's. ``kind``: of the marker. Raises what the storage raises.
    """
    storage.create(marker_path(instant, partition, local.name, kind), b"")
    storage.create_from(make_file_path(partition, local.name), str(local))
    local.unlink()
