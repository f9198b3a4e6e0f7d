"""Read the workload of a folder of Spark's event logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field

from reconciler.errors import FormatError, NotFoundError, StorageError, UnsupportedError
from reconciler.event_logs.application import EVENT, ApplicationEvents, DamagedEventError
from reconciler.event_logs.files import EventLog, LogFile, find_event_logs, is_log_folder
from reconciler.event_logs.streams import LogLines
from reconciler.event_logs.workload import KnownTable, ScanRun, Workload, WorkloadBuilder
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.api import FolderListing, Storage

OnLog = Callable[[], None]
OpenStorage = Callable[[str], Storage]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLogs:
    """The event logs of a place. ``location``: as given, for messages."""

    storage: Storage
    logs: tuple[EventLog, ...]
    location: str


def find_logs(location: str, open_storage: OpenStorage) -> FoundLogs:
    """Return the event logs in a folder and the folders in it, or the one file at a location.

    Raises StorageError if there is nothing.
    """
    folder, _, name = location.rstrip("/").rpartition("/")
    if folder and not folder.endswith(":/") and name:
        parent = open_storage(folder)
        try:
            entry = parent.stat(name)
        except StorageError:  # the folder above may be closed to the reader
            entry = None
        if entry is not None and not entry.is_folder and entry.size:
            logs = find_event_logs([FolderListing("", [name], [entry.size])])
            return FoundLogs(storage=parent, logs=logs, location=location)
    storage = open_storage(location)
    try:
        logs = find_event_logs(storage.walk(is_log_folder))
    except NotFoundError:
        raise StorageError(location, "is not there; name the folder of event logs") from None
    if not logs:
        raise StorageError(
            location, "has no event log; name the folder of the applications' spark.eventLog.dir"
        )
    return FoundLogs(storage=storage, logs=logs, location=location)


def read_workload(
    found: FoundLogs, known: Iterable[KnownTable], on_log: OnLog | None = None
) -> Workload:
    """Return what the queries of event logs asked of tables.

    ``known``: tables to find, also by their files. ``on_log`` is called after each log. A
    file that cannot be read, or only in part, is a problem of the workload.
    """
    counts = _Counts(WorkloadBuilder(known))
    for log in found.logs:
        _read_log(log, found.storage, counts)
        if on_log is not None:
            on_log()
    times = [time for time in counts.times if time is not None]
    return Workload(
        logs=counts.logs,
        bytes=counts.bytes,
        queries=counts.queries,
        first_ms=min(times, default=None),
        last_ms=max(times, default=None),
        tables=counts.builder.freeze(),
        problems=tuple(counts.problems),
    )


@dataclass(slots=True)
class _Counts:
    builder: WorkloadBuilder
    logs: int = 0
    bytes: int = 0
    queries: int = 0
    times: list[int | None] = field(default_factory=lambda: [None, None])
    problems: list[str] = field(default_factory=list)

    def add_query(self, runs: Sequence[ScanRun], time_ms: int | None) -> None:
        """Count a query with its scans."""
        known = [self.builder.add(run) for run in runs]
        if not any(known):
            return
        self.queries += 1
        if time_ms is not None:
            first, last = self.times
            self.times[0] = time_ms if first is None else min(first, time_ms)
            self.times[1] = time_ms if last is None else max(last, time_ms)


def _read_log(log: EventLog, storage: Storage, counts: _Counts) -> None:
    """Read the files of a log in order; after one that is damaged, those that follow count too."""
    application = ApplicationEvents(counts.add_query)
    has_events = False
    for file in log.files:
        try:
            has_events |= _read_file(file, storage, application, counts)
        except (StorageError, UnsupportedError) as error:
            counts.problems.append(str(error))
    application.finish()
    counts.logs += has_events


def _read_file(
    file: LogFile, storage: Storage, application: ApplicationEvents, counts: _Counts
) -> bool:
    """Read a file; return whether it has events. What is wrong with it is one problem."""
    lines = LogLines(file, storage.read_range)
    damaged, total = 0, 0
    for line in lines:
        if not line:
            continue
        total += 1
        if not line.startswith(EVENT):
            damaged += 1
            if damaged == total:  # nothing of it is an event so far
                break
            continue
        try:
            application.read_line(line)
        except DamagedEventError:
            damaged += 1
    counts.bytes += lines.bytes_read
    problem = _describe_problem(file, lines.problem, damaged, total)
    if problem is not None:
        counts.problems.append(str(FormatError(file.path, problem)))
    return total > damaged


def _describe_problem(file: LogFile, cut: str | None, damaged: int, total: int) -> str | None:
    if total and damaged == total:
        return "is no event log of Spark"
    parts = []
    if cut is not None and not (file.is_open and cut.startswith("ends")):
        parts.append(f"{cut}; what comes before was read")
    if damaged:
        lines = "1 line is" if damaged == 1 else f"{damaged} lines are"
        parts.append(f"{lines} damaged and skipped")
    return ", and ".join(parts) or None
