"""Remove what attempts at a clustering leave: strays of a completed one, files of a lost one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from reconciler.errors import ReconcilerError, StaleError
from reconciler.executor.cluster.work import ClusterWork, list_output_ids
from reconciler.executor.result import StepOutcome
from reconciler.executor.session import ApplySession
from reconciler.hudi.files.names import BaseName
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.instant import Instant
from reconciler.plans.model import Note
from reconciler.transaction.paths import list_names
from reconciler.transaction.publish import find_completion
from reconciler.transaction.recovery.marked_files import (
    read_committed_files,
    remove_files,
    remove_marked_files,
    remove_markers,
    remove_uncommitted_files,
)
from reconciler.transaction.run import MARKERS


def remove_strays(session: ApplySession, work: ClusterWork, outcome: StepOutcome) -> StepOutcome:
    """Remove what late workers wrote after the commit, then the markers.

    A failure is a warning: the clustering is completed, and the next apply does it.
    """
    try:
        if work.foreign is None:
            kept = read_completed_files(session, work)
            remove_marked_files(session.storage, work.instant, kept)
        else:  # its markers are gone since before it was completed
            timeline, done = _find_completed(session, work)
            remove_uncommitted_files(session.storage, session.properties, timeline, done)
        remove_markers(session.storage, work.instant)
    except ReconcilerError as error:
        note = Note(MARKERS, f"the clustering is completed; its markers stay for now: {error}")
        return replace(outcome, warnings=(*outcome.warnings, note))
    return outcome


def remove_own_files(
    session: ApplySession, work: ClusterWork, keep: Collection[tuple[str, str]] = ()
) -> None:
    """Remove what this attempt has written, whatever other attempts at the instant wrote.

    Another writer that takes an instant over may delete this attempt's markers before its last file
    is there, and then writes files of the same instant with markers of its own. So markers tell
    neither which files are this attempt's nor all that are; the ids of its files do.
    """
    ids = list_output_ids(work)
    files = [
        (partition, name)
        for partition in sorted(set(work.groups.partition.to_pylist()))
        for name in sorted(list_names(session.storage, partition))
        if (base := BaseName.parse(name)) is not None
        and base.instant == work.instant
        and base.file_id.rpartition("-")[0] in ids
    ]
    remove_files(session.storage, [file for file in files if file not in keep])


def read_completed_files(session: ApplySession, work: ClusterWork) -> set[tuple[str, str]]:
    """Return the files that the completed instant names, by partition and name."""
    timeline, done = _find_completed(session, work)
    return read_committed_files(session.storage, session.properties, timeline, done)


def _find_completed(session: ApplySession, work: ClusterWork) -> tuple[Timeline, Instant]:
    timeline = session.reload_timeline()
    done = find_completion(timeline, work.instant, work.action)
    if done is None:
        raise StaleError(f"clustering {work.instant} is not completed any more")
    return timeline, done
