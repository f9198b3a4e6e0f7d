"""Proposed layouts and indexes, for people and for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from reconciler import canonical_json
from reconciler.planners.prediction.advice import Advice
from reconciler.planners.prediction.compaction_advice import CompactionAdvice
from reconciler.planners.prediction.layout_candidates import (
    LayoutCandidate,
    LayoutTrial,
    QueryReads,
)
from reconciler.plans import encode
from reconciler.plans.model import Selection
from reconciler.render import words
from reconciler.render.markdown_escape import code_block, code_span, escape_markdown, folded_block
from reconciler.render.observed_queries import (
    detail_lines,
    logs_document,
    observed_document,
    observed_lines,
    query_document,
    query_lines,
    summarize_logs,
    workload_lines,
)
from reconciler.render.page import Page
from reconciler.render.terminal import Terminal
from reconciler.spec.compaction import Compaction
from reconciler.spec.model import ClusteringTrigger

if TYPE_CHECKING:
    from reconciler.event_logs.proposal import QueryProposal
    from reconciler.event_logs.report import WorkloadReport

_MAX_LAYOUTS: Final = 3
_MAX_QUERIES: Final = 20
_MAX_NAME_WIDTH: Final = 40
#: texts that YAML needs no quotes for, except these words
_PLAIN_SCALAR: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED_SCALARS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def advice_text(
    tables: Sequence[Advice],
    terminal: Terminal,
    *,
    selection: Selection | None = None,
    logs: WorkloadReport | None = None,
) -> str:
    """Return the proposals of the tables as text, with a summary in the last line.

    ``logs``: what event logs asked of the tables, in the same order.
    """
    lines = [] if logs is None else list(workload_lines(logs, terminal))
    for table, observed in _pair_proposals(tables, logs):
        lines += [*_table_lines(table, terminal, observed), ""]
    summary = summarize_advice(tables, selection, logs)
    lines += terminal.wrap(f"{terminal.strong('Advice:')} ", summary, 2)
    return "\n".join(lines) + "\n"


def advice_json(
    tables: Sequence[Advice],
    *,
    selection: Selection | None = None,
    logs: WorkloadReport | None = None,
) -> bytes:
    """Return the proposals with every tried layout, as canonical JSON and a newline."""
    document = {
        "format": 1,
        "tables": [_table_document(*pair) for pair in _pair_proposals(tables, logs)],
        **({} if logs is None else {"eventLogs": logs_document(logs)}),
        **encode.encode_selection(selection),
    }
    return canonical_json.to_bytes(document) + b"\n"


def advice_markdown(
    tables: Sequence[Advice],
    *,
    selection: Selection | None = None,
    logs: WorkloadReport | None = None,
) -> str:
    """Return the proposals for a pull request, with at most 60 000 characters."""
    page = Page()
    page.add_block(f"### reconciler advise: {summarize_advice(tables, selection, logs)}\n")
    if logs is not None:
        page.add_block(_logs_block(logs))
    blocks = (_folded_details(*pair) for pair in _pair_proposals(tables, logs))
    page.add_blocks(
        blocks, len(tables), 1.0, lambda n: f"\n… and {words.format_count(n, 'more table')}\n"
    )
    return page.text


def _pair_proposals(
    tables: Sequence[Advice], logs: WorkloadReport | None
) -> Iterator[tuple[Advice, QueryProposal | None]]:
    """Yield each table with what logs asked of it."""
    if logs is None:
        yield from ((table, None) for table in tables)
    else:
        yield from zip(tables, logs.proposals, strict=True)


def summarize_advice(
    tables: Sequence[Advice], selection: Selection | None, logs: WorkloadReport | None = None
) -> str:
    """Return the number of tables of each kind: ``2 tables: 1 with a proposal, 1 unchanged``.

    >>> summarize_advice([], None)
    'no tables'
    """
    failed = sum(table.error is not None for table in tables)
    new = sum(
        table.error is None and (table.has_changes or bool(observed and observed.new))
        for table, observed in _pair_proposals(tables, logs)
    )
    rest = len(tables) - failed - new
    parts = words.join_counts(((new, "with a proposal"), (rest, "unchanged"), (failed, "not read")))
    total = words.format_tables(len(tables), selection)
    return f"{total}: {parts}" if parts else total


def spec_lines(advice: Advice, observed: QueryProposal | None = None) -> list[str]:
    """Return the lines of a spec to commit; none if nothing is proposed."""
    lines = _query_lines(advice, observed) if observed is not None else []
    if advice.best is not None and advice.changes_clustering:
        best = advice.best.candidate
        columns = f"    columns: {_yaml_list(best.columns)}"
        lines += ["  clustering:", columns, f"    curve: {best.curve}"]
        lines += [f"    mapping: {best.mapping}"] if _needs_mapping(advice) else []
        if advice.when is not None:
            given = (f"{name}: {value:g}" for name, value in _list_conditions(advice.when).items())
            lines += [f"    when: {{{', '.join(given)}}}"]
    if advice.compaction is not None and advice.compaction.block is not None:
        lines += ["  compaction:", *_compaction_lines(advice.compaction.block)]
    if advice.index:
        lines += ["  index:", f"    columns: {_yaml_list(advice.index)}"]
    return ["spec:", *lines] if lines else []


def _query_lines(advice: Advice, observed: QueryProposal) -> list[str]:
    new = [one.query for one in observed.new]
    return query_lines(new, has_others=_declares_queries(advice, observed))


def _declares_queries(advice: Advice, observed: QueryProposal) -> bool:
    """Return whether the spec declares queries beside those that are proposed."""
    return len(advice.queries) > len(observed.new)


def _compaction_lines(block: Compaction) -> Iterator[str]:
    yield f"    afterDeltaCommits: {block.after_delta_commits}"
    if (share := _get_log_share(block)) is not None:
        yield f"    when: {{logShareAbove: {share:g}}}"


def _get_log_share(block: Compaction) -> float | None:
    return block.when.log_share_above if block.when is not None else None


def _list_conditions(when: ClusteringTrigger) -> Mapping[str, float]:
    """Return the conditions of a proposal by their names in a spec."""
    named = (
        ("smallFileShareAbove", when.small_file_share_above),
        ("gainAbove", when.gain_above),
    )
    return {name: value for name, value in named if value is not None}


def _needs_mapping(advice: Advice) -> bool:
    """Return whether the proposal must name the mapping, because the spec has another one now."""
    best, declared = advice.best, advice.declared
    now = declared.mapping if declared is not None else "rank"
    return best is not None and best.candidate.mapping != now


def _yaml_list(names: Sequence[str]) -> str:
    """Names as a list of YAML.

    >>> _yaml_list(["id", "on", "größe", "s.a"])
    '[id, "on", "größe", "s.a"]'
    """
    return f"[{', '.join(map(_yaml_scalar, names))}]"


def _yaml_scalar(name: str) -> str:
    is_plain = _PLAIN_SCALAR.fullmatch(name) and name.lower() not in _RESERVED_SCALARS
    return name if is_plain else json.dumps(name, ensure_ascii=not name.isprintable())


# --- text ----------------------------------------------------------------------------------------


def _table_lines(
    table: Advice, terminal: Terminal, observed: QueryProposal | None = None
) -> Iterator[str]:
    name = terminal.strong(words.escape_text(table.name))
    yield from terminal.title(name, words.escape_text(table.path))
    if observed is not None:
        yield from observed_lines(observed, terminal)
    if table.error is not None:
        yield from terminal.item(terminal.bad("! error"), table.error)
        return
    if table.current is not None:
        files = words.format_count(table.files, "file")
        yield from terminal.item("today", f"{files}, {words.format_size(table.bytes)}")
    if table.sampled is not None:
        sampled = table.sampled
        groups = f"{words.format_number(sampled.row_groups)} of {sampled.total_row_groups}"
        tried = words.format_count(len(table.trials), "layout")
        rows = words.format_count(sampled.rows, "row")
        yield from terminal.item("tried", f"{tried}, on {rows} sampled from {groups} row groups")
    yield from _share_lines(table, terminal)
    yield from _proposal_lines(table, terminal, observed)
    for note in table.notes:
        yield from terminal.note(terminal.warn("! note"), note)


def _proposal_lines(
    table: Advice, terminal: Terminal, observed: QueryProposal | None
) -> Iterator[str]:
    """What to commit, and why."""
    label = "proposed" if table.best is not None and spec_lines(table) else "layout"
    yield from terminal.item(terminal.strong(label), table.because)
    if table.compaction is not None:
        label = terminal.strong("proposed") if table.adds_compaction else "compaction"
        yield from terminal.item(label, table.compaction.because)
    if observed is not None and observed.new:
        queries = words.format_count(len(observed.new), "query")
        is_more = _declares_queries(table, observed)
        beside = ", to add to those that the spec declares" if is_more else ""
        yield from terminal.item(terminal.strong("proposed"), f"{queries} of the logs{beside}")
    if proposal := spec_lines(table, observed):
        yield from terminal.detail("to commit:")
        yield from (f"      {words.escape_text(line)}" for line in proposal)


def _share_lines(table: Advice, terminal: Terminal) -> Iterator[str]:
    """The bytes that every query reads today, and their share that it reads in the best layouts."""
    if table.current is None:
        return
    best = _shown_trials(table)
    rows = [
        (words.escape_text(query.name), [table.current[nth], *(trial.reads[nth] for trial in best)])
        for nth, query in enumerate(table.queries[:_MAX_QUERIES])
    ]
    width = max([len("bytes read"), *(min(len(name), _MAX_NAME_WIDTH) for name, _ in rows)])
    heads = ["today", *(str(nth + 1) for nth in range(len(best)))]
    yield f"  {'bytes read':<{width}}" + "".join(f"{head:>10}" for head in heads)
    for name, reads in rows:
        shown = name if len(name) <= _MAX_NAME_WIDTH else f"{name[: _MAX_NAME_WIDTH - 1]}…"
        cells = [
            words.format_size(reads[0].bytes),
            *(_format_reads(one, reads[0]) for one in reads[1:]),
        ]
        yield f"  {shown:<{width}}" + "".join(f"{cell:>10}" for cell in cells)
    if (rest := len(table.queries) - _MAX_QUERIES) > 0:
        yield from terminal.detail(f"… and {words.format_count(rest, 'more query')}")
    for nth, trial in enumerate(best):
        number = terminal.strong(str(nth + 1)) if trial is table.best else str(nth + 1)
        error = f"± {100 * max(trial.errors, default=0.0):.0f} %"
        yield from terminal.item(number, f"{_describe_candidate(trial.candidate)}, {error}")


def _format_reads(then: QueryReads, now: QueryReads) -> str:
    """Return the bytes read in a layout as a share of those read today, or as they are if 0."""
    return words.format_share(then.bytes, now.bytes) if now.bytes else words.format_size(then.bytes)


def _shown_trials(table: Advice) -> list[LayoutTrial]:
    """The best few, and what is declared if it was tried and is none of them."""
    best = list(table.trials[:_MAX_LAYOUTS])
    rest = table.trials[_MAX_LAYOUTS:]
    return [*best, *(trial for trial in rest if trial.candidate == table.declared)]


def _describe_candidate(candidate: LayoutCandidate) -> str:
    order = f"{candidate.curve} on {', '.join(candidate.columns)}"
    return order if candidate.mapping == "rank" else f"{order}, {candidate.mapping} mapping"


# --- Markdown ------------------------------------------------------------------------------------


def _logs_block(logs: WorkloadReport) -> str:
    """What was read of event logs; problems and tables without a spec are folded."""
    lines = list(detail_lines(logs, Terminal()))
    details = folded_block("event logs", code_block(lines, "")) if lines else ""
    return f"\nEvent logs: {escape_markdown(summarize_logs(logs.workload))}\n{details}"


def _folded_details(table: Advice, observed: QueryProposal | None = None) -> str:
    lines = list(_table_lines(table, Terminal(), observed))
    head = f"{code_span(table.name)}: {escape_markdown(table.error or table.because)}"
    if table.compaction is not None and table.adds_compaction:
        head += f"; {escape_markdown(table.compaction.because)}"
    proposal = spec_lines(table, observed)
    commit = f"\n{code_block(map(words.escape_text, proposal), 'yaml')}" if proposal else ""
    return f"\n{head}\n{commit}{folded_block('figures', code_block(lines, ''))}"


# --- JSON ----------------------------------------------------------------------------------------


def _table_document(table: Advice, observed: QueryProposal | None) -> Mapping[str, Any]:
    to_document = canonical_json.to_document
    return {
        "name": table.name,
        "path": table.path,
        "error": table.error,
        "files": table.files,
        "bytes": table.bytes,
        "queries": [
            {"name": query.name, "where": query.where, "files": None, "bytes": None}
            | ({} if table.current is None else to_document(table.current[nth]))
            for nth, query in enumerate(table.queries)
        ],
        "sampled": to_document(table.sampled),
        "tried": [_trial_document(trial, table) for trial in table.trials],
        "proposal": {**_queries_document(observed), **_proposal_document(table)},
        **({} if observed is None else {"observed": observed_document(observed)}),
        "because": table.because,
        **({} if table.compaction is None else {"compaction": _cost_document(table.compaction)}),
        "notes": to_document(table.notes),
    }


def _cost_document(cost: CompactionAdvice) -> Mapping[str, Any]:
    """Return what log files cost the queries; the block to declare is in the proposal."""
    return {
        "bytes": cost.bytes,
        "logFiles": cost.log_files,
        "logBytes": cost.log_bytes,
        "compactedBytes": cost.compacted_bytes,
        "because": cost.because,
    }


def _trial_document(trial: LayoutTrial, table: Advice) -> Mapping[str, Any]:
    queries = zip(table.queries, trial.reads, trial.errors, strict=True)
    return {
        **canonical_json.to_document(trial.candidate),
        "bytes": trial.table_bytes,
        "queries": [
            {"name": query.name, **canonical_json.to_document(reads), "error": error}
            for query, reads, error in queries
        ],
    }


def _queries_document(observed: QueryProposal | None) -> Mapping[str, Any]:
    """Return the queries to commit beside those that the spec declares."""
    if observed is None or not observed.new:
        return {}
    return {"queries": [query_document(one.query) for one in observed.new]}


def _proposal_document(table: Advice) -> Mapping[str, Any]:
    """Return what to commit, as a spec has it; empty if nothing is new."""
    proposal: dict[str, Any] = {}
    if table.best is not None and table.changes_clustering:
        best = table.best.candidate
        more: dict[str, Any] = {"mapping": best.mapping} if _needs_mapping(table) else {}
        more |= {} if table.when is None else {"when": dict(_list_conditions(table.when))}
        proposal["clustering"] = {"columns": list(best.columns), "curve": best.curve, **more}
    if table.compaction is not None and (block := table.compaction.block) is not None:
        share = _get_log_share(block)
        when = {} if share is None else {"when": {"logShareAbove": share}}
        proposal["compaction"] = {"afterDeltaCommits": block.after_delta_commits, **when}
    if table.index:
        proposal["index"] = {"columns": list(table.index)}
    return proposal
