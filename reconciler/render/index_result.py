"""The result of an index step for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.executor.outcomes import IndexOutcome
from reconciler.executor.result import StepOutcome, TableResult
from reconciler.render import words
from reconciler.render.terminal import Terminal


def describe_index(outcome: StepOutcome, done: IndexOutcome) -> str:
    """Return what happened to an index step, as one clause."""
    took = words.format_time_taken(outcome.seconds)
    columns = words.format_count(len(done.columns), "column")
    files = words.format_count(done.files, "file")
    if outcome.how == "failed":
        clause = "the existing index stays, and reads stay right"
    elif outcome.how == "nothing":
        clause = "nothing left to do"
    elif done.partitions:
        clause = f"built {' and '.join(done.partitions)}: {columns} of {files}{took}"
    else:
        clause = f"indexed {columns} of {files}, {words.format_size(done.bytes)}{took}"
    return clause if done.target == "zindex" else f"{done.target} of the metadata table: {clause}"


def index_lines(done: IndexOutcome, terminal: Terminal) -> Iterator[str]:
    """The lines below that clause: the file, the footers that were read, and skipped columns."""
    if done.error is not None:
        yield from terminal.item(terminal.bad("! failed"), done.error)
    if done.version is not None:
        yield from terminal.detail(done.version)
    if done.version is not None or done.partitions:
        yield from terminal.detail(_describe_sources(done))
    for note in done.left:
        yield from terminal.item(terminal.warn("! skipped"), note.because)


def _describe_sources(done: IndexOutcome) -> str:
    parts = [f"read the footers of {words.format_count(done.footers, 'file')}"]
    parts += [f"kept the statistics of {words.format_number(done.kept)}"] if done.kept else []
    parts += [f"dropped {words.format_number(done.dropped)}"] if done.dropped else []
    if done.tidied:
        parts.append(f"removed {words.format_count(done.tidied, 'older version')}")
    return ", ".join(parts)


def sum_indexes(tables: Iterable[TableResult]) -> str:
    """Return how many indexes of all tables were updated; empty if none was."""
    done = sum(
        outcome.how == "completed"
        for table in tables
        for outcome in table.outcomes
        if outcome.indexed is not None
    )
    return f"{words.format_count(done, 'index')} updated" if done else ""
