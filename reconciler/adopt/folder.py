"""Many live tables as a folder of specs: one file each, none overwritten, one failure not all's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from reconciler.adopt.discover import Open
from reconciler.adopt.naming import Found, names_for
from reconciler.adopt.table import Adopted, Wishes, adopt
from reconciler.errors import ReconcilerError
from reconciler.hudi.load import load_properties
from reconciler.render import words
from reconciler.spec.load import read_specs
from reconciler.spec.locations import identity
from reconciler.spec.model import TableSpec
from reconciler.storage.api import Storage
from reconciler.storage.local import LocalStorage

_DATABASE: Final = "hoodie.database.name"
_ENDINGS: Final = (".yaml", ".yml")

#: hears of an error that is this program's own
OnCrash = Callable[[str, Exception], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one table. ``file`` is its spec's, new or already there.

    ``how``: ``written``; ``declared`` already, in ``file``; ``failed``, ``problem`` says why.
    """

    location: str
    how: Literal["written", "declared", "failed"]
    file: str = ""
    problem: str = ""
    adopted: Adopted | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What a folder declares already: files by location; the names of tables and of files."""

    files: Mapping[str, str]
    names: frozenset[str]


def declared_in(folder: Path) -> Taken:
    """Of every spec in a folder; nothing where it is not there yet.

    Raises SpecError for what is wrong in any of them: nobody could tell what they declare.
    """
    if not folder.is_dir():
        return Taken(files={}, names=frozenset())
    specs = _specs_in(folder)
    stems = {path.stem for path in folder.iterdir() if path.suffix in _ENDINGS}
    return Taken(
        files={identity(spec.path): spec.source for spec in specs},
        names=frozenset({spec.name for spec in specs} | stems),
    )


def _specs_in(folder: Path) -> Sequence[TableSpec]:
    if not any(path.suffix in _ENDINGS for path in folder.rglob("*")):
        return ()
    loaded = read_specs([folder], may_be_empty=True)
    loaded.problems.raise_errors()
    return loaded.tables


@dataclass(frozen=True, slots=True)
class Adoption:
    """How tables are read and where their specs go."""

    folder: Path
    opened: Open
    wishes: Wishes
    workers: Executor
    on_crash: OnCrash

    def run(
        self, tables: Sequence[str], declared: Taken, tell: Callable[[Outcome], None]
    ) -> tuple[Outcome, ...]:
        """What became of each table, in order; ``tell`` hears of each as soon as it is done."""
        known = {at: file for at in tables if (file := declared.files.get(identity(at)))}
        fresh = [at for at in tables if at not in known]
        looked = dict(zip(fresh, self.workers.map(self._identify, fresh), strict=True))
        found = [each for each in looked.values() if isinstance(each, Found)]
        names = names_for(found, declared.names)
        done = [
            *(Outcome(location=at, how="declared", file=file) for at, file in known.items()),
            *(each for each in looked.values() if isinstance(each, Outcome)),
        ]
        for outcome in done:
            tell(outcome)
        work = [self.workers.submit(self._adopt, at, name) for at, name in names.items()]
        for future in as_completed(work):
            done.append(future.result())
            tell(done[-1])
        return tuple(sorted(done, key=lambda outcome: outcome.location))

    def _identify(self, location: str) -> Found | Outcome:
        try:
            return _found(self.opened(location))
        except Exception as error:  # noqa: BLE001 (one table must not stop the others)
            return self._failed(location, error)

    def _adopt(self, location: str, name: str) -> Outcome:
        file = f"{name}.yaml"
        try:
            adopted = adopt(self.opened(location), name, self.wishes)
            LocalStorage(str(self.folder.resolve())).create(file, adopted.text.encode())
        except Exception as error:  # noqa: BLE001 (one table must not stop the others)
            return self._failed(location, error)
        return Outcome(
            location=location,
            how="written",
            file=str(self.folder / file),
            adopted=replace(adopted, text=""),  # hundreds of them need not stay
        )

    def _failed(self, location: str, error: Exception) -> Outcome:
        problem = str(error)
        if not isinstance(error, ReconcilerError):
            self.on_crash(location, error)
            problem = (
                f"{type(error).__name__}: {error} (an error of this program, please report it)"
            )
        return Outcome(location=location, how="failed", problem=problem)


def named(storage: Storage) -> str:
    """The name of one table that stands alone."""
    (name,) = names_for([_found(storage)]).values()
    return name


def _found(storage: Storage) -> Found:
    properties = load_properties(storage)
    database = properties.raw.get(_DATABASE, "")
    return Found(location=storage.location, table=properties.table_name, database=database)


def with_defaults(folder: Path, outcomes: Iterable[Outcome]) -> tuple[str, ...]:
    """Names of the written specs to which a TableDefaults of the folder gives another retention."""
    adopted = {each.adopted.name: each.adopted for each in outcomes if each.adopted is not None}
    return tuple(
        spec.name
        for spec in _specs_in(folder)
        if (made := adopted.get(spec.name)) and spec.retention != made.retention
    )


def summary(outcomes: Sequence[Outcome], folder: Path) -> str:
    """One line about all of them."""
    written = [each.adopted for each in outcomes if each.adopted is not None]
    parts = [
        (sum(each.retention is not None for each in written), "with retention"),
        (sum(each.is_open for each in written), "with one left to you"),
        (
            sum(each.retention is None and not each.is_open for each in written),
            "without (no clean tells)",
        ),
        (sum(each.refused is not None for each in written), "whose plan is refused"),
    ]
    how = ", ".join(f"{words.number(count)} {what}" for count, what in parts if count)
    total = words.count(len(outcomes), "table")
    line = f"wrote {words.number(len(written))} of {total} to {folder}/{': ' if how else ''}{how}"
    rest = [
        (sum(each.how == "declared" for each in outcomes), "declared already"),
        (sum(each.how == "failed" for each in outcomes), "could not be adopted"),
    ]
    return "; ".join([line, *(f"{words.number(count)} {what}" for count, what in rest if count)])
