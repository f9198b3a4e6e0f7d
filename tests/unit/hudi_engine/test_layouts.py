"""Layouts that Hudi cannot make are refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from reconciler.errors import UnsupportedError
from reconciler.hudi_engine.layouts import check_columns, find_strategy
from reconciler.state.clustering_layout import ClusteringLayout

TYPES = {
    "whole": pa.int32(),
    "tiny": pa.int8(),
    "long": pa.int64(),
    "real": pa.float64(),
    "flag": pa.bool_(),
    "text": pa.string(),
    "moment": pa.timestamp("us", "UTC"),
    "local": pa.timestamp("us"),
    "place": pa.struct([("x", pa.int64())]),
    "names": pa.map_(pa.string(), pa.string()),
}


def layout(curve, *columns, mapping="direct"):
    return ClusteringLayout(columns=columns, curve=curve, mapping=mapping)


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (ClusteringLayout(), "linear"),
        (layout("linear", "long", mapping="rank"), "linear"),
        (layout("z-order", "long"), "z-order"),
        (layout("hilbert", "long"), "hilbert"),
    ],
)
def test_layouts_that_hudi_has_by_its_names(asked, named):
    assert named == find_strategy(asked)


@pytest.mark.parametrize(
    ("asked", "because"),
    [
        (layout("kd-tree", "long", mapping="rank"), "Hudi cannot lay rows out by a kd-tree: apply"),
        (layout("z-order", "long", mapping="rank"), "Hudi cannot order a z-order by mapping rank"),
        (layout("hilbert", "long", mapping="rank"), "Hudi cannot order a hilbert by mapping rank"),
    ],
)
def test_layouts_that_hudi_has_not_are_refused_and_say_what_to_do(asked, because):
    with pytest.raises(UnsupportedError) as refused:
        find_strategy(asked)

    assert str(refused.value).startswith(because)
    assert "--executor native" in str(refused.value)


@pytest.mark.parametrize(
    ("asked", "because"),
    [
        (layout("linear", "nope"), "the table has no top-level column nope"),
        (layout("z-order", "place.x", "long"), "the table has no top-level column place.x"),
        (
            layout("linear", "names"),
            "Spark cannot sort by column names, because it is map<string, string>",
        ),
        (layout("z-order", "place", "long"), "Hudi fails on column place"),
        (layout("hilbert", "local", "long"), "Hudi fails on column local"),
        (layout("z-order", "whole", "real"), "Hudi would not order by column whole"),
        (layout("z-order", "tiny", "whole"), "Hudi would not order by column tiny"),
        (layout("z-order", "flag", "text"), "Hudi would not order by column flag"),
        (layout("hilbert", "tiny", "long"), "Hudi would not order by column tiny"),
        (layout("hilbert", *("long",) * 9), "Hudi's Hilbert keys hold 8 columns, not 9"),
    ],
)
def test_columns_by_which_hudi_would_not_order_are_refused(asked, because):
    with pytest.raises(UnsupportedError) as refused:
        check_columns(asked, TYPES)

    assert str(refused.value).startswith(because)


@pytest.mark.parametrize(
    "asked",
    [
        ClusteringLayout(),
        layout("linear", "place", "flag", "text", "local"),
        layout("z-order", "long", "real", "text", "moment"),
        layout("z-order", "whole"),
        layout("hilbert", "flag", "long"),
    ],
)
def test_columns_by_which_hudi_orders_are_taken(asked):
    assert None is check_columns(asked, TYPES)
