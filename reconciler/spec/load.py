"""From files to effective specs: the only way in, and every problem at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reconciler.errors import Problems, SourcePosition
from reconciler.spec.declarations import check_unique_names, read_declarations, select_kind
from reconciler.spec.effective_spec import (
    DeclaredTable,
    Defaults,
    build_effective_spec,
    check_distinct_places,
    check_paths_known,
    collect_defaults,
    place_table,
)
from reconciler.spec.environment import (
    Environment,
    build_environment,
    check_listed_tables,
    choose_environment,
    list_environment_names,
)
from reconciler.spec.model import TableSpec
from reconciler.spec.policy import Guardrail, collect_guardrails, find_inherited_policies
from reconciler.spec.spec_files import DISK, FileTree, find_spec_files


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSpecs:
    """What files declare. ``tables`` (sorted by name) has none of a file with an error.

    ``problems`` are errors and warnings in the order of the files' lines.
    """

    tables: tuple[TableSpec, ...]
    guardrails: tuple[Guardrail, ...]
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
    source: FileTree = DISK,
    *,
    environment: str | None = None,
    may_be_empty: bool = False,
    may_lack_paths: bool = False,
) -> LoadedSpecs:
    """Everything files and folders declare, with errors and warnings; raises nothing.

    ``source`` is where they are read from, ``environment`` the name of one or its file. That they
    declare no table, or one without a path, is an error unless it may be.
    """
    problems = Problems()
    files = find_spec_files(paths, problems, source)
    found = [each for file in files for each in read_declarations(file, problems, source)]
    above = find_inherited_policies(paths, files, problems, source)
    found += above.declarations
    check_unique_names(found, problems)
    guards = collect_guardrails(found, above.policy_folders, problems)
    known = [build_environment(each, problems) for each in select_kind("Environment", found)]
    there = choose_environment(environment, paths, files, problems, source) if environment else None
    is_lost = bool(environment) and there is None
    wanted = [place_table(each, there) for each in select_kind("HudiTable", found)]
    defaults = collect_defaults(select_kind("TableDefaults", found), problems)
    tables = _build_specs(wanted, defaults, there, problems)
    check_distinct_places(wanted, problems)
    if not may_lack_paths and not is_lost:
        check_paths_known(wanted, there, lambda: list_environment_names(paths, source), problems)
    is_empty = not (found if may_lack_paths else wanted)
    if is_empty and not may_be_empty and not problems.errors:
        where = ", ".join(map(str, paths))
        problems.error(
            SourcePosition(where), "", "declares no table", "add a document with kind: HudiTable"
        )
    _check_listed_tables(
        known if may_lack_paths and not environment else [there], wanted, paths, problems
    )
    damaged = {problem.position.file for problem in problems.errors}
    sound = [(spec, each) for spec, each in tables if spec.source not in damaged and not is_lost]
    return LoadedSpecs(
        tables=tuple(
            sorted((_attach_policies(*each, guards) for each in sound), key=lambda s: s.name)
        ),
        guardrails=guards,
        problems=problems,
    )


def _check_listed_tables(
    environments: Iterable[Environment | None],
    tables: Sequence[DeclaredTable],
    paths: Sequence[Path],
    problems: Problems,
) -> None:
    """Where all is well so far: the tables that environments list are among those declared."""
    if tables and not problems.errors:
        for environment in environments:
            if environment is not None:
                check_listed_tables(
                    environment, [each.declaration.name for each in tables], paths, problems
                )


def _build_specs(
    tables: Iterable[DeclaredTable],
    defaults: Sequence[Defaults],
    environment: Environment | None,
    problems: Problems,
) -> list[tuple[TableSpec, DeclaredTable]]:
    made = ((build_effective_spec(each, defaults, environment, problems), each) for each in tables)
    return [(spec, each) for spec, each in made if spec is not None]


def _attach_policies(
    spec: TableSpec, table: DeclaredTable, guardrails: Iterable[Guardrail]
) -> TableSpec:
    """With the policies over the table, wherever an environment has moved it."""
    places = [] if table.own_placement is None else [table.own_placement.path]
    found = tuple(guard.policy for guard in guardrails if guard.covers(spec, *places))
    return replace(spec, guarded_by=found) if found else spec
