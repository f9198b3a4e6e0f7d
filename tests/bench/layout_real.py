"""Compare the share of bytes that queries read in files of real systems and in ours.

python -m tests.bench.layout_real                        4 000 000 trips, six pairs of 1 000 000
python -m tests.bench.layout_real --rows 400000 --pair-rows 200000
python -m tests.bench.layout_real --only trips           one of the distributions
python -m tests.bench.layout_real --ours files           ours without a table, by its layout alone

The same rows, the same number of files for all, and the same pruner over the least and greatest
values in Parquet footers. A system is asked again with another target until its files are as many
as wanted. Ours is planned and applied to the table that Hudi's bulk insert made.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.bench.curve_data import Data, Query, pairs, where
from tests.bench.layout_files import write_layout_files
from tests.bench.peers import NAMES, ROOT, Peer
from tests.bench.pruner import FooterRanges, read_file_ranges
from tests.bench.trip_files import COLUMNS, KEY, query_mix, trip_files

PEERS = ("hudi", "hudi-hilbert", "delta", "iceberg")
Z_ORDERS = ("hudi", "delta", "iceberg")
#: ours without and with the queries declared
OURS = ("kd-tree", "kd-tree, queries declared")
#: rewrites until a system makes as many files as wanted
TRIES = 4


@dataclass(frozen=True, kw_only=True)
class Case:
    """Rows in Parquet files, the number of output files, and the queries."""

    name: str
    rows: Path
    count: int
    key: str
    columns: list[str]
    files: int
    mix: Sequence[Query]
    declared: Sequence[Query]


def trips_case(folder: Path, rows: int) -> Case:
    """Return the case with a query mix of a hundred boxes, which are also declared."""
    files = trip_files(folder / f"trips-{rows}" / "rows", rows)
    mix = query_mix(files)
    return Case(
        name="trips",
        rows=files,
        count=rows,
        key=KEY,
        columns=COLUMNS,
        files=71,
        mix=mix,
        declared=mix,
    )


def pair_case(folder: Path, data: Data) -> Case:
    """Return the case of a pair of columns with a key, in the original order."""
    rows = data.table.num_rows
    files = folder / f"{data.name.replace(' ', '-').replace(',', '')}-{rows}" / "rows"
    if not files.is_dir():
        half = files.with_name("rows.half")
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir(parents=True)
        table = data.table.append_column("id", pa.array(np.arange(rows)))
        for number in range(8):
            part = table.slice(rows * number // 8, rows * (number + 1) // 8 - rows * number // 8)
            pq.write_table(part, half / f"part-{number}.parquet", compression="snappy")
        half.rename(files)
    return Case(
        name=data.name,
        rows=files,
        count=rows,
        key="id",
        columns=data.columns,
        files=data.files,
        mix=data.mix,
        declared=data.declared,
    )


def cluster_files(peer: Peer, case: Case, queries: Sequence[str] = ()) -> list[str]:
    """Cluster into the wanted number of files, or the nearest that the system offers."""
    peer.fresh(case.rows, case.key)
    size = sum(file.stat().st_size for file in peer.table.rglob("*.parquet"))
    target, nearest = size // case.files + 1, list[str]()
    for nth in range(TRIES):
        if nth:
            peer.fresh(case.rows, case.key)
        peer.cluster(case.columns, target, exact=True, queries=queries)
        found = peer.files()
        if not nearest or abs(len(found) - case.files) <= abs(len(nearest) - case.files):
            nearest = _kept(peer, found)
        if len(found) == case.files:
            break
        target = target * len(found) // case.files + 1
    return nearest


def _kept(peer: Peer, found: Sequence[str]) -> list[str]:
    """Copy the files so that the next rewrite does not remove them."""
    kept = peer.folder / "nearest" / peer.system
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    links = [kept / f"{nth}.parquet" for nth in range(len(found))]
    for link, file in zip(links, found, strict=True):
        link.hardlink_to(file)
    return [str(link) for link in links]


def print_shares(case: Case, name: str, files: Sequence[str]) -> float:
    """Print a line; return the mean share over the mix."""
    found = read_file_ranges(files, case.columns)
    if found.rows.sum() != case.count:
        raise SystemExit(f"{name}: {found.rows.sum()} rows of {case.count}")
    share = float(found.shares_read(case.mix).mean())
    even = size_range(found)
    print(f"{name:27} {share:.4f}  {len(files)} files, {even[0]:.2f} to {even[1]:.2f}", flush=True)
    return share


def size_range(found: FooterRanges) -> tuple[float, float]:
    """Return the smallest and the largest file relative to the mean."""
    return found.bytes.min() / found.bytes.mean(), found.bytes.max() / found.bytes.mean()


def measure_shares(case: Case, arguments: argparse.Namespace) -> dict[str, float]:
    """Return the mean share of the mix by system."""
    folder = case.rows.parent
    print(f"\n{case.name}: {case.count} rows, {case.files} files, {len(case.mix)} queries")
    means = {}
    for system in PEERS:
        with Peer(system, arguments.heap, folder) as peer:
            means[system] = print_shares(case, NAMES[system], cluster_files(peer, case))
    declared = [where(query) for query in case.declared]
    with ExitStack() as running:
        ours = None
        if arguments.ours == "apply":
            ours = running.enter_context(Peer("ours", arguments.our_heap, folder))
        for name, queries in zip(OURS, ([], declared), strict=True):
            if ours is not None:
                found = cluster_files(ours, case, queries)
            else:
                aside = folder / "written"
                found = write_layout_files(
                    case.rows, aside, case.columns, case.key, case.files, queries
                )
            means[name] = print_shares(case, name, found)
    return means


def print_goal(what: str, share: float, limit: float) -> bool:
    """Print and return whether a goal is met."""
    ok = share <= limit
    print(f"{'met   ' if ok else 'MISSED'} {what}: {share:.4f}, at most {limit:.4f}")
    return ok


def print_goals(case: Case, means: dict[str, float]) -> bool:
    """Print which goals are met and return whether all are."""
    tree, told_of = (means[name] for name in OURS)
    best = min(means[system] for system in PEERS)
    if case.name != "trips":
        return all(
            [print_goal("kd-tree, the best", tree, best), print_goal("declared", told_of, best)]
        )
    best_z = min(means[system] for system in Z_ORDERS)
    return all(
        [
            print_goal("kd-tree, 0.70 of the best z-order", tree, 0.70 * best_z),
            print_goal("kd-tree, 0.90 of Hudi's Hilbert", tree, 0.90 * means["hudi-hilbert"]),
            print_goal("queries declared, 0.62 of the best", told_of, 0.62 * best),
        ]
    )


def cases(folder: Path, arguments: argparse.Namespace) -> Iterable[Case]:
    if arguments.only in (None, "trips"):
        yield trips_case(folder, arguments.rows)
    for data in pairs(arguments.pair_rows):
        if arguments.only in (None, data.name):
            yield pair_case(folder, data)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--pair-rows", type=int, default=1_000_000)
    parser.add_argument("--only", help="trips, or the name of a pair")
    parser.add_argument("--ours", choices=("apply", "files"), default="apply")
    parser.add_argument("--heap", default="4g", help="of the other systems' JVM")
    parser.add_argument("--our-heap", default="1g", help="of our driver's JVM")
    parser.add_argument("--folder", type=Path, default=ROOT / ".bench" / "peers")
    arguments = parser.parse_args()
    met = [
        print_goals(case, measure_shares(case, arguments))
        for case in cases(arguments.folder.resolve(), arguments)
    ]
    return int(not all(met))


if __name__ == "__main__":
    sys.exit(main())
