"""What is read for predictions of tables on disk: from which source, and when nothing is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reconciler.errors import StorageError
from reconciler.foresight.ask import with_foresight
from reconciler.foresight.statistics import Telling
from reconciler.hudi.load import load_properties
from reconciler.planners.candidates import candidates
from reconciler.planners.scans import today
from reconciler.planners.slices import view_of
from reconciler.spec.model import IndexColumns, Query, TableSpec
from reconciler.state.observe import observe
from reconciler.state.view import newest_bases
from reconciler.storage.open import open_storage
from tests.indexing import publish_index
from tests.laid import laid, orders
from tests.rewriting import unpacked

WHERE = ("customer = 4711", "amount > 990 and state like 'n%'", "id < 100", "f(id) = 1")


@pytest.fixture
def table(tmp_path):
    return laid(tmp_path / "t", {"": orders(2_000, 5, sorted_by="customer")})


def spec_of(path, where=WHERE, **more):
    queries = tuple(Query(name=one, where=one) for one in where)
    return TableSpec(name="orders", path=str(path), timezone="UTC", queries=queries, **more)


def read(spec):
    """The source, and what queries read: files each."""
    storage = open_storage(spec.path)
    found = with_foresight(storage, spec, observe(storage, spec, observed_ms=0))
    now = today(spec, found.foresight, candidates(found, view_of(found)))
    return found.foresight.source, None if now is None else now.reads.files.tolist()


def test_without_an_index_footers_tell_what_queries_read(table):
    assert ("footers", [0, 5, 5, 5]) == read(spec_of(table))


def test_a_store_that_fails_is_a_doubt_and_stops_nothing(table, monkeypatch):
    def fails(*_, **__):
        raise StorageError("a.parquet", "timed out")

    spec = spec_of(table)
    storage = open_storage(spec.path)
    state = observe(storage, spec, observed_ms=0)
    monkeypatch.setattr("reconciler.foresight.ask.load_properties", fails)
    (doubt,) = with_foresight(storage, spec, state).foresight.doubts

    said = "nothing is predicted for the declared queries: a.parquet: timed out"
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
    path = unpacked("v9_index", tmp_path)
    storage = open_storage(str(path))
    state = observe(storage, None, observed_ms=0)
    files = newest_bases(view_of(state))
    properties = load_properties(storage)
    schema = with_foresight(storage, spec_of(path), state).foresight.schema
    columns = tuple(name for name in schema.names if name in ("id", "val", "ts", "name"))

    def told(live):
        said = replace(properties, metadata_partitions=live)
        found = Telling(
            storage=storage,
            properties=said,
            state=state,
            files=files,
            columns=columns,
            schema=schema,
            supplied=frozenset(),
        ).told()
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
    found = Telling(
        storage=storage,
        properties=load_properties(storage),
        state=state,
        files=newest_bases(view_of(state)),
        columns=("id",),
        schema=with_foresight(storage, spec_of(table), state).foresight.schema,
        supplied=frozenset(),
        most=4,
    ).told()

    assert found.index is None
    (doubt,) = found.doubts
    assert "predictions" == doubt.rule
    assert doubt.because == (
        "nothing is predicted for the declared queries: 5 base files have no statistics on id, and "
        "no more than 4 footers are read; declare these columns under index.columns"
    )


def test_beyond_the_most_footers_no_column_is_advised_that_is_declared_already(table):
    storage = open_storage(str(table))
    spec = spec_of(table, index=IndexColumns(columns=("id", "gone")))
    state = observe(storage, spec, observed_ms=0)
    schema = with_foresight(storage, spec, state).foresight.schema

    def doubt(*columns):
        telling = Telling(
            storage=storage,
            properties=load_properties(storage),
            state=state,
            files=newest_bases(view_of(state)),
            columns=columns,
            schema=schema,
            supplied=frozenset(),
            most=4,
        )
        (found,) = telling.told().doubts
        return found.because

    assert doubt("id").endswith("; the index step of a plan reads them: apply it")
    assert doubt("id", "amount").endswith("; declare amount under index.columns too")


def test_a_slice_with_log_files_is_read_whatever_its_base_file_says(tmp_path):
    path = unpacked("v9_mor_part", tmp_path)
    storage = open_storage(str(path))
    spec = spec_of(path, ("_hoodie_record_key = 'nobody'",))
    state = with_foresight(storage, spec, observe(storage, spec, observed_ms=0))
    found = candidates(state, view_of(state))
    now = today(spec, state.foresight, found)

    assert np.array_equal(found.logs > 0, now.reads.kept[0] & found.has_base)
    assert (found.logs > 0).any()
