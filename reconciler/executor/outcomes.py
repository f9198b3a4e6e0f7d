"""The parts of an outcome that only one kind of step has."""

from __future__ import annotations

from dataclasses import field

from reconciler.lazy_dataclass import dataclass
from reconciler.state.measured_queries import MeasuredQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftGroup:
    """A group of ``slices`` file slices that was reviewed and stays as it is."""

    partition: str
    slices: int
    because: str


@dataclass(frozen=True, slots=True)
class LeftColumn:
    """A column that was reviewed and is not indexed."""

    column: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOutcome:
    """The outcome of a clustering, over its published groups.

    ``slices``: file groups that are replaced; ``files_before``: their base and log files.
    ``bytes_read``, ``bytes_written``: sizes of files. ``splits``: files that exist only because
    another one grew too large. ``gone``: groups that had been rewritten before. ``left``: groups
    that stay. ``queries``: what the declared queries read afterwards; ``unmeasured``: why that is
    unknown.
    """

    groups: int = 0
    slices: int = field(default=0, metadata={"name": "fileGroups"})
    files_before: int = 0
    files_after: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    rows: int = 0
    splits: int = 0
    gone: int = field(default=0, metadata={"name": "groupsGone"})
    left: tuple[LeftGroup, ...] = field(default=(), metadata={"name": "leftOut"})
    queries: tuple[MeasuredQuery, ...] = ()
    unmeasured: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOutcome:
    """The outcome of building an index of column statistics.

    ``target``: ``zindex``, our own under ``.hoodie/.zindex``, or ``column_stats``, the metadata
    table's. ``columns``, ``files``: what it holds. ``footers``: files whose footers were read;
    ``unread`` of them could not be. ``left``: reviewed columns that cannot be indexed any more.
    ``error``: why nothing was written; the earlier index stays valid, and no read is wrong.

    Of ``zindex``: ``version``: path of the file that was written, None if none was;
    ``previous``: name of the version that it was merged with; ``bytes``: its size. ``kept``,
    ``dropped``: files of that earlier version that are in it and that are not. ``tidied``: folders
    of older versions and of stopped runs that were removed. Of ``column_stats``: ``partitions`` of
    the metadata table that were built.
    """

    target: str = "zindex"
    version: str | None = None
    previous: str | None = None
    columns: tuple[str, ...] = ()
    files: int = 0
    bytes: int = 0
    footers: int = field(default=0, metadata={"name": "footersRead"})
    unread: int = field(default=0, metadata={"name": "footersUnread"})
    kept: int = field(default=0, metadata={"name": "filesKept"})
    dropped: int = field(default=0, metadata={"name": "filesDropped"})
    tidied: int = field(default=0, metadata={"name": "versionsRemoved"})
    partitions: tuple[str, ...] = ()
    left: tuple[LeftColumn, ...] = field(default=(), metadata={"name": "leftOut"})
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftPartition:
    """A partition that was reviewed and is not deleted."""

    path: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionOutcome:
    """The outcome of a deletion of partitions; a later clean removes their files.

    ``groups``: file groups that are replaced; ``files``, ``bytes``, ``rows``: as they were
    reviewed, rows None if unknown. ``gone``: partitions without files before. ``left``: reviewed
    partitions that stay.
    """

    partitions: tuple[str, ...] = ()
    groups: int = field(default=0, metadata={"name": "fileGroups"})
    files: int = 0
    bytes: int = 0
    rows: int | None = None
    gone: int = field(default=0, metadata={"name": "partitionsGone"})
    left: tuple[LeftPartition, ...] = field(default=(), metadata={"name": "leftOut"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointOutcome:
    """The outcome of making or removing a savepoint.

    ``files``, ``bytes``: those that it lists. ``left``: why nothing was done; None if it is done,
    or was done before.
    """

    change: str
    name: str
    until: str | None
    files: int
    bytes: int
    left: str | None = field(default=None, metadata={"name": "leftOut"})


@dataclass(frozen=True, slots=True)
class LeftInstant:
    """An instant that was reviewed and stays on the active timeline."""

    instant: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveOutcome:
    """The outcome of an archival.

    ``instants``: instants of the table that were archived now; ``gone``: reviewed instants that
    were archived before. ``metadata_table``: the same of the metadata table's timeline.
    ``merges``: how often small files of the archives were merged. ``leftovers``: files and folders
    of stopped runs that were removed. ``left``: reviewed instants that stay.
    """

    instants: int = 0
    gone: int = field(default=0, metadata={"name": "instantsGone"})
    metadata_table: int = 0
    merges: int = 0
    leftovers: int = 0
    left: tuple[LeftInstant, ...] = field(default=(), metadata={"name": "leftOut"})


@dataclass(frozen=True, slots=True)
class LeftRepair:
    """Metadata partitions whose repair was reviewed and is left out."""

    partitions: tuple[str, ...]
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataOutcome:
    """The outcome of repairing or verifying the metadata table.

    ``dropped``: metadata partitions that were dropped. ``left``: reviewed ones that stay.
    ``compared``: number of entries that a verification at the end compared; None without one.
    ``rebuilt``: metadata partitions that were built anew; None for no rebuild.
    """

    dropped: tuple[str, ...] = ()
    left: tuple[LeftRepair, ...] = field(default=(), metadata={"name": "leftOut"})
    compared: int | None = None
    rebuilt: tuple[str, ...] | None = field(default=None, metadata={"optional": True})
