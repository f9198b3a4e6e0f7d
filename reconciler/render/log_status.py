"""The log files of a table as lines of ``status_text``."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.render import words
from reconciler.render.terminal import Terminal
from reconciler.status.logs import LogStatus, PartitionLogs


def log_lines(logs: LogStatus, terminal: Terminal) -> Iterator[str]:
    """Yield how much a read merges, how old it is, and where most of it is."""
    slices = words.format_count(logs.of_slices, "file slice")
    where = f"in {words.format_number(logs.slices)} of {slices}"
    yield from terminal.item("log files", f"{_describe_amount(logs, where)}{_describe_age(logs)}")
    worst = logs.worst
    if worst is not None and worst.partition and worst.files < logs.files:
        amount = _describe_amount(worst)
        yield from terminal.detail(f"most per base byte in {worst.partition}: {amount}")


def _describe_amount(logs: LogStatus | PartitionLogs, where: str = "") -> str:
    files, size = words.format_count(logs.files, "log file"), words.format_size(logs.bytes)
    share = logs.bytes_per_base_byte
    per_byte = "no base files" if share is None else f"{share:.2g} bytes per base byte"
    if share is not None and share >= 10:  # noqa: PLR2004 (so many digits tell enough)
        per_byte = f"{words.format_number(round(share))} bytes per base byte"
    return f"{files}, {size}{f' {where}' if where else ''}; {per_byte}"


def _describe_age(logs: LogStatus) -> str:
    if logs.oldest is None:
        return ""
    at_least = "" if logs.is_oldest_exact else "at least "
    if logs.oldest_age_seconds is None:
        return f"; the oldest of {at_least}{words.format_instant(logs.oldest)}"
    return f"; the oldest is {at_least}{words.format_duration(logs.oldest_age_seconds)} old"
