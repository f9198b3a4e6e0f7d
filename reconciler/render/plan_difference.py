"""The difference of two plans as text, Markdown and JSON. Strings and no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow.compute as pc

from reconciler import canonical_json
from reconciler.canonical_json import to_document
from reconciler.plans.difference import (
    FieldDifference,
    ItemDifference,
    PlanDifference,
    Status,
    StepDifference,
    TableDifference,
)
from reconciler.plans.plan import Plan
from reconciler.render import words
from reconciler.render.markdown_escape import code_block, code_span, folded_block
from reconciler.render.page import Page
from reconciler.render.reasons import Reason, join_reasons
from reconciler.render.terminal import Terminal

_MAX_REASONS: Final = 3
_SIGNS: Final[dict[Status, str]] = {"new": "+", "gone": "-", "changed": "~", "same": "="}
_STATUSES: Final[tuple[tuple[Status, str], ...]] = (
    ("new", "only in the new plan"),
    ("gone", "only in the old plan"),
    ("changed", "changed"),
    ("same", "the same"),
)
#: figures that are sizes, and how figures are called in text
_SIZE_FIGURES: Final = ("observed.bytes", "impact.bytesRemoved", "impact.bytesRewritten")
_FIGURE_NAMES: Final = {
    "observed.lastCompleted": "newest instant",
    "observed.files": "files of the table",
    "observed.bytes": "size of the table",
    "impact.filesRemoved": "files to remove",
    "impact.bytesRemoved": "bytes to remove",
    "impact.bytesRewritten": "bytes to rewrite",
    "impact.earliestReadable": "earliest readable instant",
}
#: steps whose items have sizes of their own
_SIZED_STEPS: Final = ("clean", "orphans", "resume", "deletePartition")

#: what differs of items that have the same reason
_CHANGED_ITEMS: Final = {
    "file": "another size",
    "file slice": "other files, or another group",
    "partition": "other figures",
    "savepoint": "another instant, or other figures",
}


def difference_text(difference: PlanDifference, terminal: Terminal, *, full: bool = False) -> str:
    """Return the difference for people; ``full`` names every item."""
    lines = list(_head_lines(difference, terminal))
    for table in difference.tables:
        if table.status != "same":
            lines += ["", *_table_lines(table, terminal, full=full)]
    return "\n".join([*lines, "", _summary(difference)]) + "\n"


def difference_markdown(difference: PlanDifference) -> str:
    """Return the difference as a comment of a pull request, of bounded length."""
    page = Page(end=f"\n{_summary(difference)}\n")
    old, new = (code_span(plan.digest) for plan in (difference.old, difference.new))
    page.add_block(f"### What changed between two plans\n\nOld plan {old}, new plan {new}.\n")
    tables = [table for table in difference.tables if table.status != "same"]
    blocks = (_table_block(table) for table in tables)
    page.add_blocks(
        blocks,
        len(tables),
        1,
        lambda left: f"\n… and {words.format_count(left, 'more table')}\n",
    )
    return page.text


def difference_json(difference: PlanDifference, tool: str) -> bytes:
    """Return the difference as canonical JSON and a newline (``schemas/diff.v1.json``)."""
    document = {
        "format": 1,
        "tool": tool,
        "equal": difference.is_empty,
        "old": _encode_plan(difference.old),
        "new": _encode_plan(difference.new),
        "tables": [_encode_table(table) for table in difference.tables],
    }
    return canonical_json.to_bytes(document) + b"\n"


def _summary(difference: PlanDifference) -> str:
    statuses = [table.status for table in difference.tables]
    counts = words.join_counts((statuses.count(status), text) for status, text in _STATUSES)
    tables = words.format_count(len(statuses), "table")
    if difference.is_empty:
        return f"{tables}: the plans decide the same."
    return f"{tables}: {counts}."


def _head_lines(difference: PlanDifference, terminal: Terminal) -> Iterator[str]:
    for name, plan in (("Old", difference.old), ("New", difference.new)):
        made = f"{words.escape_text(plan.created_at)} {plan.digest}"
        yield from terminal.wrap(f"{terminal.strong(f'{name} plan:')} ", made, 2)


def _table_block(table: TableDifference) -> str:
    lines = list(_table_lines(table, Terminal(width=100), full=False))
    _, *details = lines
    name = f"{_SIGNS[table.status]} {code_span(table.name)}"
    shown = [f"{line[2:]}" if line.startswith("  ") else line for line in details]
    return folded_block(name, code_block(shown, "diff"))


# --- one table -----------------------------------------------------------------------------------


def _table_lines(table: TableDifference, terminal: Terminal, *, full: bool) -> Iterator[str]:
    what = {"new": "only in the new plan", "gone": "only in the old plan"}.get(table.status, "")
    name = terminal.strong(words.escape_text(table.name))
    yield from terminal.title(name, what, words.escape_text(table.path))
    for field in table.spec:
        label = terminal.warn(words.escape_text(f"~ spec.{field.field}"))
        yield from terminal.item(label, _describe_change(field))
    if table.status == "changed":
        for field in table.figures:
            label = _FIGURE_NAMES[field.field]
            yield from terminal.item(f"~ {label}", _describe_figure(field))
    for step in table.steps:
        yield from _step_lines(step, terminal, full=full)
    if table.same_steps:
        text = f"{words.format_count(table.same_steps, 'step')} the same"
        yield from terminal.item(terminal.good("="), text)
    for sign, notes in (("+", table.new_notes), ("-", table.gone_notes)):
        for note in notes:
            yield from terminal.note(_paint(terminal, sign)(f"{sign} note"), note)


def _step_lines(step: StepDifference, terminal: Terminal, *, full: bool) -> Iterator[str]:
    sign = _SIGNS[step.status]
    name = words.escape_text(f"{step.kind} {step.label}".strip())
    yield from terminal.item(_paint(terminal, sign)(f"{sign} {name}"), _count_items(step))
    for field in step.fields:
        yield from terminal.detail(f"{field.field}: {_describe_change(field)}")
    limit = len(step.new) + len(step.gone) + len(step.changed) if full else _MAX_REASONS
    for mark, part in (("+", step.new), ("-", step.gone), ("~", step.changed)):
        reasons = (
            _explain_changes(part) if mark == "~" else _explain_items(part, is_new=mark == "+")
        )
        texts = [f"{mark} {_count(reason.count, step)}: {reason.text}" for reason in reasons]
        yield from terminal.details(texts, _MAX_REASONS, "reason", hint=" (see --format json)")
        if full:
            yield from terminal.details(part.items.path.to_pylist(), limit, "item", indent=2)


def _count(number: int, step: StepDifference) -> str:
    return words.format_count(number, step.new.items.noun)


def _count_items(step: StepDifference) -> str:
    """Return how many items are new, gone, the same, with their sizes if they have any."""
    has_sizes = step.kind in _SIZED_STEPS
    counts = (
        (len(step.new), int(step.new.items.bytes.sum()), "new"),
        (len(step.gone), int(step.gone.items.bytes.sum()), "gone"),
        (step.same, step.same_bytes, "the same"),
    )
    parts = []
    for number, size, what in counts:
        if number:
            sizes = f" ({words.format_size(size)})" if has_sizes else ""
            parts.append(f"{_count(number, step)} {what}{sizes}")
    if len(step.changed):
        parts.append(f"{words.format_number(len(step.changed))} of them otherwise")
    if not parts and step.status != "changed":
        return "names no files"
    return ", ".join(parts) or "other fields"


def _explain_items(part: ItemDifference, *, is_new: bool) -> list[Reason]:
    """Return why items are new or gone: what the other plan says of them, else their own reason."""
    texts = []
    own = pc.value_counts(part.items.because.filter(pc.equal(part.elsewhere, "")))
    known = pc.value_counts(part.elsewhere.filter(pc.not_equal(part.elsewhere, "")))
    for item in known.to_pylist():
        place = item["values"]
        start = f"{'before' if is_new else 'now'}{'' if place.startswith('kept: ') else ' in'}"
        texts.append(Reason(f"{start} {place}", item["counts"]))
    for item in own.to_pylist():
        reason = item["values"]
        if not is_new:
            reason = f"no longer named; before: {reason}" if reason else "no longer named"
        texts.append(Reason(reason or "named now", item["counts"]))
    return join_reasons(texts)


def _explain_changes(part: ItemDifference) -> list[Reason]:
    changed = _CHANGED_ITEMS.get(part.items.noun, "otherwise")
    changes: dict[tuple[str, str], int] = {}
    pairs = zip(part.elsewhere.to_pylist(), part.items.because.to_pylist(), strict=True)
    for pair in pairs:
        changes[pair] = changes.get(pair, 0) + 1
    return join_reasons(
        Reason(f"{old} → {new}" if old != new else f"{changed}: {new}".removesuffix(": "), count)
        for (old, new), count in changes.items()
    )


def _describe_change(field: FieldDifference) -> str:
    return f"{words.format_value(field.old)} → {words.format_value(field.new)}"


def _describe_figure(field: FieldDifference) -> str:
    if field.field in _SIZE_FIGURES:
        return f"{words.format_size(field.old or 0)} → {words.format_size(field.new or 0)}"
    return _describe_change(field)


def _paint(terminal: Terminal, sign: str) -> Callable[[str], str]:
    return {"+": terminal.good, "-": terminal.bad}.get(sign, terminal.warn)


# --- JSON ----------------------------------------------------------------------------------------


def _encode_plan(plan: Plan) -> dict[str, Any]:
    return {"digest": plan.digest, "createdAt": plan.created_at, "tool": plan.tool}


def _encode_table(table: TableDifference) -> dict[str, Any]:
    return {
        "name": table.name,
        "path": table.path,
        "status": table.status,
        "spec": to_document(table.spec),
        "figures": to_document(table.figures),
        "steps": [_encode_step(step) for step in table.steps],
        "sameSteps": table.same_steps,
        "newNotes": to_document(table.new_notes),
        "goneNotes": to_document(table.gone_notes),
    }


def _encode_step(step: StepDifference) -> dict[str, Any]:
    return {
        "kind": step.kind,
        "label": step.label,
        "status": step.status,
        "items": step.new.items.noun,
        "same": step.same,
        "sameBytes": step.same_bytes,
        "fields": to_document(step.fields),
        **{
            name: _encode_items(part, step.kind)
            for name, part in (("new", step.new), ("gone", step.gone), ("changed", step.changed))
        },
    }


def _encode_items(part: ItemDifference, kind: str) -> dict[str, Any]:
    """Return items by columns: a plan may name a million."""
    sizes = {"bytes": part.items.bytes.tolist()} if kind in _SIZED_STEPS else {}
    return {
        "path": part.items.path.to_pylist(),
        **sizes,
        "because": part.items.because.to_pylist(),
        "elsewhere": part.elsewhere.to_pylist(),
    }
