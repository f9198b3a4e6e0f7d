"""Hold plans and applies of 20 000 files in 200 partitions to the requests that docs promise."""

from __future__ import annotations

from datetime import timedelta

import pytest

import reconciler
from reconciler.executor.deletion import LocalDeleter
from reconciler.hudi.timeline.plans import ClusteringPlan, ClusteringPlanGroup, InputSlice
from reconciler.spec.load import load_specs
from tests.applying import admit_and_apply
from tests.bench.make_table import Shape
from tests.bench.test_requests import CONSTANT, LOCK, PAGES, SPEC
from tests.crash.drill import NOW, Killed, TestClock, process
from tests.flat_store import LOCATION, PAGE, FlatStore
from tests.flat_tables import add_listing, build_past_clean, put_table
from tests.selection import long

PENDING = 2
CASES = [(9, True), *(long(case) for case in ((6, False), (6, True), (8, True), (9, False)))]


def make_shape(version: int) -> Shape:
    return Shape(partitions=200, groups=10, versions=10, table_version=version)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Return a function that loads a table of a version into a new store."""
    made: dict[int, FlatStore] = {}

    def load(version: int, *, with_metadata: bool) -> FlatStore:
        shape = make_shape(version)
        if version not in made:
            folder = tmp_path_factory.mktemp("t")
            made[version] = put_table(folder / "t", shape, with_metadata=False)
        store = FlatStore(objects=dict(made[version].objects))
        if with_metadata:
            add_listing(store, shape)
        return store

    return load


@pytest.fixture
def opened(request, tables, tmp_path, monkeypatch):
    """The store and the spec of a case, and the table's shape."""
    version, with_metadata = request.param
    store = tables(version, with_metadata=with_metadata)
    monkeypatch.setattr("reconciler.runtime.open_storage", store.open)
    (tmp_path / "spec.yaml").write_text(SPEC.replace("commits: 2", "commits: 8"))
    (spec,) = load_specs(tmp_path / "spec.yaml")
    return store, spec, make_shape(version)


def compute_limit(shape: Shape, pending: int = 0) -> float:
    return PAGES * shape.files / PAGE + PENDING * pending + CONSTANT


def run_apply(store: FlatStore, plan, *, clock: TestClock | None = None, pid: int = 1):
    return admit_and_apply(
        plan,
        now=NOW,
        clock=clock or TestClock(),
        open_storage=store.open,
        deleter=LocalDeleter(store.open),
        process=process(pid),
        new_token=lambda: f"run{pid}",
    ).tables[0]


def plan_and_count(store: FlatStore, spec):
    store.requests.clear()
    made = reconciler.plan([spec], now=NOW)
    assert (None, ()) == (made.tables[0].error, made.tables[0].refusals)
    return made, store.counts.total()


def count_checks(store: FlatStore) -> int:
    """Return the requests before the first change of the timeline; a lock changes none."""
    folders = (".hoodie/timeline/", ".hoodie/2")
    return next(
        number
        for number, (kind, path) in enumerate(store.requests)
        if kind == "PUT" and path.startswith(folders)
    )


@pytest.mark.parametrize("opened", CASES, indirect=True)
def test_a_plan_and_an_apply_keep_within_the_formula(opened):
    store, spec, shape = opened
    plan, planned = plan_and_count(store, spec)
    store.requests.clear()
    result = run_apply(store, plan)

    assert (None, 2000, ()) == (result.error, result.removed, result.warnings)
    assert planned <= compute_limit(shape)
    assert count_checks(store) <= compute_limit(shape)
    assert 2 == store.counts["POST"]
    assert store.counts.total() <= compute_limit(shape) + LOCK + 2


def add_pending(store: FlatStore, shape: Shape) -> int:
    """Add five writes and a clustering of others that are pending, and return their number."""
    files: dict[str, bytes] = {}
    for number in range(5):
        instant = shape.stamp(timedelta(hours=2, seconds=number))
        files[f"{shape.timeline_folder}/{instant}.commit.requested"] = b""
        files[f"{shape.timeline_folder}/{instant}.inflight"] = b""
    name = shape.list_names(0)[shape.versions - 1]
    chosen = InputSlice(
        partition=shape.partition(0), file_id=name.split("_")[0], base_file=name, log_files=()
    )
    plan = ClusteringPlan(groups=(ClusteringPlanGroup(slices=(chosen,), output_count=1),))
    action = "clustering" if shape.has_layout_2 else "replacecommit"
    instant = shape.stamp(timedelta(hours=3))
    files[f"{shape.timeline_folder}/{instant}.{action}.requested"] = plan.encode(
        LOCATION, version=shape.table_version
    )
    store.create_all(files)
    return 6


@pytest.mark.parametrize("opened", CASES, indirect=True)
def test_a_pending_instant_costs_two_requests_at_most(opened):
    store, spec, shape = opened
    _plan, without = plan_and_count(store, spec)
    pending = add_pending(store, shape)
    plan, planned = plan_and_count(store, spec)
    store.requests.clear()
    result = run_apply(store, plan)

    assert (None, 2000) == (result.error, result.removed)
    assert planned <= without + PENDING * pending
    assert planned <= compute_limit(shape, pending)
    assert count_checks(store) <= compute_limit(shape, pending)
    assert store.counts.total() <= compute_limit(shape, pending) + LOCK + 2


@pytest.mark.parametrize("opened", CASES, indirect=True)
def test_a_past_clean_of_the_timeline_costs_one_request(opened):
    store, spec, shape = opened
    _plan, without = plan_and_count(store, spec)
    for number in range(25):
        store.create_all(build_past_clean(shape, number))
    _plan, planned = plan_and_count(store, spec)

    assert planned == without + 25


@pytest.mark.parametrize("opened", CASES, indirect=True)
def test_a_clean_that_died_while_it_deleted_is_finished_within_the_formula(opened):
    store, spec, shape = opened
    plan, _planned = plan_and_count(store, spec)
    delete, clock = store.call_s3, TestClock()

    def die(method, **arguments):
        if method == "delete_objects":
            raise Killed
        return delete(method, **arguments)

    store.call_s3 = die
    with pytest.raises(Killed):
        run_apply(store, plan, clock=clock)
    store.call_s3 = delete
    again, planned = plan_and_count(store, spec)
    store.requests.clear()
    result = run_apply(store, again, clock=clock, pid=2)

    assert ["resume"] == [step.kind for step in again.tables[0].steps]
    assert (None, 2000) == (result.error, result.removed)
    assert planned <= compute_limit(shape, 1)
    # once for the checks, and once more when the clean is taken over from the dead run
    again_listed = PAGES * shape.files / PAGE
    assert store.counts.total() <= compute_limit(shape, 1) + again_listed + LOCK + 2
