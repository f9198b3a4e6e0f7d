"""Choose where the keys of one write are looked up, and say how they were."""

from __future__ import annotations

from typing import Final

import numpy as np

from reconciler.layout.sizing.assignment_rules import CopyOnWrite
from reconciler.writer.job import WriteJob
from reconciler.writer.lookup_costs import (
    FileAnswer,
    KeyLookup,
    LookupChoice,
    LookupWay,
    choose_lookup,
)
from reconciler.writer.row_counts import WriteCounts

_NO_INDEX: Final = LookupChoice(
    way=LookupWay.FILES, because="the table has no record index of all keys"
)
_NEEDS_INDEX: Final = LookupChoice(
    way=LookupWay.RECORD_INDEX, because="a key may be in any partition or in log files"
)


def choose_way(job: WriteJob, rows: int) -> LookupChoice:
    """Return where the keys of so many rows are looked up.

    Files tell the same as a record index where a key can only be in the base files of the one
    folder. They are the truth that the index is compared with.
    """
    if job.index is None:
        return _NO_INDEX
    is_plain = isinstance(job.kind, CopyOnWrite) and not job.row_job.rules.partition.fields
    if not is_plain or set(job.groups.partitions) - {""}:
        return _NEEDS_INDEX
    has_base = job.groups.is_live & (job.groups.base >= 0)
    sizes = job.groups.base[np.flatnonzero(has_base)].tolist()
    return choose_lookup(rows, sizes, len(job.index.slices))


def make_lookup(choice: LookupChoice | None, total: WriteCounts) -> KeyLookup | None:
    """Return how keys were looked up; None if none were."""
    if choice is None:
        return None
    if choice.way is LookupWay.RECORD_INDEX:
        return KeyLookup(way=choice.way, because=choice.because, searched=len(total.changes))
    answers = total.answers
    return KeyLookup(
        way=choice.way,
        because=choice.because,
        out_of_range=answers[FileAnswer.RANGE.value],
        filtered=answers[FileAnswer.FILTER.value],
        searched=answers[FileAnswer.KEYS.value],
    )
