"""Let two processes of reconciler and real Hudi share a table on S3, by each lock in turn.

python -m tests.bench.locked_tables                                  20 rounds of each lock
python -m tests.bench.locked_tables --lock zookeeper --hudi 0.15.0   of this one alone
python -m tests.bench.locked_tables --rounds 3

Servers are started on the loopback address. Prints a line a round. Ends with 1 if a row was lost,
or if two held the lock at the same time.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import traceback
from pathlib import Path

os.environ["ALL_TESTS"] = "1"  # servers that are not there yet are built

from tests.oracle.locked_tables import CASES, locked_table
from tests.servers.s3 import KEY, SECRET, S3Server


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lock", choices=sorted({lock for lock, _ in CASES}))
    parser.add_argument("--hudi", choices=sorted({version for _, version in CASES}))
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    os.environ |= {"LAKE_KEY": KEY, "LAKE_SECRET": SECRET}
    failed = 0
    for lock, version in CASES:
        if arguments.lock not in {None, lock} or arguments.hudi not in {None, version}:
            continue
        with tempfile.TemporaryDirectory() as folder:
            failed += not run_case(lock, version, Path(folder), arguments.rounds)
    raise SystemExit(1 if failed else 0)


def run_case(lock: str, version: str, folder: Path, rounds: int) -> bool:
    """Run the rounds of one lock; return whether all went well."""
    began = time.perf_counter()
    (folder / "s3").mkdir()
    server = S3Server(folder / "s3")
    print(f"{lock}, Hudi {version}", flush=True)
    try:
        with locked_table(lock, version, server.make_bucket(), folder / "project") as table:
            for number in range(1, rounds + 1):
                table.run_round(number)
                print(table.log[-1], flush=True)
    except Exception:  # noqa: BLE001 - the others are run all the same
        traceback.print_exc()
        return False
    finally:
        server.stop()
    seconds = time.perf_counter() - began
    print(f"{lock}, Hudi {version}: {rounds} rounds, no row lost, {seconds:.0f} s", flush=True)
    return True


if __name__ == "__main__":
    main()
