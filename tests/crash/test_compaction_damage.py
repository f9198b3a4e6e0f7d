"""Damaged plans of compactions: the right plan, or a message that names the file."""

from __future__ import annotations

import random
import shutil

from reconciler.errors import FormatError
from reconciler.hudi.timeline.plans import parse_compaction
from reconciler.plans import groups
from reconciler.plans.model import ResumeStep
from tests.crash.compaction_drill import get_step, make_compacting
from tests.crash.test_failed_write_damage import damage
from tests.our_compaction import find_timeline
from tests.selection import examples

#: in whole plans, and of bytes alone
PLANS, BYTES = examples(2, many=150), examples(40, many=1000)


def list_slices(step):
    return b"".join(groups.encode_groups(step.groups))


def test_a_damaged_plan_is_named_or_executes_nothing_else(tmp_path):
    it = make_compacting("1.2.0", tmp_path / "t")
    rows, whole = it.rows(), get_step(it.plan())
    path = next(find_timeline(it.table).glob("*.compaction.requested"))
    data, rng = path.read_bytes(), random.Random(20)
    for number in range(PLANS):
        path.write_bytes(damage(data, rng))
        (table,) = it.plan().tables
        steps = [step for step in table.steps if isinstance(step, ResumeStep)]
        said = " ".join([table.error or "", *(note.because for note in table.warnings)])
        if not steps:
            assert path.name in said or whole.instant in said, number
        elif list_slices(steps[0]) != list_slices(whole):
            copy = it.copy(tmp_path / f"{number}")
            result = copy.apply(copy.plan())
            assert 5 == result.exit_code or rows == copy.rows(), number
            shutil.rmtree(tmp_path / f"{number}")


def test_every_damaged_plan_is_read_or_refused_by_name(tmp_path):
    it = make_compacting("0.15.0", tmp_path / "t")
    data = next(find_timeline(it.table).glob("*.compaction.requested")).read_bytes()
    rng = random.Random(21)
    for _ in range(BYTES):
        found, path = (), ""
        try:
            found = parse_compaction(damage(data, rng), "the.requested")
        except FormatError as error:
            path = error.path
        assert path in ("", "the.requested")
        for operation in found:
            assert ".." not in operation.partition.split("/")
            assert "/" not in operation.file_id
