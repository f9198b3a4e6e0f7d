"""Run every check of clusterings by real Hudi on every table shape; CI runs only a few.

python -m tests.bench.cluster_lives                      all versions, clustered by us
python -m tests.bench.cluster_lives --version 1.2.0 --only mor-levels
python -m tests.bench.cluster_lives --by hudi            clustered by real Hudi: checks the checks

Takes an hour; HUDI_BUNDLES as for the tests. Prints a line a check, and what failed at the end.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

from tests.oracle import clustered_checks
from tests.oracle.bundles import VERSIONS
from tests.oracle.clustered_tables import (
    Clusterer,
    Shape,
    SubjectCache,
    cluster_by_hudi,
    list_shapes,
    make_small_subject,
)
from tests.oracle.concurrent_writer import WRITERS_FIRST, check_no_update_is_lost
from tests.oracle.hudi import RealHudi
from tests.oracle.our_clustering import cluster_by_us


def main() -> None:
    """Run the checks chosen by the arguments; exit with 1 if any fails."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", choices=VERSIONS)
    parser.add_argument("--only", default="", help="shapes whose names have this text")
    parser.add_argument("--check", default="", help="checks whose names have this text")
    parser.add_argument("--by", choices=("us", "hudi"), default="us")
    arguments = parser.parse_args()
    versions = [arguments.version] if arguments.version else VERSIONS
    failed: list[str] = []
    with _clusterer(arguments.by) as clusterer:
        for version in versions:
            shapes = [shape for shape in list_shapes(version) if arguments.only in str(shape)]
            failed += run(shapes, clusterer, arguments.check) if shapes else []
    print("failed:", *failed, sep="\n  ") if failed else print("all right")
    raise SystemExit(1 if failed else 0)


def run(shapes: list[Shape], clusterer: Clusterer, only: str = "") -> list[str]:
    """Run every check on shapes of one version; return the names of failed checks."""
    hudi, failed = RealHudi(shapes[0].version), []
    try:
        for shape in shapes:
            with tempfile.TemporaryDirectory() as folder:
                shelf = SubjectCache(lambda _: hudi, Path(folder), clusterer)
                names = _failing(shelf, shape, clusterer, only)
                failed += [f"{shape}: {name}" for name in names]
    finally:
        hudi.close()
    return failed


def _failing(shelf: SubjectCache, shape: Shape, clusterer: Clusterer, only: str) -> Iterator[str]:
    """Yield the names of failing checks as they fail."""
    checks: dict[str, Callable[[], None]] = {
        "same rows": lambda: clustered_checks.check_same_rows(shelf, shape),
        "goes on": lambda: clustered_checks.check_hudi_continues(shelf, shape),
        "taken back": lambda: clustered_checks.check_rollback_and_restore(shelf, shape, clusterer),
        "cleaned by us": lambda: clustered_checks.check_our_clean(shelf, shape),
    }
    if shape.partitions == "plain" and shape.metadata == "all":
        checks["beside a writer"] = lambda: _beside_a_writer(shelf, shape)
    for name, check in checks.items():
        if only not in name:
            continue
        began = time.perf_counter()
        try:
            check()
        except Exception:  # noqa: BLE001 - the others are run all the same
            traceback.print_exc()
            print(f"FAILED  {shape}: {name}", flush=True)
            yield name
        else:
            print(f"{time.perf_counter() - began:5.1f} s {shape}: {name}", flush=True)


def _beside_a_writer(shelf: SubjectCache, shape: Shape) -> None:
    """Check concurrent upserts by real Hudi, which abort or succeed."""
    for options in ({}, WRITERS_FIRST):
        folder = shelf.new_answer_folder()
        subject = make_small_subject(shelf.unclustered(shape).hudi, folder / "t", shape)
        check_no_update_is_lost(subject, options, folder)


@contextmanager
def _clusterer(who: str) -> Iterator[Clusterer]:
    if who == "hudi":
        yield cluster_by_hudi
        return
    from reconciler.cli.spark import open_spark_session  # noqa: PLC0415 - heavy

    with ExitStack() as running:
        told = {"spark.sql.session.timeZone": "UTC"}
        session = cache(lambda: running.enter_context(open_spark_session("local[2]", told)))
        yield cluster_by_us(session)


if __name__ == "__main__":
    main()
