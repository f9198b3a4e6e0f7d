"""A first spec as text: what was seen on a table, said in comments. Invents nothing; pure.

Text of the table's own goes into comments inert and into values quoted.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.adopt.retention import Candidate, SeenRetention
from reconciler.adopt.seen import SeenClustering, SeenSizes
from reconciler.render import words
from reconciler.state.model import TableState

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

_CONCURRENCY: Final = (
    "  # concurrency:              # required by apply: how it keeps out of other writers' way",
    "  #   lock: {provider: filesystem, path: .hoodie, expire: 0}",
    "  #   # as the writers' hoodie.write.lock.filesystem.* say; or {provider: none} where nothing",
    "  #   # else writes the table while apply runs",
)
_WIDTH: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What of the seen retention goes into the spec. ``doubt``: why it is left to people.

    With a doubt ``candidate`` is what would be declared, and ``wider`` a number that would remove
    nothing, if one is known; without candidate nothing can be told.
    """

    candidate: Candidate | None = None
    doubt: str | None = None
    wider: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All that a spec says of one table. ``path`` is as the spec shall spell it.

    ``timezone``: as given by people, for a table that does not tell. ``refused``: why its plan is
    refused whatever is declared, None if it is not. ``offsets``: seconds ahead of UTC.
    ``environment``: the file that says where the table is instead of the spec, and with
    ``is_zone_known`` the zone too.
    """

    name: str
    path: str
    timezone: str | None
    refused: str | None
    retention: SeenRetention | None
    declared: Declared
    clustering: SeenClustering | None
    sizes: SeenSizes | None
    offsets: tuple[int, ...]
    environment: str | None = None
    is_zone_known: bool = False


def spec_text(state: TableState, found: Findings) -> str:
    """The commented spec of a live table."""
    lines = [
        *_head(state, found),
        "apiVersion: reconciler/v1",
        "kind: HudiTable",
        f"metadata: {{name: {json.dumps(found.name)}}}",
        "spec:",
        *_path(found),
        *_timezone(state, found),
        *_retention(found.retention, found.declared),
        *_clustering(found.clustering),
        *_sizes(found.sizes),
        *_CONCURRENCY,
    ]
    return "\n".join(lines) + "\n"


def _head(state: TableState, found: Findings) -> list[str]:
    kind = f"({state.table_type}, table version {state.table_version})."
    plan = "As it stands, its plan is empty."
    if found.refused is not None:
        plan = f"As it stands, its plan is refused: {words.plain(found.refused)}"
    lines = [
        f"# Written by `reconciler init` from the table at {words.plain(state.location)}",
        *_wrapped(f"{kind} {plan}", "# "),
    ]
    if state.table_name != found.name:
        lines += _wrapped(
            f"Its hoodie.table.name is {words.shown([state.table_name])[1:-1]}.", "# "
        )
    return lines


def _path(found: Findings) -> list[str]:
    if found.environment is None:
        return [f"  path: {json.dumps(found.path, ensure_ascii=False)}"]
    # a spec is a mapping: it needs one field that is no comment
    return [
        f"  # where it is: see {words.plain(found.environment)}",
        "  suspend: false            # true: its plan is shown and nothing of it may be applied",
    ]


def _timezone(state: TableState, found: Findings) -> list[str]:
    if state.timezone is not None:
        return [f"  # the timeline's zone is {state.timezone}, as the table itself says"]
    if found.timezone is not None and found.environment is not None and found.is_zone_known:
        return [
            f"  # the timeline's zone is {found.timezone}: see {words.plain(found.environment)}"
        ]
    if found.timezone is not None:
        zone = json.dumps(found.timezone)
        return [f"  timezone: {zone}  # as given to `reconciler init`; the table does not tell"]
    lines = [
        "  # timezone: UTC             # the writers' zone: the table does not tell. Required by",
        "  #                           # apply, and by a retention in hours",
    ]
    if found.offsets:
        offsets = " and ".join(map(_offset, found.offsets))
        lines.append(f"  #                           # (its files' times suggest {offsets})")
    return lines


def _offset(seconds: int) -> str:
    """An offset from UTC.

    >>> _offset(0), _offset(19800), _offset(-18000)
    ('UTC', 'UTC+05:30', 'UTC-05:00')
    """
    if not seconds:
        return "UTC"
    hours, rest = divmod(abs(seconds), 3600)
    return f"UTC{'+' if seconds > 0 else '-'}{hours:02}:{rest // 60:02}"


def _retention(seen: SeenRetention | None, declared: Declared) -> list[str]:
    if seen is None:
        said = (
            "No completed clean on the active timeline tells what is to be kept, so nothing is "
            "declared. Give one of commits, hours, fileVersions:"
        )
        return [*_comment(said), *_open(("commits", "hours", "fileVersions"))]
    candidate = declared.candidate
    if candidate is None or seen.field is None:
        fields = (seen.field,) if seen.field else ("commits", "hours", "fileVersions")
        hint = "See the writers' hoodie.clean.* settings."
        return [*_comment(" ".join((*seen.said, hint))), *_open(fields)]
    value = f"{seen.field}: {candidate.keep}"
    if declared.doubt is None:
        return [*_evidence(seen, candidate), "  retention:", f"    {value}"]
    doubt = f"Declared as it stands, {words.plain(declared.doubt)}. So it is left to you"
    if declared.wider is not None:
        doubt += f" ({seen.field}: {declared.wider} would remove nothing today)"
    return [
        *_evidence(seen, Candidate(keep=candidate.keep)),
        *_comment(f"{doubt}:"),
        "  # retention:",
        f"  #   {value}",
    ]


def _evidence(seen: SeenRetention, candidate: Candidate) -> list[str]:
    return _comment(" ".join(text for text in (*seen.said, candidate.because) if text))


def _open(fields: Sequence[str]) -> list[str]:
    return ["  # retention:", *(f"  #   {field}: ..." for field in fields)]


def _clustering(seen: SeenClustering | None) -> list[str]:
    """Never declared: when to cluster, and mostly the curve, are options of the writers alone."""
    if seen is None:
        return []
    columns = words.plain(json.dumps(list(seen.columns), ensure_ascii=False))
    by = f"sorts by {columns}" if seen.columns else "names no columns to sort by"
    alike = ""
    if seen.plans > 1:
        alike = f" (so do {seen.alike} of the {seen.plans} such plans on the timeline)"
    curve = seen.curve or "...                # linear | z-order | hilbert: no plan says which"
    said = f"The clustering {seen.instant} {by}{alike}. When to cluster again is not on the table:"
    return [
        *_comment(said),
        "  # clustering:",
        f"  #   columns: {columns}",
        f"  #   curve: {curve}",
        "  #   mapping: direct           # as Hudi's; or rank",
    ]


def _sizes(seen: SeenSizes | None) -> list[str]:
    if seen is None:
        return []
    said = (
        f"Of the {words.number(seen.files)} base files in the newest slices 95 % are at most "
        f"{words.size(seen.most)}, the largest is {words.size(seen.largest)}. What the writers aim "
        "at is not on the table:"
    )
    return [
        *_comment(said),
        "  # files: {target: ..., small: ...}  # hoodie.parquet.max.file.size, .small.file.limit",
    ]


def _comment(text: str) -> list[str]:
    return _wrapped(text, "  # ")


def _wrapped(text: str, start: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=start,
        subsequent_indent=start,
        break_long_words=False,
        break_on_hyphens=False,
    )
