"""Compare a reviewed plan with the specs of today; if they differ, nothing runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from reconciler.plans.model import TablePlan
from reconciler.plans.plan import Plan
from reconciler.spec.model import TableSpec
from reconciler.storage.locations import identify_place

_MAX_SHOWN = 3
_ABSENT = object()


def explain_other_specs(plan: Plan, names: Collection[str]) -> str | None:
    """Return why a plan cannot be of the specs with these names; None when it may be."""
    planned = [table.name for table in plan.tables]
    if not planned or any(name in names for name in planned):
        return None
    count = "its one table" if len(planned) == 1 else f"none of its {len(planned)} tables"
    verb = "is declared by none of them" if len(planned) == 1 else "is declared by them"
    return (
        f"the plan is of other specs than these: {count} ({_format_few(planned)}) {verb}; name "
        "with --specs the ones that it was made from, or plan again from these"
    )


def explain_mismatch(
    table: TablePlan, specs: Mapping[str, TableSpec], digests: Mapping[str, str]
) -> str | None:
    """Return why the specs of today exclude a reviewed table; None when they still match.

    Both mappings are by table name; ``digests`` are of the effective specs, without the path.
    """
    spec = specs.get(table.name)
    if spec is None:
        return (
            f"no spec declares {table.name} any more: it is not managed now, and stays as it is; "
            "plan again"
        )
    if spec.path != table.path and identify_place(spec.path) != identify_place(table.path):
        cause = "its spec was edited" if spec.catalog is None else "its catalog has moved it"
        return (
            f"{table.name} is at {spec.path} now and was reviewed at {table.path}: {cause}, or the "
            "plan is of another environment; plan again"
        )
    if digests[table.name] != table.spec_digest:
        changed = list(_list_changes(table.spec, spec.document))
        detail = f" ({_format_few(changed)})" if changed else ""
        return f"the spec of {table.name} is no longer the reviewed one{detail}; plan again"
    return None


def _format_few(things: list[str]) -> str:
    """Return the first few, and how many more there are.

    >>> _format_few(["a"]), _format_few(["a", "b", "c", "d", "e"])
    ('a', 'a, b, c and 2 more')
    """
    rest = len(things) - _MAX_SHOWN
    return ", ".join(things[:_MAX_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _list_changes(before: Any, now: Any, at: str = "") -> Iterator[str]:
    """Yield every field that has changed, without the table's path."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in sorted({*before, *now}):
            if at or key != "path":
                name = f"{at}.{key}" if at else str(key)
                yield from _list_changes(before.get(key, _ABSENT), now.get(key, _ABSENT), name)
    elif before != now:
        yield f"{at} is {_format_value(now)} now and was {_format_value(before)}"


def _format_value(value: Any) -> str:
    """Return a value in few words.

    >>> _format_value(10), _format_value(None), _format_value({"a": 1}), _format_value("x" * 50)
    ('10', 'absent', 'a block', 'another text')
    >>> _format_value(["a", "b"]), _format_value([]), _format_value(["x" * 50])
    ('[a, b]', '[]', 'another list')
    """
    if value is _ABSENT or value is None:
        return "absent"
    if isinstance(value, Mapping):
        return "a block"
    if isinstance(value, list | tuple):
        simple = all(isinstance(item, str | int | float) for item in value)
        text = f"[{', '.join(map(str, value))}]" if simple else ""
        return text if 0 < len(text) <= 40 else "another list"  # noqa: PLR2004 (fits a line)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= 40 else "another text"  # noqa: PLR2004 (fits a line)
