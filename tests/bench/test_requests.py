"""Count the requests of a plan and an apply to a store of flat objects, as S3 counts them."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest

import reconciler
from reconciler.executor.deletion import LocalDeleter
from reconciler.hudi.load import PROPERTIES
from reconciler.spec.load import load_specs
from reconciler.storage.requests import OF_THIS_PROCESS
from tests.applying import admit_and_apply
from tests.bench.make_table import Shape
from tests.crash.drill import TestClock, process
from tests.flat_store import LOCATION, PAGE
from tests.flat_tables import put_table

NOW = datetime(2026, 1, 2, tzinfo=UTC)
SHAPE = Shape(partitions=300, groups=2, versions=5)
#: pages of a listing for every page that is full
PAGES = 1.2
CONSTANT = 40
#: of a lock file and of the probe of exclusive creation, in a whole apply of one clean
LOCK = 20
SPEC = f"""\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {LOCATION}
  timezone: UTC
  retention: {{commits: 2}}
  concurrency: {{lock: {{provider: filesystem, singleWriter: true}}}}
"""


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A store with a table of 300 partitions, 10 files each, and its spec."""
    store = put_table(tmp_path / "t", SHAPE)
    monkeypatch.setattr("reconciler.runtime.open_storage", store.open)
    (tmp_path / "spec.yaml").write_text(SPEC)
    (spec,) = load_specs(tmp_path / "spec.yaml")
    return store, spec


def apply(store, plan):
    return admit_and_apply(
        plan,
        now=NOW,
        clock=TestClock(),
        open_storage=store.open,
        deleter=LocalDeleter(store.open),
        process=process(1),
        new_token=lambda: "run",
    ).tables[0]


def test_a_plan_lists_the_table_once_in_full_pages(table):
    store, spec = table
    plan = reconciler.plan([spec], now=NOW)

    assert SHAPE.partitions * 2 * 2 == sum(len(step.files) for step in plan.tables[0].steps)
    assert store.counts.total() < PAGES * SHAPE.files / PAGE + CONSTANT / 2
    assert {"LIST", "GET"} == set(store.counts)


def test_an_apply_makes_no_request_for_each_partition(table):
    store, spec = table
    plan = reconciler.plan([spec], now=NOW)
    store.requests.clear()
    result = apply(store, plan)

    assert (None, 1200) == (result.error, result.removed)
    assert () == result.outcomes[0].differences
    assert 2 == store.counts["POST"]
    first = next(at for at, (_, path) in enumerate(store.requests) if path.endswith(".requested"))
    assert first < PAGES * SHAPE.files / PAGE + CONSTANT
    assert store.counts.total() - 2 < PAGES * SHAPE.files / PAGE + CONSTANT + LOCK


def test_a_lock_that_is_held_is_looked_at_with_one_request(table):
    store, spec = table
    apply(store, reconciler.plan([spec], now=NOW))
    of_lock = Counter(kind for kind, path in store.requests if path == ".hoodie/lock")

    # read before and when it is confirmed, twice, and before it is deleted, twice
    assert {"PUT": 2, "GET": 6, "HEAD": 2, "DELETE": 2} == of_lock


def test_an_apply_reads_the_properties_once_for_its_checks_and_once_to_change(table):
    store, spec = table
    plan = reconciler.plan([spec], now=NOW)
    store.requests.clear()
    apply(store, plan)
    reads = [request for request in store.requests if request == ("GET", PROPERTIES)]

    assert 3 == len(reads)  # observed, under the lock, and where the outcome is compared


def test_the_counts_that_stats_shows_are_those_of_the_store(table):
    store, spec = table
    before = OF_THIS_PROCESS.copy()
    apply(store, reconciler.plan([spec], now=NOW))
    made = OF_THIS_PROCESS.copy() - before
    counts = store.counts

    assert counts["LIST"] == made["list"]
    assert counts["GET"] == made["read"]
    assert counts["HEAD"] == made["look"]
    assert counts["PUT"] == made["write"]
    assert counts["DELETE"] + counts["POST"] == made["delete"]


def test_a_clean_deletes_what_no_listing_shows_any_more(table):
    store, spec = table
    plan = reconciler.plan([spec], now=NOW)
    victim = next(name for name in store.objects if name.endswith(f"{SHAPE.instants[0]}.parquet"))
    bulk_delete = store.call_s3

    def delete_after_another(method, **arguments):
        store.objects.pop(victim, None)
        return bulk_delete(method, **arguments)

    store.call_s3 = delete_after_another
    result = apply(store, plan)

    assert (None, "completed") == (result.error, result.outcomes[0].how)
    assert victim not in store.objects


def test_a_file_that_only_the_metadata_table_lists_is_reported(table):
    store, spec = table
    plan = reconciler.plan([spec], now=NOW)
    ghost = next(name for name in store.objects if name.endswith(f"{SHAPE.instants[4]}.parquet"))
    del store.objects[ghost]
    result = apply(store, plan)

    (warning,) = result.outcomes[0].warnings
    assert ghost.rpartition("/")[2] in warning.because
