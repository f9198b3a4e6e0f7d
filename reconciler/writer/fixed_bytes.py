"""Warn of a target size that the fixed bytes of a base file, most of all its bloom filter, fill."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler import units
from reconciler.hudi.codecs.bloom import BloomBuilder
from reconciler.layout.sizing.split_rule import FOOTER_BYTES, SplitRule
from reconciler.planners.reasons import format_bytes
from reconciler.plans.model import Note
from reconciler.writer.bucket import BucketSettings, WrittenBaseFile

_MIB: Final = 1024 * 1024


def warn_of_fixed_bytes(
    files: Sequence[WrittenBaseFile], settings: BucketSettings
) -> Iterator[Note]:
    """Yield a warning if a partition got several new files that hold little beside fixed bytes."""
    created = [written for written in files if written.previous is None]
    counts = Counter(written.partition for written in created)
    several = [written for written in created if counts[written.partition] > 1]
    form = settings.form
    if not several or form.bloom is None or not form.has_keys:
        return
    fixed = BloomBuilder(form.bloom).text_bytes + FOOTER_BYTES
    if SplitRule(target=settings.target).can_split(fixed):
        return
    size = sum(written.file.size for written in several) // len(several)
    enough = -(-2 * fixed // _MIB) * _MIB
    yield Note(
        "files",
        f"files.target: {units.format_size(settings.target)} has little room for rows: the bloom "
        f"filter and footer of every file take {format_bytes(fixed)}, and {len(several):,} new "
        f"files have {format_bytes(size)} on average; declare files.target: "
        f"{units.format_size(enough)} or more",
    )
