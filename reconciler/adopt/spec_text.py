"""The text of a first spec, with what was found on the table in comments. Pure.

Text of the table's own goes into comments inert and into values quoted.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from typing import Final

from reconciler.adopt.observed_retention import ObservedRetention, RetentionCandidate
from reconciler.adopt.observed_settings import ObservedClustering, ObservedLogs, ObservedSizes
from reconciler.event_logs.proposal import QueryProposal
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.timeline_zone import format_offsets
from reconciler.render import words
from reconciler.render.observed_queries import query_lines
from reconciler.spec.lock_rules import propose_provider
from reconciler.spec.model import CatalogTable
from reconciler.state.model import TableState

SKELETON: Final = """\
# Desired state of a Hudi table. What is not declared is not managed: no steps are planned for it.
apiVersion: reconciler/v1
kind: HudiTable
metadata:
  name: sales.orders            # name of the table in plans
  # labels: {team: core}        # for `-l team=core`
  # owner: data-core
spec:
  path: ../warehouse/orders     # relative to this file, or absolute, or s3://...
  # catalog: {type: hive, name: sales.orders, uri: "thrift://host:9083"} # instead of a path
  # timezone: UTC               # zone of the timeline's instants; see `reconciler init --from`
  retention:                    # declare one of commits, hours, fileVersions
    commits: 10                 # keep what reads as of the last 10 commits need
    # hours: 168
    # fileVersions: 3
  # files: {target: 120MiB, small: 100MiB} # packs small files, splits large ones
  # readers: {longestQuery: 6h} # keep slices superseded more recently
  concurrency:                  # how apply and other writers are kept apart
    lock: {provider: filesystem, path: .hoodie, expire: 0} # as the writers' hoodie.write.lock.*
"""

_WIDTH: Final = 100
_ORIGIN: Final = "# Written by `reconciler init` from the table at "


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedRetention:
    """The retention to declare in the spec. ``doubt``: why a person must decide instead.

    With a doubt, ``candidate`` is what would be declared, and ``wider`` a number that would remove
    nothing, if one is known. Without a candidate the retention is unknown.
    """

    candidate: RetentionCandidate | None = None
    doubt: str | None = None
    wider: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Everything that goes into the spec of a table. ``path`` is as the spec spells it.

    ``timezone``: the given zone, for a table that does not record it. ``refused``: why its plan is
    refused whatever is declared, or None. ``offsets``: seconds ahead of UTC. ``environment``: the
    file that has the location instead of the spec, and with ``is_zone_known`` the zone too.
    ``catalog``: what the spec names instead of a path. ``queries``: what event logs asked.
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
    catalog: CatalogTable | None = None
    is_zone_known: bool = False
    logs: ObservedLogs | None = None
    queries: QueryProposal | None = None


def write_spec_text(state: TableState, findings: Findings) -> str:
    """Return the commented spec of an existing table."""
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
        *_log_lines(findings.logs),
        *_query_lines(findings.queries),
        *_lock_lines(findings.path),
    ]
    return "\n".join(lines) + "\n"


def _query_lines(observed: QueryProposal | None) -> list[str]:
    """Return the queries that event logs asked, after a comment about what was not taken."""
    if observed is None:
        return []
    table = observed.table
    taken = sum(one.observed.runs for one in observed.new)
    sentence = (
        f"Of {words.format_count(table.runs, 'query')} in Spark's event logs "
        f"{words.format_number(taken)} asked these conditions, with values in the middle of those "
        "that were asked. `reconciler advise` finds clustering and index columns for them."
    )
    return [*_comment_lines(sentence), *query_lines([one.query for one in observed.new])]


def _lock_lines(path: str) -> list[str]:
    """Return a comment with the lock that writers of a table at this place can take."""
    provider = propose_provider(path)
    fields = ", path: .hoodie, expire: 0" if provider == "filesystem" else ""
    options = f"hoodie.write.lock.{provider}.*"
    return [
        "  # concurrency:              # required by apply: how writers are kept apart",
        f"  #   lock: {{provider: {provider}{fields}}}",
        f"  #   # equal to the writers' {options}; or {{provider: none}} if nothing",
        "  #   # else writes to the table while apply runs",
    ]


def find_origin(text: str) -> str | None:
    """Return the location of the table that `reconciler init` wrote a spec for, if it did.

    >>> find_origin("# Written by `reconciler init` from the table at /lake/t")
    '/lake/t'
    """
    first, _, _ = text.partition("\n")
    return first.removeprefix(_ORIGIN).strip() if first.startswith(_ORIGIN) else None


def _header_lines(state: TableState, findings: Findings) -> list[str]:
    kind = f"({state.table_type}, table version {state.table_version})."
    plan = "As it stands, its plan is empty."
    if findings.refused is not None:
        plan = f"As it stands, its plan is refused: {words.escape_text(findings.refused)}"
    lines = [
        f"{_ORIGIN}{words.escape_text(state.location)}",
        *_wrap_comment(f"{kind} {plan}", "# "),
    ]
    if state.table_name != findings.name:
        lines += _wrap_comment(
            f"Its hoodie.table.name is {words.format_value([state.table_name])[1:-1]}.", "# "
        )
    return lines


def _path_lines(findings: Findings) -> list[str]:
    if (table := findings.catalog) is not None:
        uri = "" if table.uri is None else f", uri: {json.dumps(table.uri)}"
        name = json.dumps(table.name, ensure_ascii=False)
        return [f"  catalog: {{type: {table.type}, name: {name}{uri}}}"]
    if findings.environment is None:
        return [f"  path: {json.dumps(findings.path, ensure_ascii=False)}"]
    # a spec is a mapping, so it needs a field
    return [
        f"  # location: see {words.escape_text(findings.environment)}",
        "  suspend: false            # true: plan the table, but refuse to apply",
    ]


def _timezone_lines(state: TableState, findings: Findings) -> list[str]:
    if state.timezone is not None:
        return [f"  # the timeline's zone is {state.timezone}, recorded by the table"]
    if findings.timezone is not None:
        if findings.environment is not None and findings.is_zone_known:
            file = words.escape_text(findings.environment)
            return [f"  # the timeline's zone is {findings.timezone}: see {file}"]
        zone = json.dumps(findings.timezone)
        return [f"  timezone: {zone}  # given to `reconciler init`; the table does not record it"]
    lines = [
        "  # timezone: UTC             # the writers' zone, which the table does not record.",
        "  #                           # Required by apply, and by a retention in hours",
    ]
    if findings.offsets:
        offsets = format_offsets(findings.offsets)
        lines.append(f"  #                           # (its files' times suggest {offsets})")
    return lines


def _retention_lines(observed: ObservedRetention | None, proposed: ProposedRetention) -> list[str]:
    if observed is None:
        sentence = (
            "No completed clean on the active timeline shows the retention, so none is declared. "
            "Declare one of commits, hours, fileVersions:"
        )
        return [*_comment_lines(sentence), *_undecided_lines(("commits", "hours", "fileVersions"))]
    candidate = proposed.candidate
    if candidate is None or observed.field is None:
        fields = (observed.field,) if observed.field else ("commits", "hours", "fileVersions")
        hint = "See the writers' hoodie.clean.* settings."
        return [*_comment_lines(" ".join((*observed.findings, hint))), *_undecided_lines(fields)]
    value = f"{observed.field}: {candidate.keep}"
    if proposed.doubt is None:
        return [*_evidence_lines(observed, candidate), "  retention:", f"    {value}"]
    doubt = f"If this was declared, {words.escape_text(proposed.doubt)}. So decide yourself"
    if proposed.wider is not None:
        doubt += f" ({observed.field}: {proposed.wider} would remove nothing today)"
    return [
        *_evidence_lines(observed, RetentionCandidate(keep=candidate.keep)),
        *_comment_lines(f"{doubt}:"),
        "  # retention:",
        f"  #   {value}",
    ]


def _evidence_lines(observed: ObservedRetention, candidate: RetentionCandidate) -> list[str]:
    texts = filter(None, (*observed.findings, candidate.because))
    return _comment_lines(" ".join(texts))


def _undecided_lines(fields: Sequence[str]) -> list[str]:
    return ["  # retention:", *(f"  #   {field}: ..." for field in fields)]


def _clustering_lines(observed: ObservedClustering | None) -> list[str]:
    """Return comments only: when to cluster, and often the curve, are options of the writers."""
    if observed is None:
        return []
    columns = words.escape_text(json.dumps(list(observed.columns), ensure_ascii=False))
    by = f"sorts by {columns}" if observed.columns else "has no sort columns"
    counts = f"{observed.equal_plans} of the {observed.plans} such plans"
    alike = f" (so do {counts} on the timeline)" if observed.plans > 1 else ""
    curve = observed.curve or "...                # linear | z-order | hilbert: not recorded"
    sentence = (
        f"The clustering {observed.instant} {by}{alike}. "
        "The table does not record when to cluster again:"
    )
    mapping = observed.mapping or "direct           # as Hudi's; or rank"
    order = [f"  #   curve: {curve}", f"  #   mapping: {mapping}"] if observed.columns else []
    return [*_comment_lines(sentence), "  # clustering:", f"  #   columns: {columns}", *order]


def _size_lines(observed: ObservedSizes | None) -> list[str]:
    if observed is None:
        return []
    sentence = (
        f"Of the {words.format_number(observed.files)} base files in the newest slices 95 % are at "
        f"most {words.format_size(observed.common_size)}, the largest is "
        f"{words.format_size(observed.largest)}. The table does not record the target:"
    )
    return [
        *_comment_lines(sentence),
        "  # files:                    # brings existing files to these sizes",
        "  #   target: ...             # as the writers' hoodie.parquet.max.file.size",
        "  #   small: ...              # as the writers' hoodie.parquet.small.file.limit",
        "  #   # large: ...            # files above it are split; twice the target if left out",
        "  #   # quiet: 2h             # leave partitions alone that were written more recently",
    ]


def _log_lines(observed: ObservedLogs | None) -> list[str]:
    """Return comments only: who compacts, and when, are options of the writers."""
    if observed is None:
        return []
    slices = words.format_count(observed.of_slices, "newest file slice")
    of_base = words.format_size(observed.base_bytes)
    sentence = (
        f"{words.format_count(observed.files, 'log file')} of {words.format_size(observed.bytes)} "
        f"in {words.format_number(observed.slices)} of {slices} wait for a compaction, beside base "
        f"files of {of_base}. The table does not record when its writers compact. To let apply do "
        "it instead:"
    )
    return [
        *_comment_lines(sentence),
        "  # compaction:",
        "  #   afterDeltaCommits: ...  # as the writers' hoodie.compact.inline.max.delta.commits",
    ]


def _comment_lines(text: str) -> list[str]:
    return _wrap_comment(text, "  # ")


def _wrap_comment(text: str, start: str) -> list[str]:
    width = _WIDTH - len(start)
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return [f"{start}{line}" for line in lines]
