"""Read what a table holds after its writes, from its folders and its timeline."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reconciler.hudi.files.names import BaseName
from reconciler.hudi.timeline.commit import COUNT, TEXT, CommitProjection
from reconciler.layout.sizing.key_routing import hash_record_keys
from tests.bench.trip_files import KEY
from tests.bench.write_rows import ORDERING, PARTITION, History

#: columns of numbers, and by what they become whole ones
SUMMED: Final = {ORDERING: 1, "total": 100, "pu_lon": 1_000_000, "dropoff_us": 1}
_WANTED: Final = CommitProjection(stat_fields=(("prevCommit", TEXT), ("fileSizeInBytes", COUNT)))
_RECORD_KEY: Final = "_hoodie_record_key"
_FOLDER: Final = "_hoodie_partition_path"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """The number of rows, a sum of hashes of keys with folders, and sums of columns."""

    rows: int
    keys: int
    columns: tuple[int, ...]

    @classmethod
    def of(cls, table: pa.Table, keys: str, folder: str) -> Self:
        spelled = [table[keys].cast(pa.string()), table[folder].cast(pa.string())]
        names = pc.binary_join_element_wise(*spelled, "/").combine_chunks()
        sums = []
        for name, times in SUMMED.items():
            values = table[name].to_numpy()
            sums.append(int(np.rint(values * times).astype(np.int64).sum()))
        return cls(rows=len(table), keys=int(hash_record_keys(names).sum()), columns=tuple(sums))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableContents:
    """Newest base files, their bytes, and the bytes written to existing file groups."""

    sums: Sums
    files: int
    bytes: int
    rewritten: int
    commits: int

    def __str__(self) -> str:
        mib = 2**20
        return (
            f"{self.files} files, {self.bytes / mib:.0f} MiB; {self.rewritten / mib:.0f} MiB "
            f"rewritten in {self.commits} commits"
        )


def read_contents(table: Path) -> TableContents:
    """Read a table that was never cleaned or archived."""
    sizes: list[int] = []
    instants = set()
    for file in sorted((table / ".hoodie" / "timeline").glob("*_*.commit")):
        instants.add(file.name.partition("_")[0])
        stats = _WANTED.read(file.read_bytes(), str(file))["partitionToWriteStats"]
        sizes += [
            int(stat["fileSizeInBytes"])
            for stat in (stat for some in stats.values() for stat in some)
            if str(stat["prevCommit"]).lower() != "null"
        ]
    newest: dict[tuple[str, str], tuple[str, Path]] = {}
    for path in table.glob("*/*.parquet"):
        name = BaseName.parse(path.name)
        if name is not None and name.instant in instants:
            group = (path.parent.name, name.file_id)
            newest[group] = max(newest.get(group, ("", path)), (name.instant, path))
    files = [path for _, path in newest.values()]
    columns = [_RECORD_KEY, _FOLDER, *SUMMED]
    rows = pa.concat_tables(pq.ParquetFile(path).read(columns) for path in sorted(files))
    return TableContents(
        sums=Sums.of(rows, _RECORD_KEY, _FOLDER),
        files=len(files),
        bytes=sum(path.stat().st_size for path in files),
        rewritten=sum(sizes),
        commits=len(instants),
    )


def newest_base_files(table: Path) -> list[Path]:
    """Return the newest base file of every file group."""
    newest: dict[str, tuple[str, Path]] = {}
    for path in table.glob("*/*.parquet"):
        name = BaseName.parse(path.name)
        if name is not None:
            newest[name.file_id] = max(newest.get(name.file_id, ("", path)), (name.instant, path))
    return [path for _, path in newest.values()]


def expected_sums(folder: Path, history: History) -> Sums:
    """Return the expected sums: the last change of every key."""
    names = ["seed", *(name for _, name in history.steps)]
    rows = pa.concat_tables(
        pq.read_table(folder / name, columns=[KEY, PARTITION, *SUMMED]) for name in names
    )
    keys = rows[KEY].to_numpy()
    last = np.zeros(history.total + len(keys), np.int64)
    last[keys] = np.arange(len(keys))  # of equal keys the last one stays
    return Sums.of(rows.take(pa.array(last[np.unique(keys)])), KEY, PARTITION)
