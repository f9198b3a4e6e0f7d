"""Measure clustering a table with real Hudi, Delta, Iceberg and this tool, in one run.

python -m tests.bench.rewrite_side_by_side                    16 000 000 trips, files of 16 MiB
python -m tests.bench.rewrite_side_by_side --rows 1000000 --target 1
python -m tests.bench.rewrite_side_by_side --only ours delta --turns 1
python -m tests.bench.rewrite_side_by_side --rows 64000000 --only ours --turns 1   the memory

Every turn is a fresh process on two cores with a Spark session that has run something; its start
does not count. The systems take turns, medians of so many. Theirs are z-orders of three columns,
ours is the kd-tree by plan and apply, on the table that Hudi's bulk insert made. All write Snappy.
Memory is that of the process tree at its peak, every page once.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

from tests.bench.meter import Cost
from tests.bench.peers import NAMES, ROOT, Peer
from tests.bench.pruner import read_file_ranges
from tests.bench.trip_files import COLUMNS, KEY, query_mix, trip_files

ORDER = ("hudi", "delta", "iceberg", "ours")
#: of the fastest peer's wall time; megabytes; of the memory at a quarter of the rows
GOAL, MEMORY = 0.6, 4096


def run_turn(
    system: str, heap: str, folder: Path, rows: Path, target: int
) -> tuple[Cost, list[str]]:
    """Run one rewrite; return its cost and its files."""
    with Peer(system, heap, folder) as peer:
        peer.fresh(rows, KEY)
        return peer.cluster(COLUMNS, target), peer.files()


def median(costs: list[Cost]) -> Cost:
    """Return the median of each number, and the maximum of memory."""
    return Cost(
        wall=statistics.median(cost.wall for cost in costs),
        cpu=statistics.median(cost.cpu for cost in costs),
        megabytes=max(cost.megabytes for cost in costs),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=16_000_000)
    parser.add_argument("--target", type=float, default=16, help="MiB of a file")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=ORDER, default=ORDER)
    parser.add_argument("--heap", default="4g", help="of the other systems' JVM")
    parser.add_argument("--our-heap", default="1g", help="of our driver's JVM")
    parser.add_argument("--folder", type=Path, default=ROOT / ".bench" / "peers")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve() / f"trips-{arguments.rows}"
    rows = trip_files(folder / "rows", arguments.rows)
    mix = query_mix(rows)
    if "ours" in arguments.only and not (folder / "loaded" / "hudi").is_dir():
        with Peer("hudi", arguments.heap, folder) as hudi:
            hudi.fresh(rows, KEY)
    taken: dict[str, list[Cost]] = {system: [] for system in arguments.only}
    for number in range(arguments.turns):
        for system in arguments.only:
            heap = arguments.our_heap if system == "ours" else arguments.heap
            cost, files = run_turn(system, heap, folder, rows, int(arguments.target * 2**20))
            found = read_file_ranges(files, COLUMNS)
            if found.rows.sum() != arguments.rows:
                raise SystemExit(f"{NAMES[system]}: {found.rows.sum()} rows of {arguments.rows}")
            taken[system].append(cost)
            print(
                f"  turn {number} {NAMES[system]:24}{cost}  {len(files):4} files, "
                f"{found.bytes.sum() / 2**20:6.0f} MB, read {found.shares_read(mix).mean():.4f}",
                flush=True,
            )
    return int(not print_medians({system: median(costs) for system, costs in taken.items()}))


def print_medians(costs: dict[str, Cost]) -> bool:
    """Print the medians; return whether the measured goals are met."""
    for system, cost in costs.items():
        print(f"{NAMES[system]:24}{cost}")
    ours = costs.pop("ours", None)
    if ours is None:
        return True
    is_met = ours.megabytes <= MEMORY
    print(f"{'met' if is_met else 'MISSED'}: {ours.megabytes:.0f} MB, at most {MEMORY}")
    if costs:
        ratio = ours.wall / min(cost.wall for cost in costs.values())
        arguments = "met" if ratio <= GOAL else "MISSED"
        print(f"{arguments}: {ratio:.2f} times the fastest, at most {GOAL}")
        is_met &= ratio <= GOAL
    return is_met


if __name__ == "__main__":
    sys.exit(main())
