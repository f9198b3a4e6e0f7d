"""What a webhook gets: what needs somebody, in a line for a chat and as data for programs; pure.

The line goes to Slack, Teams or Mattermost, each with its own markup and its own way to call
everybody; what others wrote must be neither.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from reconciler.conditions import left_behind
from reconciler.render import words

if TYPE_CHECKING:
    from reconciler.apply.result import Result, Rows, StepOutcome
    from reconciler.plan.model import Plan, TablePlan
    from reconciler.status import TableStatus

Event = Literal["failed", "busy", "blocked", "partial", "stale", "unhealthy", "drift"]

#: every event as people say it, the worst first, as among exit codes
_SAID: Final[Mapping[Event, str]] = {
    "failed": "failed",
    "busy": "busy",
    "blocked": "blocked",
    "partial": "applied in part",
    "stale": "stale",
    "unhealthy": "unhealthy",
    "drift": "drifted",
}
_WORST_FIRST: Final = tuple(_SAID)
_MOST_TABLES: Final = 50
_MOST_NAMES: Final = 10
_MOST_SENTENCES: Final = 5
_MOST_CHARACTERS: Final = 500
_LONGEST_NAME: Final = 80  # in the line for a chat
_JOINER: Final = "\u2060"  # no width; a mention or a link ends at it
_MARKUP: Final = {
    "<": "(",
    ">": ")",
    "[": "(",
    "]": ")",
    "`": "'",
    "@": f"@{_JOINER}",
    "#": f"#{_JOINER}",
    "://": f":{_JOINER}//",
    "www.": f"www{_JOINER}.",
}
_ANY_MARKUP: Final = re.compile("|".join(re.escape(text) for text in _MARKUP), re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableNotice:
    """A table that needs somebody; ``because`` are the sentences why."""

    name: str
    path: str
    event: Event
    because: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What one run of a command has to say; ``error`` is what stopped all of it.

    ``total`` tables were looked at; ``tables`` are those that need somebody.
    """

    command: str
    exit_code: int
    environment: str | None = None
    plan_digest: str | None = None
    total: int = 0
    tables: tuple[TableNotice, ...] = ()
    error: tuple[Event, str] | None = None

    @property
    def event(self) -> Event | None:
        """The worst that happened; None where nobody is needed."""
        found = [table.event for table in self.tables]
        if self.error is not None:
            found.append(self.error[0])
        return min(found, key=_WORST_FIRST.index, default=None)


def notice_json(notice: Notice) -> bytes:
    """The notice as JSON in ASCII; ``text`` alone is what chats show."""
    worst = sorted(notice.tables, key=lambda t: (_WORST_FIRST.index(t.event), t.name))
    document = {
        "text": _text(notice, worst),
        "event": notice.event,
        "command": notice.command,
        "exitCode": notice.exit_code,
        "environment": notice.environment,
        "planDigest": notice.plan_digest,
        "error": None if notice.error is None else _short(notice.error[1]),
        "tableCount": notice.total,
        "affectedCount": len(worst),
        "tables": [_table(table) for table in worst[:_MOST_TABLES]],
    }
    return json.dumps(document).encode()


def _table(table: TableNotice) -> Mapping[str, Any]:
    return {
        "name": _encodable(table.name),
        "path": _encodable(table.path),
        "event": table.event,
        "because": [_short(sentence) for sentence in table.because[:_MOST_SENTENCES]],
    }


def _text(notice: Notice, tables: Sequence[TableNotice]) -> str:
    """One line for a chat, which can't call anybody or lead anywhere."""
    where = f" ({notice.environment})" if notice.environment else ""
    start = f"reconciler {notice.command}{where}"
    if notice.error is not None:
        return _inert(f"{start}: {_SAID[notice.error[0]]}: {_short(notice.error[1])}")
    events = [table.event for table in tables]
    counts = ", ".join(
        f"{words.number(count)} {said}"
        for event, said in _SAID.items()
        if (count := events.count(event))
    )
    names = [
        f"{_short(table.name, _LONGEST_NAME)} ({_SAID[table.event]})"
        for table in tables[:_MOST_NAMES]
    ]
    if len(tables) > len(names):
        names.append(f"and {words.number(len(tables) - len(names))} more")
    return _inert(f"{start}: {counts} of {words.count(notice.total, 'table')}: {', '.join(names)}")


def _short(text: str, most: int = _MOST_CHARACTERS) -> str:
    plain = _encodable(words.plain(text))
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"


def _encodable(text: str) -> str:
    """Without the halves of characters that names of files may have, and JSON may not."""
    return text.encode(errors="backslashreplace").decode()


def _inert(text: str) -> str:
    """Text that chats show as it is.

    >>> _inert("<!channel> [x](y) `z`")
    "(!channel) (x)(y) 'z'"
    >>> _inert("@here").replace(_JOINER, "|"), _inert("https://a").replace(_JOINER, "|")
    ('@|here', 'https:|//a')
    """
    return _ANY_MARKUP.sub(lambda found: _MARKUP[found[0].lower()], text)


def of_plan(plan: Plan) -> tuple[TableNotice, ...]:
    """The tables of a plan that could not be read, are refused, or are to be changed."""
    return tuple(notice for table in plan.tables if (notice := _planned(table)) is not None)


def _planned(table: TablePlan) -> TableNotice | None:
    because: tuple[str, ...]
    event: Event
    if table.error is not None:
        event, because = "failed", (table.error,)
    elif table.refusals:
        event, because = "blocked", tuple(note.because for note in table.refusals)
    elif table.has_changes:
        drift = tuple(f"{found.field}: {found.because}" for found in table.drift)
        event, because = "drift", drift or left_behind(table)
    else:
        return None
    return TableNotice(name=table.name, path=table.path, event=event, because=because)


def of_status(tables: Iterable[TableStatus]) -> tuple[TableNotice, ...]:
    """The tables that are not in sync, or not healthy; unmanaged ones are what people wanted."""
    return tuple(notice for table in tables if (notice := _seen(table)) is not None)


def _seen(table: TableStatus) -> TableNotice | None:
    health = table.condition("Healthy")
    is_ill = health is not None and health.status == "False"
    ills = (f"{health.reason}: {health.message}",) if health is not None and is_ill else ()
    because = (*table.because, *ills)
    event: Event
    match table.sync:
        case "error":
            event, because = "failed", (table.error or "",)
        case "blocked":
            event = "blocked"
        case "drifted":
            event = "unhealthy" if is_ill else "drift"
        case "unmanaged" | "in sync":
            if not is_ill:
                return None
            event, because = "unhealthy", ills
    return TableNotice(name=table.name, path=table.path, event=event, because=because)


def of_result(result: Result) -> tuple[TableNotice, ...]:
    """The tables of an apply that were not applied as reviewed."""
    found = []
    for table in result.tables:
        event = table.status
        if event == "done" or event == "unchanged":  # noqa: PLR1714 (mypy narrows by this)
            continue
        because = (
            *([table.error] if table.error else []),
            *(note.because for note in table.refusals),
            *(sentence for outcome in table.outcomes for sentence in _outcome(outcome)),
        )
        found.append(TableNotice(name=table.name, path=table.path, event=event, because=because))
    return tuple(found)


def _outcome(outcome: StepOutcome) -> Iterable[str]:
    yield from _rows(outcome.failed, "could not be deleted")
    yield from _rows(outcome.left_out, "left out")
    yield from (note.because for note in outcome.differences)
    if outcome.kind == "rollback" and outcome.how == "failed":
        yield from (f"a write is not taken back: {note.because}" for note in outcome.warnings)
    yield from (f"{note.rule or 'the table'}: {note.because}" for note in outcome.partitions_left)


def _rows(rows: Rows | None, what: str) -> Iterable[str]:
    for because, count in [] if rows is None else rows.reasons():
        yield f"{words.count(count, 'file')} {what}: {because}"
