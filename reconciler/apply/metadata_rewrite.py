"""The metadata table during a rewrite: what it must be told, what must go, what it says after."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from reconciler.basefile.writer import WrittenFile
from reconciler.hudi.metadata_rewrite import RewriteSync
from reconciler.hudi.properties import TableProperties
from reconciler.hudi.timeline import Timeline
from reconciler.storage.api import Storage


def indexed_columns(
    storage: Storage, properties: TableProperties, timeline: Timeline
) -> tuple[str, ...]:
    """The columns whose ranges every new file must tell, names with dots into structs; often none.

    Raises FormatError, UnsupportedError.
    """
    raise NotImplementedError


def plan_rewrite_sync(  # noqa: PLR0913
    storage: Storage,
    properties: TableProperties,
    timeline: Timeline,
    *,
    instant: str,
    completed: str,
    instant_ms: int,
    added: Mapping[str, Sequence[WrittenFile]],
) -> RewriteSync:
    """What the metadata table must be told of new files, and which partitions of it must go.

    ``instant`` must be pending on the data ``timeline``; ``completed``: completion time of the
    metadata table's deltacommit (version 8 on), before the data instant's; ``instant_ms``: the
    instant in milliseconds since 1970, read in the timeline's zone; ``added``: partition path (""
    of a table without partitions) -> its new files, which are on storage.

    Then, under the same lock: ``drop_partitions(storage, properties, sync.drops)`` where there are
    any, ``metadata.write_sync(storage, sync.sync)``, and only then the data instant completes.
    Raises FormatError, UnsupportedError; StaleError when the instant is not pending; BusyError when
    a partition must go while another write is pending.
    """
    raise NotImplementedError


def drop_partitions(
    storage: Storage, properties: TableProperties, names: Collection[str]
) -> TableProperties:
    """Take metadata partitions out of the table's properties, then delete their folders.

    Gives the properties as they are then. Safe to stop anywhere and to do again: a folder that the
    properties don't list is read by nobody. The caller holds the table's lock.
    """
    raise NotImplementedError


def missing(
    storage: Storage,
    properties: TableProperties,
    timeline: Timeline,
    added: Mapping[str, Sequence[WrittenFile]],
) -> dict[str, list[str]]:
    """How the metadata table's listing differs from new files and disk: partition -> file names.

    For after the commit, with a timeline that shows it: a new file that is not listed with its
    size, and what is listed in its partition but not on disk. Empty when all is right.
    """
    raise NotImplementedError
