"""Compare what converged tables read with what a fresh clustering of everything would.

python -m tests.bench.gain_layouts                  400 random layouts
python -m tests.bench.gain_layouts --count 100 --first 200

Each round declares a random layout and random queries, or none, for a random table. The table is
planned and applied until a plan is empty. Then the reads of the queries, or of boxes of 1 % of a
partition's rows, are measured by the footers of its files. They are compared with those of a copy
that was clustered completely in one run with the same declaration. Reads are files. The goal is at
most 1.2 times the files that a fresh clustering reads. What is beyond is printed with its figures,
in kinds:

limit       a fresh clustering saves at most a fifth, which gainAbove 0.2 leaves: up to 1.25 times
one file    the difference is at most a quarter of a file a query, among a few files
more        everything else
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import reconciler
from reconciler.planners.cluster import notes
from reconciler.planners.cluster.size_limits import SizeLimits
from reconciler.spec.model import Query
from reconciler.state.current_files import find_newest_bases
from tests.convergence import LATER
from tests.crash.clustering_drill import ClusteringDrill
from tests.crash.drill import NOW
from tests.measured_reads import measure_reads
from tests.plain_tables import add_commit, write_table

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  timezone: UTC
  files: {{target: {target}, small: {small}}}
  clustering:
    columns: {columns}
    curve: {curve}
    budget: {{groups: 99, perGroup: {group}}}
{more}  concurrency: {{lock: {{provider: filesystem}}}}
"""
#: both conditions, because without a gain groups are formed by size, not by nearness
EVERYTHING = "    when: {smallFileShareAbove: 0, gainAbove: 0.2}\n"
ROWS = 400
#: how many times the files of a fresh clustering may be read
GOAL = 1.2
#: share of the reads that gainAbove leaves, and the part of a file a query that says nothing
LIMIT = 0.2
LEAST = 0.25
#: boxes that are measured without queries; two dozens told the mean to a tenth only
BOXES = 240


@dataclass(frozen=True, kw_only=True)
class Round:
    """What was read of a converged table and of a fresh one, in files and in bytes."""

    seed: int
    declared: str
    is_declared: bool
    runs: int
    files: int
    queries: int
    reads: tuple[int, int]
    bytes: tuple[int, int]
    before: int

    @property
    def ratio(self) -> float:
        """Return how many times the files of the fresh clustering the converged table reads."""
        return self.reads[0] / max(self.reads[1], 1)

    @property
    def kind(self) -> str:
        """Return "" for a round within the goal, else why it is beyond."""
        ours, fresh = self.reads
        if self.ratio <= GOAL:
            return ""
        if ours - fresh <= LIMIT * ours:
            return "limit"
        return "one file" if ours - fresh <= LEAST * self.queries else "more"


def make_rows(rng, count, ordered):
    """Return rows with columns of several distributions, ordered by one of them or by none."""
    a = rng.integers(0, int(rng.choice([20, 1000])), count)
    b = np.round(rng.lognormal(3, 1.5, count), 3)
    table = pa.table(
        {
            "id": rng.permutation(count).astype(np.int64),
            "a": a,
            "b": b,
            "c": [f"v{value:03d}" for value in rng.integers(0, 300, count)],
            "d": (a * 7 + rng.integers(0, 200, count)).astype(np.int64),
        }
    )
    return table.sort_by(ordered) if ordered else table


def make_partition(rng, name, files, ordered):
    """Return the rows of a partition's files, of uneven size."""
    sizes = rng.integers(ROWS // 4, 2 * ROWS, files)
    table = make_rows(rng, int(sizes.sum()), ordered)
    table = table.append_column("p", pa.array([name] * len(table)))
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return [table.slice(a, n) for a, n in zip(starts.tolist(), sizes.tolist(), strict=True)]


def make_queries(rng, table, columns, count):
    """Return predicates on the clustering columns, and now and then on another one."""
    wheres = []
    for _ in range(count):
        names = rng.permutation(columns)[: int(rng.integers(1, len(columns) + 1))].tolist()
        if rng.random() < 0.15:
            names = [str(rng.choice(["a", "b", "c", "d"]))]
        parts = []
        for name in names:
            values = table[name].to_pylist()
            values.sort()
            share = float(rng.choice([0.0, 0.01, 0.1, 0.3]))
            start = int(rng.integers(0, max(int(len(values) * (1 - share)), 1)))
            low, high = (
                values[start],
                values[min(start + int(share * len(values)), len(values) - 1)],
            )
            quote = "'" if name == "c" else ""
            parts.append(f"{name} between {quote}{low}{quote} and {quote}{high}{quote}")
        wheres.append(" and ".join(parts))
    return wheres


def make_boxes(rng, table, columns):
    """Return boxes of 1 % of a partition's rows on the declared columns, around rows of it."""
    names = sorted(set(table["p"].to_pylist()))
    return [
        f"p = '{name}' and {where}"
        for name in names
        for where in make_partition_boxes(
            rng, table.filter(pc.equal(table["p"], name)), columns, BOXES // len(names)
        )
    ]


def make_partition_boxes(rng, table, columns, count):
    """Return boxes of 1 % of the rows around some of them."""
    share = 0.01 ** (1 / len(columns))
    ordered = {name: sorted(table[name].to_pylist()) for name in columns}
    arrays = {name: np.array(values) for name, values in ordered.items()}
    wheres = []
    for row in rng.integers(0, len(table), count).tolist():
        parts = []
        for name in columns:
            values, value = ordered[name], table[name][row].as_py()
            width = int(share * len(values))
            at = int(np.searchsorted(arrays[name], value))
            start = int(np.clip(at - width // 2, 0, len(values) - 1 - width))
            quote = "'" if name == "c" else ""
            low, high = values[start], values[start + width]
            parts.append(f"{name} between {quote}{low}{quote} and {quote}{high}{quote}")
        wheres.append(" and ".join(parts))
    return wheres


def current_files(drill):
    """Return the paths of the newest base files."""
    state = drill.state()
    folders = [
        (state.files.partitions[state.files.partition[row]], state.files.name[row].as_py())
        for row in find_newest_bases(state.view).tolist()
    ]
    return [drill.table / folder / name for folder, name in folders]


def converge(drill):
    """Plan and apply until a plan is empty; return how often something was applied."""
    for run in range(12):
        plan = reconciler.plan([drill.spec], now=NOW)
        (table,) = plan.tables
        assert (None, ()) == (table.error, table.refusals), (table.error, table.refusals)
        if not table.steps:
            return run
        assert drill.apply(plan).exit_code == 0
    raise AssertionError("the plan does not become empty")


def try_layout(seed: int, *, verbose: bool = False) -> Round:
    """Run one round."""
    rng = np.random.default_rng(seed)
    root = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    try:
        ordered = [None, "a", "b", "c", "d"][int(rng.integers(0, 5))]
        partitions = ("x", "y")[: int(rng.integers(1, 3))]
        parts = {
            name: make_partition(rng, name, int(rng.integers(1, 13)), ordered)
            for name in partitions
        }
        later = make_partition(rng, "x", int(rng.integers(1, 4)), ordered)
        columns = rng.permutation(["a", "b", "c", "d"])[: int(rng.integers(1, 4))].tolist()
        curve = str(rng.choice(["kd-tree", "kd-tree", "hilbert", "z-order", "linear"]))
        if len(columns) == 1 and curve in ("hilbert", "z-order"):
            curve = "linear"
        target = str(rng.choice(["12KiB", "20KiB", "1MiB"]))
        settings = {
            "target": target,
            "small": str(rng.choice(["1KiB", "9KiB"])),
            "columns": f"[{', '.join(columns)}]",
            "curve": curve,
            "group": str(rng.choice(["60KiB", "2GiB", "2GiB", "2GiB"])),
        }
        write_table(root / "table", parts, by="p")
        drill = ClusteringDrill(root, {})
        table = pa.concat_tables([piece for some in (*parts.values(), later) for piece in some])
        queries = (
            make_queries(rng, table, columns, int(rng.integers(1, 6))) if rng.random() < 0.6 else []
        )
        asked = queries or make_boxes(rng.spawn(1)[0], table, columns)
        declared = "".join(f'    - {{name: q{n}, where: "{w}"}}\n' for n, w in enumerate(queries))
        declared = f"  queries:\n{declared}" if queries else ""
        drill.spec = load_spec(drill, settings, declared)
        has_history = bool(rng.random() < 0.5)
        runs = converge(drill) if has_history else 0
        add_commit(drill.table, {"x": later}, LATER)
        measured = replace(
            drill.spec, queries=tuple(Query(name=f"q{n}", where=w) for n, w in enumerate(asked))
        )
        before = measure_reads(drill.storage, measured, current_files(drill))
        shutil.copytree(root, root.with_name(root.name + "-fresh"))
        runs = max(runs, converge(drill))
        ours = measure_reads(drill.storage, measured, current_files(drill))
        fresh = ClusteringDrill(root.with_name(root.name + "-fresh"), {})
        fresh.spec = load_spec(fresh, settings, EVERYTHING + declared)
        forget_layouts(fresh)
        with patch.object(SizeLimits, "find_small", lambda _, candidates: candidates.has_base):
            plan = reconciler.plan([fresh.spec], now=NOW)
            result = fresh.apply(plan)
        assert result.exit_code == 0, result
        best = measure_reads(fresh.storage, measured, current_files(fresh))
        if verbose:
            print(settings, ordered, queries, has_history)
            print(plan.tables[0].steps[0].groups.because.to_pylist())
            (table,) = reconciler.plan([drill.spec], now=NOW).tables
            print([note.because for note in table.warnings])
            print("files", ours.files, best.files, before.files)
        return Round(
            seed=seed,
            declared=f"{curve} on {', '.join(columns)}",
            is_declared=bool(queries),
            runs=runs,
            files=len(current_files(drill)),
            queries=len(asked),
            reads=(sum(ours.files), sum(best.files)),
            bytes=(sum(ours.bytes), sum(best.bytes)),
            before=sum(before.files),
        )
    finally:
        shutil.rmtree(root)
        shutil.rmtree(root.with_name(root.name + "-fresh"), ignore_errors=True)


def load_spec(drill, settings, more):
    """Write and load the spec; commits elsewhere seem to open the gate all the time."""
    text = SPEC.format(path=drill.table, more=more, **settings)
    (drill.folder / "spec.yaml").write_text(text)
    (spec,) = reconciler.load_specs(drill.folder / "spec.yaml")
    return replace(spec, clustering=replace(spec.clustering, after_commits=0))


def forget_layouts(drill):
    """Remove what earlier clusterings recorded, so that all files count as new."""
    for path in (drill.table / ".hoodie").rglob("*.replacecommit"):
        text = path.read_text()
        path.write_text(text.replace("reconciler.layout", "reconciler.forgotten"))


def main() -> None:
    """Print a line for each round beyond the goal, and the totals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    notes.LEAST_OUTPUT_BYTES = 0  # the tables are small
    rounds = []
    for seed in range(arguments.first, arguments.first + arguments.count):
        found = try_layout(seed, verbose=arguments.verbose)
        rounds.append(found)
        if found.kind:
            print(f"{found.kind}, {found.ratio:.2f} times: {found}", flush=True)
    for name, some in (
        ("declared queries", [found for found in rounds if found.is_declared]),
        ("boxes of 1 %", [found for found in rounds if not found.is_declared]),
        ("all", rounds),
    ):
        print(f"{name}: {summarize(some)}" if some else f"{name}: no layout")
    print(f"runs until a plan is empty: at most {max(found.runs for found in rounds)}")


def summarize(rounds: list[Round]) -> str:
    """Return how many rounds are within the goal, and why others are not."""
    ratios = np.array([found.ratio for found in rounds])
    kinds = Counter(found.kind for found in rounds if found.kind)
    ours, fresh = (sum(found.reads[at] for found in rounds) for at in (0, 1))
    quantiles = [f"{np.quantile(ratios, share):.2f}" for share in (0.5, 0.9, 0.95, 0.99, 1)]
    return (
        f"{int((ratios <= GOAL).sum())} of {len(rounds)} layouts read at most {GOAL} times what a "
        f"fresh clustering does, others {dict(kinds)}; files read {ours}, fresh {fresh}, before "
        f"{sum(found.before for found in rounds)}; times at 50, 90, 95, 99, 100 %: "
        f"{', '.join(quantiles)}"
    )


if __name__ == "__main__":
    main()
