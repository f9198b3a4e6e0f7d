"""Derive the options that make a writer follow a spec; pure. An absent block sets no option.

Source of what options do: HoodieWriteConfig.Builder (defaults and checks), BaseHoodieWriteClient,
FlinkWriteClients, CompactionCommitSink; 0.15 to 1.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.errors import UnsupportedError
from reconciler.hudi_engine.model import HudiRelease, WriterEngine, WriterOption, WriterOptions
from reconciler.hudi_engine.option_names import OptionMeaning, find_option_names
from reconciler.hudi_engine.table_options import LOCK_PROVIDER, make_lock_path, spell_boolean
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
_RETENTION_OPTIONS: Final = {
    Policy.COMMITS: (OptionMeaning.CLEAN_COMMITS, "retention.commits"),
    Policy.HOURS: (OptionMeaning.CLEAN_HOURS, "retention.hours"),
    Policy.FILE_VERSIONS: (OptionMeaning.CLEAN_VERSIONS, "retention.fileVersions"),
}
#: default of archive.min_commits in Flink, and of hoodie.keep.min.commits elsewhere
_DEFAULT_MIN_COMMITS: Final = {True: 40, False: 20}
#: by how much Hudi's own defaults exceed the retained commits: the minimum and maximum not archived
_ARCHIVE_MARGINS: Final = (10, 20)
#: table version -> the first release that writes it
_FIRST_RELEASES: Final = {6: HudiRelease.R0_15, 8: HudiRelease.R1_0, 9: HudiRelease.R1_1}
_FIRST_WITH_SEVERAL_ORDERING_COLUMNS: Final = HudiRelease.R1_1
#: before 1.0 the default payload lets the later write win, whatever the ordering value
_EVENT_TIME_PAYLOAD: Final = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
_FLINK_WITHOUT_ORDERING: Final = "no_precombine"


@dataclass(frozen=True, slots=True)
class _OptionRequest:
    """An option before its name for an engine is known."""

    meaning: OptionMeaning
    value: str
    field: str
    because: str
    creates_table: bool = False


def make_writer_options(
    spec: TableSpec, engine: WriterEngine, release: HudiRelease | None = None
) -> WriterOptions:
    """Return the options for the writers of a table.

    ``release`` None: for every release that can write the table. ``error`` of the result says in a
    sentence why there are no options, as for a release that cannot write the declared table.
    """
    try:
        releases = _find_releases(spec, release)
        options = tuple(_name_options(_list_requests(spec, engine), engine, releases))
    except UnsupportedError as error:
        return WriterOptions(name=spec.name, path=spec.path, engine=engine, error=str(error))
    return WriterOptions(
        name=spec.name,
        path=spec.path,
        engine=engine,
        releases=releases,
        options=options,
        partition_by=() if spec.table is None else spec.table.partition_by,
        notes=tuple(_list_notes(spec, engine, releases, options)),
    )


def _find_releases(spec: TableSpec, release: HudiRelease | None) -> tuple[HudiRelease, ...]:
    """Return the releases that write the declared table; raises UnsupportedError for none."""
    table = spec.table
    if table is None:
        return tuple(HudiRelease) if release is None else (release,)
    several = len(table.ordering) > 1
    oldest = max(
        _FIRST_RELEASES[table.version],
        _FIRST_WITH_SEVERAL_ORDERING_COLUMNS if several else HudiRelease.R0_15,
    )
    if release is None:
        return tuple(each for each in HudiRelease if each >= oldest)
    if release >= oldest:
        return (release,)
    if release < _FIRST_RELEASES[table.version]:
        raise UnsupportedError(
            f"Hudi {release} does not write tables of version {table.version} (table.version): "
            f"use Hudi {oldest} or newer"
        )
    raise UnsupportedError(
        f"Hudi {release} orders records by one column, and table.ordering has "
        f"{len(table.ordering)}: use Hudi {oldest} or newer"
    )


def _name_options(
    requests: Iterator[_OptionRequest], engine: WriterEngine, releases: Sequence[HudiRelease]
) -> Iterator[WriterOption]:
    for request in requests:
        if any(not sign.isprintable() for sign in request.value):
            raise UnsupportedError(
                f"{request.field} contains a control character such as a line break, which "
                "writer options cannot hold"
            )
        for key in find_option_names(request.meaning, engine, releases):
            yield WriterOption(
                key=key,
                value=request.value,
                field=request.field,
                because=request.because,
                creates_table=request.creates_table,
            )


def _list_requests(spec: TableSpec, engine: WriterEngine) -> Iterator[_OptionRequest]:
    if spec.table is not None:
        yield from _table_requests(spec.table, spec.name, engine)
    if spec.files is not None:
        yield from _file_requests(spec.files, engine)
    if spec.retention is not None:
        yield from _retention_requests(spec.retention, engine)
    if spec.clustering is not None:
        yield from _clustering_requests(spec.clustering)
    if spec.index is not None:
        yield from _index_requests(spec.index)
    yield from _concurrency_requests(spec)


def _table_requests(table: NewTable, name: str, engine: WriterEngine) -> Iterator[_OptionRequest]:
    def table_request(
        meaning: OptionMeaning, value: str, field: str, because: str
    ) -> _OptionRequest:
        return _OptionRequest(meaning, value, field, because, creates_table=True)

    because = "the table's name"
    yield table_request(OptionMeaning.NAME, name.rpartition(".")[2], "metadata.name", because)
    kind = {"COPY_ON_WRITE": "cow", "MERGE_ON_READ": "mor"}[table.type]
    value = kind if engine is WriterEngine.SQL else table.type
    yield table_request(OptionMeaning.TYPE, value, "table.type", "the table's type")
    because = "the columns of the record key"
    yield table_request(
        OptionMeaning.RECORD_KEY, ",".join(table.record_key), "table.recordKey", because
    )
    because = "the columns of the partition path" if table.partition_by else "no partitions"
    yield table_request(
        OptionMeaning.PARTITION_BY, ",".join(table.partition_by), "table.partitionBy", because
    )
    if table.ordering:
        because = "of two records with one key, the greater value wins"
        yield table_request(
            OptionMeaning.ORDERING, ",".join(table.ordering), "table.ordering", because
        )
        because = "the value also decides against records already in the table"
        yield table_request(OptionMeaning.PAYLOAD, _EVENT_TIME_PAYLOAD, "table.ordering", because)
    elif engine is WriterEngine.FLINK:
        because = "the later write wins; by default Flink orders by a column ts"
        yield table_request(
            OptionMeaning.ORDERING, _FLINK_WITHOUT_ORDERING, "table.ordering", because
        )
    because = "whether partition folders are named column=value"
    yield table_request(
        OptionMeaning.HIVE_STYLE, spell_boolean(table.hive_style), "table.hiveStyle", because
    )
    because = "a newer Hudi otherwise upgrades the table to its own version"
    yield _OptionRequest(OptionMeaning.VERSION, str(table.version), "table.version", because)
    yield _OptionRequest(OptionMeaning.UPGRADE, "false", "table.version", because)


def _file_requests(files: FileSizes, engine: WriterEngine) -> Iterator[_OptionRequest]:
    because = f"base files grow to {format_size(files.target)}"
    if engine is WriterEngine.FLINK:
        mib = max(1, round(files.target / _MIB))
        yield _OptionRequest(OptionMeaning.TARGET, str(mib), "files.target", f"{because}; in MiB")
        if mib * _MIB != files.target:
            exact = f"{because}; in bytes, which wins over Flink's whole MiB"
            yield _OptionRequest(
                OptionMeaning.TARGET_BYTES, str(files.target), "files.target", exact
            )
    else:
        yield _OptionRequest(OptionMeaning.TARGET, str(files.target), "files.target", because)
    because = f"inserts fill base files below {format_size(files.small)} first"
    yield _OptionRequest(OptionMeaning.SMALL, str(files.small), "files.small", because)
    because = "assumed bytes of a record until commits show the real size"
    yield _OptionRequest(
        OptionMeaning.RECORD_SIZE, str(files.record_size), "files.recordSize", because
    )


def _retention_requests(retention: Retention, engine: WriterEngine) -> Iterator[_OptionRequest]:
    meaning, field = _RETENTION_OPTIONS[retention.policy]
    because = "the reconciler cleans; a writer's own cleaning would use its own limits"
    yield _OptionRequest(OptionMeaning.CLEAN, "false", "retention", because)
    yield _OptionRequest(OptionMeaning.CLEAN_ASYNC, "false", "retention", because)
    because = "a clean that somebody runs by hand keeps the same"
    if engine is WriterEngine.FLINK:
        because = "Flink still cleans after its own compactions, and then keeps the same"
    yield _OptionRequest(OptionMeaning.CLEAN_POLICY, retention.policy.value, field, because)
    yield _OptionRequest(meaning, str(retention.keep), field, because)
    oldest, most = (retention.keep + more for more in _ARCHIVE_MARGINS)
    usual = _DEFAULT_MIN_COMMITS[engine is WriterEngine.FLINK]
    if retention.policy is Policy.COMMITS and oldest > usual:
        because = "commits that the retention counts stay on the active timeline"
        yield _OptionRequest(OptionMeaning.ARCHIVE_LEAST, str(oldest), field, because)
        yield _OptionRequest(OptionMeaning.ARCHIVE_MOST, str(most), field, because)


def _clustering_requests(_: Clustering) -> Iterator[_OptionRequest]:
    because = (
        "the reconciler clusters; while a writer's plan is pending, updates of its file groups fail"
    )
    for meaning in (
        OptionMeaning.CLUSTER,
        OptionMeaning.CLUSTER_ASYNC,
        OptionMeaning.CLUSTER_SCHEDULE,
    ):
        yield _OptionRequest(meaning, "false", "clustering", because)


def _index_requests(index: IndexColumns) -> Iterator[_OptionRequest]:
    if index.hudi != "build":
        return
    because = "a writer for which the metadata table or the index is off drops it"
    yield _OptionRequest(OptionMeaning.METADATA, "true", "index.hudi", because)
    yield _OptionRequest(OptionMeaning.STATISTICS, "true", "index.hudi", because)
    because = "the columns that Hudi's readers can skip files by"
    yield _OptionRequest(
        OptionMeaning.STATISTICS_COLUMNS, ",".join(index.columns), "index.columns", because
    )


def _concurrency_requests(spec: TableSpec) -> Iterator[_OptionRequest]:
    """Yield the options of the lock that apply takes; a single writer takes none."""
    lock = spec.concurrency.lock if spec.concurrency else None
    if lock is not None and lock.provider == "filesystem":
        yield from _lock_requests(lock, spec.path)
    elif lock is not None:
        because = "declared: nothing else ever writes the table"
        yield _OptionRequest(
            OptionMeaning.CONCURRENCY, "single_writer", "concurrency.lock", because
        )
    failed = _choose_failed_writes_policy(spec)
    if failed is not None:
        field, because = "retention.failedWrites", "when leftovers of failed writes are removed"
        if spec.retention is None or spec.retention.failed_writes != failed:
            field = "concurrency.lock"
            because = "required of writers that share a table; EAGER would roll back others' writes"
        yield _OptionRequest(OptionMeaning.FAILED_WRITES, failed, field, because)
    if _needs_rollback_before_writes(spec):
        because = "failed writes are rolled back although no writer cleans"
        yield _OptionRequest(
            OptionMeaning.BEFORE_WRITES, "ROLLBACK_FAILED_WRITES", "retention", because
        )


def _choose_failed_writes_policy(spec: TableSpec) -> str | None:
    """Return the policy for failed writes; Hudi refuses EAGER for several writers."""
    declared = spec.retention.failed_writes if spec.retention else None
    lock = spec.concurrency.lock if spec.concurrency else None
    if lock is not None and lock.provider == "filesystem" and declared in {None, "EAGER"}:
        return "LAZY"
    return declared


def _needs_rollback_before_writes(spec: TableSpec) -> bool:
    """Whether failed writes would stay pending: under LAZY only a clean of Hudi rolls them back."""
    return spec.retention is not None and _choose_failed_writes_policy(spec) == "LAZY"


def _lock_requests(lock: Lock, location: str) -> Iterator[_OptionRequest]:
    field = "concurrency.lock"
    because = "writers and apply take the same lock; a single_writer takes none"
    mode = "optimistic_concurrency_control"
    yield _OptionRequest(OptionMeaning.CONCURRENCY, mode, field, because)
    yield _OptionRequest(OptionMeaning.LOCK, LOCK_PROVIDER, field, because)
    path = make_lock_path(lock, location)
    yield _OptionRequest(OptionMeaning.LOCK_PATH, path, f"{field}.path", because)
    because = "minutes until a lock expires, 0 for never; all must use the same"
    yield _OptionRequest(OptionMeaning.LOCK_EXPIRE, str(lock.expire), f"{field}.expire", because)


def _list_notes(
    spec: TableSpec,
    engine: WriterEngine,
    releases: Sequence[HudiRelease],
    options: Sequence[WriterOption],
) -> Iterator[str]:
    if not options:
        yield "the spec sets no writer options"
        return
    if spec.retention is not None:
        yield "with these options only reconciler apply cleans: run it on a schedule"
    if spec.suspend:
        yield "the spec has suspend: true, so apply does nothing: nobody cleans or clusters"
    if _needs_rollback_before_writes(spec) and releases[0] < HudiRelease.R1_2:
        yield (
            "under LAZY a writer before Hudi 1.2 rolls failed writes back only when it cleans: "
            "where status shows one stuck, CALL run_clean with the retention below rolls it back"
        )
    if spec.files is not None:
        yield "bulk_insert and insert_overwrite never fill small files, whatever is set"
    if spec.concurrency is None or spec.concurrency.lock is None:
        yield "the spec has no concurrency.lock, so no lock options are listed; apply needs one"
    elif spec.concurrency.lock.provider == "filesystem":
        failed = spec.retention.failed_writes if spec.retention else None
        if failed == "EAGER":
            yield "retention.failedWrites: EAGER does not work with a lock; LAZY is used instead"
    if engine is WriterEngine.FLINK and spec.retention is not None:
        yield "Flink keeps running compactions: the reconciler runs none"
