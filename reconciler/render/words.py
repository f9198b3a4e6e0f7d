"""Numbers, moments and spans as people say them; and text of others made harmless.

What is exact is in plan.json; here two significant places are enough.
"""

from __future__ import annotations

import json
import re
import shlex
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconciler.plans.model import Selection

_SIZES = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_DURATIONS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
)
#: what CI takes for a command to itself wherever it begins a line or stands in one: GitHub's
#: ::set-output:: and ##[add-mask], Azure's ##vso[task.setvariable], TeamCity's ##teamcity[
_CI_COMMAND = re.compile(
    r"(?<=:):(?=(?:add-|debug|echo|end-?group|error|group|internal-|notice|remove-|save-state|set-"
    r"|stop-commands|warning))|(?<=#)#(?=\w*\[)",
    re.IGNORECASE,
)
_SECOND_DIGITS = 14
_MAX_SELECTORS = 4
_MAX_REMOVED_SPECS = 5


def format_number(value: int) -> str:
    """Digits in groups of three.

    >>> number(12410), number(-7)
    ('12 410', '-7')
    """
    return f"{value:,}".replace(",", " ")


def format_count(number: int, singular: str, plural: str = "") -> str:
    """A number with its noun.

    >>> count(1, "file"), count(12410, "file"), count(2, "entry", "entries"), count(0, "file")
    ('1 file', '12 410 files', '2 entries', 'no files')
    """
    noun = singular if number == 1 else plural or f"{singular}s"
    return f"{format_number(number) if number else 'no'} {noun}"


def format_tables(value: int, selection: Selection | None) -> str:
    """How many tables, and of how many where some were selected.

    >>> from reconciler.plan.model import Selection
    >>> tables(3, Selection(tables=3, of=30, by=())), tables(0, Selection(tables=0, of=1, by=()))
    ('3 of 30 tables', '0 of 1 table')
    >>> tables(0, None)
    'no tables'
    """
    if selection is None:
        return format_count(value, "table")
    return f"{format_number(value)} of {format_count(selection.total, 'table')}"


def format_selectors(selection: Selection) -> str:
    """What tables were selected by, as a shell would take it; the first few.

    >>> from reconciler.plan.model import Selection
    >>> selectors(Selection(tables=3, of=30, by=("--name sales.*", "-l team=core")))
    "--name 'sales.*' -l team=core"
    """
    options = [text.partition(" ") for text in selection.by[:_MAX_SELECTORS]]
    shown = [escape_text(f"{option} {shlex.quote(value)}") for option, _, value in options]
    rest = len(selection.by) - len(shown)
    return " ".join(shown) + (f" and {format_number(rest)} more" if rest else "")


def describe_removed_specs(names: Sequence[str]) -> str:
    """What became of tables whose specs are gone; the first few by name.

    >>> unmanaged(["sales.orders"])
    '1 spec was removed (sales.orders): unmanaged now, nothing of it is deleted'
    >>> unmanaged(list("abcdef"))
    '6 specs were removed (a, b, c, d, e and 1 more): unmanaged now, nothing of them is deleted'
    """
    shown = ", ".join(escape_text(name) for name in names[:_MAX_REMOVED_SPECS])
    rest = len(names) - _MAX_REMOVED_SPECS
    more = f" and {format_number(rest)} more" if rest > 0 else ""
    were, them = ("spec was", "it") if len(names) == 1 else ("specs were", "them")
    return (
        f"{format_number(len(names))} {were} removed ({shown}{more}): unmanaged now, "
        f"nothing of {them} is deleted"
    )


def format_size(value: int) -> str:
    """Bytes in the largest unit that leaves a number above one.

    >>> size(0), size(1), size(1023), size(1536), size(1981000000000), size(1048575)
    ('0 bytes', '1 byte', '1023 bytes', '1.5 KiB', '1.8 TiB', '1.0 MiB')
    """
    amount, unit = float(value), 0
    while unit + 1 < len(_SIZES) and amount >= (1024 if unit == 0 else 1023.95):
        amount, unit = amount / 1024, unit + 1
    if unit == 0:
        return "1 byte" if value == 1 else f"{value} bytes"
    return f"{amount:.1f} {_SIZES[unit]}"


def format_share(part: int, whole: int) -> str:
    """A part of a whole in per cent.

    >>> share(1, 3), share(1, 10000), share(3, 3), share(999, 1000), share(0, 0)
    ('33 %', '< 1 %', '100 %', '> 99 %', '0 %')
    """
    if not part or not whole:
        return "0 %"
    percent = 100 * part / whole
    if percent < 1:
        return "< 1 %"
    if 99 < percent < 100:  # noqa: PLR2004
        return "> 99 %"
    return f"{percent:.0f} %"


def parse_instant(instant: str) -> datetime | None:
    """The time in an instant, in the timeline's own zone; None when it isn't one.

    >>> moment("20261121041500123")
    datetime.datetime(2026, 11, 21, 4, 15)
    >>> moment("001") is None
    True
    """
    if len(instant) < _SECOND_DIGITS:
        return None
    try:  # not strptime, whose module costs more to import than a plan to show
        return datetime.fromisoformat(f"{instant[:8]}T{instant[8:_SECOND_DIGITS]}")
    except ValueError:
        return None


def format_instant(instant: str | None) -> str:
    """An instant as a date and time to the minute, as it is when it isn't one.

    >>> date("20261121041500123"), date("001"), date(None)
    ('2026-11-21 04:15', '001', 'nothing')
    """
    if instant is None:
        return "nothing"
    found = parse_instant(instant)
    return escape_text(instant) if found is None else f"{found:%Y-%m-%d %H:%M}"


def format_duration(seconds: float) -> str:
    """A span in its largest unit, to one place where that says more.

    >>> span(2592000), span(86400), span(129600), span(90), span(0.4), span(7200)
    ('30 days', '1 day', '1.5 days', '1.5 minutes', '0 seconds', '2 hours')
    """
    for name, unit in _DURATIONS:
        if seconds >= unit:
            amount = f"{seconds / unit:.1f}".removesuffix(".0")
            return f"{amount} {name}" + ("" if amount == "1" else "s")
    return "0 seconds"


def time_between(earlier: str | None, later: str | None) -> timedelta | None:
    """The time between two instants; None when either isn't a time."""
    a, b = (None if instant is None else parse_instant(instant) for instant in (earlier, later))
    return None if a is None or b is None else max(b - a, timedelta())


def escape_text(text: str) -> str:
    r"""Text of others without control characters: it can't move the cursor or turn text around.

    >>> plain("a\x1b[31mb\nc")
    'a\\x1b[31mb c'
    """
    return escape_ci_commands(_CONTROL.sub(lambda found: _escape_character(found[0]), text))


def escape_ci_commands(text: str) -> str:
    r"""Text that gives no command to the CI whose log it gets into.

    >>> uncommanding("a ::set-output name=x::y"), uncommanding("##[group]"), uncommanding("a::b ##")
    ('a :\\x3aset-output name=x::y', '#\\x23[group]', 'a::b ##')
    """
    return _CI_COMMAND.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _escape_character(character: str) -> str:
    if character in "\n\r\t\u2028\u2029":
        return " "
    code = ord(character)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"  # noqa: PLR2004


def format_value(value: Any) -> str:
    """A value of a spec or a table, short.

    >>> shown(10), shown(None), shown("LAZY"), shown(["a", 1])
    ('10', 'nothing', 'LAZY', '["a", 1]')
    """
    match value:
        case None:
            return "nothing"
        case str():
            return escape_text(value)
        case _:
            return escape_text(json.dumps(value, ensure_ascii=False, default=str))
