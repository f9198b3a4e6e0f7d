"""What is read for predictions of tables on disk: from which source, and when nothing is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reconciler.errors import StorageError
from reconciler.hudi.load import load_properties
from reconciler.planners.newest_slices import find_candidates
from reconciler.planners.prediction.current_reads import measure_reads
from reconciler.planners.prediction.forecast import choose_samples
from reconciler.spec.model import IndexColumns, Query, TableSpec
from reconciler.state.current_files import find_newest_bases
from reconciler.state.observe import observe
from reconciler.state.sampling.file_statistics import FileStatisticsReader
from reconciler.state.sampling.forecast_input import add_forecast_input
from reconciler.storage.open import open_storage
from tests.plain_tables import make_orders, write_table
from tests.published_indexes import publish_index
from tests.rewrite_jobs import unpack_table

WHERE = ("customer = 4711", "amount > 990 and state like 'n%'", "id < 100", "f(id) = 1")


@pytest.fixture
def table(tmp_path):
    return write_table(tmp_path / "t", {"": make_orders(2_000, 5, sorted_by="customer")})


def spec_of(path, where=WHERE, **more):
    queries = tuple(Query(name=one, where=one) for one in where)
    return TableSpec(name="orders", path=str(path), timezone="UTC", queries=queries, **more)


def read(spec):
    """The source, and what queries read: files each."""
    storage = open_storage(spec.path)
    found = add_forecast_input(storage, spec, observe(storage, spec, observed_ms=0), choose_samples)
    now = measure_reads(spec, found.forecast_input, find_candidates(found))
    return found.forecast_input.source, None if now is None else now.reads.files.tolist()


def test_without_an_index_footers_tell_what_queries_read(table):
    assert ("footers", [0, 5, 5, 5]) == read(spec_of(table))


def test_a_store_that_fails_is_a_doubt_and_stops_nothing(table, monkeypatch):
    def fails(*_, **__):
        raise StorageError("a.parquet", "timed out")

    spec = spec_of(table)
    storage = open_storage(spec.path)
    state = observe(storage, spec, observed_ms=0)
    monkeypatch.setattr("reconciler.state.sampling.forecast_input.load_properties", fails)
    (doubt,) = add_forecast_input(storage, spec, state, choose_samples).forecast_input.warnings

    said = "there are no predictions for the declared queries: a.parquet: timed out"
    assert said == doubt.because


def test_the_tables_own_index_is_asked_first(table):
    publish_index(table, ("id", "customer", "amount", "state"))
    index = IndexColumns(columns=("id", "customer", "amount", "state"))

    assert ("the table's index", [0, 5, 5, 5]) == read(spec_of(table, index=index))


def test_what_an_index_has_no_columns_of_is_read_from_footers(table):
    publish_index(table, ("id",))
    index = IndexColumns(columns=("id",))

    assert ("footers", [0, 5, 5, 5]) == read(spec_of(table, index=index))


def test_column_stats_of_hudi_tell_the_same_as_footers(tmp_path):
    path = unpack_table("v9_index", tmp_path)
    storage = open_storage(str(path))
    state = observe(storage, None, observed_ms=0)
    files = find_newest_bases(state.view)
    properties = load_properties(storage)
    schema = add_forecast_input(storage, spec_of(path), state, choose_samples).forecast_input.schema
    columns = tuple(name for name in schema.names if name in ("id", "val", "ts", "name"))

    def told(live):
        said = replace(properties, metadata_partitions=live)
        found = FileStatisticsReader(
            storage=storage,
            properties=said,
            state=state,
            files=files,
            columns=columns,
            schema=schema,
            supplied=frozenset(),
        ).read()
        bounds = {
            name: (stats.least.to_pylist(), stats.greatest.to_pylist())
            for name, stats in found.index.columns.items()
        }
        return found.source, bounds

    source, by_hudi = told(properties.metadata_partitions)
    plain, by_footers = told(())

    assert ("column_stats", "footers") == (source, plain)
    assert columns
    assert by_footers == by_hudi


def test_beyond_the_most_footers_nothing_is_invented(table):
    storage = open_storage(str(table))
    state = observe(storage, None, observed_ms=0)
    found = FileStatisticsReader(
        storage=storage,
        properties=load_properties(storage),
        state=state,
        files=find_newest_bases(state.view),
        columns=("id",),
        schema=add_forecast_input(
            storage, spec_of(table), state, choose_samples
        ).forecast_input.schema,
        supplied=frozenset(),
        max_footers=4,
    ).read()

    assert found.index is None
    (doubt,) = found.warnings
    assert "predictions" == doubt.rule
    assert doubt.because == (
        "there are no predictions for the declared queries: 5 base files have no statistics on id, "
        "and at most 4 footers are read; declare these columns under index.columns"
    )


def test_beyond_the_most_footers_no_column_is_advised_that_is_declared_already(table):
    storage = open_storage(str(table))
    spec = spec_of(table, index=IndexColumns(columns=("id", "gone")))
    state = observe(storage, spec, observed_ms=0)
    schema = add_forecast_input(storage, spec, state, choose_samples).forecast_input.schema

    def doubt(*columns):
        telling = FileStatisticsReader(
            storage=storage,
            properties=load_properties(storage),
            state=state,
            files=find_newest_bases(state.view),
            columns=columns,
            schema=schema,
            supplied=frozenset(),
            max_footers=4,
        )
        (found,) = telling.read().warnings
        return found.because

    assert doubt("id").endswith("; apply the index step of a plan, which reads them")
    assert doubt("id", "amount").endswith("; declare amount under index.columns too")


def test_a_slice_with_log_files_is_read_whatever_its_base_file_says(tmp_path):
    path = unpack_table("v9_mor_part", tmp_path)
    storage = open_storage(str(path))
    spec = spec_of(path, ("_hoodie_record_key = 'nobody'",))
    state = add_forecast_input(storage, spec, observe(storage, spec, observed_ms=0), choose_samples)
    found = find_candidates(state)
    now = measure_reads(spec, state.forecast_input, found)

    assert np.array_equal(found.logs > 0, now.reads.kept[0] & found.has_base)
    assert (found.logs > 0).any()
