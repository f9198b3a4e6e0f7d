"""Measure reading a table with real Hudi 1.2.0 and with our reader, in one run.

python -m tests.bench.read_speed             4 000 000 rows, copy-on-write and merge-on-read
python -m tests.bench.read_speed --quick     200 000 rows, one turn

Each side is a warm Spark session of its own on two cores with 4 GB and a JVM as people run it; they
take turns after one that is not counted. A turn opens the table and writes all its rows and columns
to Spark's "noop" sink, which takes them and does nothing. First both say how many rows there are
and the sum of their hashes, which must be the same. Real Hudi makes the tables: a bulk insert, and
for merge-on-read an upsert of every fifth row.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from tests.bench.figures import CPU, WALL, Baseline, Figure, Goal, Measure
from tests.bench.jobs import ROOT, Job, Run, run_alone, take_turns
from tests.bench.versions import HUDI, HUDI_VERSION, OURS
from tests.oracle.hudi import HudiTable, RealHudi

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
WORK = {"cow": "scan of base files", "mor": "merge of base and log files"}


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


def measure_kind(run: Run, hudi: RealHudi, kind: str, rows: int) -> tuple[Figure, ...]:
    """Measure both readers of one kind of table, which must give the same rows."""
    path = run.folder / f"{kind}-{rows}"
    if not path.is_dir():
        print(f"making {path.name}", file=sys.stderr)
        make_table(hudi, path, kind, rows)
    table = HudiTable(path=path)
    with Ours() as ours:
        theirs = hudi.ask("sum_of", table=table, options={})
        if (found := ours.ask("sum", path)) != theirs:
            raise SystemExit(f"they do not see the same rows: Hudi {theirs}, ours {found}")
        sides = {
            OURS: lambda: _measures(kind, ours.ask("read", path)),
            HUDI: lambda: _measures(kind, hudi.ask("timed_read", table=table, options={})),
        }
        for warm_up in sides.values():
            warm_up()
        return take_turns(run, sides)


def _measures(kind: str, cost: dict[str, Any]) -> list[Measure]:
    return [
        Measure(what=WORK[kind], unit=WALL, value=cost["wall"]),
        Measure(what=WORK[kind], unit=CPU, value=cost["cpu"]),
    ]


def measure(run: Run) -> list[Figure]:
    rows = run.pick(4_000_000, 200_000)
    hudi = RealHudi(HUDI_VERSION, heap=f"{HEAP}!", timeout=3600)
    try:
        return [one for kind in KINDS for one in measure_kind(run, hudi, kind, rows)]
    finally:
        hudi.close()


def goals(_: Run) -> list[Goal]:
    of_hudi = Baseline(systems=(HUDI,))
    return [
        Goal(what=WORK[kind], unit=WALL, limit=limit, baseline=of_hudi)
        for kind, limit in GOALS.items()
    ]


JOB = Job(
    name="reads",
    title="Reading all rows",
    does="""\
Both read all rows and columns of tables of 4 000 000 rows in eight partitions that real Hudi made,
in warm sessions: base files alone, and base files with log files that change every fifth row.""",
    measure=measure,
    goals=goals,
)


if __name__ == "__main__":
    sys.exit(run_alone(JOB))
