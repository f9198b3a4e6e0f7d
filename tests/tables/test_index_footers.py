"""The index of files that real Hudi wrote, its lies left out: NaN, long text, evolved columns."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.index.footers import index_footers
from reconciler.index.slim_footers import FooterSlimmer, merge_footers
from tests.trees import unpack
from tests.unit.index.footer_samples import index_facts

LYING = Path(__file__).parent / "lying"
SCHEMA = pa.schema(
    [
        ("y", pa.float64()),
        ("f", pa.float32()),
        ("ls", pa.string()),
        ("s", pa.string()),
        ("dec", pa.decimal128(10, 2)),
        ("n", pa.int64()),
        ("t", pa.timestamp("us", tz="UTC")),
        ("st", pa.struct([("a", pa.int32())])),
        ("u", pa.string()),
    ]
)
COLUMNS = ["y", "f", "ls", "s", "dec", "n", "t", "st.a", "u"]
NAN_AND_LONG, ALL_NAN = 100, 200


def files_of(folder):
    return sorted(
        path for path in folder.rglob("*.parquet") if ".hoodie" not in path.parts and path.is_file()
    )


@pytest.fixture(scope="module", params=["0.15.0", "1.2.0"])
def told(request, tmp_path_factory):
    """By the least id of each file what the index says of its columns."""
    folder = unpack(LYING / f"statistics_{request.param}.zip", tmp_path_factory.mktemp("lying"))
    paths = files_of(folder)
    files = [("", path.name, path.stat().st_size, pq.read_metadata(path)) for path in paths]
    found = index_footers(files, COLUMNS, SCHEMA)
    place = {name: row for row, name in enumerate(found.name.to_pylist())}
    return {
        min(pq.read_table(path, columns=["id"])["id"].to_pylist()): (
            pq.read_table(path),
            {
                column: (
                    stats.least[place[path.name]].as_py(),
                    stats.greatest[place[path.name]].as_py(),
                    int(stats.nulls[place[path.name]]),
                    bool(stats.is_nan_free[place[path.name]]),
                )
                for column, stats in found.columns.items()
            },
        )
        for path in paths
    }


def test_a_file_with_nan_has_no_bounds_and_no_proof(told):
    for least_id in (NAN_AND_LONG, ALL_NAN):
        assert (None, None, 0, False) == told[least_id][1]["y"] == told[least_id][1]["f"]


def test_the_bounds_of_the_others_prove_that_they_hold_none(told):
    assert {0: True, 100: False, 200: False, 300: True, 400: True, 500: True} == {
        least_id: stats["y"][3] for least_id, (_, stats) in told.items()
    }
    assert (-0.0, float("inf"), 0, True) == told[300][1]["y"]


def test_text_too_long_for_a_footer_is_unknown_and_not_null(told):
    assert (None, None, -1, True) == told[NAN_AND_LONG][1]["ls"]


def test_all_null_columns_are_all_null(told):
    assert (None, None, 6, True) == told[NAN_AND_LONG][1]["n"] == told[300][1]["u"]


def test_no_value_of_any_file_lies_outside_of_what_is_said(told):
    for table, said in told.values():
        for column in COLUMNS:
            first, _, rest = column.partition(".")
            values = table[first].to_pylist()
            values = [v and v[rest] for v in values] if rest else values
            some = [v for v in values if v is not None and v == v]  # noqa: PLR0124
            low, high, nulls, _ = said[column]

            assert nulls in {values.count(None), -1}
            assert all((low is None or low <= v) and (high is None or v <= high) for v in some)


def test_decimals_and_text_beyond_the_plane_are_read_as_they_are(told):
    assert (Decimal("-3.50"), Decimal("2.25"), 0, True) == told[100][1]["dec"]
    assert ("z", "\U0001f600", 0, True) == told[200][1]["u"]


def test_a_file_from_before_a_column_holds_nulls_in_it(tmp_path):
    folder = unpack(LYING / "evolution_1.2.0.zip", tmp_path)
    files = [
        ("", path.name, path.stat().st_size, pq.read_metadata(path)) for path in files_of(folder)
    ]
    schema = pa.schema([("a", pa.int64()), ("c", pa.int32())])
    found = index_footers(files, ["a", "c"], schema).columns

    assert [(0, 4), (0, 4)] == list(
        zip(found["a"].least.to_pylist(), found["a"].greatest.to_pylist(), strict=True)
    )
    assert [None, 1] == found["c"].least.to_pylist()
    assert ([5, 1], [True, False]) == (
        found["c"].nulls.tolist(),
        found["c"].is_all_null.tolist(),
    )


@pytest.mark.parametrize("name", ["statistics_0.15.0", "statistics_1.2.0", "evolution_1.2.0"])
def test_without_bloom_filters_and_read_together_footers_say_the_same(name, tmp_path):
    paths = files_of(unpack(LYING / f"{name}.zip", tmp_path))
    slimmer, found = FooterSlimmer(), []
    for path in paths:
        cut, whole = slimmer.slim(path.read_bytes()), pq.read_metadata(path)
        assert cut is not None
        alone = pq.read_metadata(pa.BufferReader(merge_footers([cut])))
        assert str(alone.to_dict()["row_groups"]) == str(whole.to_dict()["row_groups"])
        assert (alone.created_by, alone.num_rows) == (whole.created_by, whole.num_rows)
        assert alone.schema.equals(whole.schema)
        assert whole.serialized_size - alone.serialized_size > 400_000  # the bloom filter
        found.append((("", path.name, 1, path.read_bytes()), ("", path.name, 1, whole)))
    together, one_by_one = (
        index_facts(index_footers(files, COLUMNS, SCHEMA)) for files in zip(*found, strict=True)
    )

    assert len(paths) > 1
    assert together == one_by_one
