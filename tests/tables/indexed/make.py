"""Makes the tables of this folder: every type that indexes keep, and every index, by real Hudi.

``HUDI_BUNDLES=<folder> python -m tests.tables.indexed.make``; two commits, three files in two
partitions, few file groups and small bloom filters, no checksum files.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from tests.oracle.hudi import RealHudi

HERE = Path(__file__).parent
SETTINGS = {
    "hoodie.embed.timeline.server": "false",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.bulkinsert.shuffle.parallelism": "1",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.column.stats.file.group.count": "1",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.index.bloom.filter.file.group.count": "2",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.record.index.max.filegroup.count": "2",
    "hoodie.index.bloom.num_entries": "4",
}
COLUMNS = {
    "id": "string",
    "b": "boolean",
    "i": "int",
    "l": "bigint",
    "f": "float",
    "d": "double",
    "s": "string",
    "bin": "binary",
    "d7": "decimal(7,2)",
    "d18": "decimal(18,3)",
    "d38": "decimal(38,10)",
    "dt": "date",
    "ts": "timestamp",
    "nul": "int",
    "p": "string",
}
#: 0.15 indexes none by itself; 1.0 and 1.2 the first 32
INDEXED = ["_hoodie_commit_time", "_hoodie_record_key", "_hoodie_partition_path", *COLUMNS]


def row(n: int, partition: str) -> str:
    return f"""('k{n}', {str(n % 2 == 1).lower()}, {n - 3}, {n * 10**10}L, cast({n}.5 as float),
        {"-" if n == 1 else ""}{n - 1}.0D, 's{n}', X'0{n}', {n}.25, -{n}.125, {n}.1,
        date'2020-01-0{n}', timestamp'1969-12-31 23:59:5{n}.123456', null, '{partition}')"""


def make(version: str, operation: str) -> None:
    hudi = RealHudi(version)
    with tempfile.TemporaryDirectory() as folder:
        settings = dict(SETTINGS)
        if version.startswith("0."):
            settings["hoodie.metadata.index.column.stats.column.list"] = ",".join(INDEXED)
        settings["hoodie.spark.sql.insert.into.operation"] = operation
        settings["hoodie.datasource.write.operation"] = operation
        for key, value in settings.items():
            hudi.sql(f"set {key}={value}")
        columns = ", ".join(" ".join(pair) for pair in COLUMNS.items())
        hudi.sql(
            f"create table t ({columns}) using hudi partitioned by (p) location '{folder}' "
            "tblproperties (primaryKey = 'id', type = 'cow')"
        )
        typed = ", ".join(f"cast({name} as {kind}) as {name}" for name, kind in COLUMNS.items())
        for rows in ([row(1, "a"), row(2, "a"), row(3, "b")], [row(4, "b"), row(5, "b")]):
            values = f"values {', '.join(rows)} as t({', '.join(COLUMNS)})"
            hudi.sql(f"insert into t select {typed} from {values}")
        hudi.close()
        zipped = HERE / f"{version}.zip"
        zipped.unlink(missing_ok=True)
        subprocess.run(["zip", "-qr9", zipped, ".", "-x", "*.crc"], cwd=folder, check=True)


if __name__ == "__main__":
    make("0.15.0", "insert")
    make("1.0.2", "upsert")
    make("1.2.0", "upsert")
