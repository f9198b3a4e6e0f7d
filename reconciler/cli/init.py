"""``reconciler init``: first specs, of nothing or of live tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.terminal import emit, progress, say
from reconciler.errors import AlreadyExistsError, NotFoundError, StorageError, UsageError
from reconciler.render import words

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from reconciler.adopt.discover import Search
    from reconciler.adopt.folder import Outcome
    from reconciler.adopt.table import Wishes
    from reconciler.storage.api import Storage

_ENDINGS = (".yaml", ".yml")


def init(
    paths: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="A live table, a folder or URL below which tables are searched, or a glob "
            "('s3://lake/*/orders*'); repeatable.",
        ),
    ] = None,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write to this new file instead; of several tables: one file each in this folder.",
        ),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option("--depth", min=0, help="Search at most so many folders below a PATH."),
    ] = None,
    relative: Annotated[
        bool, typer.Option("--relative", help="Write local paths relative to the spec.")
    ] = False,
    timezone: Annotated[
        str | None,
        typer.Option(
            "--timezone",
            metavar="ZONE",
            help="The writers' zone, for tables that do not tell theirs; as Europe/Berlin.",
        ),
    ] = None,
    parallelism: Annotated[
        int, typer.Option("--parallelism", min=1, help="How many tables are read at a time.")
    ] = 4,
) -> int:
    """Write a commented spec. With --from, of live tables, such that its plan is empty."""
    if output is not None and output.exists() and not output.is_dir():
        raise AlreadyExistsError(str(output), "exists already and is not overwritten")
    if not paths:
        from reconciler.adopt.text import SKELETON  # noqa: PLC0415

        return _hand_out(SKELETON, output)
    if timezone is not None:
        _check_zone(timezone)
    with _workers(parallelism) as workers:
        search = _search(paths, depth, workers)
        folder = _folder(search, output)
        base = folder or (output.parent if output else Path())
        wishes = _wishes(timezone, base if relative else None)
        if folder is None:
            return _hand_out(_adopted(search.tables[0], wishes), output)
        return _adopt_all(search, folder, wishes, workers)


def _hand_out(text: str, output: Path | None) -> int:
    """Print one spec, or write it to a new file."""
    if output is None:
        emit(text)
        return 0
    if output.is_dir():
        raise AlreadyExistsError(str(output), "is a folder; name the file to write")
    if not output.parent.is_dir():
        raise NotFoundError(str(output.parent), "is not there; make the folder first")
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise StorageError(str(output), error.strerror or str(error)) from None
    say(f"wrote {output}; read its comments, then `reconciler plan {output}`")
    return 0


def _check_zone(timezone: str) -> None:
    from reconciler.spec.words import zone_problem  # noqa: PLC0415

    if problem := zone_problem(timezone):
        raise UsageError(f"--timezone: {problem}")


def _wishes(timezone: str | None, relative_to: Path | None) -> Wishes:
    from reconciler import world  # noqa: PLC0415
    from reconciler.adopt.table import Wishes  # noqa: PLC0415

    now = world.now()
    return Wishes(now=now, now_ms=world.epoch_ms(now), timezone=timezone, relative_to=relative_to)


@contextmanager
def _workers(count: int) -> Iterator[ThreadPoolExecutor]:
    """Threads that, when interrupted, finish the table they are at and begin no other."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    workers = ThreadPoolExecutor(count)
    try:
        yield workers
    except BaseException:
        workers.shutdown(cancel_futures=True)
        raise
    workers.shutdown()


def _search(paths: list[str], depth: int | None, workers: ThreadPoolExecutor) -> Search:
    from reconciler.adopt.discover import find_tables  # noqa: PLC0415

    search = find_tables(paths, _opened, workers=workers, depth=depth)
    for problem in search.problems:
        say(f"not searched: {words.plain(problem)}")
    return search


def _opened(location: str) -> Storage:
    from reconciler.storage.open import open_storage  # noqa: PLC0415
    from reconciler.storage.wrappers import ReadOnly  # noqa: PLC0415

    return ReadOnly(open_storage(location))


def _folder(search: Search, output: Path | None) -> Path | None:
    """The folder that specs go to; None where one spec is printed or written to a file."""
    count = len(search.tables)
    if output is not None and output.is_dir():
        return output
    if search.is_one or (count == 1 and (output is None or output.suffix in _ENDINGS)):
        return None
    if not count:
        raise StorageError("--from", "finds no table that can be read")
    if output is None or output.suffix in _ENDINGS:
        raise UsageError(f"{words.count(count, 'table')} found; -o FOLDER takes a spec for each")
    return output


def _adopted(location: str, wishes: Wishes) -> str:
    from reconciler.adopt.folder import named  # noqa: PLC0415
    from reconciler.adopt.table import adopt  # noqa: PLC0415

    storage = _opened(location)
    adopted = adopt(storage, named(storage), wishes)
    if adopted.refused is not None:
        say(f"{location}: its plan is refused, whatever is declared: {adopted.refused}")
    return adopted.text


def _adopt_all(search: Search, folder: Path, wishes: Wishes, workers: ThreadPoolExecutor) -> int:
    from reconciler.adopt.folder import (  # noqa: PLC0415
        Adoption,
        declared_in,
        summary,
        with_defaults,
    )
    from reconciler.cli.failures import explain_crash  # noqa: PLC0415

    declared = declared_in(folder)
    folder.mkdir(parents=True, exist_ok=True)
    adoption = Adoption(folder, _opened, wishes, workers, explain_crash)
    with progress("adopting", len(search.tables), "tables") as tell:
        done = adoption.run(search.tables, declared, lambda each: tell(1, _line(each)))
    for each in done:
        if each.how == "failed":
            say(f"{words.plain(each.location)}: {words.plain(each.problem)}")
    if changed := with_defaults(folder, done):
        say(
            f"the TableDefaults in {folder} give {words.count(len(changed), 'table')} another "
            f"retention, so look at their plans: {', '.join(changed)}"
        )
    say(summary(done, folder))
    say(f"next: reconciler lint {folder} && reconciler plan {folder}")
    return 1 if search.problems or any(each.how == "failed" for each in done) else 0


def _line(outcome: Outcome) -> str:
    if outcome.adopted is not None:
        return f"{outcome.file}: {outcome.adopted.headline}"
    if outcome.how == "declared":
        return f"{words.plain(outcome.location)}: declared already in {outcome.file}"
    return f"{words.plain(outcome.location)}: failed"
