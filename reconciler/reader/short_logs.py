"""Find truncated log files of a read: like Hudi, it skips what is missing, but reports it.

Readers skip an incomplete block, because a dying writer leaves such a block. So rows of a log file
that was truncated after its commit are missing, and only the file's length shows it.
"""

from __future__ import annotations

from typing import Final

from reconciler.errors import NotFoundError, ReconcilerError
from reconciler.hudi.files.names import make_file_path
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.reader.model import Scan
from reconciler.state.log_sizes import LogFile, read_log_sizes
from reconciler.storage.api import Storage

#: timeline files that are read at a time
_AT_ONCE: Final = 8


def find_short_logs(storage: Storage, scan: Scan) -> tuple[str, ...]:
    """Return a sentence for each log file of a scan that is shorter than its writer declared.

    Reads the writes of the active timeline that may have made them, and lists the folders of slices
    whose sizes do not match; nothing if no slice has log files. Raises nothing: a failure
    becomes a sentence.
    """
    if not scan.has_logs.any():
        return ()
    with_logs = scan.select_slices(scan.has_logs)
    logs_by_slice = map(_split_paths, with_logs.slices.column("logs").to_pylist())
    slices = list(zip(logs_by_slice, with_logs.get_numbers("log_size").tolist(), strict=True))
    try:
        properties = load_properties(storage)
        timeline = load_timeline(storage, properties)
        logs_of_scan = {log for logs, _ in slices for log in logs}
        written = read_log_sizes(storage, properties, timeline, logs_of_scan, at_once=_AT_ONCE)
        suspects = [
            log for logs, size in slices if _may_be_short(logs, size, written) for log in logs
        ]
        return _describe_short_logs(storage, [log for log in suspects if log in written], written)
    except NotFoundError:  # the table has changed; the read itself reports that
        return ()
    except ReconcilerError as problem:
        return (f"log files were not checked for missing ends: {problem}",)


def _split_paths(paths: list[str]) -> list[LogFile]:
    return [(folder, name) for folder, _, name in (path.rpartition("/") for path in paths)]


def _may_be_short(logs: list[LogFile], size: int, written: dict[LogFile, int]) -> bool:
    """True if files are together shorter than declared, or one has no declared size."""
    return any(log not in written for log in logs) or size < sum(written[log] for log in logs)


def _describe_short_logs(
    storage: Storage, suspects: list[LogFile], written: dict[LogFile, int]
) -> tuple[str, ...]:
    messages = []
    sizes: dict[str, dict[str, int]] = {}
    for folder, name in suspects:
        if folder not in sizes:
            sizes[folder] = {entry.name: entry.size for entry in storage.list(folder)}
        size, expected = sizes[folder].get(name), written[folder, name]
        if size is not None and size < expected:
            path = make_file_path(folder, name)
            messages.append(
                f"{path}: has {size} {'byte' if size == 1 else 'bytes'}, but its writer "
                f"declared {expected}: the missing rows are not read; restore the file from a copy"
            )
    return tuple(messages)
