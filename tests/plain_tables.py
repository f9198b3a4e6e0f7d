"""Write small tables without Hudi, with given rows in each file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.hudi.table.properties import compute_checksum

INSTANT = "20260101000000000"
_PROPERTIES = {
    "hoodie.table.name": "orders",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.version": "6",
    "hoodie.timeline.layout.version": "1",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.populate.meta.fields": "false",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.table.metadata.partitions": "",
}
_AVRO = {"int64": "long", "int32": "int", "double": "double", "string": "string"}


def write_table(root: Path, parts: Mapping[str, Sequence[Any]], *, by: str | None = None) -> Path:
    """Write a copy-on-write table of version 6 with one file per Arrow table.

    ``parts``: Arrow tables by partition ("" for an unpartitioned table). ``by``: the partition
    column.
    """
    timeline = root / ".hoodie"
    timeline.mkdir(parents=True)
    more = {"hoodie.table.partition.fields": by} if by else {}
    said = {**_PROPERTIES, **more, "hoodie.table.checksum": str(compute_checksum(_PROPERTIES))}
    (timeline / "hoodie.properties").write_text("".join(f"{k}={v}\n" for k, v in said.items()))
    for partition in parts:
        folder = root / partition
        folder.mkdir(exist_ok=True)
        meta = f"commitTime={INSTANT}\npartitionDepth={int(bool(partition))}\n"
        (folder / ".hoodie_partition_metadata").write_text(meta)
    return add_commit(root, parts, INSTANT)


def add_commit(root: Path, parts: Mapping[str, Sequence[Any]], instant: str) -> Path:
    """Add a commit with new files to existing partitions of a table from ``write_table``."""
    timeline = root / ".hoodie"
    stats, number = {}, len(list(root.rglob("*.parquet")))
    for partition, tables in parts.items():
        stats[partition] = []
        for table in tables:
            stats[partition].append(_write(root / partition, partition, number, table, instant))
            number += 1
    schema = next(iter(parts.values()))[0].schema
    fields = [{"name": f.name, "type": ["null", _AVRO[str(f.type)]]} for f in schema]
    commit = {
        "partitionToWriteStats": stats,
        "compacted": False,
        "extraMetadata": {"schema": json.dumps({"type": "record", "name": "r", "fields": fields})},
        "operationType": "INSERT",
    }
    (timeline / f"{instant}.commit.requested").touch()
    (timeline / f"{instant}.inflight").touch()
    (timeline / f"{instant}.commit").write_text(json.dumps(commit))
    return root


def _write(folder: Path, partition: str, number: int, table: Any, instant: str) -> dict[str, Any]:
    file_id = f"abcdef{number:02d}-0000-0000-0000-000000000000-0"
    path = folder / f"{file_id}_{number}-0-0_{instant}.parquet"
    pq.write_table(table, path)
    size = path.stat().st_size
    return {
        "fileId": file_id,
        "path": f"{partition}/{path.name}" if partition else path.name,
        "prevCommit": "null",
        "numWrites": len(table),
        "numInserts": len(table),
        "numUpdateWrites": 0,
        "numDeletes": 0,
        "totalWriteBytes": size,
        "fileSizeInBytes": size,
        "partitionPath": partition,
    }


def make_orders(rows: int, files: int, *, seed: int = 1, sorted_by: str | None = None) -> list[Any]:
    """Return orders divided into files; by default sorted by id, unrelated to the other columns."""
    rng = np.random.default_rng(seed)
    table = pa.table(
        {
            "id": np.arange(rows, dtype=np.int64),
            "customer": rng.permutation(rows).astype(np.int64),
            "amount": rng.uniform(0, 1000, rows),
            "state": np.array(["new", "paid", "sent"])[rng.integers(0, 3, rows)],
        }
    )
    if sorted_by is not None:
        table = table.sort_by(sorted_by)
    ends = np.linspace(0, rows, files + 1).astype(int)
    return [table.slice(a, b - a) for a, b in pairwise(ends)]
