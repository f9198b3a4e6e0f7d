"""Guardrails that live outside the tables' own files: which there are, and which tables they cover.

What they say about a plan is decided elsewhere; here is only what the files say.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

from reconciler.diagnostics import Place, Problems, did_you_mean, shown
from reconciler.spec import locations
from reconciler.spec.declarations import Declaration, declarations
from reconciler.spec.kinds import POLICY_SPEC
from reconciler.spec.model import GuardPolicy, TableSpec, Waiver
from reconciler.spec.nodes import Node, SequenceNode
from reconciler.spec.overlay import Selector, selector
from reconciler.spec.project import folders_above
from reconciler.spec.reading import Reader
from reconciler.spec.sources import DISK, Files, files_below

FOLDER: Final = "policies"
"""The folder whose policies hold for every spec beside it and below, however a spec is named."""

_WILD: Final = "*?"
_GO: Final = "remove it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Guardrail:
    """A policy and the tables it speaks of; ``waivers_at``: where each of its waivers is.

    A table that one of the ``selectors`` selects is covered: they are one, with its relative paths
    starting from every folder that the policy's file is in, and with links followed.
    """

    policy: GuardPolicy
    selectors: tuple[Selector, ...]
    waivers_at: tuple[Place, ...] = ()

    def covers(self, table: TableSpec, *places: str | None) -> bool:
        """Whether it speaks of a table that lies at its path or is declared for these places."""
        named = {place for place in (table.path, *places) if place}
        return any(
            chosen.selects(table.labels, place)
            for chosen in self.selectors
            for place in ("", *named, *map(locations.identity, named))
        )


def guardrails(
    among: Iterable[Declaration], homes: Mapping[str, Sequence[str]], problems: Problems
) -> tuple[Guardrail, ...]:
    """The policies among documents, by name; none of one with an error.

    ``homes``: the folders that a policy's file is in, by the name it was read by.
    """
    among = list(among)
    tables = {each.file for each in among if each.kind == "HudiTable"}
    found = []
    for each in among:
        if each.kind != "Policy":
            continue
        if each.file in tables:
            problems.error(
                each.node.place("kind"),
                "kind",
                "is Policy in the file of a table, where whoever changes the table can change it",
                f"move it to a file of its own, such as {FOLDER}/{each.name}.yaml",
            )
        if guardrail := _guardrail(each, homes.get(each.file, (each.folder,)), problems):
            found.append(guardrail)
    return tuple(sorted(found, key=lambda guardrail: guardrail.policy.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Above:
    """Policies that nobody named. ``homes``: of every file the folders it is in by some name."""

    declarations: tuple[Declaration, ...]
    homes: Mapping[str, tuple[str, ...]]


def policies_above(
    paths: Sequence[Path], files: Sequence[Path], problems: Problems, source: Files = DISK
) -> Above:
    """The policies in every folder ``policies`` beside the paths and spec files or above them.

    All of them count, not only the nearest: a folder beside a table must not hide the one above.
    Where a file is a link, the folders above what it leads to count too, and where it is a pipe
    those above the current folder. What is among the files already is left out, and documents of
    other kinds are left to whoever names their files.
    """
    known = {source.real(file): str(file) for file in files}
    found: dict[str, list[Path]] = {real: [] for real in known}
    for file in files:
        found[source.real(file)].append(file)
    for folder in _folders(paths, files, problems, source):
        for file in files_below(folder, problems, source):
            found.setdefault(source.real(file), []).append(file)
            _check_written(file, problems, source)
    unnamed = {real: str(spelt[0]) for real, spelt in found.items() if real not in known}
    return Above(
        declarations=tuple(
            each
            for file in unnamed.values()
            for each in declarations(Path(file), problems, source)
            if each.kind == "Policy"
        ),
        homes={
            file: tuple(dict.fromkeys(map(_home, (*found[real], *_absolute(real)))))
            for real, file in (known | unnamed).items()
        },
    )


def _folders(
    paths: Sequence[Path], files: Sequence[Path], problems: Problems, source: Files
) -> list[Path]:
    """The folders of policies, each once."""
    starts = {*map(str, paths), *(_home(file) for file in files)}
    starts |= {_home(Path(real)) for file in files for real in _absolute(source.real(file))}
    starts |= {os.getcwd() for file in files if _is_pipe(file, source)}  # noqa: PTH109
    above = (folders_above(Path(start), FOLDER, problems, source) for start in sorted(starts))
    return list(dict.fromkeys(folder for folders in above for folder in folders))


def _check_written(file: Path, problems: Problems, source: Files) -> None:
    """An error for a file with nothing in it: the policy that it had would be gone unnoticed."""
    try:
        is_empty = not source.read(file).strip()
    except OSError:
        return  # whoever reads what it declares says so
    if is_empty:
        problems.error(Place(str(file)), "", "is empty", "write its policy, or remove the file")


def _is_pipe(file: Path, source: Files) -> bool:
    try:
        return source.kind(file) == "other"
    except OSError:
        return False


def _home(file: Path) -> str:
    return os.path.dirname(os.path.abspath(file))  # noqa: PTH100, PTH120 (links stay)


def _absolute(real: str) -> tuple[Path, ...]:
    """Where a file of the disk really is; nothing for what is read from elsewhere."""
    return (Path(real),) if real[:1] == os.sep else ()


def unused_waivers(
    guards: Iterable[Guardrail],
    tables: Sequence[TableSpec],
    *,
    paths: Iterable[Path],
    today: date,
    problems: Problems,
) -> None:
    """Warn of waivers that waive nothing: over, of a rule that is not set, or for no table.

    The policies and tables are those of the ``paths``, ``today`` is the day of UTC. A table that
    is not among them is missed only where a folder beside the policies, or around them, was
    given: with less, it may be elsewhere.
    """
    by_name = {table.name: table for table in tables}
    folders = [path for path in paths if path.is_dir()]
    for guard in guards:
        is_all = any(_is_beside(folder, guard.policy.source) for folder in folders)
        for waiver, at in zip(guard.policy.waivers, guard.waivers_at, strict=True):
            if why := _unused(guard.policy, waiver, by_name, today, is_all=is_all):
                problems.warning(at, "spec.waivers", *why)


def _unused(
    policy: GuardPolicy,
    waiver: Waiver,
    tables: Mapping[str, TableSpec],
    today: date,
    *,
    is_all: bool,
) -> tuple[str, str] | None:
    if waiver.until < today.isoformat():
        return f"ended on {waiver.until}", _GO
    if waiver.rule not in policy.rules:
        return f"waives {waiver.rule}, which the policy does not set", _GO
    table = tables.get(waiver.table)
    if table is not None:
        is_over = policy in table.guarded_by
        return None if is_over else (f"is for {table.name}, which the policy does not cover", _GO)
    if not is_all:
        return None
    close = did_you_mean(waiver.table, tables)
    hint = f"did you mean {close!r}?" if close else _GO
    return f"is for {shown(waiver.table)}, which is none of the tables given", hint


def _is_beside(folder: Path, source: str) -> bool:
    """Whether a folder holds the folder of a policy's file, or stands beside it."""
    file = Path(os.path.realpath(source))
    home = next((each for each in file.parents if each.name == FOLDER), file.parent)
    given = Path(os.path.realpath(folder))
    return given == home or given in home.parents or given.parent == home.parent


def _guardrail(
    declaration: Declaration, homes: Iterable[str], problems: Problems
) -> Guardrail | None:
    found = Problems()
    data = Reader(found).block(declaration.spec, POLICY_SPEC, "spec")
    problems.extend(found)
    if found.errors:
        return None
    chosen = declaration.head.get("selector", {})
    return Guardrail(
        policy=_policy(declaration, data),
        selectors=tuple(each for home in homes for each in _selectors(chosen, home)),
        waivers_at=_places(declaration.spec.get("waivers")),
    )


def _selectors(chosen: Mapping[str, Any], home: str) -> Iterator[Selector]:
    """The selector of a policy in a folder, and the same with links followed."""
    yield selector(chosen, home)
    if "paths" in chosen:
        yield selector({**chosen, "paths": [_real(path, home) for path in chosen["paths"]]}, home)


def _places(waivers: Node | None) -> tuple[Place, ...]:
    return tuple(each.at for each in waivers.items) if isinstance(waivers, SequenceNode) else ()


def _real(pattern: str, folder: str) -> str:
    """A glob of places with the links in front of its first wildcard followed."""
    if pattern.startswith("**") or "://" in (place := locations.resolved(pattern, folder)):
        return pattern
    at = min((place.find(sign) for sign in _WILD if sign in place), default=len(place))
    plain = place[:at].rpartition("/")[0] if at < len(place) else place
    return os.path.realpath(plain or "/").rstrip("/") + place[len(plain) :]


def _policy(declaration: Declaration, data: Mapping[str, Any]) -> GuardPolicy:
    return GuardPolicy(
        name=declaration.name,
        owner=declaration.head["metadata"].get("owner"),
        min_retention=data.get("minRetention", {}),
        max_files_removed=data.get("maxFilesRemoved"),
        max_bytes_removed=data.get("maxBytesRemoved"),
        max_rewrite=data.get("maxRewrite"),
        protected=tuple(data.get("protected", ())),
        require_lock=data.get("requireLock", False),
        severity=data.get("severity", "error"),
        waivers=tuple(Waiver(**waiver) for waiver in data.get("waivers", ())),
        source=declaration.file,
    )
