"""What became of an index of column statistics, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.executor.result import IndexOutcome, StepOutcome, TableResult
from reconciler.render import words
from reconciler.render.paint import Paint
from reconciler.render.wrapping import wrap_detail, wrap_item


def describe_index(outcome: StepOutcome, done: IndexOutcome) -> str:
    """One clause: what became of an index step."""
    took = f", in {words.format_duration(outcome.seconds)}" if outcome.seconds >= 1 else ""
    columns = words.format_count(len(done.columns), "column")
    files = words.format_count(done.files, "file")
    if outcome.how == "failed":
        said = "what was there before counts, and reads stay right"
    elif outcome.how == "nothing":
        said = "nothing to do any more"
    elif done.partitions:
        said = f"built {' and '.join(done.partitions)}: {columns} of {files}{took}"
    else:
        said = f"indexed {columns} of {files}, {words.format_size(done.bytes)}{took}"
    return said if done.target == "zindex" else f"{done.target} of the metadata table: {said}"


def index_lines(done: IndexOutcome, paint: Paint) -> Iterator[str]:
    """Lines below that clause: where it is, what was read for it, and what stayed out."""
    if done.error is not None:
        yield from wrap_item(paint.bad("! failed"), done.error)
    if done.version is not None:
        yield from wrap_detail(done.version)
    if done.version is not None or done.partitions:
        yield from wrap_detail(_describe_sources(done))
    for note in done.left:
        yield from wrap_item(paint.warn("! left out"), note.because)


def _describe_sources(done: IndexOutcome) -> str:
    parts = [f"read the footers of {words.format_count(done.footers, 'file')}"]
    parts += [f"kept what was known of {words.format_number(done.kept)}"] if done.kept else []
    parts += [f"dropped {words.format_number(done.dropped)}"] if done.dropped else []
    if done.tidied:
        parts.append(f"removed {words.format_count(done.tidied, 'older version')}")
    return ", ".join(parts)


def sum_indexes(tables: Iterable[TableResult]) -> str:
    """How many indexes of all tables were written; nothing where none was."""
    done = sum(
        outcome.how == "completed"
        for table in tables
        for outcome in table.outcomes
        if outcome.indexed is not None
    )
    return f"{words.format_count(done, 'index', 'indexes')} updated" if done else ""
