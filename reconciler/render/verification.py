"""The verification of tables: as text for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from reconciler import canonical_json
from reconciler.plans import encode
from reconciler.plans.model import Selection
from reconciler.render import words
from reconciler.render.terminal import Terminal, limit_rows
from reconciler.state.metadata_differences import (
    MetadataDifference,
    MetadataVerification,
    PartitionCheck,
    describe_difference,
)
from reconciler.verification.table_verification import TableVerification

_MAX_SHOWN: Final = 5
#: how the kinds of differences are counted
_KINDS: Final = {"missing": "missing", "extra": "without a file", "wrong": "wrong"}


def verification_text(
    tables: Sequence[TableVerification],
    terminal: Terminal,
    *,
    selection: Selection | None = None,
    full: bool = False,
) -> str:
    """Return the tables as text, those with errors and differences first.

    Up to five differences with the same effect are shown, all with ``full``.
    """
    lines: list[str] = []
    for table in sorted(tables, key=lambda one: (one.exit_code == 0, one.name)):
        lines += [*_table_lines(table, terminal, full=full), ""]
    lines += terminal.wrap(f"{terminal.strong('Verify:')} ", _summarize(tables, selection), 2)
    return "\n".join(lines) + "\n"


def verification_json(
    tables: Sequence[TableVerification],
    *,
    created_at: str,
    tool: str,
    sample: float,
    selection: Selection | None = None,
) -> bytes:
    """Return the tables as canonical JSON and a newline (``schemas/verification.v1.json``).

    ``created_at``: ISO-8601 with offset. ``tool``: name and version of this program.
    """
    document = {
        "format": 1,
        "createdAt": created_at,
        "tool": tool,
        "sample": sample,
        "tables": [_encode_table(table) for table in tables],
        **encode.encode_selection(selection),
    }
    return canonical_json.to_bytes(document) + b"\n"


def _encode_table(table: TableVerification) -> dict[str, Any]:
    document: dict[str, Any] = {"name": table.name, "path": table.path, "error": table.error}
    if table.found is not None:
        document |= {
            "instant": table.found.instant,
            "checks": canonical_json.to_document(table.found.checks),
            "differences": canonical_json.to_document(table.found.differences),
        }
    return document


# --- one table -----------------------------------------------------------------------------------


def _table_lines(table: TableVerification, terminal: Terminal, *, full: bool) -> Iterator[str]:
    yield from _title_lines(table, terminal)
    if table.found is None:
        yield from terminal.item(terminal.bad("! error"), table.error or "")
        return
    if not table.found.checks:
        nothing = "the table has no metadata table and no index"
        yield from terminal.item("= nothing to compare", nothing)
    for check in table.found.checks:
        yield from _check_lines(check, terminal)
        yield from _difference_lines(table.found, check, terminal, full=full)


def _title_lines(table: TableVerification, terminal: Terminal) -> Iterator[str]:
    label = terminal.good("no differences")
    if table.found is None:
        label = terminal.bad("error")
    elif table.found.difference_count:
        count = words.format_count(table.found.difference_count, "difference")
        label = terminal.bad(count)
    name = terminal.strong(words.escape_text(table.name))
    yield from terminal.title(name, label, words.escape_text(table.path))


def _check_lines(check: PartitionCheck, terminal: Terminal) -> Iterator[str]:
    name = check.metadata_partition
    compared = f"{words.format_count(check.compared, check.unit)} compared"
    if check.differences:
        differ = "1 differs"
        if check.differences != 1:
            differ = f"{words.format_number(check.differences)} differ"
        yield from terminal.item(terminal.bad(f"! {name}"), f"{compared}, {differ}")
    elif check.compared or not check.not_compared:
        yield from terminal.item(f"= {name}", compared)
    else:
        yield from terminal.item(terminal.warn(f"? {name}"), "not compared")
    for sentence in check.not_compared:
        yield from terminal.detail(f"not compared: {sentence}")


def _difference_lines(
    found: MetadataVerification, check: PartitionCheck, terminal: Terminal, *, full: bool
) -> Iterator[str]:
    """Yield the differences of a metadata partition, those with the same effect together."""
    name = check.metadata_partition
    named = [one for one in found.differences if one.metadata_partition == name]

    def key(one: MetadataDifference) -> tuple[str, str]:
        return one.kind, one.effect

    for (kind, effect), same in groupby(sorted(named, key=key), key):
        differences = list(same)
        count = f"{words.format_number(len(differences))} {_KINDS[kind]}"
        yield from terminal.detail(f"{count}: {effect}")
        limit = len(differences) if full else limit_rows(len(differences), _MAX_SHOWN)
        for one in differences[:limit]:
            yield from terminal.detail(describe_difference(one), 2)
        if len(differences) > limit:
            more = words.format_count(len(differences) - limit, "more difference")
            yield from terminal.detail(f"… and {more}; --full shows all", 2)
    if len(named) < check.differences:
        more = words.format_count(check.differences - len(named), "more difference")
        yield from terminal.detail(f"{more} counted and not named")


def _summarize(tables: Sequence[TableVerification], selection: Selection | None) -> str:
    total = words.format_tables(len(tables), selection)
    failed = sum(table.found is None for table in tables)
    different = [t.found.difference_count for t in tables if t.found and t.found.difference_count]
    same = len(tables) - failed - len(different)
    counts = words.join_counts(
        [
            (failed, "not verified"),
            (len(different), "with differences"),
            (same, "without differences"),
        ]
    )
    found = f"; {words.format_count(sum(different), 'difference')}" if different else ""
    return f"{total}: {counts}{found}" if counts else total
