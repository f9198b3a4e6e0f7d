"""Measure clustering a table with real Hudi, Delta, Iceberg, plain Spark and this tool, in one run.

python -m tests.bench.rewrite_side_by_side                    16 000 000 trips, files of 16 MiB
python -m tests.bench.rewrite_side_by_side --shape wide       200 000 rows of 400 columns
python -m tests.bench.rewrite_side_by_side --shape nested     1 000 000 rows with structs and lists
python -m tests.bench.rewrite_side_by_side --rows 1000000 --target 1
python -m tests.bench.rewrite_side_by_side --only ours spark --turns 1
python -m tests.bench.rewrite_side_by_side --rows 64000000 --only ours --turns 1   the memory

Every turn is a fresh process on two cores with a Spark session that has run something; its start
does not count. The systems take turns, medians of so many. Theirs are z-orders of three columns,
ours is the kd-tree by plan and apply, on the table that Hudi's bulk insert made. Plain Spark is the
floor: it sorts the rows of that table's base files into as many files as their bytes need, with
Hudi's columns. All write Snappy, and no more files than planned. Memory is that of the process tree
at its peak, every page once.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.curve_data import Query
from tests.bench.meter import Cost
from tests.bench.peers import NAMES, ROOT, Peer
from tests.bench.pruner import read_file_ranges
from tests.bench.row_shapes import SHAPES, RowShape

ORDER = ("hudi", "delta", "iceberg", "spark", "ours")
FLOOR = "spark"
#: megabytes
MEMORY = 4096
#: our most, as a multiple: of the floor's wall time, of the fastest peer's, and of Hudi's bytes
GOALS = {"spark": 1.0, "peer": 1.0, "hudi": 1.0}


@dataclass(frozen=True, kw_only=True)
class ClusteringTurn:
    """One rewrite of a table by a system.

    ``bytes``: of its new files. ``share_read``: mean share of the bytes that a query reads, None
    if the shape has no queries.
    """

    system: str
    number: int
    cost: Cost
    files: int
    bytes: int
    share_read: float | None

    def __str__(self) -> str:
        reads = "" if self.share_read is None else f", read {self.share_read:.4f}"
        return (
            f"{NAMES[self.system]:24}{self.cost}  {self.files:4} files, "
            f"{self.bytes / 2**20:7.1f} MiB{reads}"
        )


@dataclass(frozen=True, kw_only=True)
class ClusteringRun:
    """What is clustered, by whom and how often; ``heaps``: of the JVM, by system."""

    shape: RowShape
    rows: int
    target: int
    systems: Sequence[str] = ORDER
    turns: int = 3
    heap: str = "4g"
    our_heap: str = "1g"
    folder: Path = ROOT / ".bench" / "peers"

    def measure(self) -> Iterator[ClusteringTurn]:
        """Run the systems in turn; SystemExit if one of them loses rows."""
        folder = self.folder.resolve() / f"{self.shape.name}-{self.rows}"
        rows = self.shape.make(folder / "rows", self.rows)
        mix = self.shape.mix(rows) if self.shape.mix else None
        if not (folder / "loaded" / "hudi").is_dir():
            with Peer("hudi", self.heap, folder) as hudi:
                hudi.fresh(rows, self.shape.key)
        for number in range(self.turns):
            for system in self.systems:
                yield self._run_turn(system, number, folder, rows, mix)

    def _run_turn(
        self, system: str, number: int, folder: Path, rows: Path, mix: list[Query] | None
    ) -> ClusteringTurn:
        heap = self.our_heap if system == "ours" else self.heap
        with Peer(system, heap, folder) as peer:
            peer.fresh(rows, self.shape.key)
            cost = peer.cluster(self.shape.columns, self.target, exact=True)
            files = peer.files()
        found = read_file_ranges(files, self.shape.columns if mix else [])
        if found.rows.sum() != self.rows:
            raise SystemExit(f"{NAMES[system]}: {found.rows.sum()} rows of {self.rows}")
        return ClusteringTurn(
            system=system,
            number=number,
            cost=cost,
            files=len(files),
            bytes=int(found.bytes.sum()),
            share_read=float(found.shares_read(mix).mean()) if mix else None,
        )


def median(costs: list[Cost]) -> Cost:
    """Return the median of each number, and the maximum of memory."""
    return Cost(
        wall=statistics.median(cost.wall for cost in costs),
        cpu=statistics.median(cost.cpu for cost in costs),
        megabytes=max(cost.megabytes for cost in costs),
    )


def summarize(turns: Sequence[ClusteringTurn]) -> dict[str, ClusteringTurn]:
    """Return a turn for each system that has its median cost, and its last files."""
    last = {turn.system: turn for turn in turns}
    return {
        system: ClusteringTurn(
            system=system,
            number=turn.number,
            cost=median([one.cost for one in turns if one.system == system]),
            files=turn.files,
            bytes=turn.bytes,
            share_read=turn.share_read,
        )
        for system, turn in last.items()
    }


@dataclass(frozen=True, kw_only=True)
class ClusteringGoal:
    """A number of ours and its limit."""

    what: str
    value: float
    limit: float

    @property
    def is_met(self) -> bool:
        return self.value <= self.limit

    def __str__(self) -> str:
        verdict = "met" if self.is_met else "MISSED"
        return f"{verdict}: {self.what} {self.value:.2f}, at most {self.limit:.2f}"


def compare(found: dict[str, ClusteringTurn]) -> list[ClusteringGoal]:
    """Return our numbers beside those of the systems that took part."""
    ours = found.get("ours")
    if ours is None:
        return []
    goals = [ClusteringGoal(what="memory in MB", value=ours.cost.megabytes, limit=MEMORY)]
    others = {name: turn for name, turn in found.items() if name not in ("ours", FLOOR)}
    if FLOOR in found:
        floor = found[FLOOR].cost
        goals += _compare_costs("Spark's sorted write", ours.cost, [floor], GOALS["spark"])
    if others:
        costs = [turn.cost for turn in others.values()]
        goals += _compare_costs("the fastest peer", ours.cost, costs, GOALS["peer"])
    if "hudi" in found:
        value = ours.bytes / found["hudi"].bytes
        goals.append(ClusteringGoal(what="bytes, of Hudi's", value=value, limit=GOALS["hudi"]))
    return goals


def _compare_costs(
    whose: str, ours: Cost, theirs: Sequence[Cost], limit: float
) -> list[ClusteringGoal]:
    wall, cpu = min(cost.wall for cost in theirs), min(cost.cpu for cost in theirs)
    return [
        ClusteringGoal(what=f"wall, of {whose}", value=ours.wall / wall, limit=limit),
        ClusteringGoal(what=f"CPU, of {whose}", value=ours.cpu / cpu, limit=limit),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", choices=SHAPES, default="trips")
    parser.add_argument("--rows", type=int, help="default: the shape's own")
    parser.add_argument("--target", type=float, help="MiB of a file")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=ORDER, default=ORDER)
    parser.add_argument("--heap", default="4g", help="of the other systems' JVM")
    parser.add_argument("--our-heap", default="1g", help="of our driver's JVM")
    parser.add_argument("--folder", type=Path, default=ROOT / ".bench" / "peers")
    arguments = parser.parse_args()
    shape = SHAPES[arguments.shape]
    run = ClusteringRun(
        shape=shape,
        rows=arguments.rows or shape.rows,
        target=int((arguments.target or shape.target) * 2**20),
        systems=arguments.only,
        turns=arguments.turns,
        heap=arguments.heap,
        our_heap=arguments.our_heap,
        folder=arguments.folder,
    )
    turns = []
    for turn in run.measure():
        print(f"  turn {turn.number} {turn}", flush=True)
        turns.append(turn)
    found = summarize(turns)
    goals = compare(found)
    print("\n".join(map(str, [*found.values(), *goals])))
    return int(not all(goal.is_met for goal in goals))


if __name__ == "__main__":
    sys.exit(main())
