"""Format numbers, times and durations for people, and escape control characters in untrusted text.

Sizes have one decimal place; plan.json has the exact values.
"""

from __future__ import annotations

import json
import re
import shlex
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from reconciler import units
from reconciler.hudi.timeline.instant import parse_instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reconciler.plans.model import Selection

_DURATIONS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
)
#: CI systems execute commands that appear in their logs: GitHub ::set-output:: and ##[add-mask],
#: Azure ##vso[task.setvariable], TeamCity ##teamcity[
_CI_COMMAND = re.compile(
    r"(?<=:):(?=(?:add-|debug|echo|end-?group|error|group|internal-|notice|remove-|save-state|set-"
    r"|stop-commands|warning))|(?<=#)#(?=\w*\[)",
    re.IGNORECASE,
)
_PLURAL_Y = re.compile(r"(?<![aeiou])y$")
_MAX_SELECTORS = 4
_MAX_REMOVED_SPECS = 5


def format_number(value: int) -> str:
    """Return the digits in groups of three.

    >>> format_number(12410), format_number(-7)
    ('12 410', '-7')
    """
    return f"{value:,}".replace(",", " ")


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> format_count(1, "file"), format_count(12410, "file")
    ('1 file', '12 410 files')
    >>> format_count(2, "entry"), format_count(3, "index"), format_count(0, "file")
    ('2 entries', '3 indexes', 'no files')
    """
    if number != 1:
        noun = _PLURAL_Y.sub("ie", f"{noun}e" if noun.endswith("x") else noun) + "s"
    return f"{format_number(number) if number else 'no'} {noun}"


def describe_refused(step: str | None) -> str:
    """Return in a word or two what a refusal forbids, by the kind of step that it names.

    >>> describe_refused(None), describe_refused("cluster")
    ('blocked', 'cluster refused')
    """
    return "blocked" if step is None else f"{step} refused"


def join_counts(counts: Iterable[tuple[int, str]]) -> str:
    """Return the counts that are not 0, each with what it counts.

    >>> join_counts([(1200, "unchanged"), (0, "blocked"), (2, "to change")])
    '1 200 unchanged, 2 to change'
    """
    return ", ".join(f"{format_number(count)} {what}" for count, what in counts if count)


def format_tables(value: int, selection: Selection | None) -> str:
    """Return the number of tables, and the number of all tables if only some were selected.

    >>> from reconciler.plans.model import Selection
    >>> format_tables(3, Selection(tables=3, total=30, by=()))
    '3 of 30 tables'
    >>> format_tables(0, None)
    'no tables'
    """
    if selection is None:
        return format_count(value, "table")
    return f"{format_number(value)} of {format_count(selection.total, 'table')}"


def format_selectors(selection: Selection) -> str:
    """Return the first few selectors, quoted for a shell.

    >>> from reconciler.plans.model import Selection
    >>> format_selectors(Selection(tables=3, total=30, by=("--name sales.*", "-l team=core")))
    "--name 'sales.*' -l team=core"
    """
    options = [text.partition(" ") for text in selection.by[:_MAX_SELECTORS]]
    shown = [escape_text(f"{option} {shlex.quote(value)}") for option, _, value in options]
    rest = len(selection.by) - len(shown)
    return " ".join(shown) + (f" and {format_number(rest)} more" if rest else "")


def describe_removed_specs(names: Sequence[str]) -> str:
    """Say that the tables of removed specs are unmanaged, with the first few names.

    >>> describe_removed_specs(["sales.orders"])
    '1 spec was removed (sales.orders): its table is unmanaged, and nothing is deleted'
    >>> describe_removed_specs(list("abcdef")).partition(":")[0]
    '6 specs were removed (a, b, c, d, e and 1 more)'
    """
    shown = ", ".join(escape_text(name) for name in names[:_MAX_REMOVED_SPECS])
    rest = len(names) - _MAX_REMOVED_SPECS
    more = f" and {format_number(rest)} more" if rest > 0 else ""
    specs, tables = ("spec was", "its table is")
    if len(names) != 1:
        specs, tables = ("specs were", "their tables are")
    return (
        f"{format_number(len(names))} {specs} removed ({shown}{more}): {tables} unmanaged, "
        "and nothing is deleted"
    )


def capitalize(text: str) -> str:
    """Return a text that begins with a capital, and has others where it had them.

    >>> capitalize("clean refused: minRetention")
    'Clean refused: minRetention'
    """
    return f"{text[:1].upper()}{text[1:]}"


def format_size(value: int) -> str:
    """Return bytes in the largest unit that leaves a number of at least one.

    >>> format_size(0), format_size(1), format_size(1023), format_size(1536)
    ('0 bytes', '1 byte', '1023 bytes', '1.5 KiB')
    >>> format_size(1981000000000), format_size(1048575)
    ('1.8 TiB', '1.0 MiB')
    """
    return units.format_rounded_size(value)


def format_size_class(least: int, below: int | None) -> str:
    """Return the name of the class of sizes from ``least`` to ``below``; None: no upper limit.

    >>> format_size_class(0, 1024), format_size_class(1024, 2048), format_size_class(2048, None)
    ('below 1.0 KiB', '1.0 KiB to 2.0 KiB', '2.0 KiB and more')
    """
    if below is None:
        return f"{format_size(least)} and more" if least else "all"
    return (
        f"{format_size(least)} to {format_size(below)}" if least else f"below {format_size(below)}"
    )


def format_share(part: int, whole: int) -> str:
    """Return a part of a whole in per cent.

    >>> [format_share(*pair) for pair in [(1, 3), (1, 10000), (3, 3), (999, 1000), (0, 0)]]
    ['33 %', '< 1 %', '100 %', '> 99 %', '0 %']
    """
    if not part or not whole:
        return "0 %"
    percent = 100 * part / whole
    if percent < 1:
        return "< 1 %"
    if 99 < percent < 100:  # noqa: PLR2004
        return "> 99 %"
    return f"{percent:.0f} %"


def format_instant(instant: str | None) -> str:
    """Return an instant as a date and time to the minute, or unchanged if it is not a time.

    >>> format_instant("20261121041500123"), format_instant("001"), format_instant(None)
    ('2026-11-21 04:15', '001', 'nothing')
    """
    if instant is None:
        return "nothing"
    time = parse_instant(instant)
    return escape_text(instant) if time is None else f"{time:%Y-%m-%d %H:%M}"


def format_duration(seconds: float) -> str:
    """Return a duration in its largest unit, with one decimal place if it is not whole.

    >>> [format_duration(seconds) for seconds in (2592000, 86400, 129600, 90, 0.4, 7200)]
    ['30 days', '1 day', '1.5 days', '1.5 minutes', '0 seconds', '2 hours']
    """
    for name, unit in _DURATIONS:
        if seconds >= unit:
            amount = f"{seconds / unit:.1f}".removesuffix(".0")
            return f"{amount} {name}" + ("" if amount == "1" else "s")
    return "0 seconds"


def format_time_taken(seconds: float) -> str:
    """Return how long work took, to be appended to a clause; empty below a second.

    >>> format_time_taken(90), format_time_taken(0.5)
    (', in 1.5 minutes', '')
    """
    return f", in {format_duration(seconds)}" if seconds >= 1 else ""


def time_between(earlier: str | None, later: str | None) -> timedelta | None:
    """Return the time between two instants; None if one of them is not a time."""
    a, b = (None if instant is None else parse_instant(instant) for instant in (earlier, later))
    return None if a is None or b is None else max(b - a, timedelta())


def format_time_between(earlier: str | None, later: str | None) -> str | None:
    """Return the time between two instants as text; None if one of them is not a time."""
    time = time_between(earlier, later)
    return None if time is None else format_duration(time.total_seconds())


def escape_text(text: str) -> str:
    r"""Make text of others harmless: it cannot move the cursor, reverse text or command CI.

    >>> escape_text("a\x1b[31mb\nc")
    'a\\x1b[31mb c'
    """
    return escape_ci_commands(_CONTROL.sub(lambda match: _escape_character(match[0]), text))


def escape_ci_commands(text: str) -> str:
    r"""Make text harmless for the CI system that shows it in a log.

    >>> escape_ci_commands("a ::set-output name=x::y"), escape_ci_commands("##[group]")
    ('a :\\x3aset-output name=x::y', '#\\x23[group]')
    >>> escape_ci_commands("a::b ##")
    'a::b ##'
    """
    return _CI_COMMAND.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def _escape_character(character: str) -> str:
    if character in "\n\r\t\u2028\u2029":
        return " "
    code = ord(character)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"  # noqa: PLR2004


def format_value(value: Any) -> str:
    """Return a value of a spec or a table as short text.

    >>> [format_value(value) for value in (10, None, "LAZY", ["a", 1])]
    ['10', 'nothing', 'LAZY', '["a", 1]']
    """
    match value:
        case None:
            return "nothing"
        case str():
            return escape_text(value)
        case _:
            return escape_text(json.dumps(value, ensure_ascii=False, default=str))
