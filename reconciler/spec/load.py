"""From files to effective specs: the only way in, and every problem at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reconciler.diagnostics import Place, Problem, Problems, shown
from reconciler.spec import locations
from reconciler.spec.declarations import Declaration, check_names, declarations, of_kind
from reconciler.spec.document import document_of
from reconciler.spec.grammar import DEFAULTS_SPEC, TABLE_SPEC
from reconciler.spec.model import TableSpec
from reconciler.spec.nodes import MappingNode, ScalarNode
from reconciler.spec.overlay import Selector, overlay, provenance, selector
from reconciler.spec.policy import Guardrail, guardrails, policies_above
from reconciler.spec.reading import INVALID, Reader
from reconciler.spec.rules import Rules
from reconciler.spec.sources import DISK, Files, spec_files
from reconciler.spec.validate import spec_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What files declare. ``tables`` (sorted by name) has none of a file with an error.

    ``problems`` are errors and warnings in the order of the files' lines.
    """

    tables: tuple[TableSpec, ...]
    guards: tuple[Guardrail, ...]
    problems: Problems


@dataclass(frozen=True, slots=True)
class _Defaults:
    selector: Selector
    spec: MappingNode


def load_specs(paths: Sequence[Path]) -> tuple[TableSpec, ...]:
    """The effective specs of files and folders, sorted by name.

    Raises SpecError with every error, a line each: ``file:line:column: field: what; what to do``.
    """
    loaded = read_specs(paths)
    loaded.problems.raise_errors()
    return loaded.tables


def read_specs(
    paths: Sequence[Path], source: Files = DISK, *, may_be_empty: bool = False
) -> Loaded:
    """Everything files and folders declare, with errors and warnings; raises nothing.

    ``source`` is where they are read from. That they declare no table is an error unless it may be.
    """
    problems = Problems()
    files = spec_files(paths, problems, source)
    found = [each for file in files for each in declarations(file, problems, source)]
    found += policies_above(files, problems, source)
    check_names(found, problems)
    defaults = _defaults(of_kind("TableDefaults", found), problems)
    guards = guardrails(found, problems)
    wanted = of_kind("HudiTable", found)
    tables = [spec for each in wanted if (spec := _table(each, defaults, problems))]
    _check_places(wanted, problems)
    if not wanted and not may_be_empty and not problems.errors:
        where = ", ".join(map(str, paths))
        problems.error(Place(where), "", "declares no table", "add a document with kind: HudiTable")
    damaged = {problem.place.file for problem in problems.errors}
    guarded = [_guarded(spec, guards) for spec in tables if spec.source not in damaged]
    return Loaded(
        tables=tuple(sorted(guarded, key=lambda spec: spec.name)),
        guards=guards,
        problems=problems,
    )


def _guarded(spec: TableSpec, guards: Iterable[Guardrail]) -> TableSpec:
    found = tuple(guard.policy for guard in guards if guard.covers(spec))
    return replace(spec, guarded_by=found) if found else spec


def _defaults(declarations: Iterable[Declaration], problems: Problems) -> list[_Defaults]:
    """Less specific ones first, then in the order of the files."""
    found = []
    for each in declarations:
        data = Reader(problems, partial=True).block(each.spec, DEFAULTS_SPEC, "spec")
        Rules(problems, partial=True).check(data, each.spec, "spec")
        found.append(_Defaults(selector(each.head.get("selector", {}), each.folder), each.spec))
    return sorted(found, key=lambda defaults: defaults.selector.conditions)


def _table(
    declaration: Declaration, defaults: Iterable[_Defaults], problems: Problems
) -> TableSpec | None:
    """The effective spec, None after an error."""
    found = Problems()
    path = _location(declaration)
    node = _effective(declaration, path, defaults)
    data = Reader(found).block(node, TABLE_SPEC, "spec")
    Rules(found).check(data, node, "spec")
    if path == "/":
        found.error(node.place("path"), "spec.path", "is the root folder", "no table is there")
    if path is not None and not path.isprintable():
        message = f"lies in {shown(path)}, which is not plain text"
        found.error(node.place("path"), "spec.path", message, "rename the folder")
    problems.extend(_blamed(problem, declaration, problems) for problem in found)
    if found.errors or path is None or data is INVALID:
        return None
    head = {key: declaration.head["metadata"].get(key) for key in ("labels", "owner")}
    given = {key: value for key, value in head.items() if value is not None}
    spec = replace(
        spec_of({**data, **given}, name=declaration.name, path=path),
        source=declaration.file,
        provenance=dict(provenance(node)),
    )
    return replace(spec, document=document_of(spec))


def _blamed(problem: Problem, declaration: Declaration, known: Problems) -> Problem:
    """A problem that only this table has, with values from another file, is said at the table."""
    if problem.place.file == declaration.file or problem in known:
        return problem
    message = f"{problem.message}, with the defaults of {problem.place}"
    return replace(problem, place=declaration.node.place("spec"), message=message)


def _location(declaration: Declaration) -> str | None:
    node = declaration.spec.get("path")
    if not isinstance(node, ScalarNode) or not isinstance(node.value, str) or "\0" in node.value:
        return None
    return locations.resolved(node.value, declaration.folder)


def _effective(
    declaration: Declaration, path: str | None, defaults: Iterable[_Defaults]
) -> MappingNode:
    base = MappingNode(declaration.spec.at, {})
    for layer in defaults:
        if layer.selector.selects(declaration.labels, path):
            base = overlay(base, layer.spec, TABLE_SPEC)
    return overlay(base, declaration.spec, TABLE_SPEC)


def _check_places(declarations: Iterable[Declaration], problems: Problems) -> None:
    first: dict[str, tuple[str, Place]] = {}
    for each in declarations:
        path = _location(each)
        if path is None:
            continue
        at = each.spec.place("path")
        name, known = first.setdefault(locations.identity(path), (each.name, at))
        if known != at:
            message = f"the table at {path} is declared already, as {name} in {known}"
            problems.error(at, "spec.path", message, "keep one of them")
