"""Measure the CPU of a plan with a clustering block, by the source of the column bounds.

python -m tests.bench.evidence_speed                    100 000 files in 1 000 partitions
python -m tests.bench.evidence_speed --partitions 100   10 000 files

`reconciler plan` in a fresh process, from its start to its end, imports included; CPU seconds are
user and system. The metadata table lists the files and has statistics of ten columns, of which the
spec names two; footers carry a bloom filter of 440 kB, as Hudi's do by default.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from reconciler.hudi.codecs import hfile_writer
from reconciler.hudi.codecs.avro_binary import encode_record, parse_schema
from reconciler.hudi.codecs.log_blocks import BlockType, get_block_schema, read_blocks
from reconciler.hudi.metadata.record_encoder import BoundWrapper, ColumnRange, RecordEncoder
from reconciler.state.clustering_facts_reader import MAX_FOOTERS
from tests.bench.make_table import Shape, make_table
from tests.trees import unpack

ROOT = Path(__file__).parents[2]
INDEXED = ROOT / "tests/tables/indexed/1.2.0.zip"
GROUPS = 100
START = "00000000000000000"
COLUMNS = (*(f"c{number}" for number in range(8)), "id", "ts")
LONG = BoundWrapper(
    wrapper="org.apache.hudi.avro.model.LongWrapper",
    value_type={"typeOrdinal": 4, "additionalInfo": None},
)
BLOOM = 440_000
SPECS = {
    "no clustering": "retention: {commits: 3}",
    "packing": "clustering: {columns: []}",
    "by overlap, of the index": "clustering: {columns: [id, ts]}",
    "by overlap, of footers": "clustering: {columns: [id, ts], partitions: {latest: %s}}",
    "by overlap, too many footers": "clustering: {columns: [id, ts]}",
}


def schema_of_records(folder: Path) -> str:
    """Return the schema of metadata table records that real Hudi 1.2.0 writes."""
    index = unpack(INDEXED, folder) / ".hoodie/metadata/column_stats"
    for path in sorted(index.glob(".*.log.*")):
        for block in read_blocks(path.read_bytes(), path.name):
            if block.type is BlockType.HFILE_DATA:
                return get_block_schema(block)
    raise SystemExit(f"{INDEXED} has no statistics")


def add_metadata_table(table: Path, shape: Shape, schema: str) -> None:
    """Add a metadata table whose base files list the files and their statistics."""
    own = table / ".hoodie/metadata/.hoodie"
    (own / "timeline").mkdir(parents=True)
    (own / "hoodie.properties").write_text("hoodie.table.name=t_metadata\n")
    for name in (f"{START}.deltacommit.requested", f"{START}_20260101000000000.deltacommit"):
        (own / "timeline" / name).touch()
    names = {
        f"p{partition:06d}": [shape.name(partition, group, 0) for group in range(GROUPS)]
        for partition in range(shape.partitions)
    }
    write_hfile(table, "files", "files", listing(names, table, schema), schema)
    write_hfile(table, "column_stats", "col-stats", statistics(names, schema), schema)


def write_hfile(
    table: Path, partition: str, group: str, cells: list[tuple[bytes, bytes]], schema: str
):
    folder = table / ".hoodie/metadata" / partition
    folder.mkdir()
    data = hfile_writer.encode_hfile(sorted(cells), schema)
    (folder / f"{group}-0000-0_0-0-0_{START}.hfile").write_bytes(data)


def listing(names: dict[str, list[str]], table: Path, schema: str) -> list[tuple[bytes, bytes]]:
    parsed = parse_schema(schema, "")

    def cell(key: str, kind: int, sizes: dict[str, int]) -> tuple[bytes, bytes]:
        told = {name: {"size": size, "isDeleted": False} for name, size in sizes.items()}
        record = dict.fromkeys(field["name"] for field in parsed["fields"])
        return key.encode(), encode_record(
            {**record, "key": "", "type": kind, "filesystemMetadata": told}, parsed
        )

    (one, *_), folder = next(iter(names.values())), next(iter(names))
    size = (table / folder / one).stat().st_size
    cells = [cell(path, 2, dict.fromkeys(found, size)) for path, found in names.items()]
    return [*cells, cell("__all_partitions__", 1, dict.fromkeys(names, 0))]


def statistics(names: dict[str, list[str]], schema: str) -> list[tuple[bytes, bytes]]:
    """Return statistics in which each file covers a tenth of each column."""
    chance, made = random.Random(1), RecordEncoder(schema=schema, path="")
    wrappings = dict.fromkeys(COLUMNS, LONG)
    cells = []
    for path, found in names.items():
        for name in found:
            ranges = [
                ColumnRange(
                    column=column,
                    least=(least := chance.randrange(900_000)),
                    greatest=least + 100_000,
                    values=1000,
                    nulls=0,
                    size=1,
                    plain_size=1,
                )
                for column in COLUMNS
            ]
            cells += made.encode_column_stats(path, name, ranges, wrappings)
    return cells


def weigh_down_footers(table: Path) -> None:
    """Add a bloom filter of the usual size to the files that all others link to."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    for template in (table / ".hoodie/.temp").iterdir():
        rows = pq.read_table(template)
        bloom = {"org.apache.hudi.bloomfilter": "x" * BLOOM}
        sink = pa.BufferOutputStream()
        pq.write_table(rows.replace_schema_metadata(bloom), sink, store_schema=False)
        template.write_bytes(sink.getvalue())


def read_overlap(folder: Path) -> str:
    """Return the overlap that the plan reports, and its other warnings."""
    (table,) = json.loads((folder / "p.json").read_bytes())["tables"]
    overlaps = [f["actual"] for f in table["drift"] if "overlap" in f["field"].lower()]
    rules = {note["rule"] for note in table["warnings"]} - {"lock", "nothingToDo"}
    return f"overlap {overlaps}, warnings {sorted(rules)}"


def plan(table: Path, folder: Path, block: str, live: str) -> tuple[float, float]:
    """Return the CPU and wall seconds of a plan."""
    properties = table / ".hoodie/hoodie.properties"
    key = "hoodie.table.metadata.partitions="
    lines = [x for x in properties.read_text().splitlines() if not x.startswith(key)]
    properties.write_text("\n".join([*lines, f"{key}{live}", ""]))
    spec = folder / "spec.yaml"
    spec.write_text(
        "apiVersion: reconciler/v1\nkind: HudiTable\nmetadata: {name: bench}\n"
        f"spec: {{path: {table}, {block}}}\n"
    )
    program = Path(sys.executable).parent / "reconciler"
    command = [str(program), "plan", str(spec), "--no-cache", "-o", str(folder / "p.json")]
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"reconciler plan ended with {process.returncode}")
    wall = time.perf_counter() - started
    return usage.ru_utime + usage.ru_stime, wall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--times", type=int, default=1)
    asked = parser.parse_args()
    shape = Shape(partitions=asked.partitions, groups=GROUPS, versions=1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        table = folder / "table"
        make_table(table, shape)
        weigh_down_footers(table)
        add_metadata_table(table, shape, schema_of_records(folder / "indexed"))
        for name, block_text in SPECS.items():
            live = "files" if "footers" in name else "column_stats,files"
            block = block_text.replace("%s", str(MAX_FOOTERS // GROUPS))
            for _ in range(asked.times):
                cpu, wall = plan(table, folder, block, live)
                print(
                    f"{shape.files} files, {name:30}{cpu:7.2f} CPU s {wall:7.2f} s; "
                    + read_overlap(folder),
                    flush=True,
                )


if __name__ == "__main__":
    main()
