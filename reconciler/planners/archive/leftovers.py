"""Find what stopped runs left in Hudi's own folder and nothing needs any more; pure.

Our own heartbeats are not among it: they lead the next run to what a dead one left.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.heartbeat import heartbeat_path
from reconciler.hudi.timeline.instant import COMMITS
from reconciler.hudi.timeline.markers import marker_folder
from reconciler.plans.archive_step import Leftover
from reconciler.state.archival_facts import ArchivalFacts

#: a writer may still announce an instant whose heartbeat or markers are younger
_DAY_MS: Final = 24 * 3600 * 1000
SCHEMA_FILE: Final = ".schemacommit"
_INSTANT: Final = re.compile(r"[0-9]{1,24}(?=[._])")


def find_leftovers(
    timeline: Timeline, facts: ArchivalFacts, archived: Collection[str], observed_ms: int
) -> tuple[Leftover, ...]:
    """Return what can be removed, by path.

    ``archived``: requested times of the commits that the same plan archives. Of instants that are
    on no timeline only what is a day old goes, and nothing of a pending one.
    """
    done = {one.requested for one in timeline.instants if one.is_completed}
    pending = {one.requested for one in timeline.instants if not one.is_completed}
    heartbeats = _list_old(facts.heartbeats, pending, done, observed_ms)
    markers = _list_old(facts.marker_folders, pending, done, observed_ms)
    found = [Leftover(heartbeat_path(time), f"{why} has no writer") for time, why in heartbeats]
    found += [Leftover(marker_folder(time), f"{why} needs no markers") for time, why in markers]
    found += _find_schema_files(timeline, facts, archived, pending)
    return tuple(sorted(found))


def _list_old(
    changed: Mapping[str, int], pending: Collection[str], done: Collection[str], observed_ms: int
) -> Iterator[tuple[str, str]]:
    """Yield instants whose files are not needed, each with what it is."""
    for time, changed_ms in sorted(changed.items()):
        if time in pending or not time.isdigit():
            continue
        if observed_ms - changed_ms > _DAY_MS:
            state = "which is completed," if time in done else "which is not on the timeline,"
            yield time, f"instant {time}, {state}"


def _find_schema_files(
    timeline: Timeline,
    facts: ArchivalFacts,
    archived: Collection[str],
    pending: Collection[str],
) -> list[Leftover]:
    """Return files of schema histories that are older than the newest one, and of no commit.

    Each holds the whole history. Hudi reads the newest one whose commit is active, and removes
    those of other instants when it writes the next.
    """
    active = {one.requested for one in timeline.completed(COMMITS)} - set(archived)
    times = {name: parse_schema_time(name) for name in facts.schema_files}
    valid = (time for name, time in times.items() if name.endswith(SCHEMA_FILE) and time in active)
    newest = max(valid, default=None)
    if newest is None:
        return []
    return [
        Leftover(f".hoodie/.schema/{name}", f"{newest} has a newer history of the schemas")
        for name, time in times.items()
        if time and time < newest and time not in active and time not in pending
    ]


def parse_schema_time(name: str) -> str:
    """Return the instant of a schema file; empty for any other name.

    >>> parse_schema_time("20260101000000000.schemacommit"), parse_schema_time("x.json")
    ('20260101000000000', '')
    """
    match = _INSTANT.match(name)
    return match[0] if match else ""
