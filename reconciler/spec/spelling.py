"""Corrections of misspelt texts that can only mean one thing.

They are stricter than did-you-mean hints, which a person decides about. No digit changes.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Iterable
from typing import Final

_MIN_LENGTH: Final = 5
"""Shorter words are too similar to others for one letter to count as a typo."""
_LONG: Final = 8
_MAX_LENGTH: Final = 100
_MIN_PLURAL: Final = 3
"""Shorter words have no plural: ``mins`` are minutes, ``ms`` are not."""

_NUMBER_AND_WORD: Final = re.compile(r"\s*([0-9]{1,30}(?:\.[0-9]{1,30})?)\s*([A-Za-z]+|%)\s*")

_SIZE_WORDS: Final = {
    "byte": "B",
    **{f"{word}byte": f"{word[0]}B" for word in ("kilo", "mega", "giga", "tera")},
    **{f"{word}byte": f"{word[0]}iB" for word in ("kibi", "mebi", "gibi", "tebi")},
    **{f"{letter}b": f"{letter}B" for letter in "kmgt"},
    **{f"{letter}ib": f"{letter}iB" for letter in "kmgt"},
    "b": "B",
}
_DURATION_WORDS: Final = {
    **dict.fromkeys(("s", "sec", "second"), "s"),
    **dict.fromkeys(("min", "minute"), "m"),
    **dict.fromkeys(("h", "hr", "hrs", "hour"), "h"),
    **dict.fromkeys(("d", "day"), "d"),
}
_PERCENT_WORDS: Final = {"%": "%", "percent": "%"}
_FLAGS: Final = {
    **dict.fromkeys(("true", "yes", "on"), "true"),
    **dict.fromkeys(("false", "no", "off"), "false"),
}


def find_certain_word(text: str, known: Iterable[str]) -> str | None:
    """Return the only known word that is meant: spelt differently, or within one or two typos.

    >>> find_certain_word("keep_latest_commits", ["KEEP_LATEST_COMMITS", "KEEP_LATEST_BY_HOURS"])
    'KEEP_LATEST_COMMITS'
    >>> find_certain_word("comits", ["commits", "hours"])
    'commits'
    >>> find_certain_word("reconciler/v2", ["reconciler/v1"])
    """
    words, plain = list(known), _normalize_word(text[:_MAX_LENGTH])
    same = [word for word in words if _normalize_word(word) == plain]
    if same or len(text) > _MAX_LENGTH:
        return same[0] if len(same) == 1 else None
    alike = [word for word in words if re.findall("[0-9]", word) == re.findall("[0-9]", text)]
    excess = {word: _count_slips(plain, word) - _allowed_slips(word) for word in alike}
    within = [word for word in alike if len(word) >= _MIN_LENGTH and excess[word] <= 0]
    rivals = [word for word in alike if excess[word] <= 1]
    return within[0] if len(within) == 1 and rivals == within else None


def is_same_word(text: str, word: str) -> bool:
    """Return whether two words only differ in case, hyphens, underscores and blanks.

    >>> is_same_word("hudi_table", "HudiTable"), is_same_word("HudiTabel", "HudiTable")
    (True, False)
    """
    return _normalize_word(text) == _normalize_word(word)


def correct_size(text: str) -> str | None:
    """Return the size as spec files spell it; None for ``m`` and ``M``, which are ambiguous.

    >>> correct_size("120mib"), correct_size("1.5 gigabytes"), correct_size("120M")
    ('120MiB', '1.5GB', None)
    """
    parts = _split_unit(text, _SIZE_WORDS)
    if parts is None:
        return None
    number, unit = parts
    head = unit[0] if unit in ("B", "kB") else unit[0].upper()
    return f"{number}{head}{unit[1:]}"


def correct_duration(text: str) -> str | None:
    """Return the duration as spec files spell it, in the same unit.

    >>> [correct_duration(text) for text in ("24 hours", "30Min", "6M", "1d12h", "500ms", "5 mins")]
    ['24h', '30m', None, None, None, '5m']
    """
    parts = _split_unit(text, {**_DURATION_WORDS, **({"m": "m"} if "M" not in text else {})})
    return parts and f"{parts[0]}{parts[1]}"


def correct_percent(text: str) -> str | None:
    """Return the percentage as spec files spell it.

    >>> correct_percent("5 percent"), correct_percent(" 5  %"), correct_percent("5")
    ('5%', '5%', None)
    """
    parts = _split_unit(text, _PERCENT_WORDS)
    return parts and f"{parts[0]}%"


def correct_whole_number(text: str, unit: str) -> str | None:
    """Return the number for a field that counts ``unit``; None if the text has another unit.

    >>> [correct_whole_number(text, "h") for text in ("24 hours", "24h", "2d")]
    ['24', '24', None]
    >>> correct_whole_number("24h", "")
    """
    written = correct_duration(text) if unit else None
    return written.removesuffix(unit) if written and written.endswith(unit) else None


def correct_flag(text: str) -> str | None:
    """Return true or false for the words of YAML 1.1.

    >>> correct_flag("Yes"), correct_flag("off"), correct_flag("1")
    ('true', 'false', None)
    """
    return _FLAGS.get(text.lower())


def correct_zone(text: str) -> str | None:
    """Return the time zone with the same letters; one wrong letter may be another city.

    >>> [correct_zone(text) for text in ("europe/berlin", "America/New York", "Europe/Berln")]
    ['Europe/Berlin', 'America/New_York', None]
    """
    plain = text.lower().replace(" ", "_")
    same = [name for name in zoneinfo.available_timezones() if name.lower() == plain]
    return same[0] if len(same) == 1 else None


def _split_unit(text: str, words: dict[str, str]) -> tuple[str, str] | None:
    match = _NUMBER_AND_WORD.fullmatch(text)
    if match is None:
        return None
    number, word = match[1], match[2].lower()
    singular = word.removesuffix("s") if len(word) > _MIN_PLURAL else word
    unit = words.get(word) or words.get(singular)
    return (number, unit) if unit else None


def _normalize_word(word: str) -> str:
    """Return the word in lower case, without hyphens, underscores and blanks."""
    return re.sub(r"[-_\s]", "", word).lower()


def _allowed_slips(word: str) -> int:
    return 2 if len(word) >= _LONG else 1


def _count_slips(one: str, word: str) -> int:
    """Return the number of extra, missing, wrong or swapped letters (optimal alignment)."""
    other = _normalize_word(word)
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            best = min(last[j] + 1, row[-1] + 1, last[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                best = min(best, before[j - 2] + 1)
            row.append(best)
        before, last = last, row
    return last[-1]
