"""Read properties, timeline, archive and listings: the only module of hudi/ that reads storage."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from reconciler.errors import FormatError, NoTableError, NotFoundError
from reconciler.hudi.codecs.avro_binary import decoding
from reconciler.hudi.codecs.avro_container import read_text_map
from reconciler.hudi.files.partition_scan import PartitionScan
from reconciler.hudi.files.table_files import TableFiles, build_files
from reconciler.hudi.table.properties import TableProperties, parse_java_properties
from reconciler.hudi.timeline import archive_v1, archive_v2
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.archive_v1 import read_archive
from reconciler.hudi.timeline.archive_v2 import find_newest_time, read_history
from reconciler.hudi.timeline.archived_writes import ArchivedWrites
from reconciler.hudi.timeline.commit import CommitMetadata
from reconciler.hudi.timeline.heartbeat import heartbeat_path
from reconciler.hudi.timeline.instant import COMMITS, Action, Instant
from reconciler.hudi.timeline.owner import Owner
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.api import Storage

if TYPE_CHECKING:
    from reconciler.hudi.metadata.listing import MetadataListing

PROPERTIES: Final = ".hoodie/hoodie.properties"
METADATA_ROOT: Final = ".hoodie/metadata"
_BACKUP: Final = f"{PROPERTIES}.backup"


def load_properties(storage: Storage) -> TableProperties:
    """Read the table's properties, or their backup while a writer replaces the file.

    Raises NoTableError if neither exists, FormatError when both are damaged, UnsupportedError
    for an unknown version or format.
    """
    problem: FormatError | None = None
    # A writer deletes the file while the backup is complete, and the backup once the new file is
    # complete. A reader that finds neither came in between and finds the file on a second look.
    for path in (PROPERTIES, _BACKUP, PROPERTIES, _BACKUP):
        try:
            return TableProperties.parse(storage.read(path), path)
        except NotFoundError:
            continue
        except FormatError as damage:
            problem = problem or damage
    raise problem or NoTableError(
        storage.location,
        f"no Hudi table here: {PROPERTIES} does not exist",
        "check the path",
    )


def load_metadata_properties(storage: Storage) -> TableProperties:
    """Read the properties of the metadata table, with folders relative to the data table's root.

    Their backup counts while a writer replaces them, as in ``load_properties``. Raises FormatError
    if they are missing or damaged.
    """
    path = f"{METADATA_ROOT}/{PROPERTIES}"
    for found in (path, f"{METADATA_ROOT}/{_BACKUP}", path):
        try:
            raw = parse_java_properties(storage.read(found), found)
            break
        except NotFoundError:
            continue
    else:
        raise FormatError(
            path, "is missing, although the table has a metadata table", "let Hudi rebuild it"
        )
    # its base files are HFiles, which concerns nobody who asks for its timeline
    own = TableProperties.from_raw({**raw, "hoodie.table.base.file.format": "PARQUET"}, path)
    return replace(
        own,
        timeline_folder=f"{METADATA_ROOT}/{own.timeline_folder}",
        archive_folder=f"{METADATA_ROOT}/{own.archive_folder}",
    )


def find_properties(storage: Storage) -> TableProperties | None:
    """Return the table's properties, None if there is no table; raises as ``load_properties``."""
    try:
        return load_properties(storage)
    except NoTableError:
        return None


def load_timeline(storage: Storage, properties: TableProperties) -> Timeline:
    """Read the active timeline; other files of its folder are ignored.

    Raises FormatError when the folder is missing although the table has data, UnsupportedError for
    an unknown action.
    """
    try:
        entries = storage.list(properties.timeline_folder)
    except NotFoundError:
        if _is_blank(storage):
            return Timeline.from_files([])
        raise FormatError(
            properties.timeline_folder,
            "the timeline folder named in hoodie.properties is missing",
            "restore it from a copy, or write to the table once with Hudi if it is new",
        ) from None
    return Timeline.from_listing(entries)


def load_heartbeat_owner(storage: Storage, instant: str) -> Owner | None:
    """Return the owner of an instant's heartbeat; None if it is gone or another tool's.

    A run that ends removes its heartbeat, so one that was listed may be gone.
    """
    try:
        return Owner.parse(storage.read(heartbeat_path(instant)))
    except NotFoundError:
        return None


def _is_blank(storage: Storage) -> bool:
    """Return whether the table has only Hudi's own folder, so no rows and no history.

    On an object store, the timeline folder disappears with its last file, for example when a first
    write is withdrawn.
    """
    return all(entry.name == ".hoodie" for entry in storage.list(""))


def read_instant_file(
    storage: Storage, properties: TableProperties, file: TimelineFile
) -> tuple[bytes, str]:
    """Return the content of a timeline file, and its path relative to the table's root.

    Raises NotFoundError if it was deleted since the listing.
    """
    path = f"{properties.timeline_folder}/{file.name}"
    return storage.read(path), path


def load_archived_instants(storage: Storage, properties: TableProperties) -> tuple[Instant, ...]:
    """Return completed archived instants, oldest first, with known completion times."""
    if properties.layout == 1:
        archive = read_archive(storage, properties.archive_folder)
        instants = {instant for instant in archive if instant.is_completed}
    else:
        instants = set(read_history(storage, properties.archive_folder))
    return tuple(sorted(instants, key=lambda i: (i.requested, i.action)))


def load_archived_keys(
    storage: Storage, properties: TableProperties, wanted: Collection[tuple[str, Action]]
) -> set[tuple[str, Action]]:
    """Return which instants, by requested time and action as completed, are archived.

    Of layout 2 only files that may hold them are read. Files of layout 1 are read from the newest
    on, until one has only older commits.
    """
    if not wanted:
        return set()
    times, folder = {time for time, _action in wanted}, properties.archive_folder
    if properties.layout != 1:
        found = {(one.requested, one.action) for one in read_history(storage, folder, times)}
        return found & set(wanted)
    found = set()
    for instants in archive_v1.read_newest_files(storage, folder):
        done = [(one.requested, one.action) for one in instants if one.is_completed]
        found |= set(done)
        newest = max((time for time, action in done if action in COMMITS), default=None)
        if newest is not None and newest < min(times):
            break
    return found & set(wanted)


def read_archived_commits(
    storage: Storage, properties: TableProperties
) -> Iterator[tuple[str | None, Mapping[str, str], str]]:
    """Yield operation, extra metadata and source file of archived writes, newest first."""
    folder = properties.archive_folder
    if properties.layout == 1:
        for _instant, content, path in archive_v1.read_commit_contents(storage, folder):
            with decoding(path, "an archived write"):
                yield (
                    content.get("operationType"),
                    read_text_map(content.get("extraMetadata")),
                    path,
                )
        return
    for instant, data, path in archive_v2.read_commit_contents(storage, folder):
        if instant.action in COMMITS:
            commit = CommitMetadata.parse(data, path)
            yield commit.operation, commit.extra, path


def load_archived_completion_times(
    storage: Storage, properties: TableProperties, requested_times: Collection[str]
) -> dict[str, str]:
    """Return completion times of archived instants of layout 2, by requested time."""
    if properties.layout == 1 or not requested_times:
        return {}
    history = read_history(storage, properties.archive_folder, requested_times)
    return {i.requested: i.completed for i in history if i.completed}


def find_archived_writes(
    storage: Storage, properties: TableProperties, wanted: Collection[str]
) -> ArchivedWrites:
    """Return which of the wanted instants are completed writes of the archived timeline.

    Raises FormatError naming a file of the archive that is damaged or missing.
    """
    folder = properties.archive_folder
    if properties.layout == 1:
        return archive_v1.find_archived_writes(storage, folder, wanted)
    return archive_v2.find_archived_writes(storage, folder, wanted)


def find_newest_archived_time(storage: Storage, properties: TableProperties) -> str | None:
    """Return the greatest archived requested time, None when nothing is archived."""
    if properties.layout == 1:
        times = [i.requested for i in load_archived_instants(storage, properties)]
        return max(times, default=None)
    return find_newest_time(storage, properties.archive_folder)


def load_metadata_listing(
    storage: Storage, properties: TableProperties, timeline: Timeline
) -> MetadataListing | None:
    """Return the metadata table's file listing, None if the table has none."""
    if not properties.metadata_partitions:
        return None
    from reconciler.hudi.metadata.listing import read_metadata_listing  # noqa: PLC0415 (loaded only for tables with a metadata table)
    from reconciler.hudi.metadata.table import FILES, open_live_metadata  # noqa: PLC0415

    if FILES not in properties.metadata_partitions:
        return None
    return read_metadata_listing(open_live_metadata(storage, properties, timeline))


class FileMemory(Protocol):
    """Lists the files of a table with the help of what an earlier run saw."""

    def list_files(self, scan: PartitionScan) -> TableFiles:
        """Return the files of all partitions; ``scan`` sorts the folders."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableListing:
    """The files of every partition, and the folders that hold a partition metafile.

    ``stray_partitions`` also hold folders or files with other names. ``unlisted_files``: folder,
    name and size of base files of the given instants in folders that are not partitions.
    """

    files: TableFiles
    metafile_partitions: frozenset[str]
    stray_partitions: frozenset[str] = frozenset()
    unlisted_files: tuple[tuple[str, str, int], ...] = ()


def load_listing(
    storage: Storage,
    properties: TableProperties,
    known: Iterable[str] = (),
    instants: Collection[str] = (),
    memory: FileMemory | None = None,
) -> TableListing:
    """List the table's folders in one pass.

    A partition is a folder with a metafile; folders below it are not partitions, as in Hudi's
    FSUtils.getAllPartitionPaths. ``known`` paths are partitions too, even without metafile or
    folder or below another partition, as in HoodieBackedTableMetadata.getAllPartitionPaths.
    ``instants``: pending instants, whose files may be in folders that are not partitions yet.
    ``memory``: what an earlier run saw; folders that have not changed since are not listed again.
    """
    scan = PartitionScan(set(known), frozenset(instants))
    if memory is None or instants:
        found = scan.list_partitions(storage.walk(scan.should_descend))
        files = build_files(found, properties.base_extension)
    else:
        files = memory.list_files(scan)
    return TableListing(
        files=files,
        metafile_partitions=frozenset(scan.with_metafile),
        stray_partitions=frozenset(scan.find_stray_partitions(files)),
        unlisted_files=tuple(sorted(scan.unlisted)),
    )
