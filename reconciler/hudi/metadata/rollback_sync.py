"""Plan the metadata table's update for a rollback of a pending write of the data table.

What the write had given to the metadata table is removed: its deltacommit, complete or not, with
its log files. Hudi deletes the same log files from version 8 on, and cancels their blocks before.
In version 6 a deltacommit of the rollback then lists the data table's log files that stay: those
of the write, and new ones with command blocks. Source: HoodieBackedTableMetadataWriter.update and
HoodieTableMetadataUtil.convertMetadataToRecords (0.15 to 1.2).
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.errors import UnsupportedError
from reconciler.hudi.metadata.deltacommit import Deltacommit, MetadataSync, NewLogFile
from reconciler.hudi.metadata.earlier_attempt import find_earlier_attempt
from reconciler.hudi.metadata.listing import (
    FileSizes,
    MetadataListing,
    encode_listing_block,
    partition_key,
)
from reconciler.hudi.metadata.own_timeline import VERSION_8
from reconciler.hudi.metadata.table import FILES, MetadataTable
from reconciler.hudi.timeline.instant import Action


def plan_rollback_sync(
    table: MetadataTable,
    listing: MetadataListing,
    *,
    instant: str,
    completion_time: str,
    target: str,
    logs: Mapping[str, Mapping[str, int]],
) -> MetadataSync:
    """Plan the update for a rollback of ``target`` at ``instant``.

    ``completion_time``: of the rollback's deltacommit, used from version 8 on. ``logs``: partition
    path -> log files that the table keeps and sizes; empty from version 8 on. An earlier attempt
    at the same rollback is removed and written again. Raises FormatError, and UnsupportedError if
    a log file also holds blocks of another instant, or the write's entries are compacted.
    """
    undone = find_earlier_attempt(table, target, indexes=True)
    if undone.is_completed:
        _check_not_compacted(table, target)
    earlier = find_earlier_attempt(table, instant, indexes=True)
    cleanup = (*earlier.paths, *undone.paths)
    changes: dict[str, FileSizes] = {
        partition_key(path): dict(names) for path, names in logs.items() if names
    }
    if not changes:
        return MetadataSync(cleanup=cleanup, writes=())
    (newest,) = table.list_slices(FILES)
    deltacommit = Deltacommit(
        table=table,
        instant=instant,
        completion_time=completion_time,
        schema=listing.schema,
        removed_paths=cleanup,
    )
    log = NewLogFile(
        file_slice=newest,
        data=encode_listing_block(instant, listing.schema, changes),
        write_count=len(changes),
    )
    return MetadataSync(cleanup=cleanup, writes=deltacommit.build_files([log]))


def _check_not_compacted(table: MetadataTable, target: str) -> None:
    """Raise UnsupportedError if a compaction may have moved the entries of ``target``.

    From version 8 on, a compaction leaves the log files of what completes after its request, also
    of writes that began before it. Hudi 1.x compacts at the start of a write.
    """
    held_since = _find_completion(table, target) if table.version >= VERSION_8 else target
    for done in table.timeline.completed({Action.COMMIT}):
        if done.requested >= held_since:
            raise UnsupportedError(
                f"the metadata table was compacted at {done.requested}, so it cannot forget "
                f"{target}; roll that write back with Hudi, or let Hudi build the metadata table "
                "anew"
            )


def _find_completion(table: MetadataTable, target: str) -> str:
    """Return when a deltacommit completed, or its own time if that is unknown."""
    done = table.timeline.completed({Action.DELTACOMMIT})
    times = (one.completed for one in done if one.requested == target)
    return next(times, None) or target
