"""Read the metadata of a savepoint: HoodieSavepointMetadata."""

from __future__ import annotations

from reconciler.hudi.codecs.avro_container import decoding_container, read_file_names


def parse_savepoint_files(data: bytes, path: str) -> dict[str, tuple[str, ...]]:
    """Return the names of the pinned files by partition; raises FormatError naming ``path``."""
    with decoding_container(data, "HoodieSavepointMetadata", path) as record:
        return {
            str(partition): read_file_names(saved["savepointDataFile"], path)
            for partition, saved in record["partitionMetadata"].items()
        }
