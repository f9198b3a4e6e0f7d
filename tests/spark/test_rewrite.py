"""A rewrite on Spark's workers does what one in this process does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.errors import ReconcilerError
from reconciler.hudi.timeline.markers import marker_folder
from reconciler.rewrite import spark as module
from reconciler.rewrite.local import LocalRewriter, MemoryLimits
from reconciler.rewrite.model import RowOrdering
from reconciler.rewrite.spark import SparkRewriter
from reconciler.spark.staging import choose_staging, open_file_staging, open_shuffle_staging
from tests.rewrite_jobs import (
    count_rows_after,
    count_rows_before,
    list_new_files,
    make_rewrite,
    read_file,
    unpack_table,
)
from tests.selection import long
from tests.spark.frames import PYSPARK

pytestmark = PYSPARK

TREE = RowOrdering(columns=("ts", "id"), curve="kd-tree", mapping="rank")
SMALL = MemoryLimits(run_bytes=1 << 10, sort_bytes=1 << 10)
STAGINGS = pytest.mark.parametrize("staging", [open_file_staging, open_shuffle_staging])


def scratch():
    """What staging has left in the session's folder."""
    from pyspark import SparkFiles  # noqa: PLC0415

    return list(Path(SparkFiles.getRootDirectory()).iterdir())


@STAGINGS
@pytest.mark.parametrize(
    ("name", "ordering", "bounds"),
    [
        ("v8_mor_part", TREE, MemoryLimits()),
        ("v8_mor_part", TREE, SMALL),
        ("v9_cow_part", RowOrdering(), MemoryLimits()),
    ],
    ids=["tree", "tree in pieces", "packed"],
)
def test_it_is_what_it_would_be_in_this_process(name, ordering, bounds, staging, spark, tmp_path):
    path, other = unpack_table(name, tmp_path / "a"), unpack_table(name, tmp_path / "b")
    storage, work, groups = make_rewrite(path, ordering)
    told = []
    before = count_rows_before(storage, work, groups)
    rewriter = SparkRewriter(spark, bounds, staging)
    found = rewriter.rewrite(storage.ref, work, groups, progress=told.append)
    there, *same = make_rewrite(other, ordering)
    expected = LocalRewriter(lambda _: there, bounds).rewrite(
        there.ref, *same, progress=told.append
    )

    assert before == count_rows_after(storage, work, groups, found)
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
    for (ours, _), (theirs, _) in zip(
        list_new_files(groups, expected), list_new_files(groups, found), strict=True
    ):
        columns = ["_hoodie_file_name"]
        one = read_file(there, ours).drop_columns(columns)
        if bounds != SMALL:
            assert one.equals(read_file(storage, theirs).drop_columns(columns))
    assert [] == scratch()


class SendsOnce(module._RunTask):
    """The first attempt at every part dies when it has sent all of its rows."""

    def __call__(self, number, parts):
        parts = list(parts)
        yield from module._RunTask.__call__(self, number, parts)
        name = f"sent-{parts[0].group.number}-{parts[0].number}"
        seen = Path(self.table.ref.location).with_name("seen") / name
        if not seen.exists():
            seen.touch()
            raise OSError("the machine is gone")


class DiesOnce(module._WriteTask):
    """The first attempt at every file dies when it has brought the file to the table."""

    def __call__(self, index, runs):
        for made in module._WriteTask.__call__(self, index, runs):
            seen = Path(self.table.ref.location).with_name("seen") / str(index)
            if not seen.exists():
                seen.touch()
                raise OSError("the machine is gone")
            yield made


@pytest.mark.parametrize("staging", [open_file_staging, long(open_shuffle_staging)])
def test_a_task_that_dies_is_tried_again_and_its_file_is_not_in_the_results(
    staging, sessions, tmp_path, monkeypatch
):
    path = unpack_table("v9_cow_part", tmp_path)
    path.with_name("seen").mkdir()
    storage, work, groups = make_rewrite(path, TREE)
    before = count_rows_before(storage, work, groups)
    kept = {str(file) for file in path.rglob("*.parquet")}
    session = sessions.with_conf("local[2,2]")  # a task may fail once
    monkeypatch.setattr(module, "_RunTask", SendsOnce)
    monkeypatch.setattr(module, "_WriteTask", DiesOnce)
    found = SparkRewriter(session, staging=staging).rewrite(
        storage.ref, work, groups, progress=lambda _count: None
    )
    assert [] == scratch()
    assert list(path.with_name("seen").glob("sent-*"))
    made = {f"{path}/{name}" for name, _ in list_new_files(groups, found)}
    there = {str(f) for f in path.rglob("*.parquet") if ".hoodie" not in f.parts} - kept
    markers = list((path / marker_folder(work.instant)).rglob("*.marker.CREATE"))

    assert before == count_rows_after(storage, work, groups, found)
    assert all(one.read == one.written for one in found)
    assert made < there
    assert len(there) == 2 * len(made) == len(markers)
    ids = [file.rpartition("/")[2].split("_")[0] for file in there]
    assert {2} == {ids.count(one) for one in ids}


@pytest.mark.parametrize("staging", [long(open_file_staging), open_shuffle_staging])
def test_what_a_task_dies_of_is_told_in_one_sentence_without_secrets(staging, spark, tmp_path):
    path = unpack_table("v9_cow_part", tmp_path)
    storage, work, groups = make_rewrite(path, TREE)
    secret = "hunter2-hunter2"
    gone = replace(groups[0].slices[0], base=f"{secret}-0_0-1-1_20260101000000000.parquet")
    broken = replace(groups[0], slices=(gone,))
    with pytest.raises(ReconcilerError) as raised:
        SparkRewriter(spark, staging=staging).rewrite(
            replace(storage.ref, secrets=(secret,)), work, [broken], progress=lambda _count: None
        )

    said = str(raised.value)
    assert said.endswith(
        "***-0_0-1-1_20260101000000000.parquet: was removed after the clustering was planned; "
        "plan again"
    )
    assert "hunter2" not in said
    assert "\n" not in said
    assert [] == scratch()


def test_a_damaged_file_that_a_task_dies_of_is_told_by_the_kind_of_error_and_its_path(
    spark, tmp_path
):
    path = unpack_table("v9_cow_part", tmp_path)
    storage, work, groups = make_rewrite(path, TREE)
    file = path / groups[0].slices[0].base
    data = bytearray(file.read_bytes())
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    data[4:end] = bytes(end - 4)
    file.write_bytes(bytes(data))
    with pytest.raises(ReconcilerError) as raised:
        SparkRewriter(spark).rewrite(storage.ref, work, groups, progress=lambda _count: None)

    # what an apply takes for the damage of one clustering alone (apply.damage)
    assert f"FormatError: {groups[0].slices[0].base}: " in str(raised.value)
    assert [] == scratch()


def test_workers_of_one_host_pass_rows_on_by_files(spark):
    class Elsewhere:
        master = "local-cluster[2,1,1024]"

    assert open_file_staging is choose_staging(spark.sparkContext)
    assert open_shuffle_staging is choose_staging(Elsewhere)


def test_no_groups_start_no_job(spark, tmp_path):
    storage, work, _ = make_rewrite(unpack_table("v9_cow_part", tmp_path), TREE)

    assert [] == SparkRewriter(spark).rewrite(storage.ref, work, [], progress=lambda _count: None)
    assert "ARROW_DEFAULT_MEMORY_POOL" not in spark.sparkContext.environment
