"""Predictions of a plan for queries match a rewrite of the table."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reconciler.executor.cluster.rewrite_job import make_groups, make_rewrite
from reconciler.planners.compose import plan_table
from reconciler.planners.prediction.forecast import choose_samples
from reconciler.planners.prediction.sampled_group import SampledGroup, SimulatedGroup
from reconciler.rewrite.facts import read_table_facts
from reconciler.rewrite.local import LocalRewriter
from reconciler.spec.model import (
    Clustering,
    ClusteringBudget,
    ClusteringTrigger,
    FileSizes,
    Query,
    SizeTrigger,
    TableSpec,
)
from reconciler.state.clustering_layout import ClusteringLayout
from reconciler.state.observe import observe
from reconciler.state.sampling import forecast_input
from reconciler.state.sampling.model import RowSample
from reconciler.state.sampling.row_sample import SampleLimits, read_sample
from reconciler.storage.open import open_storage
from tests.measured_reads import measure_reads
from tests.plain_tables import make_orders, write_table
from tests.selection import examples

NOW = datetime(2026, 1, 2, tzinfo=UTC)
#: rows of a file of which one is hardly ever what a query reads it for
FEW = 60
CURVES = ("kd-tree", "hilbert", "z-order", "linear")
WHERE = (
    "x between 20 and 29",
    "x <= 50 and y < 0",
    "s like 'b%'",
    "y > 1.5 or z is null",
    "not (x < 90)",
    "length(s) = 3",
)


def make_table(rng: np.random.Generator, rows: int) -> pa.Table:
    """Return rows with distinct values in the ordering columns.

    Equal values would be separated by record keys, which are not sampled.
    """
    return pa.table(
        {
            "id": pa.array(rng.permutation(rows)),
            "x": rng.random(rows) * 100,
            "y": rng.normal(0, 1, rows),
            "z": pa.array(rng.integers(0, 9, rows), mask=rng.random(rows) < 0.02),
            "s": pa.array([f"{'abcdef'[n % 6]}{n:02}" for n in rng.integers(0, 100, rows)]),
        }
    )


def write_spec(
    path: Path,
    curve: str,
    target: int,
    queries: tuple[str, ...],
    columns: tuple[str, ...] = ("x", "y"),
) -> TableSpec:
    return TableSpec(
        name="orders",
        path=str(path),
        timezone="UTC",
        files=FileSizes(target=target, small=1 << 40),
        clustering=Clustering(
            columns=columns,
            curve=curve,
            when=ClusteringTrigger(always=True),
            budget=ClusteringBudget(),
        ),
        queries=tuple(Query(name=where, where=where) for where in queries),
    )


@settings(max_examples=examples(4, many=25), deadline=None)
@given(
    seed=st.integers(0, 2**31),
    files=st.lists(st.integers(1, 1500), min_size=1, max_size=5),
    curve=st.sampled_from(CURVES),
    outputs=st.integers(1, 9),
    queries=st.lists(st.sampled_from(WHERE), min_size=1, max_size=4, unique=True),
)
def test_predicted_files_equal_the_rewrite_if_all_row_groups_are_sampled(
    seed, files, curve, outputs, queries
):
    assume(outputs <= sum(files))  # more files than rows are not planned
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = write_table(Path(folder) / "t", {"": [make_table(rng, rows) for rows in files]})
        size = sum(file.stat().st_size for file in path.glob("*.parquet"))
        spec = write_spec(path, curve, size // outputs + 1, tuple(queries))
        storage = open_storage(str(path))
        state = forecast_input.add_forecast_input(
            storage, spec, observe(storage, spec, observed_ms=0), choose_samples
        )
        plan = plan_table(spec, state, NOW)
        before = measure_reads(storage, spec, list(path.glob("*.parquet")))
        after = measure_reads(storage, spec, rewrite_table(storage, spec, state, plan, path))

    assert [one["filesBefore"] for one in plan.predictions] == before.files
    assert [one["bytesBefore"] for one in plan.predictions] == before.bytes
    # on which side of a cut the row goes that it is at, its key says, which nobody samples
    off = [
        one["filesAfter"] - made for one, made in zip(plan.predictions, after.files, strict=True)
    ]
    assert all(-1 <= files <= 1 for files in off), off
    assert sum(files) < outputs * FEW or not any(off), off
    assert plan.layout.sampled.rows == sum(files)


def rewrite_table(storage, spec, state, plan, path):
    """Return the files that the plan's clustering writes."""
    (step,) = plan.steps
    facts = read_table_facts(storage, state)
    layout = ClusteringLayout(columns=step.columns, curve=step.curve, mapping=step.mapping)
    work = make_rewrite(facts, spec, layout, instant="20300101000000000", attempt="a")
    groups = make_groups(facts, step.groups, state)
    made = LocalRewriter(lambda _: storage).rewrite(
        storage.ref, work, groups, progress=lambda _: None
    )
    return [path / file.name for one in made for file in one.files]


def test_files_beyond_the_maximum_are_split_like_in_the_rewrite(tmp_path):
    """Sorted numbers compress well, and worse once rows are sorted by other columns."""
    rng = np.random.default_rng(3)
    rows, outputs = 40_000, 5
    table = pa.table(
        {
            "id": np.arange(rows) * 1000,
            "x": rng.random(rows) * 100,
            "y": rng.integers(-3, 3, rows).astype(np.float64),
            "begin": np.arange(rows) * 1003,
            "end": np.arange(rows) * 1009 + 12345,
        }
    )
    path = write_table(
        tmp_path / "t", {"": [table.slice(at, 10_000) for at in range(0, rows, 10_000)]}
    )
    for file in path.glob("*.parquet"):
        pq.write_table(pq.read_table(file), file, compression="gzip", use_dictionary=["y"])
    size = sum(file.stat().st_size for file in path.glob("*.parquet"))
    queries = ("x between 20 and 29", "x <= 50 and y < 0", "y > 1.5")
    spec = write_spec(path, "linear", size // outputs + 1, queries)
    storage = open_storage(str(path))
    state = forecast_input.add_forecast_input(
        storage, spec, observe(storage, spec, observed_ms=0), choose_samples
    )
    plan = plan_table(spec, state, NOW)
    files = rewrite_table(storage, spec, state, plan, path)
    after = measure_reads(storage, spec, files)

    assert sum(plan.steps[0].groups.outputs) * 2 == len(files)
    assert after.files == [one["filesAfter"] for one in plan.predictions]
    for prediction, made in zip(plan.predictions, after.bytes, strict=True):
        assert abs(prediction["bytesAfter"] - made) < 0.05 * made


def write_sizes(path: Path, target: int, queries: tuple[str, ...]) -> TableSpec:
    """Return a spec that declares sizes of files alone, and queries."""
    sizes = FileSizes(target=target, small=target * 5 // 6, when=SizeTrigger())
    asked = tuple(Query(name=where, where=where) for where in queries)
    return TableSpec(name="orders", path=str(path), timezone="UTC", files=sizes, queries=asked)


def forecast_and_rewrite(path, spec):
    """Return the plan, and what its queries read of the files that its rewrite makes."""
    storage = open_storage(str(path))
    state = forecast_input.add_forecast_input(
        storage, spec, observe(storage, spec, observed_ms=0), choose_samples
    )
    plan = plan_table(spec, state, NOW)
    made = rewrite_table(storage, spec, state, plan, path)
    return plan, made, measure_reads(storage, spec, made)


SORTED = ("x between 20 and 21", "x <= 50", "x > 99", "y > 1.5")


@settings(max_examples=examples(1, many=25), deadline=None)
@given(
    seed=st.integers(0, 2**31),
    files=st.integers(4, 30),
    outputs=st.floats(0.6, 5.0),
    is_sorted=st.booleans(),
)
def test_a_rewrite_for_file_sizes_is_predicted_as_it_comes_out(seed, files, outputs, is_sorted):
    """Small files are packed in their order, one large file is split, and each query knows."""
    rng = np.random.default_rng(seed)
    table = make_table(rng, 9_000)
    table = table.sort_by("x") if is_sorted else table
    edges = np.linspace(0, len(table), files + 1).astype(int)
    parts = [table.slice(a, b - a) for a, b in pairwise(edges.tolist())]
    for pieces in (parts, [table]):
        with tempfile.TemporaryDirectory() as folder:
            path = write_table(Path(folder) / "t", {"": pieces})
            size = sum(file.stat().st_size for file in path.glob("*.parquet"))
            spec = write_sizes(path, int(size / outputs), SORTED)
            storage = open_storage(str(path))
            if not plan_table(spec, observe(storage, spec, observed_ms=0), NOW).steps:
                continue
            plan, made, after = forecast_and_rewrite(path, spec)

        assert "sizes" == plan.steps[0].purpose
        for prediction, read in zip(plan.predictions, after.files, strict=True):
            assert abs(prediction["filesAfter"] - read) <= 1, (plan.predictions, after, len(made))


def test_a_rewrite_for_file_sizes_warns_of_queries_that_read_more_bytes(tmp_path):
    """Nine small files of distinct ranges become one: a query of one of them reads all."""
    table = make_table(np.random.default_rng(1), 9_000).sort_by("x")
    path = write_table(tmp_path / "t", {"": [table.slice(n * 1000, 1000) for n in range(9)]})
    spec = write_sizes(path, 1 << 20, ("x between 20 and 21", "y > 1.5"))
    plan, made, after = forecast_and_rewrite(path, spec)

    assert 1 == len(made)
    assert [1, 1] == [one["filesAfter"] for one in plan.predictions] == after.files
    assert plan.predictions[0]["bytesAfter"] > 5 * plan.predictions[0]["bytesBefore"]
    (warning,) = [note for note in plan.warnings if note.rule == "moreBytes"]
    assert warning.because.startswith(
        "query 'x between 20 and 21' is predicted to read more bytes after the rewrite for file "
        "sizes: "
    )
    assert "; declare a clustering with its columns, or a smaller files.target" in warning.because


def test_more_small_files_than_are_sampled_become_files_that_queries_read(tmp_path):
    """Of 200 small files 64 are sampled; the statistics of all say which new file a query reads."""
    rows = 200 * 100
    table = pa.table({"id": np.arange(rows), "x": np.random.default_rng(4).random(rows)})
    table = table.sort_by("x")
    path = write_table(tmp_path / "t", {"": [table.slice(n * 100, 100) for n in range(200)]})
    size = sum(file.stat().st_size for file in path.glob("*.parquet"))
    queries = tuple(f"x between {at / 20} and {at / 20 + 0.0005}" for at in range(1, 20))
    plan, made, after = forecast_and_rewrite(path, write_sizes(path, size // 80, queries))

    assert 64 == plan.layout.sampled.row_groups
    assert 64 < len(made)
    for prediction, read in zip(plan.predictions, after.files, strict=True):
        assert 1 <= prediction["filesAfter"] <= 1 + read


def test_files_between_the_target_and_large_stay_whole_in_the_prediction_too(tmp_path):
    """Rows of 1.6 targets become one file: the forecast splits where the rewrite does."""
    table = make_table(np.random.default_rng(2), 8_000).sort_by("x")
    path = write_table(tmp_path / "t", {"": [table.slice(n * 1000, 1000) for n in range(8)]})
    size = sum(file.stat().st_size for file in path.glob("*.parquet"))
    plan, made, after = forecast_and_rewrite(path, write_sizes(path, int(size / 1.6), ("x < 1",)))

    assert 1 == len(made)
    (prediction,) = plan.predictions
    assert [prediction["filesAfter"]] == after.files
    assert abs(prediction["bytesAfter"] - after.bytes[0]) < 0.15 * after.bytes[0]


def test_partitions_excluded_by_a_query_are_read_neither_before_nor_after(tmp_path):
    rng = np.random.default_rng(5)
    days = {}
    for day in ("2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"):
        tables = make_table(rng, 400), make_table(rng, 300)
        days[day] = [t.append_column("dt", pa.array([day] * len(t))) for t in tables]
    path = write_table(tmp_path / "t", days, by="dt")
    queries = ("dt = '2026-01-02'", "dt > '2026-01-02' and x < 10", "dt = '2027'")
    spec = write_spec(path, "kd-tree", 1 << 40, queries)
    storage = open_storage(str(path))
    state = forecast_input.add_forecast_input(
        storage, spec, observe(storage, spec, observed_ms=0), choose_samples
    )
    plan = plan_table(spec, state, NOW)

    assert [2, 4, 0] == [one["filesBefore"] for one in plan.predictions]
    assert [1, 2, 0] == [one["filesAfter"] for one in plan.predictions]


def test_sample_respects_its_limit_and_is_deterministic(tmp_path):
    rng = np.random.default_rng(5)
    parts = {f"p{nth}": [make_table(rng, 100) for _ in range(5)] for nth in range(4)}
    path = write_table(tmp_path / "t", parts, by="p")
    spec = write_spec(path, "kd-tree", 1 << 40, ("x < 10",))
    storage = open_storage(str(path))
    state = forecast_input.add_forecast_input(
        storage, spec, observe(storage, spec, observed_ms=0), choose_samples
    )
    asked = choose_samples(spec, state)

    def read(most, rows=10_000):
        found = read_sample(
            storage,
            state.files,
            asked,
            ("x", "y"),
            state.forecast_input.schema,
            SampleLimits(groups=most, rows=rows),
        )
        return found.groups, len(found.rows), found.files.tolist(), found.rows.column("x")

    assert 4 == len(asked)
    assert [(3, 300), (6, 600), (20, 2000)] == [read(most)[:2] for most in (3, 6, 64)]
    # spread over the groups: at least one file of each, where there are as many
    assert {0, 1, 2, 3} == {int(state.files.partition[row]) for row in read(6)[2]}
    assert read(6) == read(6)


def sample_uneven_files(tmp_path, most):
    """Sample files with 12, 1 and 1 row groups; return rows per file and the row groups read."""
    rng = np.random.default_rng(5)
    path = write_table(tmp_path / "t", {"": [make_table(rng, rows) for rows in (1200, 100, 20)]})
    for file in path.glob("*.parquet"):
        pq.write_table(pq.read_table(file), file, row_group_size=100)
    spec = write_spec(path, "kd-tree", 1 << 40, ("x < 10",))
    storage = open_storage(str(path))
    state = forecast_input.add_forecast_input(
        storage, spec, observe(storage, spec, observed_ms=0), choose_samples
    )
    found = read_sample(
        storage,
        state.files,
        choose_samples(spec, state),
        ("x",),
        state.forecast_input.schema,
        SampleLimits(groups=most),
    )
    return np.bincount(found.file, minlength=3).tolist(), found


def test_all_row_groups_are_read_if_they_are_few(tmp_path):
    rows, found = sample_uneven_files(tmp_path, 14)

    assert ([1200, 100, 20], 14, 14) == (rows, found.groups, found.total_groups)
    assert found.is_whole.all()
    # one of five columns, and none of those that take least
    assert ["x"] == list(found.column_shares)
    assert 0.2 < found.column_shares["x"] < 0.4


def test_row_groups_are_sampled_by_rows_not_by_files(tmp_path):
    rows, found = sample_uneven_files(tmp_path, 7)

    assert 7 == found.groups
    assert rows[0] >= 500
    assert sum(rows) == len(found.rows)


def test_whole_rows_are_the_first_rows_of_some_row_groups(tmp_path):
    path = write_table(tmp_path / "t", {"": make_orders(40_000, 4)})
    for file in path.glob("*.parquet"):
        pq.write_table(pq.read_table(file), file, row_group_size=1000)
    spec = write_spec(path, "kd-tree", 1 << 40, ("customer < 10",), columns=("customer", "amount"))
    storage = open_storage(str(path))
    state = forecast_input.add_forecast_input(
        storage, spec, observe(storage, spec, observed_ms=0), choose_samples
    )

    def whole(most):
        return read_sample(
            storage,
            state.files,
            choose_samples(spec, state),
            ("customer",),
            state.forecast_input.schema,
            SampleLimits(whole_rows=most),
        ).whole

    every, some = whole(40_000), whole(1600)
    assert 40_000 == len(every.rows) == len(every.query_columns) == len(every.file)
    assert ["id", "customer", "amount", "state"] == every.rows.schema.names
    assert every.rows.column("customer").equals(every.query_columns.column("customer"))
    # sixteen row groups of forty, of each as many
    assert 1600 == len(some.rows)
    assert {100} == {n % 1000 + 1 for n in some.rows.column("id").to_pylist()[99::100]}
    assert 4 == len(set(some.file.tolist()))
    size = sum(file.stat().st_size for file in path.glob("*.parquet"))
    assert 0.7 * size < every.stored_bytes.sum() < size
    assert whole(0) is None


def test_file_without_sample_is_like_its_neighbours():
    """Half of the bytes are in a large file, half in many small ones, one of them sampled."""
    rows = 100
    sample = RowSample(
        rows=pa.table({"x": [1] * rows + [2] * rows}),
        file=np.repeat([0, 5], rows),
        fit_counts=np.zeros(2 * rows, np.int8),
        files=np.array([0, 5]),
        total=np.array([10 * rows, rows]),
        is_whole=np.array([False, True]),
        groups=2,
        total_groups=11,
    )
    sizes = np.array([10_000, *[1000] * 10])
    group = SimulatedGroup(
        members=np.arange(11),
        sizes=sizes,
        rows=20 * rows,
        row_bytes=20_000,
        outputs=2,
        partition=0,
        is_whole=True,
    )
    weight = SampledGroup.draw(sample, group).weight

    assert 20_000 == round(weight.sum())
    assert 0.5 <= weight[:rows].sum() / weight.sum() <= 0.65
