"""A first spec as text: what was seen on a table, said in comments. Invents nothing; pure.

Text of the table's own goes into comments inert and into values quoted.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.adopt.observed_retention import ObservedRetention, RetentionCandidate
from reconciler.adopt.observed_settings import ObservedClustering, ObservedSizes
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
class ProposedRetention:
    """What of the seen retention goes into the spec. ``doubt``: why it is left to people.

    With a doubt ``candidate`` is what would be declared, and ``wider`` a number that would remove
    nothing, if one is known; without candidate nothing can be told.
    """

    candidate: RetentionCandidate | None = None
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
    retention: ObservedRetention | None
    proposed: ProposedRetention
    clustering: ObservedClustering | None
    sizes: ObservedSizes | None
    offsets: tuple[int, ...]
    environment: str | None = None
    is_zone_known: bool = False


def write_spec_text(state: TableState, findings: Findings) -> str:
    """The commented spec of a live table."""
    lines = [
        *_header_lines(state, findings),
        "apiVersion: reconciler/v1",
        "kind: HudiTable",
        f"metadata: {{name: {json.dumps(findings.name)}}}",
        "spec:",
        *_path_lines(findings),
        *_timezone_lines(state, findings),
        *_retention_lines(findings.retention, findings.proposed),
        *_clustering_lines(findings.clustering),
        *_size_lines(findings.sizes),
        *_CONCURRENCY,
    ]
    return "\n".join(lines) + "\n"


def _header_lines(state: TableState, findings: Findings) -> list[str]:
    kind = f"({state.table_type}, table version {state.table_version})."
    plan = "As it stands, its plan is empty."
    if findings.refused is not None:
        plan = f"As it stands, its plan is refused: {words.escape_text(findings.refused)}"
    lines = [
        f"# Written by `reconciler init` from the table at {words.escape_text(state.location)}",
        *_wrap_comment(f"{kind} {plan}", "# "),
    ]
    if state.table_name != findings.name:
        lines += _wrap_comment(
            f"Its hoodie.table.name is {words.format_value([state.table_name])[1:-1]}.", "# "
        )
    return lines


def _path_lines(findings: Findings) -> list[str]:
    if findings.environment is None:
        return [f"  path: {json.dumps(findings.path, ensure_ascii=False)}"]
    # a spec is a mapping: it needs one field that is no comment
    return [
        f"  # where it is: see {words.escape_text(findings.environment)}",
        "  suspend: false            # true: its plan is shown and nothing of it may be applied",
    ]


def _timezone_lines(state: TableState, findings: Findings) -> list[str]:
    if state.timezone is not None:
        return [f"  # the timeline's zone is {state.timezone}, as the table itself says"]
    if (
        findings.timezone is not None
        and findings.environment is not None
        and findings.is_zone_known
    ):
        return [
            f"  # the timeline's zone is {findings.timezone}: see {words.escape_text(findings.environment)}"
        ]
    if findings.timezone is not None:
        zone = json.dumps(findings.timezone)
        return [f"  timezone: {zone}  # as given to `reconciler init`; the table does not tell"]
    lines = [
        "  # timezone: UTC             # the writers' zone: the table does not tell. Required by",
        "  #                           # apply, and by a retention in hours",
    ]
    if findings.offsets:
        offsets = " and ".join(map(_format_offset, findings.offsets))
        lines.append(f"  #                           # (its files' times suggest {offsets})")
    return lines


def _format_offset(seconds: int) -> str:
    """An offset from UTC.

    >>> _format_offset(0), _format_offset(19800), _format_offset(-18000)
    ('UTC', 'UTC+05:30', 'UTC-05:00')
    """
    if not seconds:
        return "UTC"
    hours, rest = divmod(abs(seconds), 3600)
    return f"UTC{'+' if seconds > 0 else '-'}{hours:02}:{rest // 60:02}"


def _retention_lines(observed: ObservedRetention | None, proposed: ProposedRetention) -> list[str]:
    if observed is None:
        said = (
            "No completed clean on the active timeline tells what is to be kept, so nothing is "
            "declared. Give one of commits, hours, fileVersions:"
        )
        return [*_comment_lines(said), *_undecided_lines(("commits", "hours", "fileVersions"))]
    candidate = proposed.candidate
    if candidate is None or observed.field is None:
        fields = (observed.field,) if observed.field else ("commits", "hours", "fileVersions")
        hint = "See the writers' hoodie.clean.* settings."
        return [*_comment_lines(" ".join((*observed.findings, hint))), *_undecided_lines(fields)]
    value = f"{observed.field}: {candidate.keep}"
    if proposed.doubt is None:
        return [*_evidence_lines(observed, candidate), "  retention:", f"    {value}"]
    doubt = f"Declared as it stands, {words.escape_text(proposed.doubt)}. So it is left to you"
    if proposed.wider is not None:
        doubt += f" ({observed.field}: {proposed.wider} would remove nothing today)"
    return [
        *_evidence_lines(observed, RetentionCandidate(keep=candidate.keep)),
        *_comment_lines(f"{doubt}:"),
        "  # retention:",
        f"  #   {value}",
    ]


def _evidence_lines(observed: ObservedRetention, candidate: RetentionCandidate) -> list[str]:
    return _comment_lines(
        " ".join(text for text in (*observed.findings, candidate.because) if text)
    )


def _undecided_lines(fields: Sequence[str]) -> list[str]:
    return ["  # retention:", *(f"  #   {field}: ..." for field in fields)]


def _clustering_lines(observed: ObservedClustering | None) -> list[str]:
    """Never declared: when to cluster, and mostly the curve, are options of the writers alone."""
    if observed is None:
        return []
    columns = words.escape_text(json.dumps(list(observed.columns), ensure_ascii=False))
    by = f"sorts by {columns}" if observed.columns else "names no columns to sort by"
    alike = ""
    if observed.plans > 1:
        alike = (
            f" (so do {observed.equal_plans} of the {observed.plans} such plans on the timeline)"
        )
    curve = observed.curve or "...                # linear | z-order | hilbert: no plan says which"
    said = (
        f"The clustering {observed.instant} {by}{alike}. When to cluster again is not on the table:"
    )
    return [
        *_comment_lines(said),
        "  # clustering:",
        f"  #   columns: {columns}",
        f"  #   curve: {curve}",
        "  #   mapping: direct           # as Hudi's; or rank",
    ]


def _size_lines(observed: ObservedSizes | None) -> list[str]:
    if observed is None:
        return []
    said = (
        f"Of the {words.format_number(observed.files)} base files in the newest slices 95 % are at most "
        f"{words.format_size(observed.common_size)}, the largest is {words.format_size(observed.largest)}. What the writers aim "
        "at is not on the table:"
    )
    return [
        *_comment_lines(said),
        "  # files: {target: ..., small: ...}  # hoodie.parquet.max.file.size, .small.file.limit",
    ]


def _comment_lines(text: str) -> list[str]:
    return _wrap_comment(text, "  # ")


def _wrap_comment(text: str, start: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=start,
        subsequent_indent=start,
        break_long_words=False,
        break_on_hyphens=False,
    )
