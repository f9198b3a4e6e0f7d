"""Withdraw a pending instant of ours, as if it had never been announced."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from reconciler.errors import ReconcilerError, UnsupportedError
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.metadata.earlier_attempt import find_earlier_attempt
from reconciler.hudi.metadata.table import open_live_metadata
from reconciler.hudi.timeline.instant import Action
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.api import Storage
from reconciler.transaction.metadata.live_partitions import drop_metadata_partitions
from reconciler.transaction.recovery.marked_files import (
    find_shared_logs,
    is_written_by,
    list_present_marked_files,
    list_written_files,
    remove_files,
    remove_marked_files,
    remove_markers,
)
from reconciler.transaction.session import TableSession


def withdraw_instant(session: TableSession, instant: str, action: Action) -> None:
    """Remove everything of an instant: its metadata sync, files, markers and at last its own files.

    In this order a stop in between leaves a pending instant, which the next run undoes. The table's
    lock is held. Raises as ``check_no_shared_logs``.
    """
    check_no_shared_logs(session.storage, instant)
    remove_attempt(session.storage, instant)
    session.publisher.withdraw(instant, action)


def check_no_shared_logs(storage: Storage, instant: str) -> None:
    """Raise UnsupportedError if another writer has appended to a log file of an instant.

    The blocks of the instant would stay, and be read once the timeline begins after it. Also raises
    StorageError, FormatError.
    """
    for path in find_shared_logs(storage, instant):
        raise UnsupportedError(
            f"another writer has appended to {path} since {instant} wrote it, so that only a "
            f"rollback of Hudi cancels its rows; let Hudi roll back {instant}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawalResult:
    """The result of a withdrawal that may only remove named files.

    ``removed``: files that were removed. ``unnamed``: other files of the instant; if there are any
    the instant is still pending.
    """

    removed: Sequence[tuple[str, str]] = ()
    unnamed: Sequence[tuple[str, str]] = ()


def withdraw_named_files(
    session: TableSession, instant: str, action: Action, named: Collection[tuple[str, str]]
) -> WithdrawalResult:
    """Withdraw an instant as ``withdraw_instant``, but remove no file except the named ones.

    A file that came meanwhile would be read once its instant is not on the timeline. So such files
    are looked for before the first delete, and again before the instant goes. Raises as
    ``check_no_shared_logs``.
    """
    check_no_shared_logs(session.storage, instant)
    removed: list[tuple[str, str]] = []
    unnamed = list_present_marked_files(session.storage, instant, excluding=named)
    if not unnamed:
        _remove_metadata_sync(session.storage, instant)
        marked = list_written_files(session.storage, instant)
        doomed = sorted(file for file in named if is_written_by(file[1], instant) or file in marked)
        removed = remove_files(session.storage, doomed)
        unnamed = list_present_marked_files(session.storage, instant, excluding=named)
    if not unnamed:
        remove_markers(session.storage, instant)
        session.publisher.withdraw(instant, action)
    return WithdrawalResult(removed=removed, unnamed=unnamed)


def remove_attempt(storage: Storage, instant: str) -> None:
    """Remove what attempts at a pending write of ours left: metadata sync, files and markers."""
    _remove_metadata_sync(storage, instant)
    remove_marked_files(storage, instant)
    remove_markers(storage, instant)


def remove_listed_attempt(
    storage: Storage, instant: str, files: Collection[tuple[str, str]]
) -> None:
    """Remove what attempts at a pending instant left, whoever made them, with these files."""
    _remove_metadata_sync(storage, instant)
    remove_files(storage, files)
    remove_markers(storage, instant)


def _remove_metadata_sync(storage: Storage, instant: str) -> None:
    """Remove what was written to the metadata table, and what is left of dropped partitions."""
    properties = load_properties(storage)
    if properties.metadata_partitions:
        opened = open_live_metadata(storage, properties, load_timeline(storage, properties))
        for path in find_earlier_attempt(opened, instant, indexes=True).paths:
            storage.delete(path)
        drop_metadata_partitions(storage, properties)


def remove_withdrawn_attempt(storage: Storage, instant: str) -> None:
    """Remove what is left of an instant that another writer has taken off the timeline.

    Its data files are removed whatever becomes of the rest: once the timeline begins after it they
    would be read. Log files of the metadata table that also hold blocks of another instant stay.
    """
    try:
        remove_attempt(storage, instant)
    except ReconcilerError as error:
        remove_marked_files(storage, instant)
        remove_markers(storage, instant)
        if not isinstance(error, UnsupportedError):
            raise
