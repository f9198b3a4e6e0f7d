"""Partition filters: which partitions a step works on. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field
from functools import cache
from typing import Final

from reconciler.lazy_dataclass import dataclass

_WILDCARDS: Final = {"*": "[^/]*", "?": "[^/]"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFilter:
    """Partitions that a step works on: globs or ``/regex/``; bounds compare as strings."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    from_: str | None = field(default=None, metadata={"name": "from"})
    to: str | None = None
    skip_latest: int | None = None
    latest: int | None = None


def find_excluded_partitions(
    partitions: Sequence[str], wanted: PartitionFilter, field: str = "clustering.partitions"
) -> dict[str, str]:
    """Return the partitions that the filter excludes, each with the reason.

    ``field``: where the spec declares the filter. Globs (``*`` and ``?`` stop at a slash) and
    ``/regular expressions/`` match whole paths. Bounds compare as strings. Of the rest, sorted
    descending, ``skipLatest`` are skipped and ``latest`` taken. Source of the bounds and of the
    latest: Hudi's ClusteringPlanPartitionFilter (1.2.0).
    """
    reasons = {path: why for path in partitions if (why := _explain_exclusion(path, wanted, field))}
    rest = sorted((path for path in partitions if path not in reasons), reverse=True)
    skipped = wanted.skip_latest or 0
    latest = len(rest) if wanted.latest is None else wanted.latest
    skip = f"its partition is among the {skipped} latest ({field}.skipLatest)"
    leave = f"its partition is not among the {latest} latest ({field}.latest)"
    return (
        reasons
        | dict.fromkeys(rest[:skipped], skip)
        | dict.fromkeys(rest[skipped + latest :], leave)
    )


def _explain_exclusion(path: str, wanted: PartitionFilter, field: str) -> str | None:
    if wanted.include and not any(_matches(text, path) for text in wanted.include):
        return f"its partition is not in {field}.include"
    for text in wanted.exclude:
        if _matches(text, path):
            return f"{field}.exclude has its partition, by {text}"
    if wanted.from_ is not None and path < wanted.from_:
        return f"its partition comes before {field}.from, {wanted.from_}"
    if wanted.to is not None and path > wanted.to:
        return f"its partition comes after {field}.to, {wanted.to}"
    return None


def _matches(pattern: str, path: str) -> bool:
    return _compile_pattern(pattern).fullmatch(path) is not None


@cache
def _compile_pattern(text: str) -> re.Pattern[str]:
    """Return the regular expression of a filter.

    >>> bool(_compile_pattern("dt=2026-*").fullmatch("dt=2026-01/h=1"))
    False
    >>> bool(_compile_pattern("/dt=.*-0[13]/").fullmatch("dt=2026-03"))
    True
    """
    if text.startswith("/"):
        return re.compile(text[1:-1])
    parts = re.split(r"([*?])", text)
    return re.compile("".join(_WILDCARDS.get(part, re.escape(part)) for part in parts), re.DOTALL)
