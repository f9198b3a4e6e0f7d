"""A first spec for a table that is there already, from what is seen on it. Invents nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from reconciler.state.model import CompletedClean, TableState

SKELETON: Final = """\
# What a Hudi table should be like. What is not declared here is not managed: no step is planned.
apiVersion: reconciler/v1
kind: HudiTable
metadata:
  name: sales.orders            # how people call the table
  # labels: {team: core}        # for `-l team=core`
  # owner: data-core
spec:
  path: ../warehouse/orders     # relative to this file, or absolute, or s3://...
  # timezone: UTC               # zone of the timeline's instants; `reconciler init --from` tells
  retention:                    # give one of commits, hours, fileVersions
    commits: 10                 # a read as of any of the last 10 commits stays possible
    # hours: 168
    # fileVersions: 3
  # readers: {longestQuery: 6h} # slices superseded more recently than this stay
  concurrency:                  # how apply keeps out of other writers' way
    lock: {provider: filesystem, path: .hoodie, expire: 0}   # as the writers' hoodie.write.lock.*
"""


_CONCURRENCY_LINES: Final = (
    "  # concurrency:              # required by apply: how it keeps out of other writers' way",
    "  #   lock: {provider: filesystem, path: .hoodie, expire: 0}",
    "  #   # as the writers' hoodie.write.lock.filesystem.* say; or {provider: none} where nothing",
    "  #   # else writes the table while apply runs",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRetention:
    """What the table's last clean kept. ``field`` and ``keep`` are None where it does not tell."""

    instant: str
    policy: str
    field: str | None = None
    keep: int | None = None


def seen_retention(state: TableState) -> SeenRetention | None:
    """What the newest clean that says anything kept.

    A clean records its policy and the earliest instant it retained. Under KEEP_LATEST_COMMITS, the
    commits from that instant to the clean are the number it was told (or a few more, where a
    pending write held it back). Hours and file versions cannot be read back.
    """
    for clean in sorted(state.cleans, key=lambda found: found.instant, reverse=True):
        if clean.is_blank or not clean.policy:
            continue
        keep = None
        if clean.policy == "KEEP_LATEST_COMMITS" and clean.earliest_instant_to_retain:
            keep = _commits_kept(state, clean)
        return SeenRetention(
            instant=clean.instant,
            policy=clean.policy,
            field="commits" if keep else None,
            keep=keep,
        )
    return None


def _commits_kept(state: TableState, clean: CompletedClean) -> int | None:
    first = clean.earliest_instant_to_retain
    commits = [instant.requested for instant in state.commits_timeline]
    if first not in commits:
        return None  # archived meanwhile: what came after it cannot be counted
    return sum(first <= requested < clean.instant for requested in commits)


def spec_text(
    state: TableState, seen: SeenRetention | None, doubt: str | None, *, is_quiet: bool
) -> str:
    """The commented spec of a live table.

    ``doubt`` says why what was seen must not become the retention as it is; None: it may.
    ``is_quiet``: there is no pending work that every plan would name.
    """
    kind = f"{state.table_type}, table version {state.table_version}"
    lines = [
        f"# Written by `reconciler init` from the table at {state.location}",
        f"# ({kind}).{' As it stands, its plan is empty.' if is_quiet else ''}",
        "apiVersion: reconciler/v1",
        "kind: HudiTable",
        f"metadata: {{name: {json.dumps(state.table_name)}}}",
        "spec:",
        f"  path: {json.dumps(state.location, ensure_ascii=False)}",
        *_timezone_lines(state),
        *_retention_lines(seen, doubt),
        *_CONCURRENCY_LINES,
    ]
    return "\n".join(lines) + "\n"


def _timezone_lines(state: TableState) -> list[str]:
    if state.timezone is not None:
        return [f"  # the timeline's zone is {state.timezone}, as the table itself says"]
    return [
        "  # timezone: UTC             # the writers' zone: the table does not tell. Required by",
        "  #                           # apply, and by a retention in hours",
    ]


def _retention_lines(seen: SeenRetention | None, doubt: str | None) -> list[str]:
    if seen is None:
        return [
            "  # No completed clean on the active timeline tells what is to be kept, so nothing is",
            "  # declared. Give one of commits, hours, fileVersions:",
            *_commented_retention(("commits", "hours", "fileVersions")),
        ]
    if seen.keep is None:
        field = {"KEEP_LATEST_BY_HOURS": "hours", "KEEP_LATEST_FILE_VERSIONS": "fileVersions"}
        return [
            f"  # The clean {seen.instant} followed {seen.policy}; how much it was told to keep",
            "  # cannot be read back from the table: see the writers' hoodie.clean.* settings.",
            *_commented_retention((field.get(seen.policy, "commits"),)),
        ]
    kept = f"{seen.keep} {'commit' if seen.keep == 1 else 'commits'}"
    said = f"  # The clean {seen.instant} followed {seen.policy} and kept {kept}."
    if doubt is None:
        return [said, "  retention:", f"    {seen.field}: {seen.keep}"]
    return [
        said,
        f"  # Declared as it stands: {doubt}",
        "  # so it is left to you:",
        "  # retention:",
        f"  #   {seen.field}: {seen.keep}",
    ]


def _commented_retention(fields: Iterable[str]) -> list[str]:
    return ["  # retention:", *(f"  #   {field}: ..." for field in fields)]
