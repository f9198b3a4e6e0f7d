"""Selection of the tables that a command works on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler import runtime
from reconciler.cli.options import PolicyOptions, Selectors
from reconciler.cli.terminal import log_message
from reconciler.errors import UsageError
from reconciler.lazy_dataclass import dataclass
from reconciler.render import words
from reconciler.spec.load import LoadedSpecs, read_specs
from reconciler.spec.model import TableSpec
from reconciler.spec.policy import check_covered, warn_about_unused_waivers
from reconciler.spec.spec_files import FileTree
from reconciler.state.catalogs.open import TableLocator

if TYPE_CHECKING:
    from datetime import date

    from reconciler.plans.model import Selection


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedTables:
    """The selected tables, by name; ``selection`` is None without selectors."""

    tables: tuple[TableSpec, ...]
    selection: Selection | None = None


def select_specs(  # noqa: PLR0913 (what every command may ask for)
    paths: Sequence[Path],
    selectors: Selectors | None = None,
    environment: str | None = None,
    *,
    guards: PolicyOptions | None = None,
    works_on: Callable[[TableSpec], bool] | None = None,
    may_lack_paths: bool = False,
    with_catalogs: bool = True,
    today: date | None = None,
) -> SelectedTables:
    """Load the specs at the paths and return those that match every selector.

    Writes warnings about the selected tables, and how many tables are left. Raises SpecError for
    errors in any file, selected or not. Raises UsageError if names and labels leave no table: that
    is a mistake. ``--changed-since`` may leave none. ``works_on``: whether the command works on a
    table, if not on all; others are returned without warnings about them, and without the policies
    that ``guards`` may require. Without ``with_catalogs`` no catalog is asked, and their tables get
    no location. With ``today``, a day in UTC, it also warns about waivers that have no effect.
    """
    guards = guards or PolicyOptions()
    read = _choose_reader(environment, guards, with_catalogs=with_catalogs)
    loaded = read(paths, may_lack_paths=may_lack_paths)
    if today is not None:
        warn_about_unused_waivers(
            loaded.guardrails, loaded.tables, paths=paths, today=today, problems=loaded.problems
        )
    selected = None if selectors is None else _select_by_name(loaded.tables, selectors)
    if loaded.problems.errors:
        _log_warnings(loaded, selected)
    loaded.problems.raise_errors()
    by = () if selectors is None else selectors.arguments()
    where = "" if environment is None else f", environment {environment}"
    tables = words.format_count(len(loaded.tables), "table")
    log_message(f"loaded {tables} from {', '.join(map(str, paths))}{where}", level="debug")
    if selectors is None or selected is None or not by:
        used = loaded.tables if works_on is None else tuple(filter(works_on, loaded.tables))
        _log_warnings(loaded, None if works_on is None else used)
        _check_guards(used, loaded, guards)
        return SelectedTables(tables=loaded.tables)
    _check_any_selected(selected, loaded)
    removed: tuple[str, ...] = ()
    if selectors.changed_since is not None:
        selected, removed = _select_changed(selected, loaded, paths, selectors, read)
    used = tuple(filter(works_on or (lambda _: True), selected))
    _log_warnings(loaded, used)
    _check_guards(used, loaded, guards)
    return _report_selection(selected, len(loaded.tables), by, removed)


def select_one_spec(
    paths: Sequence[Path], selectors: Selectors, environment: str | None, command: str
) -> TableSpec:
    """Return the only selected spec; UsageError if there are several, or none."""
    chosen = select_specs(paths, selectors, environment)
    if len(chosen.tables) != 1:
        tables = words.format_tables(len(chosen.tables), chosen.selection)
        raise UsageError(f"{tables} selected, but {command} takes one; choose it with --name")
    return chosen.tables[0]


def _choose_reader(
    environment: str | None, guards: PolicyOptions, *, with_catalogs: bool
) -> Callable[..., LoadedSpecs]:
    """Return ``read_specs`` with these options."""
    locator = TableLocator(runtime.open_catalog) if with_catalogs else None
    return partial(_read_specs, locator, environment=environment, policies=guards.policies or ())


def _read_specs(locator: TableLocator | None, *args: Any, **options: Any) -> LoadedSpecs:
    """Read specs, and find tables in their catalogs; connections are closed afterwards."""
    if locator is None:
        return read_specs(*args, **options)
    with closing(locator):
        return read_specs(*args, locate=locator.locate, **options)


def _report_selection(
    tables: tuple[TableSpec, ...], total: int, by: tuple[str, ...], removed: tuple[str, ...]
) -> SelectedTables:
    """Return the selected tables, after a message about how many there are."""
    from reconciler.plans.model import Selection  # noqa: PLC0415 (numpy; few commands need it)

    selection = Selection(tables=len(tables), total=total, by=by, removed=removed)
    log_message(f"{words.format_tables(len(tables), selection)} selected")
    return SelectedTables(tables=tables, selection=selection)


def _check_any_selected(selected: tuple[TableSpec, ...], loaded: LoadedSpecs) -> None:
    total = len(loaded.tables)
    if not selected:
        none = "the only table does not match" if total == 1 else f"none of {total} tables matches"
        raise UsageError(f"{none} the selectors; change --name, --exclude or -l")


def _check_guards(tables: Iterable[TableSpec], loaded: LoadedSpecs, guards: PolicyOptions) -> None:
    """Raise SpecError if policies are required and a table has none."""
    if guards.require_policies:
        check_covered(tables, len(loaded.guardrails), loaded.problems)
        loaded.problems.raise_errors()


def _log_warnings(loaded: LoadedSpecs, selected: Iterable[TableSpec] | None) -> None:
    for warning in loaded.list_warnings(selected):
        log_message(str(warning), level="warning")


def _select_by_name(specs: Iterable[TableSpec], selectors: Selectors) -> tuple[TableSpec, ...]:
    wanted = [_parse_label(text) for text in selectors.labels or ()]
    return tuple(
        spec
        for spec in specs
        if (not selectors.names or _matches(spec.name, selectors.names))
        and not _matches(spec.name, selectors.excluded or ())
        and all(spec.labels.get(key) == value for key, value in wanted)
    )


def _select_changed(
    chosen: tuple[TableSpec, ...],
    loaded: LoadedSpecs,
    paths: Sequence[Path],
    selectors: Selectors,
    read: Callable[..., LoadedSpecs],
) -> tuple[tuple[TableSpec, ...], tuple[str, ...]]:
    """Return the chosen tables that changed, and the names of tables whose spec was removed."""
    from reconciler.cli.changed_specs import find_changes  # noqa: PLC0415 (runs git)

    ref = selectors.changed_since or ""

    def read_commit(there: Sequence[Path], files: FileTree) -> LoadedSpecs:
        return read(there, files, may_be_empty=True, may_lack_paths=True)

    changes = find_changes(ref, paths, loaded, read_commit)
    if changes.unknown is not None:
        log_message(f"changes since {ref} are unknown, so every table counts as changed: "
            f"the specs of that commit do not load: {changes.unknown}")  # fmt: skip
    if removed := _select_by_name(changes.removed, selectors):
        log_message(f"since {ref}, {words.describe_removed_specs([spec.name for spec in removed])}")
    return (
        tuple(spec for spec in chosen if spec.name in changes.changed),
        tuple(spec.name for spec in removed),
    )


def _matches(name: str, globs: Iterable[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)


def _parse_label(text: str) -> tuple[str, str]:
    """Return the label and its value.

    >>> _parse_label("team=core")
    ('team', 'core')
    """
    key, equals, value = text.partition("=")
    if not key or not equals or key.endswith("!") or value.startswith("="):  # no != and no ==
        raise UsageError(f"-l {text}: write it as label=value")
    return key, value
