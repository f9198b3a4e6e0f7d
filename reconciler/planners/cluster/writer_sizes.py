"""Warn of writers whose own settings would undo a rewrite for file sizes; pure.

Writers' options are not stored on the table, except where somebody put them into its properties or
into the extra metadata of commits. Else the sizes of files that writers have just written tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from reconciler import units
from reconciler.arrays import Integers
from reconciler.planners.cluster.size_limits import SizeLimits
from reconciler.planners.newest_slices import CandidateSlices
from reconciler.planners.picture import TablePicture
from reconciler.planners.reasons import format_bytes, pluralize
from reconciler.plans.model import Note

RULE: Final = "writersFiles"
_MAX_SIZE: Final = "hoodie.parquet.max.file.size"
_CLUSTER: Final = "cluster"
#: options of Hudi's and Flink's writers: the field of the spec, and bytes of a unit
_OPTIONS: Final = {
    _MAX_SIZE: ("target", 1),
    "hoodie.parquet.small.file.limit": ("small", 1),
    "write.parquet.max.file.size": ("target", 1024**2),
}


def warn_of_writers(
    picture: TablePicture, candidates: CandidateSlices, members: Integers
) -> tuple[Note, ...]:
    """Return the warnings about writers. ``members``: the slices that are rewritten."""
    if picture.spec.files is None or picture.spec.files.when is None or not len(members):
        return ()
    recorded = tuple(_compare_options(picture))
    if any(_MAX_SIZE in note.because for note in recorded):
        return recorded
    return (*recorded, *_warn_of_large_files(picture, candidates, members))


def _compare_options(picture: TablePicture) -> Iterator[Note]:
    """Yield the recorded options of writers that differ from the spec, the newest value of each."""
    sizes = picture.file_sizes
    found = {key: ("hoodie.properties", text) for key, text in picture.state.properties.items()}
    for write in picture.statistics.facts.written:
        if not write.is_ours:
            found |= {key: (f"write {write.instant}", text) for key, text in write.options.items()}
    for option, (field, unit) in _OPTIONS.items():
        place, text = found.get(option, ("", ""))
        wanted = sizes.target if field == "target" else sizes.small
        if not text.isdecimal() or int(text) * unit == wanted:
            continue
        theirs = units.format_size(int(text) * unit)
        yield Note(
            RULE,
            f"the writers have {option} {theirs} ({place}), and files.{field} is "
            f"{units.format_size(wanted)}: their next writes undo what this step does; set "
            f"{option} = {-(-wanted // unit)} for the writers, or declare files.{field}: {theirs}",
        )


def _warn_of_large_files(
    picture: TablePicture, candidates: CandidateSlices, members: Integers
) -> Iterator[Note]:
    """Yield a warning about files above ``files.large`` that writers have just written."""
    sizes, files = picture.file_sizes, candidates.view.files
    large = SizeLimits.from_spec(sizes).find_large(candidates)[members]
    rows = candidates.base_row[members[large]]
    operations = {
        write.instant: (write.operation or "write").lower()
        for write in picture.statistics.facts.written
        if not write.is_ours
    }
    for is_clustering in (False, True):
        codes = [
            code
            for code, instant in enumerate(files.instants)
            if instant in operations and (operations[instant] == _CLUSTER) == is_clustering
        ]
        theirs = rows[np.isin(files.instant[rows], codes)]
        if not len(theirs):
            continue
        remedy = (
            "switch it off (hoodie.clustering.inline = false)"
            if is_clustering
            else f"set {_MAX_SIZE} = {sizes.target} for the writers"
        )
        greatest = format_bytes(int(files.size[theirs].max()))
        who = "a writer's clustering" if is_clustering else "writers"
        yield Note(
            RULE,
            f"{who} wrote {pluralize(len(theirs), 'file')} of up to {greatest} that this step "
            f"splits, and files.target is {units.format_size(sizes.target)}: their next writes "
            f"undo it; {remedy}, or declare a larger files.target",
        )
