"""Measure reading a table with real Hudi 1.2.0 and with our reader, in one run.

python -m tests.bench.read_speed                  4 000 000 rows, copy-on-write and merge-on-read
python -m tests.bench.read_speed --rows 400000    fewer
python -m tests.bench.read_speed --only mor       one of the two

Each side is a warm Spark session of its own on two cores with 4 GB and a JVM as people run it; they
take turns, the first turn is not counted, medians of three. A turn opens the table and writes all
its rows and columns to Spark's "noop" sink, which takes them and does nothing. First both say how
many rows there are and the sum of their hashes, which must be the same. Real Hudi makes the tables:
a bulk insert, and for merge-on-read an upsert of every fifth row.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from tests.oracle.hudi import HudiTable, RealHudi

ROOT = Path(__file__).parents[2]
HEAP = "4g"
#: a table of orders: keys, times, text of few and of many values, numbers, a struct
ORDERS = """select concat('order-', lpad(cast({key} as string), 9, '0')) order_id,
 concat('2026-01-0', cast({key} % 8 + 1 as string)) dt, {key} seq,
 timestamp_micros(1700000000000000 + {key} * 1000003) ordered_at,
 cast(pmod(hash({key}), 100000) as int) customer_id,
 element_at(array('new', 'paid', 'sent', 'back'), cast({key} % 4 + 1 as int)) status,
 md5(cast({key} as string)) token, pmod(hash({key}, 6), 1000003) / 7.0D score,
 cast(pmod(hash({key}, 2), 1000000) / 100 as decimal(12, 2)) total,
 concat('{tag} ', cast(pmod(hash({key}, 3), 5000) as string)) note,
 named_struct('street', concat('s', cast(pmod(hash({key}, 4), 9000) as string)),
  'zip', cast(pmod(hash({key}, 5), 99999) as int)) address
 from range({first}, {last}, 1, 8)"""
OPTIONS = {
    "hoodie.table.name": "orders",
    "hoodie.datasource.write.recordkey.field": "order_id",
    "hoodie.datasource.write.partitionpath.field": "dt",
    "hoodie.table.ordering.fields": "seq",
}
#: at most so many times Hudi's time
GOALS = {"cow": 1.1, "mor": 0.8}
KINDS = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}


def make_table(hudi: RealHudi, path: Path, kind: str, rows: int) -> None:
    """Create the table completely, or not at all."""
    half = path.with_name(f"{path.name}.half")
    shutil.rmtree(half, ignore_errors=True)
    options = OPTIONS | {"hoodie.datasource.write.table.type": KINDS[kind]}
    first = ORDERS.format(key="id", tag="first", first=0, last=rows)
    fifth = ORDERS.format(key="(id * 5)", tag="fifth", first=0, last=rows // 5)
    steps = [("bulk_insert", first)] + [("upsert", fifth)] * (kind == "mor")
    for operation, query in steps:
        settings = options | {"hoodie.datasource.write.operation": operation}
        hudi.ask("write_query", table=HudiTable(path=half), query=query, options=settings, files=8)
    half.rename(path)


class Ours:
    """The process of our reader."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.bench.read_ours", HEAP, "-Duser.timezone=UTC"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def ask(self, what: str, table: Path) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{what} {table}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("our reader failed")
        return json.loads(line)


def measure_reads(hudi: RealHudi, ours: Ours, table: Path, turns: int) -> dict[str, float]:
    """Return the median wall seconds of ``hudi`` and ``ours`` after one warm-up turn."""
    taken: dict[str, list[dict[str, Any]]] = {"hudi": [], "ours": []}
    theirs = hudi.ask("sum_of", table=HudiTable(path=table), options={})
    if (found := ours.ask("sum", table)) != theirs:
        raise SystemExit(f"they do not see the same rows: Hudi {theirs}, ours {found}")
    for turn in range(turns + 1):
        sides = {
            "hudi": hudi.ask("timed_read", table=HudiTable(path=table), options={}),
            "ours": ours.ask("read", table),
        }
        for name, side in sides.items():
            cost = f"{side['wall']:7.2f} s {side['cpu']:7.2f} CPU s"
            print(f"  turn {turn} {name} {cost}", file=sys.stderr, flush=True)
            taken[name] += [side] * (turn > 0)
    return {name: statistics.median(t["wall"] for t in spent) for name, spent in taken.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--only", choices=list(GOALS))
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    is_met = True
    hudi = RealHudi("1.2.0", heap=f"{HEAP}!", timeout=3600)
    try:
        for kind in [arguments.only] if arguments.only else GOALS:
            table = ROOT / ".bench" / f"{kind}-{arguments.rows}"
            if not table.is_dir():
                print(f"making {table.name}", file=sys.stderr)
                make_table(hudi, table, kind, arguments.rows)
            with Ours() as ours:
                found = measure_reads(hudi, ours, table, arguments.turns)
            ratio = found["ours"] / found["hudi"]
            is_met &= ratio <= GOALS[kind]
            print(
                f"{kind} {arguments.rows} rows: Hudi {found['hudi']:.2f} s, "
                f"ours {found['ours']:.2f} s, "
                f"{ratio:.2f} times Hudi's time (goal {GOALS[kind]})",
                flush=True,
            )
    finally:
        hudi.close()
    return int(not is_met)


if __name__ == "__main__":
    sys.exit(main())
