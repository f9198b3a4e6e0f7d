"""Answers about files, instants and partitions, as text and JSON. Strings and no I/O."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler import canonical_json
from reconciler.canonical_json import to_document
from reconciler.planners.answers.model import Answer, Search
from reconciler.render import words
from reconciler.render.terminal import Terminal


def answers_text(search: Search, terminal: Terminal) -> str:
    """Return the answers for people: what becomes of it, then the chain of reasons."""
    blocks = ["\n".join(_answer_lines(answer, terminal)) for answer in search.answers]
    return "\n\n".join(blocks) + "\n"


def _answer_lines(answer: Answer, terminal: Terminal) -> Iterator[str]:
    name = terminal.strong(words.escape_text(answer.name))
    yield from terminal.title(f"{answer.kind}  {name}")
    paint = terminal.warn if answer.verdict in ("goes", "removed", "rewritten") else terminal.good
    yield from terminal.wrap(f"  {paint('=')} ", words.escape_text(answer.summary), 4)
    width = max((len(fact.about) for fact in answer.facts), default=0)
    last = ""
    for fact in answer.facts:
        label = fact.about if fact.about != last else ""
        last = fact.about
        start = f"    {label:<{width}}  "
        yield from terminal.wrap(start, words.escape_text(fact.because), len(start))


def answers_json(search: Search, *, table: str, path: str, created_at: str, tool: str) -> bytes:
    """Return the answers as canonical JSON and a newline (``schemas/answers.v1.json``)."""
    document = {
        "format": 1,
        "createdAt": created_at,
        "tool": tool,
        "table": table,
        "path": path,
        "answers": to_document(search.answers),
    }
    return canonical_json.to_bytes(document) + b"\n"
