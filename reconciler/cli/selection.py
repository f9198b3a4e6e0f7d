"""Which of the specs a command is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from reconciler.cli.terminal import say
from reconciler.errors import UsageError
from reconciler.render import words
from reconciler.spec.load import read_specs
from reconciler.spec.model import TableSpec


def selected_specs(
    paths: Sequence[Path],
    names: Sequence[str] | None = None,
    excluded: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
) -> tuple[TableSpec, ...]:
    """The specs at the paths that every selector agrees to; says warnings and how many are left.

    Raises SpecError for what is wrong in any file, selected or not, and UsageError when nothing is
    left: a selector that matches nothing is a mistake, not an empty job.
    """
    loaded = read_specs(paths)
    for warning in loaded.problems.warnings:
        say(str(warning))
    loaded.problems.raise_errors()
    specs = loaded.tables
    if not (names or excluded or labels):
        return specs
    wanted = [_label(text) for text in labels or ()]
    chosen = tuple(
        spec
        for spec in specs
        if (not names or _matches(spec.name, names))
        and not _matches(spec.name, excluded or ())
        and all(spec.labels.get(key) == value for key, value in wanted)
    )
    if not chosen:
        none = "the one table is not" if len(specs) == 1 else f"none of the {len(specs)} tables is"
        raise UsageError(f"{none} selected; --name, --exclude and -l must leave at least one")
    say(f"{len(chosen)} of {words.count(len(specs), 'table')} selected")
    return chosen


def _matches(name: str, globs: Iterable[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)


def _label(text: str) -> tuple[str, str]:
    """The label and its value.

    >>> _label("team=core")
    ('team', 'core')
    """
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise UsageError(f"-l {text}: write it as label=value")
    return key, value
