"""A rewrite on Spark's workers does what one in this process does."""

from __future__ import annotations

import pytest

from reconciler.rewrite.local import Bounds, InProcess
from reconciler.rewrite.model import Ordering
from reconciler.rewrite.spark import SparkRewriter
from tests.rewriting import asked, paths, rows_after, rows_before, table_of, unpacked
from tests.spark.frames import PYSPARK

pytestmark = PYSPARK

TREE = Ordering(columns=("ts", "id"), curve="kd-tree", mapping="rank")
SMALL = Bounds(gathered=1 << 10, sorted=1 << 10)


@pytest.mark.parametrize("bounds", [Bounds(), SMALL])
@pytest.mark.parametrize("ordering", [Ordering(), TREE], ids=["packed", "tree"])
@pytest.mark.parametrize("name", ["v9_cow_part", "v8_mor_part", "v6_mor_nopart"])
def test_it_is_what_it_would_be_in_this_process(name, ordering, bounds, spark, tmp_path):
    path, other = unpacked(name, tmp_path / "a"), unpacked(name, tmp_path / "b")
    storage, work, groups = asked(path, ordering)
    told = []
    before = rows_before(storage, work, groups)
    found = SparkRewriter(spark, bounds).rewrite(storage.ref, work, groups, progress=told.append)
    there, *same = asked(other, ordering)
    expected = InProcess(lambda _: there, bounds).rewrite(there.ref, *same, progress=told.append)

    assert before == rows_after(storage, work, groups, found)
    assert 2 * sum(group.bytes for group in groups) == sum(told)
    by_number = {made.number: made for made in found}
    assert [group.number for group in groups] == sorted(by_number)
    for made in expected:
        again = by_number[made.number]
        assert (made.read, made.written, made.splits) == (again.read, again.written, again.splits)
        for file, twin in zip(made.files, again.files, strict=True):
            own, token, instant = file.name.split("_")
            assert (own, instant) == (twin.name.split("_")[0], twin.name.split("_")[2])
            assert token.rpartition("-")[0] == twin.name.split("_")[1].rpartition("-")[0]
            assert (file.rows, file.least_key) == (twin.rows, twin.least_key)
    for (ours, _), (theirs, _) in zip(paths(groups, expected), paths(groups, found), strict=True):
        columns = ["_hoodie_file_name"]
        one = table_of(there, ours).drop_columns(columns)
        if bounds != SMALL:
            assert one.equals(table_of(storage, theirs).drop_columns(columns))
