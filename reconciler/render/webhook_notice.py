"""The JSON summary for a webhook: tables that need attention, and one line for a chat; pure.

Slack, Teams and Mattermost each have their own markup and their own way to mention everybody. Text
of others must be neither.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from reconciler.lazy_dataclass import dataclass
from reconciler.render import words
from reconciler.status.conditions import leftover_reasons

if TYPE_CHECKING:
    from reconciler.executor.result import ApplyResult, FileReasons, StepOutcome
    from reconciler.plans.model import TablePlan
    from reconciler.plans.plan import Plan
    from reconciler.status.model import TableStatus

NoticeEvent = Literal[
    "failed", "busy", "blocked", "blockedInPart", "partial", "stale", "unhealthy", "drift"
]

#: the event for people, the worst first, in the order of exit codes
_EVENT_LABELS: Final[Mapping[NoticeEvent, str]] = {
    "failed": "failed",
    "busy": "busy",
    "blocked": "blocked",
    "blockedInPart": "blocked in part",
    "partial": "applied in part",
    "stale": "stale",
    "unhealthy": "unhealthy",
    "drift": "drifted",
}
_EVENTS_WORST_FIRST: Final = tuple(_EVENT_LABELS)
_MAX_TABLES: Final = 50
_MAX_NAMES: Final = 10
_MAX_SENTENCES: Final = 5
_MAX_CHARACTERS: Final = 500
_MAX_NAME_LENGTH: Final = 80  # in the line for a chat
_WORD_JOINER: Final = "\u2060"  # it has no width, and a mention or a link ends at it
_MARKUP: Final = {
    "<": "(",
    ">": ")",
    "[": "(",
    "]": ")",
    "`": "'",
    "@": f"@{_WORD_JOINER}",
    "#": f"#{_WORD_JOINER}",
    "://": f":{_WORD_JOINER}//",
    "www.": f"www{_WORD_JOINER}.",
}
_ANY_MARKUP: Final = re.compile("|".join(re.escape(text) for text in _MARKUP), re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableNotice:
    """A table that needs attention; ``because`` has the reasons."""

    name: str
    path: str
    event: NoticeEvent
    because: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """The summary of one run of a command; ``error`` is what stopped the whole run.

    ``total``: number of tables that were read. ``tables``: those that need attention.
    """

    command: str
    exit_code: int
    environment: str | None = None
    plan_digest: str | None = None
    total: int = 0
    tables: tuple[TableNotice, ...] = ()
    error: tuple[NoticeEvent, str] | None = None

    @property
    def event(self) -> NoticeEvent | None:
        """Return the worst event; None if no table needs attention."""
        events = [table.event for table in self.tables]
        if self.error is not None:
            events.append(self.error[0])
        return min(events, key=_EVENTS_WORST_FIRST.index, default=None)


def notice_json(notice: Notice) -> bytes:
    """Return the notice as ASCII JSON; chats show only ``text``."""
    worst = sorted(notice.tables, key=lambda t: (_EVENTS_WORST_FIRST.index(t.event), t.name))
    document = {
        "text": _chat_text(notice, worst),
        "event": notice.event,
        "command": notice.command,
        "exitCode": notice.exit_code,
        "environment": notice.environment,
        "planDigest": notice.plan_digest,
        "error": None if notice.error is None else _shorten(notice.error[1]),
        "tableCount": notice.total,
        "affectedCount": len(worst),
        "tables": [_table_document(table) for table in worst[:_MAX_TABLES]],
    }
    return json.dumps(document).encode()


def _table_document(table: TableNotice) -> Mapping[str, Any]:
    return {
        "name": _escape_surrogates(table.name),
        "path": _escape_surrogates(table.path),
        "event": table.event,
        "because": [_shorten(sentence) for sentence in table.because[:_MAX_SENTENCES]],
    }


def _chat_text(notice: Notice, tables: Sequence[TableNotice]) -> str:
    """Return one line for a chat, without mentions and links."""
    where = f" ({notice.environment})" if notice.environment else ""
    start = f"reconciler {notice.command}{where}"
    if notice.error is not None:
        event, why = notice.error
        return _escape_markup(f"{start}: {_EVENT_LABELS[event]}: {_shorten(why)}")
    events = [table.event for table in tables]
    counts = words.join_counts((events.count(key), label) for key, label in _EVENT_LABELS.items())
    names = [
        f"{_shorten(table.name, _MAX_NAME_LENGTH)} ({_EVENT_LABELS[table.event]})"
        for table in tables[:_MAX_NAMES]
    ]
    if len(tables) > len(names):
        names.append(f"and {words.format_number(len(tables) - len(names))} more")
    total = words.format_count(notice.total, "table")
    return _escape_markup(f"{start}: {counts} of {total}: {', '.join(names)}")


def _shorten(text: str, limit: int = _MAX_CHARACTERS) -> str:
    plain = _escape_surrogates(words.escape_text(text))
    return plain if len(plain) <= limit else f"{plain[: limit - 1]}…"


def _escape_surrogates(text: str) -> str:
    """Escape unpaired surrogates, which file names may contain and JSON may not."""
    return text.encode(errors="backslashreplace").decode()


def _escape_markup(text: str) -> str:
    """Return text that chats show unchanged.

    >>> _escape_markup("<!channel> [x](y) `z`")
    "(!channel) (x)(y) 'z'"
    >>> [_escape_markup(text).replace(_WORD_JOINER, "|") for text in ("@here", "https://a")]
    ['@|here', 'https:|//a']
    """
    return _ANY_MARKUP.sub(lambda match: _MARKUP[match[0].lower()], text)


def plan_notices(plan: Plan) -> tuple[TableNotice, ...]:
    """Return notices for the tables that could not be read, are refused, or are to change."""
    return tuple(filter(None, map(_plan_notice, plan.tables)))


def _plan_notice(table: TablePlan) -> TableNotice | None:
    event: NoticeEvent = "drift"
    drift = tuple(f"{finding.field}: {finding.because}" for finding in table.drift)
    because = drift or leftover_reasons(table)
    if table.error is not None:
        event, because = "failed", (table.error,)
    elif table.refusals:
        event = "blocked" if table.is_blocked else "blockedInPart"
        because = tuple(note.because for note in table.refusals)
    elif not table.has_changes:
        return None
    return TableNotice(name=table.name, path=table.path, event=event, because=because)


def status_notices(tables: Iterable[TableStatus]) -> tuple[TableNotice, ...]:
    """Return notices for the tables out of sync or unhealthy; others can wait."""
    return tuple(filter(None, map(_status_notice, tables)))


def _status_notice(table: TableStatus) -> TableNotice | None:
    health = table.condition("Healthy")
    problems: tuple[str, ...] = ()
    if health is not None and health.status == "False":
        problems = (f"{health.reason}: {health.message}",)
    because = (*table.because, *problems)
    event: NoticeEvent = "unhealthy"
    match table.sync:
        case "error":
            event, because = "failed", (table.error or "",)
        case "blocked":
            event = "blocked"
        case "blocked in part":
            event = "blockedInPart"
        case "drifted":
            event = "unhealthy" if problems else "drift"
        case "unknown" | "unmanaged" | "in sync":
            if not problems:
                return None
            because = problems
    return TableNotice(name=table.name, path=table.path, event=event, because=because)


def result_notices(result: ApplyResult) -> tuple[TableNotice, ...]:
    """Return notices for the tables that were not applied as reviewed."""
    notices = []
    for table in result.tables:
        event = table.status
        if event == "done" or event == "unchanged":  # noqa: PLR1714 (mypy narrows by this)
            continue
        because = (
            *([table.error] if table.error else []),
            *(note.because for note in table.refusals),
            *(sentence for outcome in table.outcomes for sentence in _outcome_sentences(outcome)),
        )
        notices.append(TableNotice(name=table.name, path=table.path, event=event, because=because))
    return tuple(notices)


def _outcome_sentences(outcome: StepOutcome) -> Iterable[str]:
    yield from _row_sentences(outcome.failed, "could not be deleted")
    yield from _row_sentences(outcome.left_out, "skipped")
    yield from (note.because for note in outcome.differences)
    partitions = outcome.deletion.left if outcome.deletion else ()
    yield from (f"partition {each.path} kept: {each.because}" for each in partitions)
    if outcome.savepoint is not None and outcome.savepoint.left is not None:
        yield f"savepoint {outcome.savepoint.name}: {outcome.savepoint.left}"
    if outcome.archived is not None:
        yield from (
            f"not archived: {one.instant}: {one.because}" for one in outcome.archived.left[:1]
        )
    if outcome.kind == "rollback" and outcome.how == "failed":
        yield from (f"a write is not rolled back: {note.because}" for note in outcome.warnings)
    yield from (f"{note.rule or 'the table'}: {note.because}" for note in outcome.partitions_left)


def _row_sentences(rows: FileReasons | None, what: str) -> Iterable[str]:
    for because, count in [] if rows is None else rows.count_reasons():
        yield f"{words.format_count(count, 'file')} {what}: {because}"
