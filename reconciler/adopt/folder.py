"""Many live tables as a folder of specs: one file each, none overwritten, one failure not all's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Final, Literal

from reconciler.adopt.discover import Open
from reconciler.adopt.naming import Found, first_name, names_for
from reconciler.adopt.places import Places
from reconciler.adopt.table import Adopted, Wishes, adopt, spelt
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

    ``how``: ``written``; ``declared`` already, in ``file``; ``undecided``: a table of its name is
    declared in ``file``, and nothing says where; ``failed``. ``problem`` says why.
    """

    location: str
    how: Literal["written", "declared", "undecided", "failed"]
    file: str = ""
    problem: str = ""
    adopted: Adopted | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What a folder declares already: files by location; the names of tables and of files.

    ``homeless``: files by name of the tables whose place is not known.
    """

    files: Mapping[str, str]
    names: frozenset[str]
    homeless: Mapping[str, str]


def declared_in(folder: Path, places: Places | None = None) -> Taken:
    """Of every spec in a folder; nothing where it is not there yet.

    Raises SpecError for what is wrong in any of them: nobody could tell what they declare.
    """
    if not folder.is_dir():
        return Taken(files={}, names=frozenset(), homeless={})
    specs = _specs_in(folder, places)
    stems = {path.stem for path in folder.iterdir() if path.suffix in _ENDINGS}
    return Taken(
        files={identity(spec.path): spec.source for spec in specs if spec.path},
        names=frozenset({spec.name for spec in specs} | stems),
        homeless={spec.name: spec.source for spec in specs if not spec.path},
    )


def _specs_in(folder: Path, places: Places | None) -> Sequence[TableSpec]:
    if not any(path.suffix in _ENDINGS for path in folder.rglob("*")):
        return ()
    known = None if places is None or places.known is None else str(places.file.absolute())
    loaded = read_specs([folder], environment=known, may_be_empty=True, may_lack_paths=True)
    loaded.problems.raise_errors()
    return loaded.tables


@dataclass(frozen=True, slots=True)
class Adoption:
    """How tables are read and where their specs go.

    ``places``: the environment that is told where the tables are; None: their specs say.
    ``on_unlisted`` hears of the lines that its file cannot be given.
    """

    folder: Path
    opened: Open
    wishes: Wishes
    workers: Executor
    on_crash: OnCrash
    places: Places | None = None
    on_unlisted: Callable[[Sequence[str]], None] = lambda _: None

    def run(
        self, tables: Sequence[str], declared: Taken, tell: Callable[[Outcome], None]
    ) -> tuple[Outcome, ...]:
        """What became of each table, in order; ``tell`` hears of each as soon as it is done."""
        known = {at: file for at in tables if (file := declared.files.get(identity(at)))}
        fresh = [at for at in tables if at not in known]
        homeless = repeat(declared.homeless)
        looked = dict(zip(fresh, self.workers.map(self._identify, fresh, homeless), strict=True))
        found = [each for each in looked.values() if isinstance(each, Found)]
        done = [
            *(Outcome(location=at, how="declared", file=file) for at, file in known.items()),
            *(each for each in looked.values() if isinstance(each, Outcome)),
        ]
        for outcome in done:
            tell(outcome)
        names = self._names(found, declared)
        work = [self.workers.submit(self._adopt, at, name) for at, name in names.items()]
        try:
            for future in as_completed(work):
                done.append(future.result())
                tell(done[-1])
        finally:  # of whatever has a spec now, however this ends, the environment knows the place
            self._tell_places(work)
        return tuple(sorted(done, key=lambda outcome: outcome.location))

    def _identify(self, location: str, homeless: Mapping[str, str]) -> Found | Outcome:
        try:
            found = _found(self.opened(location))
        except Exception as error:  # noqa: BLE001 (one table must not stop the others)
            return self._failed(location, error)
        name = self._listed_as(location) or first_name(found)
        if name not in homeless:
            return found
        problem = f"nothing says where the {name} of {homeless[name]} is; if it is this table, say"
        where = "there" if self.places is None else f"in {self.places.file}"
        return Outcome(
            location=location,
            how="undecided",
            file=homeless[name],
            problem=f"{problem} {where}: {name}: {location}",
        )

    def _names(self, found: Sequence[Found], declared: Taken) -> Mapping[str, str]:
        """A name for every location; that of the environment, where it lists the location."""
        fixed = {
            each.location: name
            for each in found
            if (name := self._listed_as(each.location)) and name not in declared.names
        }
        free = [each for each in found if each.location not in fixed]
        listed = frozenset() if self.places is None else self.places.listed
        return {**names_for(free, declared.names | listed), **fixed}

    def _listed_as(self, location: str) -> str | None:
        return None if self.places is None else self.places.name_at(location)

    def _tell_places(self, work: Iterable[Future[Outcome]]) -> None:
        if self.places is None:
            return
        for future in work:
            future.cancel()
        ended = [future for future in work if not future.cancelled() and not future.exception()]
        adopted = [made for future in ended if (made := future.result().adopted)]
        base = self.places.file.parent if self.wishes.is_relative else None
        new = {
            each.name: spelt(each.location, base)
            for each in adopted
            if not self.places.has(each.name, each.location)
        }
        if lines := self.places.add(new):
            self.on_unlisted(lines)

    def _adopt(self, location: str, name: str) -> Outcome:
        file = f"{name}.yaml"
        zone = None if self.places is None else self.places.zone_of(name)
        try:
            wishes = replace(self.wishes, known_zone=zone)
            adopted = adopt(self.opened(location), name, wishes)
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


def with_defaults(
    folder: Path, outcomes: Iterable[Outcome], places: Places | None = None
) -> tuple[str, ...]:
    """Names of the written specs to which a TableDefaults of the folder gives another retention."""
    adopted = {each.adopted.name: each.adopted for each in outcomes if each.adopted is not None}
    return tuple(
        spec.name
        for spec in _specs_in(folder, places)
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
        (sum(each.how == "undecided" for each in outcomes), "for you to decide on"),
        (sum(each.how == "failed" for each in outcomes), "could not be adopted"),
    ]
    return "; ".join([line, *(f"{words.number(count)} {what}" for count, what in rest if count)])
