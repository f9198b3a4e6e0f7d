"""Finding what a name means: a file, a file group, an instant or a partition; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc

from reconciler.arrays import Integers, Mask, to_arrow, to_numpy
from reconciler.errors import UnsupportedError
from reconciler.hudi.files.names import make_file_path
from reconciler.hudi.timeline.instant import Instant
from reconciler.planners.answers.file_facts import explain_file, explain_removed_file
from reconciler.planners.answers.instant_facts import explain_archived_instant, explain_instant
from reconciler.planners.answers.model import Answer, Search
from reconciler.planners.answers.partition_facts import explain_partition
from reconciler.planners.answers.planned_table import PlannedTable

_MAX_NEAR: Final = 3
#: file names that are compared with a misspelt one, and how many letters of it they begin with
_MAX_COMPARED: Final = 2000
_COMMON_START: Final = 6
#: folders of the files of the table's timeline; the metadata table has its own
_TIMELINE_FOLDERS: Final = (".hoodie", ".hoodie/timeline")

ReadArchived = Callable[[], Iterable[Instant]]
"""Returns the archived instants, which is slow."""


def search_name(table: PlannedTable, name: str, read_archived: ReadArchived) -> Search:
    """Return the answers about everything that has this name."""
    wanted = _shorten(table, name)
    answers = list(_find_answers(table, wanted))
    if not answers and _looks_like_instant(wanted):
        archived = _find_instants(read_archived(), wanted)
        answers += [explain_archived_instant(table, instant) for instant in archived]
    near = () if answers else tuple(_find_near(table, wanted))
    return Search(answers=tuple(answers), near=near)


def _shorten(table: PlannedTable, name: str) -> str:
    """Return a name relative to the table's folder."""
    for start in (table.spec.path, table.state.location):
        if name == start or name.startswith(f"{start.rstrip('/')}/"):
            name = name[len(start.rstrip("/")) :]
            break
    return name.removeprefix("./").strip("/")


def _find_answers(table: PlannedTable, name: str) -> Iterator[Answer]:
    state = table.state
    partition = "" if name in (".", "") else name
    if partition in {*state.partitions, *state.files.partitions}:
        yield explain_partition(table, partition)
    instants = _find_instants(state.timeline.instants, name)
    yield from (explain_instant(table, instant) for instant in instants)
    rows = _find_files(table, name)
    yield from (explain_file(table, row) for row in rows)
    if not rows and (removed := explain_removed_file(table, name)) is not None:
        yield removed


def _looks_like_instant(name: str) -> bool:
    """Return whether a name begins with a time, so that the archived timeline may have it."""
    return name.rpartition("/")[2].partition(".")[0].partition("_")[0].isdigit()


def _find_instants(instants: Iterable[Instant], name: str) -> Iterator[Instant]:
    """Yield the instants of a requested time, or of a file of the timeline."""
    folder, _, last = name.rpartition("/")
    if folder not in ("", *_TIMELINE_FOLDERS):
        return
    try:
        named = Instant.parse(last)
    except UnsupportedError:
        named = None
    for instant in instants:
        is_named = named is not None and (instant.requested, instant.action.completes_as) == (
            named.requested,
            named.action.completes_as,
        )
        if is_named or last in (instant.requested, f"{instant.requested}.{instant.action}"):
            yield instant


def _find_files(table: PlannedTable, name: str) -> list[int]:
    """Return the rows of the files with a path, a name or a file id."""
    files = table.state.files
    folder, slash, last = name.rpartition("/")
    is_named = _equals(files.name, last)
    if not is_named.any():
        is_named = _equals(files.group_id, last)[files.group]
    rows: Integers = np.flatnonzero(is_named)
    return [
        row
        for row in rows.tolist()
        if not slash or files.partitions[files.partition[row]] == folder
    ]


def _equals(column: Any, text: str) -> Mask:
    return to_numpy(pc.equal(column, to_arrow([text])[0]))


def _find_near(table: PlannedTable, name: str) -> Iterator[str]:
    """Yield names that resemble one, at most a few."""
    files, last = table.state.files, name.rpartition("/")[2]
    others = [*table.state.partitions, *(one.requested for one in table.state.timeline.instants)]
    candidates = {text: text for text in others if text}
    if len(files) and last:
        alike = pc.match_substring(files.name, last[:_COMMON_START])
        for row in np.flatnonzero(to_numpy(alike))[:_MAX_COMPARED].tolist():
            text = files.name[row].as_py()
            candidates[text] = make_file_path(files.partitions[files.partition[row]], text)
    close = get_close_matches(last, candidates, n=_MAX_NEAR, cutoff=0.5)
    longer = [text for text in candidates if last and text.startswith(last)]
    near = dict.fromkeys(candidates[text] for text in (*close, *sorted(longer)))
    yield from list(near)[:_MAX_NEAR]
