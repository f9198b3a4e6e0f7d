"""How many rows there are and which keys they have: before Hudi rewrites them, and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from reconciler.file_slices.base_file.meta_columns import RECORD_KEY
from reconciler.file_slices.merge.slice_reader import SliceSource
from reconciler.rewrite.group_columns import GroupColumns, tally_hashes
from reconciler.rewrite.model import RewriteGroup, RewriteJob, Tally
from reconciler.rewrite.slice_parts import SlicePart, split_into_parts


def split_groups(groups: Sequence[RewriteGroup]) -> list[SlicePart]:
    """What is read in one task each."""
    return [part for group in groups for part in split_into_parts(group)]


def tally_part(part: SlicePart, job: RewriteJob, source: SliceSource) -> Tally:
    """Of its rows, log files merged. Raises as ``parse_input_slice`` does."""
    columns = _select_key_columns(GroupColumns.from_job(job, part.group))
    found = Tally()
    for rows in columns.read(part, source, _ignore_footer):
        found = found.add(tally_hashes(columns.hash_keys(rows)))
    return found


def _select_key_columns(columns: GroupColumns) -> GroupColumns:
    """Nothing but the key is read where rows have one."""
    names = {RECORD_KEY} if columns.key == (RECORD_KEY,) else _top_level_names(columns.key)
    if not names:
        return columns
    wanted = tuple(name for name in columns.reading.columns or () if name in names)
    return replace(columns, reading=replace(columns.reading, columns=wanted))


def _top_level_names(names: Sequence[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


def _ignore_footer(_footer: Any) -> None:
    """Nobody needs the footers."""
