"""From files to effective specs: the only way in, and every problem at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reconciler.diagnostics import Place, Problems
from reconciler.spec.declarations import check_names, declarations, of_kind
from reconciler.spec.effective import (
    Declared,
    Defaults,
    check_paths,
    check_places,
    declared,
    defaults_of,
    effective,
)
from reconciler.spec.environment import (
    Environment,
    check_listed,
    chosen,
    environment_of,
    names_above,
)
from reconciler.spec.model import TableSpec
from reconciler.spec.policy import Guardrail, guardrails, policies_above
from reconciler.spec.sources import DISK, Files, spec_files


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What files declare. ``tables`` (sorted by name) has none of a file with an error.

    ``problems`` are errors and warnings in the order of the files' lines.
    """

    tables: tuple[TableSpec, ...]
    guards: tuple[Guardrail, ...]
    problems: Problems


def load_specs(paths: Sequence[Path], environment: str | None = None) -> tuple[TableSpec, ...]:
    """The effective specs of files and folders, sorted by name.

    Raises SpecError with every error, a line each: ``file:line:column: field: what; what to do``.
    """
    loaded = read_specs(paths, environment=environment)
    loaded.problems.raise_errors()
    return loaded.tables


def read_specs(
    paths: Sequence[Path],
    source: Files = DISK,
    *,
    environment: str | None = None,
    may_be_empty: bool = False,
    may_lack_paths: bool = False,
) -> Loaded:
    """Everything files and folders declare, with errors and warnings; raises nothing.

    ``source`` is where they are read from, ``environment`` the name of one or its file. That they
    declare no table, or one without a path, is an error unless it may be.
    """
    problems = Problems()
    files = spec_files(paths, problems, source)
    found = [each for file in files for each in declarations(file, problems, source)]
    above = policies_above(paths, files, problems, source)
    found += above.declarations
    check_names(found, problems)
    guards = guardrails(found, above.homes, problems)
    known = [environment_of(each, problems) for each in of_kind("Environment", found)]
    there = chosen(environment, paths, files, problems, source) if environment else None
    is_lost = bool(environment) and there is None
    wanted = [declared(each, there) for each in of_kind("HudiTable", found)]
    defaults = defaults_of(of_kind("TableDefaults", found), problems)
    tables = _tables(wanted, defaults, there, problems)
    check_places(wanted, problems)
    if not may_lack_paths and not is_lost:
        check_paths(wanted, there, lambda: names_above(paths, source), problems)
    is_empty = not (found if may_lack_paths else wanted)
    if is_empty and not may_be_empty and not problems.errors:
        where = ", ".join(map(str, paths))
        problems.error(Place(where), "", "declares no table", "add a document with kind: HudiTable")
    _check_listed(known if may_lack_paths and not environment else [there], wanted, paths, problems)
    damaged = {problem.place.file for problem in problems.errors}
    sound = [(spec, each) for spec, each in tables if spec.source not in damaged and not is_lost]
    return Loaded(
        tables=tuple(sorted((_guarded(*each, guards) for each in sound), key=lambda s: s.name)),
        guards=guards,
        problems=problems,
    )


def _check_listed(
    environments: Iterable[Environment | None],
    wanted: Sequence[Declared],
    paths: Sequence[Path],
    problems: Problems,
) -> None:
    """Where all is well so far: the tables that environments list are among those declared."""
    if wanted and not problems.errors:
        for environment in environments:
            if environment is not None:
                check_listed(environment, [each.by.name for each in wanted], paths, problems)


def _tables(
    wanted: Iterable[Declared],
    defaults: Sequence[Defaults],
    environment: Environment | None,
    problems: Problems,
) -> list[tuple[TableSpec, Declared]]:
    made = ((effective(each, defaults, environment, problems), each) for each in wanted)
    return [(spec, each) for spec, each in made if spec is not None]


def _guarded(spec: TableSpec, by: Declared, guards: Iterable[Guardrail]) -> TableSpec:
    """With the policies over the table, wherever an environment has moved it."""
    places = [] if by.own is None else [by.own.path]
    found = tuple(guard.policy for guard in guards if guard.covers(spec, *places))
    return replace(spec, guarded_by=found) if found else spec
