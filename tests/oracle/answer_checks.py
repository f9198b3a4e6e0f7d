"""Compare our reader's answers with real Hudi's: equal, refused with a reason, or wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.oracle.answers import Answer, find_differences
from tests.oracle.needed_files import find_missing_files
from tests.oracle.read_queries import list_completed_instants, list_completed_writes

#: phrases of our reader's refusals
NAMED_REFUSALS = (
    "is a bootstrap skeleton",
    "is a partial update",
    "so the table is inconsistent",  # a restore
    "files are read by column name",  # a renamed column
)
_TOO_EARLY = ": cannot read as of "
#: writes that completed after a compaction requested after them (tables v8_ and v9_mor_overlap):
#: Hudi 1.x puts their log files into the compaction's slice, and looks for that slice only as of
#: the compaction's time. As of the time of such a write it does not show what that write wrote
LATE_WRITES = ("20261121051650743", "20261121051411773")


def judge_answers(
    version: str, table: Path, theirs: Mapping[str, Answer], ours: Mapping[str, Answer]
) -> list[str]:
    """What is wrong with our answers, a line each; nothing when they are right.

    Right is an answer equal to Hudi's, a refusal by name, and, where files are gone and only there,
    a refusal that names the first write that can be read, and the next. Two faults of Hudi are
    known: the order of columns of 0.15 (`in_order`), and LATE_WRITES.
    """
    wrong = list(_judge_time_travel(table, ours))
    for name, answer in ours.items():
        expected = theirs[name]
        if version.startswith("0."):
            expected = order_columns(expected, answer)
        if name in LATE_WRITES:
            wrong += _judge_late_writes(
                name, expected, answer, theirs[_find_instant_before(table, name)]
            )
        elif not answer.refusal:
            wrong += [f"{name}: {line}" for line in find_differences(expected, answer)]
        elif name not in list_completed_instants(table) and not is_named_refusal(answer):
            wrong.append(f"{name}: refused: {answer.refusal[0]}")
    return wrong


def is_named_refusal(answer: Answer) -> bool:
    return any(words in line for words in NAMED_REFUSALS for line in answer.refusal)


def order_columns(theirs: Answer, ours: Answer) -> Answer:
    """Return Hudi 0.15's answer in our column order; it puts partition columns last."""
    names = [name for name, _ in ours.types]
    if theirs.rows is None or sorted(names) != sorted(theirs.rows.column_names):
        return theirs
    types = dict(theirs.types)
    return Answer(
        types=tuple((name, types[name]) for name in names), rows=theirs.rows.select(names)
    )


def _judge_time_travel(table: Path, ours: Mapping[str, Answer]) -> Iterator[str]:
    """Return wrong refusals of time travel: too many, too few, or without the readable times."""
    instants = list_completed_instants(table)
    if any(is_named_refusal(ours[at]) for at in instants):
        return
    writes = list_completed_writes(table)
    readable = [at for at in writes if not ours[at].refusal]
    for at in instants:
        gone = find_missing_files(table, at) or (["all: there was none"] if at < writes[0] else [])
        refusal = "".join(ours[at].refusal)
        if gone and not refusal:
            yield f"{at}: answered, though files are missing: {gone[:2]}"
        if refusal and not (gone and _TOO_EARLY in refusal):
            yield f"{at}: refused, though no file is missing: {refusal}"
        later = [write for write in readable if write > at]
        if refusal and not all(write in refusal for write in readable[:1] + later[:1]):
            yield f"{at}: the refusal does not name {readable[:1]} and {later[:1]}: {refusal}"


def _judge_late_writes(
    name: str, theirs: Answer, ours: Answer, theirs_before: Answer
) -> Iterator[str]:
    """Check late writes: Hudi shows the write before, we show the late write."""
    yield from (f"{name}: Hudi now: {line}" for line in find_differences(theirs_before, theirs))
    times = ours.rows.column("_hoodie_commit_time").to_pylist() if ours.rows is not None else []
    if name not in times:
        yield f"{name}: the rows of the write itself are not there"


def _find_instant_before(table: Path, instant: str) -> str:
    return max(write for write in list_completed_writes(table) if write < instant)
