"""A compaction on Spark's workers does what one in this process does."""

from __future__ import annotations

from reconciler.rewrite.spark import SparkRewriter
from tests.compared_compactions import describe_commit, describe_file, list_base_files
from tests.crash.compaction_drill import make_compacting
from tests.spark.frames import PYSPARK

pytestmark = PYSPARK


def test_it_leaves_what_it_would_leave_from_this_process(spark, tmp_path):
    here, there = (make_compacting("1.2.0", tmp_path / name) for name in ("here", "there"))
    assert 0 == here.apply(here.plan()).exit_code

    result = there.apply(there.plan(), rewriter=SparkRewriter(spark))

    assert 0 == result.exit_code, result.tables
    instant = here.instant
    assert describe_commit(here.table, instant) == describe_commit(there.table, instant)
    files = [list_base_files(it.table, instant) for it in (here, there)]
    for group, file in files[0].items():
        assert describe_file(file) == describe_file(files[1][group]), group
