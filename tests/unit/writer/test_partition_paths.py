from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from reconciler.errors import RowsError, UnsupportedError
from reconciler.state.partition_values import read_partition_columns
from reconciler.writer.partition_paths import PartitionRule, check_not_nested, make_partition_paths
from tests.unit.writer.tables import properties

HIVE_KEY = "hoodie.datasource.write.hive_style_partitioning"
ENCODED_KEY = "hoodie.datasource.write.partitionpath.urlencode"


def rows(**columns):
    return pa.RecordBatch.from_pydict(columns)


def paths(rule, **columns):
    return make_partition_paths(rows(**columns), rule).to_pylist()


def test_a_table_without_partitions_has_one_folder_its_root():
    rule = PartitionRule.from_properties(properties(fields=""))

    assert ["", ""] == paths(rule, x=[1, 2])
    assert [] == paths(rule, x=[])


def test_columns_lie_one_below_the_other():
    rule = PartitionRule(fields=("y", "m", "d"), is_hive=True)

    assert ["y=1/m=2/d=3", "y=1/m=2/d=4", "y=1/m=2/d=3"] == paths(
        rule, y=[1, 1, 1], m=[2, 2, 2], d=[3, 4, 3]
    )


def test_equal_paths_share_a_code():
    found = make_partition_paths(
        rows(a=["x/y", "x", "x"], b=["z", "y/z", None]), PartitionRule(fields=("a", "b"))
    )

    assert ["x/y/z", "x/y/z", "x/__HIVE_DEFAULT_PARTITION__"] == found.to_pylist()
    assert 2 == len(found.dictionary) == len(pc.unique(found.indices))


def test_many_rows_of_many_partitions_agree_with_one_by_one():
    numbers = np.random.default_rng(7).integers(0, 40, (3, 2000))
    rule = PartitionRule(fields=("a", "b", "c"))
    found = paths(rule, **dict(zip("abc", map(pa.array, numbers), strict=True)))

    assert [f"{a}/{b}/{c}" for a, b, c in numbers.T.tolist()] == found


@pytest.mark.parametrize("value", ["..", ".", "/a", "a/", "a//b", "a/../b", ".hoodie", "a\0"])
def test_a_value_that_would_lead_elsewhere_is_refused_by_column_and_value(value):
    with pytest.raises(RowsError, match="partition column p: "):
        paths(PartitionRule(fields=("p",)), p=["ok", value])


def test_hive_style_and_encoding_make_slashes_and_dots_harmless():
    rule = PartitionRule(fields=("p",), is_hive=True, is_encoded=True)

    assert ["p=..", "p=%2Fa"] == paths(rule, p=["..", "/a"])


def test_the_table_says_how_folders_are_named():
    rule = PartitionRule.from_properties(properties(**{HIVE_KEY: "true", ENCODED_KEY: "true"}))

    assert PartitionRule(fields=("p",), is_hive=True, is_encoded=True) == rule


def test_a_missing_partition_column_is_named():
    with pytest.raises(RowsError, match="lack key column p"):
        paths(PartitionRule(fields=("p",)), q=["x"])


@pytest.mark.parametrize(
    "said",
    [
        {"hoodie.datasource.write.slash.separated.date.partitioning": "true"},
        {"hoodie.table.keygenerator.type": "TIMESTAMP"},
        {"hoodie.table.keygenerator.type": "CUSTOM"},
    ],
)
def test_folders_in_another_form_than_their_values_are_refused(said):
    with pytest.raises(UnsupportedError, match=r"table t: .*Hudi"):
        PartitionRule.from_properties(properties(**said))


@pytest.mark.parametrize("is_hive", [True, False])
def test_readers_find_the_values_again_in_the_folders(is_hive):
    batch = rows(
        a=pa.array(["x/y", "k=v", None, "é %2F"]), b=pa.array([1, -1, None, 7], pa.int64())
    )
    rule = PartitionRule(fields=("a", "b"), is_hive=is_hive, is_encoded=True)
    found = make_partition_paths(batch, rule).to_pylist()
    said = properties(fields="a,b", **{HIVE_KEY: str(is_hive).lower(), ENCODED_KEY: "true"})
    _, columns = read_partition_columns(found, batch.schema, said)

    assert batch.to_pydict() == dict(zip("ab", (c.to_pylist() for c in columns), strict=True))


@pytest.mark.parametrize(("value", "is_hive"), [("10:30", False), ("10:30", True), ("a:b/c", True)])
def test_a_colon_in_the_first_folder_is_refused_since_hudi_could_not_open_the_table(value, is_hive):
    rule = PartitionRule(fields=("p",), is_hive=is_hive)

    with pytest.raises(RowsError, match=r"column p: '.*' has a colon"):
        make_partition_paths(pa.record_batch({"p": [value]}), rule)


def test_a_colon_further_below_or_escaped_is_a_folder_like_others():
    rule = PartitionRule(fields=("d", "p"))
    below = make_partition_paths(pa.record_batch({"d": ["a"], "p": ["10:30"]}), rule)
    escaped = make_partition_paths(
        pa.record_batch({"p": ["10:30"]}), PartitionRule(fields=("p",), is_encoded=True)
    )

    assert (["a/10:30"], ["10%3A30"]) == (below.to_pylist(), escaped.to_pylist())


@pytest.mark.parametrize(
    ("new", "known", "inner", "outer"),
    [
        (["x/y"], ["x"], "x/y", "x"),
        (["x"], ["x/y/z"], "x/y/z", "x"),
        (["a", "p=x", "p=x/y"], [], "p=x/y", "p=x"),
    ],
)
def test_a_partition_in_another_is_refused_since_nobody_would_find_its_rows(
    new, known, inner, outer
):
    with pytest.raises(RowsError, match=f"partition '{inner}' lies inside partition '{outer}'"):
        check_not_nested(new, known)


@pytest.mark.parametrize(
    ("new", "known"),
    [(["x", "xy", "x y", "y/x"], ["z/x"]), (["x/y", "q"], ["x", "x/y"]), ([""], [""]), ([], ["x"])],
)
def test_partitions_beside_each_other_are_taken_and_so_are_those_that_are_there(new, known):
    check_not_nested(new, known)
