"""Which layout and which index the queries of tables ask for: for people and for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from reconciler import canonical
from reconciler.foresight.advise import Advice
from reconciler.plan import encode
from reconciler.plan.model import Selection
from reconciler.planners.advice import Candidate, Reading, Trial
from reconciler.render import words
from reconciler.render.inert import code, fenced, inert
from reconciler.render.lines import item, more
from reconciler.render.page import Page
from reconciler.render.paint import Paint

#: layouts that are told of, and queries
_BEST: Final = 3
_QUERIES: Final = 20
_WIDEST: Final = 40
#: what YAML takes for a text without quotes, but for the words that it takes for something else
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
#: what a forge takes as one comment
_LIMIT: Final = 60_000


def advice_text(
    tables: Sequence[Advice], *, color: bool, selection: Selection | None = None
) -> str:
    """The tables for people, and a line that sums them up."""
    paint = Paint(is_on=color)
    lines: list[str] = []
    for table in tables:
        lines += [*_table(table, paint), ""]
    return "\n".join([*lines, f"{paint.strong('Advice:')} {summary(tables, selection)}"]) + "\n"


def advice_json(tables: Sequence[Advice], *, selection: Selection | None = None) -> bytes:
    """The same with every layout that was tried, as canonical JSON and a newline."""
    document = {
        "format": 1,
        "tables": [_document(table) for table in tables],
        **encode.selected(selection),
    }
    return canonical.dumps(document) + b"\n"


def advice_markdown(tables: Sequence[Advice], *, selection: Selection | None = None) -> str:
    """The same for a pull request, at most 60 000 characters."""
    page = Page(limit=_LIMIT)
    page.add(f"### reconciler advise: {summary(tables, selection)}\n")
    blocks = map(_details, tables)
    page.add_some(blocks, len(tables), 1.0, lambda n: f"\n… and {words.count(n, 'more table')}\n")
    return page.text


def summary(tables: Sequence[Advice], selection: Selection | None) -> str:
    """How many tables there are of every kind: ``2 tables: 1 with a proposal, 1 as it should be``.

    >>> summary([], None)
    'no tables'
    """
    failed = sum(table.error is not None for table in tables)
    new = sum(table.is_new for table in tables)
    rest = len(tables) - failed - new
    kinds = {"with a proposal": new, "as it is": rest, "not read": failed}
    said = ", ".join(f"{words.number(count)} {kind}" for kind, count in kinds.items() if count)
    total = words.tables(len(tables), selection)
    return f"{total}: {said}" if said else total


def snippet(advice: Advice) -> list[str]:
    """The lines of a spec to commit; none where there is nothing new."""
    lines = []
    if advice.best is not None and advice.best.candidate != advice.declared:
        best = advice.best.candidate
        columns = f"    columns: {_flow(best.columns)}"
        lines += ["  clustering:", columns, f"    curve: {best.curve}"]
        lines += [f"    mapping: {best.mapping}"] if _says_mapping(advice) else []
    if advice.index:
        lines += ["  index:", f"    columns: {_flow(advice.index)}"]
    return ["spec:", *lines] if lines else []


def _says_mapping(advice: Advice) -> bool:
    """Whether the proposal has to say it: what the spec says of it now is another one."""
    best, declared = advice.best, advice.declared
    now = declared.mapping if declared is not None else "rank"
    return best is not None and best.candidate.mapping != now


def _flow(names: Sequence[str]) -> str:
    """Names as a list of YAML.

    >>> _flow(["id", "on", "größe", "s.a"])
    '[id, "on", "größe", "s.a"]'
    """
    return f"[{', '.join(map(_scalar, names))}]"


def _scalar(name: str) -> str:
    is_plain = _PLAIN.fullmatch(name) and name.lower() not in _WORDS
    return name if is_plain else json.dumps(name, ensure_ascii=not name.isprintable())


# --- text ----------------------------------------------------------------------------------------


def _table(table: Advice, paint: Paint) -> Iterator[str]:
    yield f"{paint.strong(words.plain(table.name))}  {words.plain(table.path)}"
    if table.error is not None:
        yield from item(paint.bad("! error"), table.error)
        return
    if table.today is not None:
        files = words.count(table.files, "file")
        yield from item("today", f"{files}, {words.size(table.bytes)}")
    if table.sampled is not None:
        groups = f"{words.number(table.sampled.row_groups)} of {table.sampled.of} row groups"
        tried = words.count(len(table.trials), "layout")
        rows = words.count(table.sampled.rows, "row")
        yield from item("tried", f"{tried}, on {rows} sampled from {groups}")
    yield from _shares(table, paint)
    proposal = snippet(table)
    label = "proposed" if table.best is not None and proposal else "layout"
    yield from item(paint.strong(label), table.because)
    if proposal:
        yield from more("to commit:")
        yield from (f"      {words.plain(line)}" for line in proposal)
    for note in table.notes:
        yield from item(paint.warn("! note"), f"{note.because} [{note.rule}]")


def _shares(table: Advice, paint: Paint) -> Iterator[str]:
    """What every query reads of the bytes, today and in the best layouts; then these by name."""
    if table.today is None:
        return
    best = _told(table)
    rows = [
        (words.plain(query.name), [table.today[nth], *(trial.reads[nth] for trial in best)])
        for nth, query in enumerate(table.queries[:_QUERIES])
    ]
    totals = [table.bytes, *(trial.total for trial in best)]
    width = max([len("bytes read"), *(min(len(name), _WIDEST) for name, _ in rows)])
    heads = ["today", *(str(nth + 1) for nth in range(len(best)))]
    yield f"  {'bytes read':<{width}}" + "".join(f"{head:>9}" for head in heads)
    for name, reads in rows:
        shown = name if len(name) <= _WIDEST else f"{name[: _WIDEST - 1]}…"
        cells = (words.share(one.bytes, of) for one, of in zip(reads, totals, strict=True))
        yield f"  {shown:<{width}}" + "".join(f"{cell:>9}" for cell in cells)
    if len(table.queries) > _QUERIES:
        rest = len(table.queries) - _QUERIES
        yield from more(f"… and {words.count(rest, 'more query', 'more queries')}")
    for nth, trial in enumerate(best):
        number = paint.strong(str(nth + 1)) if trial is table.best else str(nth + 1)
        yield from item(number, f"{_ordering(trial.candidate)}, {_wide(trial)}")


def _told(table: Advice) -> list[Trial]:
    """The best few, and what is declared if it was tried and is none of them."""
    best = list(table.trials[:_BEST])
    rest = table.trials[_BEST:]
    return [*best, *(trial for trial in rest if trial.candidate == table.declared)]


def _ordering(candidate: Candidate) -> str:
    said = f"{candidate.curve} on {', '.join(candidate.columns)}"
    return said if candidate.mapping == "rank" else f"{said}, {candidate.mapping} mapping"


def _wide(trial: Trial) -> str:
    return f"± {100 * max(trial.errors, default=0.0):.0f} %"


# --- Markdown ------------------------------------------------------------------------------------


def _details(table: Advice) -> str:
    lines = list(_table(table, Paint(is_on=False)))
    head = f"{code(table.name)}: {inert(table.error or table.because)}"
    proposal = snippet(table)
    commit = f"\n{fenced([words.plain(line) for line in proposal], 'yaml')}" if proposal else ""
    folded = fenced(lines, "")
    return f"\n{head}\n{commit}\n<details><summary>figures</summary>\n\n{folded}</details>\n"


# --- JSON ----------------------------------------------------------------------------------------


def _document(table: Advice) -> Mapping[str, Any]:
    sampled = table.sampled
    return {
        "name": table.name,
        "path": table.path,
        "error": table.error,
        "files": table.files,
        "bytes": table.bytes,
        "queries": [
            {
                "name": query.name,
                "where": query.where,
                "files": None if table.today is None else table.today[nth].files,
                "bytes": None if table.today is None else table.today[nth].bytes,
            }
            for nth, query in enumerate(table.queries)
        ],
        "sampled": None
        if sampled is None
        else {"rowGroups": sampled.row_groups, "of": sampled.of, "rows": sampled.rows},
        "tried": [_trial(trial, table) for trial in table.trials],
        "proposal": _proposal(table),
        "because": table.because,
        "notes": [{"rule": note.rule, "because": note.because} for note in table.notes],
    }


def _trial(trial: Trial, table: Advice) -> Mapping[str, Any]:
    queries = zip(table.queries, trial.reads, trial.errors, strict=True)
    return {
        "columns": list(trial.candidate.columns),
        "curve": trial.candidate.curve,
        "mapping": trial.candidate.mapping,
        "bytes": trial.total,
        "queries": [{"name": one.name, **_reading(reads), "error": e} for one, reads, e in queries],
    }


def _reading(reads: Reading) -> Mapping[str, int]:
    return {"files": reads.files, "bytes": reads.bytes}


def _proposal(table: Advice) -> Mapping[str, Any]:
    """What to commit, as a spec has it; empty where nothing is new."""
    found: dict[str, Any] = {}
    if table.best is not None and table.best.candidate != table.declared:
        best = table.best.candidate
        more = {"mapping": best.mapping} if _says_mapping(table) else {}
        found["clustering"] = {"columns": list(best.columns), "curve": best.curve, **more}
    if table.index:
        found["index"] = {"columns": list(table.index)}
    return found
