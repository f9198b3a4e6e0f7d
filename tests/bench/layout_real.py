"""Compare the share of bytes that queries read in files of real systems and in ours.

python -m tests.bench.layout_real             4 000 000 trips, six pairs of 1 000 000
python -m tests.bench.layout_real --quick     200 000 trips, six pairs of 100 000

The same rows, the same number of files for all, and the same pruner over the least and greatest
values in Parquet footers. A system is asked again with another target until its files are as many
as wanted. Ours is planned and applied to the table that Hudi's bulk insert made.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.bench.curve_data import PAIRS, Data, Query, pairs, where
from tests.bench.figures import BEST_PEER, SHARE, Baseline, Figure, Goal
from tests.bench.jobs import Job, Run, run_alone
from tests.bench.peers import NAMES, Peer
from tests.bench.pruner import FooterRanges, read_file_ranges
from tests.bench.trip_files import COLUMNS, KEY, query_mix, trip_files
from tests.bench.versions import OURS

PEERS = ("hudi", "hudi-hilbert", "delta", "iceberg")
Z_ORDERS = ("hudi", "delta", "iceberg")
#: ours without and with the queries declared
TREE, DECLARED = OURS, f"{OURS}, queries declared"
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


def measure_shares(case: Case) -> dict[str, float]:
    """Return the mean share of the mix by system."""
    folder = case.rows.parent
    print(f"\n{case.name}: {case.count} rows, {case.files} files, {len(case.mix)} queries")
    means = {}
    for system in PEERS:
        with Peer(system, "4g", folder) as peer:
            means[NAMES[system]] = print_shares(case, NAMES[system], cluster_files(peer, case))
    declared = [where(query) for query in case.declared]
    with Peer("ours", "1g", folder) as ours:
        for name, queries in ((TREE, []), (DECLARED, declared)):
            means[name] = print_shares(case, name, cluster_files(ours, case, queries))
    return means


def measure(run: Run) -> list[Figure]:
    """Measure every distribution once: layouts do not differ from turn to turn."""
    folder = run.folder / "peers"
    found = []
    for case in _cases(folder, run.pick(4_000_000, 200_000), run.pick(1_000_000, 100_000)):
        run.begin_turn(0, f"{case.name}, all systems")
        shares = measure_shares(case)
        found += [
            Figure(what=case.name, system=system, unit=SHARE, turns=(share,))
            for system, share in shares.items()
        ]
    return found


def goals(_: Run) -> list[Goal]:
    """Return the goals over the trips' mix, and that no peer is better on any pair."""
    best_z = Baseline(systems=tuple(NAMES[system] for system in Z_ORDERS))
    hilbert = Baseline(systems=(NAMES["hudi-hilbert"],))
    return [
        Goal(what="trips", unit=SHARE, limit=0.70, baseline=best_z, system=TREE),
        Goal(what="trips", unit=SHARE, limit=0.90, baseline=hilbert, system=TREE),
        Goal(what="trips", unit=SHARE, limit=0.62, baseline=BEST_PEER, system=DECLARED),
        *(
            Goal(what=name, unit=SHARE, limit=1, baseline=BEST_PEER, system=system)
            for name in PAIRS
            for system in (TREE, DECLARED)
        ),
    ]


def _cases(folder: Path, rows: int, pair_rows: int) -> Iterable[Case]:
    yield trips_case(folder, rows)
    for data in pairs(pair_rows):
        yield pair_case(folder, data)


JOB = Job(
    name="layouts",
    title="Bytes that queries read after a clustering",
    does="""\
Each system clusters 4 000 000 trips by three columns, and six pairs of columns of 1 000 000 rows,
into the same number of files. One pruner for all finds the files that a query reads by the least
and greatest values in Parquet footers. The share of bytes is the mean over a hundred queries of
trips, or hundreds of a pair. Ours is shown without and with the queries declared in the spec.""",
    measure=measure,
    goals=goals,
)


if __name__ == "__main__":
    sys.exit(run_alone(JOB))
