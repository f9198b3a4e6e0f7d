"""Which options bring a writer in line with a spec; pure. A block that is not there asks nothing.

Source of what options do: HoodieWriteConfig.Builder (defaults and checks), BaseHoodieWriteClient,
FlinkWriteClients, CompactionCommitSink; 0.15 to 1.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.bridge.keys import Meaning, names_of
from reconciler.bridge.model import Engine, Release, WriterOption, WriterOptions
from reconciler.delegate.options import hadoop_path
from reconciler.errors import UnsupportedError
from reconciler.spec.model import (
    Clustering,
    FileSizes,
    IndexColumns,
    Lock,
    NewTable,
    Policy,
    Retention,
    TableSpec,
)
from reconciler.units import format_size

_MIB: Final = 1024**2
_PROVIDER: Final = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
_COUNTS: Final = {
    Policy.COMMITS: (Meaning.CLEAN_COMMITS, "retention.commits"),
    Policy.HOURS: (Meaning.CLEAN_HOURS, "retention.hours"),
    Policy.FILE_VERSIONS: (Meaning.CLEAN_VERSIONS, "retention.fileVersions"),
}
#: hoodie.keep.min.commits and Flink's archive.min_commits where nobody sets them
_ARCHIVES_FROM: Final = {True: 40, False: 20}
#: Hudi's own distance from the commits retained to the least and the most that are not archived
_UNARCHIVED: Final = (10, 20)
#: the first release that writes a table version, and the first that orders by several columns
_WRITES: Final = {6: Release.R0_15, 8: Release.R1_0, 9: Release.R1_1}
_ORDERS_BY_SEVERAL: Final = Release.R1_1
#: before 1.0 the default payload lets the later write win, whatever its ordering value
_EVENT_TIME: Final = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
_NO_ORDER_OF_FLINK: Final = "no_precombine"


@dataclass(frozen=True, slots=True)
class _Asked:
    """An option before it has a name."""

    meaning: Meaning
    value: str
    field: str
    because: str
    makes: bool = False


def writer_options(
    spec: TableSpec, engine: Engine, release: Release | None = None
) -> WriterOptions:
    """The options for the writers of a table; ``release`` None: for every one that can write it.

    What cannot be is in ``error``, a sentence: a release that does not write the declared table.
    """
    try:
        releases = _releases(spec, release)
        options = tuple(_named(_asked(spec, engine), engine, releases))
    except UnsupportedError as error:
        return WriterOptions(name=spec.name, path=spec.path, engine=engine, error=str(error))
    return WriterOptions(
        name=spec.name,
        path=spec.path,
        engine=engine,
        releases=releases,
        options=options,
        partition_by=() if spec.table is None else spec.table.partition_by,
        notes=tuple(_notes(spec, engine, releases, options)),
    )


def _releases(spec: TableSpec, release: Release | None) -> tuple[Release, ...]:
    """Those that write the table as it is declared; raises UnsupportedError where that is none."""
    table = spec.table
    if table is None:
        return tuple(Release) if release is None else (release,)
    several = len(table.ordering) > 1
    least = max(_WRITES[table.version], _ORDERS_BY_SEVERAL if several else Release.R0_15)
    if release is None:
        return tuple(each for each in Release if each >= least)
    if release >= least:
        return (release,)
    if release < _WRITES[table.version]:
        raise UnsupportedError(
            f"Hudi {release} does not write tables of version {table.version} (table.version): "
            f"take Hudi {least} or newer"
        )
    raise UnsupportedError(
        f"Hudi {release} orders records by one column, and table.ordering has "
        f"{len(table.ordering)}: take Hudi {least} or newer"
    )


def _named(
    asked: Iterator[_Asked], engine: Engine, releases: Sequence[Release]
) -> Iterator[WriterOption]:
    for one in asked:
        if any(not sign.isprintable() for sign in one.value):
            raise UnsupportedError(
                f"{one.field} has a line break or another control character in it, and writer "
                "options cannot hold one"
            )
        for key in names_of(one.meaning, engine, releases):
            yield WriterOption(
                key=key, value=one.value, field=one.field, because=one.because, makes=one.makes
            )


def _asked(spec: TableSpec, engine: Engine) -> Iterator[_Asked]:
    if spec.table is not None:
        yield from _of_table(spec.table, spec.name, engine)
    if spec.files is not None:
        yield from _of_files(spec.files, engine)
    if spec.retention is not None:
        yield from _of_retention(spec.retention, engine)
    if spec.clustering is not None:
        yield from _of_clustering(spec.clustering)
    if spec.index is not None:
        yield from _of_index(spec.index)
    yield from _of_concurrency(spec)


def _of_table(table: NewTable, name: str, engine: Engine) -> Iterator[_Asked]:
    def made(meaning: Meaning, value: str, field: str, because: str) -> _Asked:
        return _Asked(meaning, value, field, because, makes=True)

    because = "what the table is called"
    yield made(Meaning.NAME, name.rpartition(".")[2], "metadata.name", because)
    kind = {"COPY_ON_WRITE": "cow", "MERGE_ON_READ": "mor"}[table.type]
    value = kind if engine is Engine.SQL else table.type
    yield made(Meaning.TYPE, value, "table.type", "how the table is made")
    because = "what names a record"
    yield made(Meaning.RECORD_KEY, ",".join(table.record_key), "table.recordKey", because)
    because = "what makes a partition's path" if table.partition_by else "no partitions"
    yield made(Meaning.PARTITION_BY, ",".join(table.partition_by), "table.partitionBy", because)
    if table.ordering:
        because = "of two records of one key the one with the greater value wins"
        yield made(Meaning.ORDERING, ",".join(table.ordering), "table.ordering", because)
        because = "the value decides between a write and the table too, not only within a write"
        yield made(Meaning.PAYLOAD, _EVENT_TIME, "table.ordering", because)
    elif engine is Engine.FLINK:
        because = "the later write wins; unsaid, Flink orders by a column ts"
        yield made(Meaning.ORDERING, _NO_ORDER_OF_FLINK, "table.ordering", because)
    because = "whether partition folders are named column=value"
    yield made(Meaning.HIVE_STYLE, _text(table.hive_style), "table.hiveStyle", because)
    because = "a newer Hudi otherwise upgrades the table to its own version"
    yield _Asked(Meaning.VERSION, str(table.version), "table.version", because)
    yield _Asked(Meaning.UPGRADE, "false", "table.version", because)


def _of_files(files: FileSizes, engine: Engine) -> Iterator[_Asked]:
    because = f"base files grow to {format_size(files.target)}"
    if engine is Engine.FLINK:
        mib = max(1, round(files.target / _MIB))
        yield _Asked(Meaning.TARGET, str(mib), "files.target", f"{because}; in MiB")
        if mib * _MIB != files.target:
            exact = f"{because}; in bytes, which wins over Flink's whole MiB"
            yield _Asked(Meaning.TARGET_BYTES, str(files.target), "files.target", exact)
    else:
        yield _Asked(Meaning.TARGET, str(files.target), "files.target", because)
    because = f"inserts fill base files below {format_size(files.small)} first"
    yield _Asked(Meaning.SMALL, str(files.small), "files.small", because)
    because = "bytes of a record until past commits tell"
    yield _Asked(Meaning.RECORD_SIZE, str(files.record_size), "files.recordSize", because)


def _of_retention(retention: Retention, engine: Engine) -> Iterator[_Asked]:
    meaning, field = _COUNTS[retention.policy]
    because = "the reconciler cleans; a writer that cleans too removes by its own count"
    yield _Asked(Meaning.CLEAN, "false", "retention", because)
    yield _Asked(Meaning.CLEAN_ASYNC, "false", "retention", because)
    because = "a clean that somebody runs all the same keeps as much"
    if engine is Engine.FLINK:
        because = "Flink cleans after a compaction of its own whatever is off; it keeps as much"
    yield _Asked(Meaning.CLEAN_POLICY, retention.policy.value, field, because)
    yield _Asked(meaning, str(retention.keep), field, because)
    least, most = (retention.keep + more for more in _UNARCHIVED)
    usual = _ARCHIVES_FROM[engine is Engine.FLINK]
    if retention.policy is Policy.COMMITS and least > usual:
        because = "commits that the retention counts stay on the active timeline"
        yield _Asked(Meaning.ARCHIVE_LEAST, str(least), field, because)
        yield _Asked(Meaning.ARCHIVE_MOST, str(most), field, because)


def _of_clustering(_: Clustering) -> Iterator[_Asked]:
    because = (
        "the reconciler clusters; while a writer's plan is pending, updates of its file groups fail"
    )
    for meaning in (Meaning.CLUSTER, Meaning.CLUSTER_ASYNC, Meaning.CLUSTER_SCHEDULE):
        yield _Asked(meaning, "false", "clustering", because)


def _of_index(index: IndexColumns) -> Iterator[_Asked]:
    if index.hudi != "build":
        return
    because = "a writer for which the metadata table or the index is off drops it"
    yield _Asked(Meaning.METADATA, "true", "index.hudi", because)
    yield _Asked(Meaning.STATISTICS, "true", "index.hudi", because)
    because = "the columns that Hudi's readers skip by"
    yield _Asked(Meaning.STATISTICS_COLUMNS, ",".join(index.columns), "index.columns", because)


def _of_concurrency(spec: TableSpec) -> Iterator[_Asked]:
    """With the lock that apply takes; a writer alone on the table takes none."""
    lock = spec.concurrency.lock if spec.concurrency else None
    if lock is not None and lock.provider == "filesystem":
        yield from _of_lock(lock, spec.path)
    elif lock is not None:
        because = "declared: nothing else ever writes the table"
        yield _Asked(Meaning.CONCURRENCY, "single_writer", "concurrency.lock", because)
    failed = _failed_writes(spec)
    if failed is not None:
        field, because = "retention.failedWrites", "when what a failed write left is removed"
        if spec.retention is None or spec.retention.failed_writes != failed:
            field = "concurrency.lock"
            because = "Hudi wants it of writers that share a table; EAGER would undo others' writes"
        yield _Asked(Meaning.FAILED_WRITES, failed, field, because)
    if _nobody_rolls_back(spec):
        because = "failed writes are rolled back although no writer cleans"
        yield _Asked(Meaning.BEFORE_WRITES, "ROLLBACK_FAILED_WRITES", "retention", because)


def _failed_writes(spec: TableSpec) -> str | None:
    """The policy for failed writes; of several writers never EAGER, which Hudi refuses."""
    said = spec.retention.failed_writes if spec.retention else None
    lock = spec.concurrency.lock if spec.concurrency else None
    if lock is not None and lock.provider == "filesystem" and said in {None, "EAGER"}:
        return "LAZY"
    return said


def _nobody_rolls_back(spec: TableSpec) -> bool:
    """Whether what failed would stay pending: under LAZY only a clean of Hudi's rolls it back."""
    return spec.retention is not None and _failed_writes(spec) == "LAZY"


def _of_lock(lock: Lock, location: str) -> Iterator[_Asked]:
    field = "concurrency.lock"
    because = "writers and apply take the same lock; a single_writer takes none"
    mode = "optimistic_concurrency_control"
    yield _Asked(Meaning.CONCURRENCY, mode, field, because)
    yield _Asked(Meaning.LOCK, _PROVIDER, field, because)
    is_absolute = lock.path.startswith("/") or "://" in lock.path
    path = hadoop_path(lock.path if is_absolute else f"{location}/{lock.path}")
    yield _Asked(Meaning.LOCK_PATH, path, f"{field}.path", because)
    because = "minutes after which a lock counts for nothing, 0 for never; the same for all"
    yield _Asked(Meaning.LOCK_EXPIRE, str(lock.expire), f"{field}.expire", because)


def _notes(
    spec: TableSpec,
    engine: Engine,
    releases: Sequence[Release],
    options: Sequence[WriterOption],
) -> Iterator[str]:
    if not options:
        yield "the spec asks nothing of its writers"
        return
    if spec.retention is not None:
        yield "with these nobody but reconciler apply cleans: run it on a schedule"
    if spec.suspend:
        yield "the spec has suspend: true, so apply does nothing: nobody cleans or clusters"
    if _nobody_rolls_back(spec) and releases[0] < Release.R1_2:
        yield (
            "under LAZY a writer before Hudi 1.2 rolls failed writes back only when it cleans: "
            "where status shows one stuck, CALL run_clean with the retention below rolls it back"
        )
    if spec.files is not None:
        yield "bulk_insert and insert_overwrite never fill small files, whatever is set"
    if spec.concurrency is None or spec.concurrency.lock is None:
        yield "the spec has no concurrency.lock, so nothing is said of locks; apply needs it"
    elif spec.concurrency.lock.provider == "filesystem":
        failed = spec.retention.failed_writes if spec.retention else None
        if failed == "EAGER":
            yield "retention.failedWrites: EAGER does not go with a lock; LAZY is said instead"
    if engine is Engine.FLINK and spec.retention is not None:
        yield "compactions stay Flink's: the reconciler makes none"


def _text(value: bool) -> str:  # noqa: FBT001
    return str(value).lower()
