"""What became of an index of column statistics, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.apply.result import Indexed, StepOutcome, TableResult
from reconciler.render import words
from reconciler.render.lines import item, more
from reconciler.render.paint import Paint


def what_was_indexed(outcome: StepOutcome, done: Indexed) -> str:
    """One clause: what became of an index step."""
    took = f", in {words.span(outcome.seconds)}" if outcome.seconds >= 1 else ""
    columns = words.count(len(done.columns), "column")
    files = words.count(done.files, "file")
    if outcome.how == "failed":
        said = "what was there before counts, and reads stay right"
    elif outcome.how == "nothing":
        said = "nothing to do any more"
    elif done.partitions:
        said = f"built {' and '.join(done.partitions)}: {columns} of {files}{took}"
    else:
        said = f"indexed {columns} of {files}, {words.size(done.bytes)}{took}"
    return said if done.target == "zindex" else f"{done.target} of the metadata table: {said}"


def of_indexed(done: Indexed, paint: Paint) -> Iterator[str]:
    """Lines below that clause: where it is, what was read for it, and what stayed out."""
    if done.error is not None:
        yield from item(paint.bad("! failed"), done.error)
    if done.version is not None:
        yield from more(done.version)
    if done.version is not None or done.partitions:
        yield from more(_made_of(done))
    for note in done.left:
        yield from item(paint.warn("! left out"), note.because)


def _made_of(done: Indexed) -> str:
    parts = [f"read the footers of {words.count(done.footers, 'file')}"]
    parts += [f"kept what was known of {words.number(done.kept)}"] if done.kept else []
    parts += [f"dropped {words.number(done.dropped)}"] if done.dropped else []
    if done.tidied:
        parts.append(f"removed {words.count(done.tidied, 'older version')}")
    return ", ".join(parts)


def all_indexed(tables: Iterable[TableResult]) -> str:
    """How many indexes of all tables were written; nothing where none was."""
    done = sum(
        outcome.how == "completed"
        for table in tables
        for outcome in table.outcomes
        if outcome.indexed is not None
    )
    return f"{words.count(done, 'index', 'indexes')} updated" if done else ""
