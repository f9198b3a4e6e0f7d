"""Find the files that a read as of an instant needs, from the writes on the timeline.

The reader derives the same from what cleans removed.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro

from tests.oracle.read_queries import list_completed_files


def find_missing_files(table: Path, instant: str) -> list[str]:
    """Return the files that a snapshot as of the instant needs and that are missing."""
    wrote: dict[tuple[str, str], list[tuple[str, str]]] = {}
    replaced: set[tuple[str, str]] = set()
    for at, record in _read_writes(table):
        if at <= instant:
            for partition, ids in (record.get("partitionToReplaceFileIds") or {}).items():
                replaced.update((partition, each) for each in ids)
            for partition, stats in (record.get("partitionToWriteStats") or {}).items():
                for stat in stats:
                    wrote.setdefault((partition, stat["fileId"]), []).append((at, stat["path"]))
    kept = (files for group, files in wrote.items() if group not in replaced)
    needed = (path for files in kept for path in _find_newest_slice(files))
    return [path for path in needed if not (table / path).exists()]


def _find_newest_slice(files: list[tuple[str, str]]) -> list[str]:
    """Return the newest base file and the log files written after it."""
    bases = [file for file in files if file[1].endswith(".parquet")]
    newest = max(bases, default=("", ""))
    logs = [path for at, path in files if not path.endswith(".parquet") and at > newest[0]]
    return [newest[1], *logs] if bases else logs


def _read_writes(table: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for instant, file in list_completed_files(table):
        data = file.read_bytes()
        is_avro = data.startswith(b"Obj")
        yield instant, next(fastavro.reader(io.BytesIO(data))) if is_avro else json.loads(data)
