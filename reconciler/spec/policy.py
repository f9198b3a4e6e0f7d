"""Policies (guardrails) in files of their own: which ones apply, and which tables they cover.

This module only reads them. ``plans`` checks plans against them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final

from reconciler.canonical_json import from_document
from reconciler.errors import Problems, SourcePosition, did_you_mean, quote_value
from reconciler.lazy_dataclass import dataclass
from reconciler.spec import locations
from reconciler.spec.declarations import Declaration, read_declarations
from reconciler.spec.guard_policy import GuardPolicy, Waiver
from reconciler.spec.ignored_files import warn_about_ignored_files
from reconciler.spec.model import TableSpec
from reconciler.spec.overlay import Selector, build_selector
from reconciler.spec.schema import load_definition
from reconciler.spec.spec_files import FileTree, SpecFiles
from reconciler.spec.structure import read_structure
from reconciler.spec.yaml_nodes import SequenceNode
from reconciler.storage.locations import follow_links

FOLDER: Final = "policies"
"""The folder whose policies apply to every spec beside it and below it."""

_WILDCARDS: Final = "*?"
_REMOVE_IT: Final = "remove it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Guardrail:
    """A policy and the tables that it covers; ``waiver_positions`` are those of its waivers.

    It covers a table that one of the ``selectors`` selects. All of them come from one selector:
    relative paths start from every folder that the policy's file is in, with links followed too.
    """

    policy: GuardPolicy
    selectors: tuple[Selector, ...]
    waiver_positions: tuple[SourcePosition, ...] = ()

    def covers(self, table: TableSpec, *places: str | None) -> bool:
        """Return whether it covers a table at its own path, or at one of these places."""
        named = {place for place in (table.path, *places) if place}
        return any(
            chosen.selects(table.labels, place)
            for chosen in self.selectors
            for place in ("", *named, *map(follow_links, named))
        )


def collect_guardrails(
    declarations: Iterable[Declaration],
    policy_folders: Mapping[str, Sequence[str]],
    problems: Problems,
) -> tuple[Guardrail, ...]:
    """Return the policies among documents, sorted by name, without those with an error.

    ``policy_folders``: the folders that a policy's file is in, by its path as it was read.
    """
    declarations = list(declarations)
    tables = {item.file for item in declarations if item.kind == "HudiTable"}
    guardrails = []
    for declaration in declarations:
        if declaration.kind != "Policy":
            continue
        if declaration.file in tables:
            message = "is Policy in the file of a table, so whoever edits the table can edit it"
            hint = f"move it to a file of its own, such as {FOLDER}/{declaration.name}.yaml"
            problems.error(declaration.node.key_position("kind"), "kind", message, hint)
        folders = policy_folders.get(declaration.file, (declaration.folder,))
        if guardrail := _build_guardrail(declaration, folders, problems):
            guardrails.append(guardrail)
    return tuple(sorted(guardrails, key=lambda guardrail: guardrail.policy.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class InheritedPolicies:
    """Policies that were not named; ``policy_folders``: for every file, the folders it is in."""

    declarations: tuple[Declaration, ...]
    policy_folders: Mapping[str, tuple[str, ...]]


def find_inherited_policies(
    paths: Sequence[Path], named: Sequence[Path], files: SpecFiles, policies: Sequence[Path] = ()
) -> InheritedPolicies:
    """Return the policies in every folder ``policies`` beside the paths and spec files or above.

    ``policies``: more files and folders of policies.

    All of them apply, not only the nearest: a folder beside a table must not hide the one above.
    For a link, folders above its target count too; for a pipe, those above the current folder.
    Policies among the given files and documents of other kinds are not returned.
    """
    real_path = files.tree.real_path
    known = {real_path(file): str(file) for file in named}
    folders = _find_policy_folders(paths, named, files)
    warn_about_ignored_files(folders, known, files)
    below = [file for folder in folders for file in files.find_files_below(folder)]
    below += (file for path in policies for file in _find_policy_files(path, files))
    spellings: dict[str, list[Path]] = {}
    for file in (*named, *below):
        spellings.setdefault(real_path(file), []).append(file)
    for file in below:
        _check_not_empty(file, files)
    unnamed = {real: str(paths[0]) for real, paths in spellings.items() if real not in known}
    return InheritedPolicies(
        declarations=tuple(
            item
            for file in unnamed.values()
            for item in read_declarations(Path(file), files)
            if item.kind == "Policy"
        ),
        policy_folders={
            file: tuple(dict.fromkeys(map(_parent_folder, (*spellings[real], *_real_path(real)))))
            for real, file in (known | unnamed).items()
        },
    )


def _find_policy_folders(
    paths: Sequence[Path], named: Sequence[Path], files: SpecFiles
) -> list[Path]:
    """Return the folders of policies, each once."""
    real = (path for file in named for path in _real_path(files.tree.real_path(file)))
    starts = {*map(str, paths), *map(_parent_folder, (*named, *real))}
    starts |= {os.getcwd() for file in named if _is_pipe(file, files.tree)}  # noqa: PTH109
    above = (files.find_parent_folders(Path(start), FOLDER) for start in sorted(starts))
    return list(dict.fromkeys(folder for folders in above for folder in folders))


def _find_policy_files(path: Path, files: SpecFiles) -> list[Path]:
    """Return the files of a named file or folder of policies; one without a policy is an error."""
    kind = files.find_kind(path)
    if kind is None:
        return []
    found = files.find_files_below(path) if kind == "folder" else [path]
    unread = SpecFiles(Problems(), files.tree)  # who reads the files reports their errors
    kinds = {item.kind for file in found for item in read_declarations(file, unread)}
    if "Policy" not in kinds and not unread.problems.errors:
        files.problems.file_error(path, "declares no policy", "name a file or folder of policies")
    return found


def _check_not_empty(file: Path, files: SpecFiles) -> None:
    """Report an empty file: its policy would disappear without a notice."""
    try:
        is_empty = not files.tree.read_bytes(file).strip()
    except OSError:
        return  # reading its declarations reports it
    if is_empty:
        files.problems.file_error(file, "is empty", "add a policy, or remove the file")


def _is_pipe(file: Path, tree: FileTree) -> bool:
    try:
        return tree.path_kind(file) == "other"
    except OSError:
        return False


def _parent_folder(file: Path) -> str:
    return os.path.dirname(os.path.abspath(file))  # noqa: PTH100, PTH120 (links stay)


def _real_path(real: str) -> tuple[Path, ...]:
    """Return the real path of a file on the disk; nothing for files of a commit."""
    return (Path(real),) if real[:1] == os.sep else ()


def check_covered(tables: Iterable[TableSpec], policies: int, problems: Problems) -> None:
    """Report tables that no policy covers; ``policies``: the number that was read.

    A table without a location is not reported, because an environment decides what covers it.
    """
    for table in tables:
        if table.guarded_by or not table.path:
            continue
        if policies:
            count = "the one policy" if policies == 1 else f"any of the {policies} policies"
            hint = f"change its labels or path, or the selector of {count}"
        else:
            hint = f"name them with --policies, or put them in a folder {FOLDER} beside the file"
        problems.file_error(table.source, f"no policy covers {table.name}", hint)


def warn_about_unused_waivers(
    guardrails: Iterable[Guardrail],
    tables: Sequence[TableSpec],
    *,
    paths: Iterable[Path],
    today: date,
    problems: Problems,
) -> None:
    """Warn about waivers without effect: ended, of a rule that is not set, or for no table.

    Policies and tables are those of the ``paths``; ``today`` is the date in UTC. An unknown table
    is reported only if a folder beside the policies or around them was given: otherwise it may be
    declared elsewhere.
    """
    by_name = {table.name: table for table in tables}
    folders = [path for path in paths if path.is_dir()]
    for guard in guardrails:
        is_all = any(_is_beside(folder, guard.policy.source) for folder in folders)
        for waiver, at in zip(guard.policy.waivers, guard.waiver_positions, strict=True):
            if why := _explain_unused(guard.policy, waiver, by_name, today, is_all=is_all):
                problems.warning(at, "spec.waivers", *why)


def _explain_unused(
    policy: GuardPolicy,
    waiver: Waiver,
    tables: Mapping[str, TableSpec],
    today: date,
    *,
    is_all: bool,
) -> tuple[str, str] | None:
    if waiver.until < today.isoformat():
        return f"ended on {waiver.until}", _REMOVE_IT
    if waiver.rule not in policy.rules:
        return f"waives {waiver.rule}, a rule that the policy does not set", _REMOVE_IT
    table = tables.get(waiver.table)
    if table is not None and policy not in table.guarded_by:
        return f"is for {table.name}, which the policy does not cover", _REMOVE_IT
    if table is not None or not is_all:
        return None
    close = did_you_mean(waiver.table, tables)
    hint = f"did you mean {close!r}?" if close else _REMOVE_IT
    return f"is for {quote_value(waiver.table)}, but no table has this name", hint


def _is_beside(folder: Path, source: str) -> bool:
    """Return whether a folder contains the folder of a policy's file, or is beside it."""
    file = Path(os.path.realpath(source))
    home = next((folder for folder in file.parents if folder.name == FOLDER), file.parent)
    given = Path(os.path.realpath(folder))
    return given == home or given in home.parents or given.parent == home.parent


def _build_guardrail(
    declaration: Declaration, policy_folders: Iterable[str], problems: Problems
) -> Guardrail | None:
    found = Problems()
    data = read_structure(declaration.spec, load_definition("policy"), found)
    problems.extend(found)
    if found.errors:
        return None
    chosen = declaration.envelope.get("selector", {})
    waivers = declaration.spec.get("waivers")
    listed = waivers.items if isinstance(waivers, SequenceNode) else ()
    return Guardrail(
        policy=_build_policy(declaration, data),
        selectors=tuple(each for home in policy_folders for each in _build_selectors(chosen, home)),
        waiver_positions=tuple(waiver.position for waiver in listed),
    )


def _build_selectors(chosen: Mapping[str, Any], folder: str) -> Iterator[Selector]:
    """Yield the selector of a policy in a folder, and the same with links followed."""
    yield build_selector(chosen, folder)
    if "paths" in chosen:
        followed = [_follow_links(path, folder) for path in chosen["paths"]]
        yield build_selector({**chosen, "paths": followed}, folder)


def _follow_links(pattern: str, folder: str) -> str:
    """Return a glob with the links before its first wildcard followed."""
    if pattern.startswith("**") or "://" in (place := locations.resolve_location(pattern, folder)):
        return pattern
    at = min((place.find(sign) for sign in _WILDCARDS if sign in place), default=len(place))
    plain = place[:at].rpartition("/")[0] if at < len(place) else place
    return os.path.realpath(plain or "/").rstrip("/") + place[len(plain) :]


def _build_policy(declaration: Declaration, data: Mapping[str, Any]) -> GuardPolicy:
    owner = declaration.envelope["metadata"].get("owner")
    head = {"name": declaration.name, "owner": owner, "source": declaration.file}
    return from_document(GuardPolicy, {**data, **head})
