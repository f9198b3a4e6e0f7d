"""Find the size from which on rewriting pays on Spark: the same files here and on a new Spark.

python -m tests.bench.local_speed                        1 MiB to 1 GiB, 2 cores
python -m tests.bench.local_speed --sizes 16 256 -n 3    of so many MiB, the median of three

Each run is a process of its own (``rewrite_speed``), and Spark's start counts. What Spark takes for
the smallest size is its start. The size that this process rewrites in that time is
``MOST_BYTES_HERE`` of ``cli/executor_choice.py``: below it no cluster is faster. On a local master
with two cores Spark is not faster above it either. The load of the machine is printed, because it
changes the answer; CPU seconds of Spark lack those of Python workers that have ended.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
from typing import Final

#: trips of ``rewrite_speed`` in a MiB of base files
_ROWS_PER_MIB: Final = 12_700
_COST: Final = re.compile(r"([\d.]+) s +([\d.]+) CPU s +([\d.]+) MB")


def measure(mib: int, *options: str) -> tuple[float, float, float]:
    """Return wall seconds, CPU seconds and MB at the peak of one run."""
    command = [sys.executable, "-m", "tests.bench.rewrite_speed"]
    rows = ("--rows", str(mib * _ROWS_PER_MIB), "--target", "64")
    done = subprocess.run([*command, *rows, *options], check=True, capture_output=True, text=True)
    found = _COST.search(done.stdout)
    assert found is not None, done.stdout
    return float(found[1]), float(found[2]), float(found[3])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 16, 64, 256, 512, 1024])
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("-n", "--runs", type=int, default=1)
    arguments = parser.parse_args()
    cores = ("--cores", str(arguments.cores))
    print("   MiB |   here: s   CPU s     MB |  Spark: s   CPU s     MB | load")
    for mib in arguments.sizes:
        measure(mib, *cores, "--here")  # makes the files
        line = f"{mib:6} |"
        for options in (("--here",), ("--start",)):
            runs = [measure(mib, *cores, *options) for _ in range(arguments.runs)]
            wall, cpu, memory = (statistics.median(figures) for figures in zip(*runs, strict=True))
            line += f"    {wall:7.2f} {cpu:7.2f} {memory:6.0f} |"
        print(f"{line} {os.getloadavg()[0]:.1f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
