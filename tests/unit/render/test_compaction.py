"""A compact step and its result for people."""

from __future__ import annotations

from reconciler.executor.outcomes import ClusterOutcome, LeftGroup
from reconciler.executor.result import StepOutcome, TableResult
from reconciler.plans.compact_step import CompactStep, ExpectedCompaction
from reconciler.plans.groups import rewrites_from_json
from reconciler.plans.layout_change import Untouched
from reconciler.plans.model import Impact, Note, TablePlan
from reconciler.plans.plan import Plan
from reconciler.render.plan_markdown import plan_markdown
from reconciler.render.plan_text import plan_text
from reconciler.render.result import render_table
from reconciler.render.terminal import Terminal

KIB = 1024
REASON = "more than 50 % of the bytes are in log files (compaction.when.logShareAbove)"


def group(partition, file_id, logs):
    names = [f".{file_id}_2.log.{n}_0-0-0" for n in range(1, logs + 1)]
    return {
        "partition": partition,
        "outputs": 1,
        "bytes": 40 * KIB,
        "because": f"{logs} log files of 32 KiB on a base file of 8.0 KiB become 1 file: {REASON}",
        "slices": [{"fileId": file_id, "base": f"{file_id}_0-0-0_1.parquet", "logs": names}],
    }


def expect(partition, slices, files):
    return ExpectedCompaction(
        partition=partition,
        slices=slices,
        log_files=files,
        log_bytes=32 * KIB * slices,
        bytes=40 * KIB * slices,
        expected_bytes=8 * KIB * slices,
    )


STEP = CompactStep(
    order="logBytes",
    groups=rewrites_from_json([group("a", "f", 2), group("a", "g", 3), group("b", "h", 4)]),
    expected=(expect("a", 2, 5), expect("b", 1, 4)),
    untouched=(Untouched("when", 2, "no condition of compaction.when holds"),),
)


def make_plan(**more):
    table = TablePlan(
        name="t",
        path="/t",
        spec={},
        spec_digest="",
        steps=(STEP,),
        impact=Impact(bytes_rewritten=120 * KIB),
        **more,
    )
    return Plan(created_at="2026-11-21T09:00:00+00:00", tool="r", tables=(table,))


def test_the_plan_shows_what_is_read_and_about_what_it_becomes():
    lines = plan_text(make_plan(), Terminal()).splitlines()
    start = next(n for n, line in enumerate(lines) if "~ compact" in line)

    assert [
        "  ~ compact  3 file slices, 120.0 KiB in 2 partitions, 80 % of it in 9 log",
        "      files, become 3 base files of about 24.0 KiB",
        "      a    2 file slices    5 log files    80.0 KiB → about 16.0 KiB",
        "      b     1 file slice    4 log files    40.0 KiB → about 8.0 KiB",
        "      more than 50 % of the bytes are in log files",
        "        (compaction.when.logShareAbove)",
        "      when: 2 file slices stay: no condition of compaction.when holds",
    ] == lines[start : start + 7]
    assert "rewrites 120.0 KiB into about 24.0 KiB" in " ".join(line.strip() for line in lines)


def test_with_full_every_slice_is_shown_with_its_files():
    text = plan_text(make_plan(), Terminal(), full=True)

    assert "~ h_0-0-0_1.parquet" in text
    assert "+ .h_2.log.4_0-0-0" in text
    assert "group 3 of 3, b: 4 log files of 32 KiB" in " ".join(text.split())


def test_a_refused_compaction_is_marked_and_not_summed_up():
    refusal = Note("maxRewrite", "policy p lets a plan rewrite 1B", step="compact")
    text = plan_text(make_plan(refusals=(refusal,)), Terminal())

    assert "compact refused" in text
    assert "not applied" in text


def test_a_comment_names_it_and_what_makes_it_stale():
    text = plan_markdown(make_plan())

    assert "! compact  3 file slices, 120.0 KiB in 2 partitions" in text
    assert "A write to a file slice that is to be rewritten: its group is skipped." in text


def test_the_result_tells_what_was_compacted_and_what_was_left():
    left = LeftGroup(partition="b", slices=1, because="its file group h has other log files")
    outcome = StepOutcome(
        kind="compact",
        how="completed",
        instant="7",
        rewritten=ClusterOutcome(
            groups=2,
            slices=2,
            files_before=7,
            files_after=2,
            bytes_read=80 * KIB,
            bytes_written=17 * KIB,
            rows=12,
            left=(left,),
        ),
    )
    table = TableResult(name="t", path="/t", outcomes=(outcome,))
    text = " ".join(" ".join(render_table(table, Terminal())).split())

    assert 4 == table.exit_code
    assert (
        "compact 7 rewrote 7 files, 80.0 KiB, into 2 files, 17.0 KiB; 12 rows ! skipped 1 group of "
        "the plan 1 file slice of b: its file group h has other log files" in text
    )
