"""Compare a compaction of ours with Hudi's of the same plan, field by field."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq

from tests.column_stats import load_metadata, read_entries
from tests.metadata_keys import read_index_keys
from tests.our_compaction import find_timeline

#: of the task, the machine and the encoding
_OF_THE_RUN = ("path", "totalWriteBytes", "fileSizeInBytes", "runtimeStats", "totalLogReadTimeMs")
_OURS = "reconciler."


def read_commit(path: Path, instant: str) -> dict[str, Any]:
    """Return the completed commit of an instant as it is on disk."""
    (file,) = (
        entry
        for entry in find_timeline(path).iterdir()
        if re.fullmatch(rf"{instant}(_\d+)?\.commit", entry.name)
    )
    data = file.read_bytes()
    if data[:3] == b"Obj":
        (record,) = fastavro.reader(io.BytesIO(data))
        assert isinstance(record, dict)
        return record
    parsed: dict[str, Any] = json.loads(data)
    return parsed


def describe_commit(path: Path, instant: str) -> dict[str, Any]:
    """Return the commit without what differs from run to run."""
    commit = read_commit(path, instant)
    extra = {k: v for k, v in commit["extraMetadata"].items() if not k.startswith(_OURS)}
    stats = {
        partition: {
            stat["fileId"]: {k: v for k, v in stat.items() if k not in _OF_THE_RUN}
            for stat in listed
        }
        for partition, listed in commit["partitionToWriteStats"].items()
    }
    return {**commit, "extraMetadata": extra, "partitionToWriteStats": stats}


def list_base_files(path: Path, instant: str) -> dict[str, Path]:
    """Return the base files of an instant by partition and file id."""
    files = (f for f in path.rglob(f"*_{instant}.parquet") if ".hoodie" not in f.parts)
    return {f"{file.parent.relative_to(path)}/{file.name.split('_')[0]}": file for file in files}


def describe_file(file: Path) -> dict[str, Any]:
    """Return rows, columns and Hudi's footer of a base file."""
    parquet = pq.ParquetFile(file)
    rows = parquet.read().to_pylist()
    for row in rows:
        assert row.pop("_hoodie_file_name") == file.name
    footer = {k.decode(): v.decode() for k, v in (parquet.metadata.metadata or {}).items()}
    hudis = ("org.apache.hudi.bloomfilter", "hoodie_")
    return {
        "rows": sorted(rows, key=lambda row: str(row["_hoodie_record_key"])),
        "columns": [
            (c.path, c.physical_type, str(c.logical_type), c.max_definition_level)
            for c in (parquet.schema.column(n) for n in range(len(parquet.schema)))
        ],
        "footer": {key: text for key, text in footer.items() if key.startswith(hudis)},
    }


def describe_indexes(path: Path, instant: str) -> dict[str, Any]:
    """Return what the metadata table says of a compaction's files, with their file ids as names."""
    metadata, properties = load_metadata(path)
    names = {file.name: key for key, file in list_base_files(path, instant).items()}
    found: dict[str, Any] = {}
    if "column_stats" in properties.metadata_partitions:
        stats = read_entries(path)["column_stats"]
        found["column_stats"] = {
            (names[name], column): said
            for (name, column), said in stats.items()
            if name in names and column != "_hoodie_file_name"
        }
    for partition in ("record_index", "bloom_filters"):
        if partition in properties.metadata_partitions:
            keys = read_index_keys(metadata, partition)
            found[partition] = keys if partition == "record_index" else len(keys)
    return found
