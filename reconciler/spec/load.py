"""Loading spec files: from files and folders to effective specs, with every problem at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from reconciler.errors import Problem, Problems
from reconciler.lazy_dataclass import dataclass
from reconciler.spec.declarations import check_unique_names, read_declarations, select_kind
from reconciler.spec.effective_spec import (
    DeclaredTable,
    Defaults,
    Locator,
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
from reconciler.spec.policy import (
    Guardrail,
    check_covered,
    collect_guardrails,
    find_inherited_policies,
)
from reconciler.spec.spec_files import DISK, FileTree, SpecFiles

Location = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSpecs:
    """The declarations of spec files.

    ``tables``: effective specs sorted by name, without those of files with an error. ``problems``:
    errors and warnings in the order of files and lines. ``table_warnings``: the warnings about each
    table by its name; ``default_warnings``: those about TableDefaults; ``listing_warnings``: those
    about tables that an environment lists and nobody declares.
    """

    tables: tuple[TableSpec, ...]
    guardrails: tuple[Guardrail, ...]
    problems: Problems
    table_warnings: Mapping[str, frozenset[Problem]] = field(default_factory=dict)
    default_warnings: frozenset[Problem] = frozenset()
    listing_warnings: frozenset[Problem] = frozenset()

    def list_warnings(self, selected: Iterable[TableSpec] | None) -> tuple[Problem, ...]:
        """Return the warnings without those about tables that are not selected; None selects all.

        Warnings about policies are always among them.
        """
        warnings = self.problems.warnings
        if selected is None:
            return warnings
        wanted = frozenset().union(*(self.table_warnings.get(spec.name, ()) for spec in selected))
        others = self.default_warnings.union(self.listing_warnings, *self.table_warnings.values())
        others -= wanted
        return tuple(warning for warning in warnings if warning not in others)


def load_specs(
    paths: Location | Sequence[Location],
    environment: Location | None = None,
    *,
    policies: Location | Sequence[Location] = (),
    require_policies: bool = False,
    locate: Locator | None = None,
) -> tuple[TableSpec, ...]:
    """Return the effective specs of files and folders, sorted by name.

    ``policies`` and ``locate`` are those of ``read_specs``; if policies are required, a table that
    none covers is an error.
    Raises SpecError with every error, one per line: ``file:line:column: field: problem; hint``.
    """
    name = None if environment is None else os.fspath(environment)
    guards = _list_paths(policies)
    loaded = read_specs(_list_paths(paths), environment=name, policies=guards, locate=locate)
    if require_policies:
        check_covered(loaded.tables, len(loaded.guardrails), loaded.problems)
    loaded.problems.raise_errors()
    return loaded.tables


def _list_paths(paths: Location | Sequence[Location]) -> list[Path]:
    return [Path(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]


def read_specs(  # noqa: PLR0913 (what every command may ask for)
    paths: Sequence[Path],
    source: FileTree = DISK,
    *,
    environment: str | None = None,
    policies: Sequence[Path] = (),
    may_be_empty: bool = False,
    may_lack_paths: bool = False,
    locate: Locator | None = None,
) -> LoadedSpecs:
    """Return everything that files and folders declare, with errors and warnings.

    ``source``: where the files are read from. ``environment``: the name of an environment, or its
    file. ``policies``: files and folders of policies, beside those that are found. No table at
    all, or a table without a path, is an error unless the flags allow it. ``locate``: finds tables
    in their catalogs; without it they get no path, which is no error.
    """
    problems = Problems()
    files = SpecFiles(problems, source)
    named = files.find_files(paths)
    items = [item for file in named for item in read_declarations(file, files)]
    inherited = find_inherited_policies(paths, named, files, policies)
    items += inherited.declarations
    check_unique_names(items, problems)
    guardrails = collect_guardrails(items, inherited.policy_folders, problems)
    known = [build_environment(item, problems) for item in select_kind("Environment", items)]
    chosen = choose_environment(environment, paths, named, files) if environment else None
    is_lost = bool(environment) and chosen is None
    declared = [
        place_table(item, chosen, locate, problems) for item in select_kind("HudiTable", items)
    ]
    default_problems = Problems()
    defaults = collect_defaults(select_kind("TableDefaults", items), default_problems)
    problems.extend(default_problems)
    built = _build_specs(declared, defaults, chosen, problems)
    check_distinct_places(declared, problems)
    if not may_lack_paths and not is_lost:
        check_paths_known(declared, chosen, lambda: list_environment_names(paths, source), problems)
    if not (items if may_lack_paths else declared) and not may_be_empty and not problems.errors:
        place = ", ".join(map(str, paths))
        problems.file_error(place, "declares no table", "add a document with kind: HudiTable")
    environments = known if may_lack_paths and not environment else [chosen]
    listing_warnings = _check_listed_tables(environments, declared, paths, problems)
    return LoadedSpecs(
        tables=() if is_lost else _finish_tables(built, guardrails, problems),
        guardrails=guardrails,
        problems=problems,
        table_warnings={item.table.declaration.name: item.warnings for item in built},
        default_warnings=frozenset(default_problems.warnings),
        listing_warnings=listing_warnings,
    )


def _check_listed_tables(
    environments: Iterable[Environment | None],
    tables: Sequence[DeclaredTable],
    paths: Sequence[Path],
    problems: Problems,
) -> frozenset[Problem]:
    """Warn, if there is no error so far, about tables that environments list and nobody declares.

    Returns the warnings.
    """
    if not tables or problems.errors:
        return frozenset()
    found = Problems()
    names = [table.declaration.name for table in tables]
    for environment in environments:
        if environment is not None:
            check_listed_tables(environment, names, paths, found)
    problems.extend(found)
    return frozenset(found.warnings)


def _finish_tables(
    built: Iterable[_BuiltSpec], guardrails: Iterable[Guardrail], problems: Problems
) -> tuple[TableSpec, ...]:
    """Return the specs of files without an error, with their policies, sorted by name."""
    damaged = {problem.position.file for problem in problems.errors}
    tables = [
        _attach_policies(item.spec, item.table, guardrails)
        for item in built
        if item.spec is not None and item.spec.source not in damaged
    ]
    return tuple(sorted(tables, key=lambda spec: spec.name))


@dataclass(frozen=True, slots=True)
class _BuiltSpec:
    """A declared table, its effective spec (None after an error), and the warnings about it."""

    table: DeclaredTable
    spec: TableSpec | None
    warnings: frozenset[Problem]


def _build_specs(
    tables: Iterable[DeclaredTable],
    defaults: Sequence[Defaults],
    environment: Environment | None,
    problems: Problems,
) -> list[_BuiltSpec]:
    built = []
    for table in tables:
        found = Problems()
        spec = build_effective_spec(table, defaults, environment, found, known=problems)
        built.append(_BuiltSpec(table, spec, frozenset(found.warnings)))
        problems.extend(found)
    return built


def _attach_policies(
    spec: TableSpec, table: DeclaredTable, guardrails: Iterable[Guardrail]
) -> TableSpec:
    """Return the spec with the policies that cover it, at its own path or the environment's."""
    places = [] if table.own_placement is None else [table.own_placement.path]
    rules = tuple(guardrail.policy for guardrail in guardrails if guardrail.covers(spec, *places))
    return replace(spec, guarded_by=rules) if rules else spec
