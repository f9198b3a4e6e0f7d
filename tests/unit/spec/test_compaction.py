"""A compaction block as it is declared, carried by plans, and reported where it cannot hold."""

from __future__ import annotations

import pytest

from reconciler.spec.compaction import Compaction, CompactionBudget, CompactionTrigger
from reconciler.spec.document import spec_from_document, spec_to_document
from reconciler.spec.load import load_specs, read_specs
from reconciler.spec.partition_filter import PartitionFilter

MiB = 1024**2
TEXT = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {folder}/t
  compaction: {block}
{rest}"""


@pytest.fixture
def load(tmp_path):
    def write(block: str, rest: str = ""):
        file = tmp_path / "t.yaml"
        file.write_text(TEXT.format(folder=tmp_path, block=block, rest=rest))
        return file

    return write


def test_the_whole_block_is_read_and_carried_by_a_plan(load):
    block = (
        "{afterDeltaCommits: 3, when: {logShareAbove: 0.5, logFilesAbove: 10, olderThan: 6h}, "
        'order: oldest, partitions: {exclude: ["a*"], latest: 2}, '
        "budget: {rewrite: 64MiB, groups: 7}}"
    )
    (spec,) = load_specs(load(block))

    assert (
        Compaction(
            after_delta_commits=3,
            when=CompactionTrigger(log_share_above=0.5, log_files_above=10, older_than=6 * 3600),
            order="oldest",
            partitions=PartitionFilter(exclude=("a*",), latest=2),
            budget=CompactionBudget(rewrite=64 * MiB, groups=7),
        )
        == spec.compaction
    )
    assert spec.compaction == spec_from_document(spec.document, "t", spec.path).compaction
    assert "6h" == spec_to_document(spec)["compaction"]["when"]["olderThan"]


def test_an_empty_block_declares_what_hudi_does_by_default(load):
    (spec,) = load_specs(load("{}"))

    assert Compaction() == spec.compaction
    assert (5, None, "logBytes", None) == (
        spec.compaction.after_delta_commits,
        spec.compaction.when,
        spec.compaction.order,
        spec.compaction.budget.rewrite,
    )
    assert spec.compaction == spec_from_document(spec.document, "t", spec.path).compaction


NEW = "  table: {{type: {kind}, version: 9, recordKey: [id]}}\n"


@pytest.mark.parametrize(
    ("block", "rest", "said"),
    [
        ("{afterDeltaCommits: 0}", "", "without a deltacommit there are no log files"),
        ("{when: {}}", "", "compaction.when"),
        ("{when: always}", "", "compaction.when"),
        ("{order: newest}", "", "logBytes"),
        ("{when: {logShareAbove: 2}}", "", "logShareAbove"),
        ("{when: {olderThan: 6}}", "", "olderThan"),
        ("{budget: {groups: 0}}", "", "less would compact nothing"),
        ("{afterCommits: 5}", "", "did you mean 'afterDeltaCommits'?"),
        ("{hoodie.compaction.target.io: 5}", "", "did you mean spec.compaction.budget.rewrite?"),
        ('{partitions: {from: "b", to: "a"}}', "", "comes after to"),
        (
            "{}",
            NEW.format(kind="COPY_ON_WRITE"),
            "table.type is COPY_ON_WRITE, and such tables have no log files to compact",
        ),
    ],
)
def test_what_cannot_be_is_an_error(load, block, rest, said):
    found = [*read_specs([load(block, rest)]).problems]

    assert any(said in str(problem) for problem in found), [*map(str, found)]
    assert any(problem.severity == "error" for problem in found)


@pytest.mark.parametrize(
    ("block", "rest", "said"),
    [
        ("{when: {logFilesAbove: 0}}", "", "0 holds for every file slice with log files"),
        ("{when: {logShareAbove: 1}}", "", "1 holds for no file slice"),
        ("{}", "  concurrency: {lock: {provider: none}}\n", "needs a lock"),
    ],
)
def test_what_has_no_effect_is_a_warning(load, block, rest, said):
    found = [*read_specs([load(block, rest)]).problems]

    assert [True] == [said in str(problem) for problem in found], [*map(str, found)]
    assert "warning" == found[0].severity


def test_a_merge_on_read_table_may_declare_it(load):
    found = read_specs([load("{}", NEW.format(kind="MERGE_ON_READ"))])

    assert [] == [*found.problems]
