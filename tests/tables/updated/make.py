"""Makes the tables of this folder: updates in log files whose values leave the base file's ranges.

``HUDI_BUNDLES=<folder> python -m tests.tables.updated.make``; a base file, a log file of updates
and one of a deletion and nulls, with column_stats live. No checksum files.
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
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.column.stats.file.group.count": "1",
    "hoodie.metadata.record.index.enable": "false",
    "hoodie.index.bloom.num_entries": "4",
    "hoodie.spark.sql.insert.into.operation": "upsert",
}
COLUMNS = {
    "id": "string",
    "b": "boolean",
    "i": "int",
    "l": "bigint",
    "f": "float",
    "s": "string",
    "d7": "decimal(7,2)",
    "dt": "date",
    "ts": "timestamp",
}


def row(n: int) -> str:
    return f"""('k{n}', false, {n}, {n * 10**10}L, cast({n}.5 as float), 's{n}', {n}.25,
        date'2020-01-0{n}', timestamp'2020-01-01 00:00:0{n}.123456')"""


def make(version: str) -> None:
    hudi = RealHudi(version)
    with tempfile.TemporaryDirectory() as folder:
        for key, value in SETTINGS.items():
            hudi.sql(f"set {key}={value}")
        columns = ", ".join(" ".join(pair) for pair in COLUMNS.items())
        hudi.sql(
            f"create table t ({columns}) using hudi location '{folder}' "
            "tblproperties (primaryKey = 'id', type = 'mor')"
        )
        typed = ", ".join(f"cast({name} as {kind}) as {name}" for name, kind in COLUMNS.items())
        values = f"values {', '.join(map(row, range(1, 6)))} as t({', '.join(COLUMNS)})"
        hudi.sql(f"insert into t select {typed} from {values}")
        hudi.sql(
            "update t set b = true, i = -70, l = 7000000000000, f = 70.5, s = 'u', d7 = 70.25, "
            "dt = date'1970-01-07', ts = timestamp'2037-01-01 00:00:00.000007' "
            "where id in ('k2', 'k3')"
        )
        hudi.sql(
            "update t set b = null, i = 900, l = null, f = null, s = null, d7 = null, "
            "dt = date'2090-01-01', ts = null where id = 'k4'"
        )
        hudi.sql("delete from t where id = 'k1'")
        hudi.close()
        zipped = HERE / f"{version}.zip"
        zipped.unlink(missing_ok=True)
        subprocess.run(["zip", "-qr9", zipped, ".", "-x", "*.crc"], cwd=folder, check=True)


if __name__ == "__main__":
    make("1.0.2")
    make("1.2.0")
