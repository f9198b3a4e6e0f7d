"""Log files of a read that lost their end: what is missing is not read, as in Hudi, but said.

A reader skips a block that is not whole, since a writer that dies leaves such. So rows of a
committed log file that was cut off later are missing, and nothing but its length tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

from reconciler.arrays import to_numpy_numbers
from reconciler.errors import NotFoundError, ReconcilerError
from reconciler.hudi.files.names import make_file_path
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.state.log_sizes import LogFile, read_log_sizes

if TYPE_CHECKING:
    from reconciler.reader.model import Scan
    from reconciler.storage.api import Storage

#: files of the timeline that are read at a time
_AT_ONCE: Final = 8


def find_short_logs(storage: Storage, scan: Scan) -> tuple[str, ...]:
    """A sentence for each log file of a scan that is shorter than its writer has said.

    Reads the writes of the active timeline that may have made one of them, and lists the folders of
    slices that do not add up; nothing where no slice has log files. Raises nothing: where that
    cannot be told a sentence says so, and the read goes on.
    """
    slices = [(_split_paths(paths), size) for paths, size in _list_log_sizes(scan) if paths]
    if not slices:
        return ()
    try:
        properties = load_properties(storage)
        timeline = load_timeline(storage, properties)
        every = {log for logs, _ in slices for log in logs}
        said = read_log_sizes(storage, properties, timeline, every, at_once=_AT_ONCE)
        doubted = [log for logs, size in slices if _may_be_short(logs, size, said) for log in logs]
        return _describe_short_logs(storage, [log for log in doubted if log in said], said)
    except NotFoundError:  # the table has moved on: a read that runs says so itself
        return ()
    except ReconcilerError as problem:
        return (f"whether log files are whole is not known: {problem}",)


def _list_log_sizes(scan: Scan) -> list[tuple[list[str], int]]:
    """The paths of each slice's log files, and the bytes of all of them."""
    slices = scan.slices
    if not pc.any(pc.greater(pc.list_value_length(slices.column("logs")), 0)).as_py():
        return []
    sizes = to_numpy_numbers(slices.column("log_size").combine_chunks()).tolist()
    return list(zip(slices.column("logs").to_pylist(), sizes, strict=True))


def _split_paths(paths: list[str]) -> list[LogFile]:
    return [(folder, name) for folder, _, name in (path.rpartition("/") for path in paths)]


def _may_be_short(logs: list[LogFile], size: int, said: dict[LogFile, int]) -> bool:
    """Whether files together are shorter than was said, or nothing was said of one of them."""
    return any(log not in said for log in logs) or size < sum(said[log] for log in logs)


def _describe_short_logs(
    storage: Storage, doubted: list[LogFile], said: dict[LogFile, int]
) -> tuple[str, ...]:
    found = []
    sizes: dict[str, dict[str, int]] = {}
    for folder, name in doubted:
        if folder not in sizes:
            sizes[folder] = {entry.name: entry.size for entry in storage.list(folder)}
        size, least = sizes[folder].get(name), said[folder, name]
        if size is not None and size < least:
            path = make_file_path(folder, name)
            found.append(
                f"{path}: has {size} {'byte' if size == 1 else 'bytes'}, and its writer says "
                f"{least}: what is missing is not read; restore the file from a copy"
            )
    return tuple(found)
