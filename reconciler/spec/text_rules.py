"""Rules for single texts: partition filters, dates and locations.

Each function returns what is wrong with a text, or None.
"""

from __future__ import annotations

import re
import warnings
from datetime import date
from typing import Final

from reconciler.errors import quote_value
from reconciler.storage.locations import LOCAL_SCHEMES, find_url_problem

PLACEHOLDERS: Final = ("{name}", "{schema}", "{table}")
"""Stand for a table's name, and for its parts before and after the last dot."""


def find_filter_problem(text: str) -> str | None:
    """Check a partition filter: a glob, or a regular expression between slashes.

    >>> find_filter_problem("dt=2026-*"), find_filter_problem("/dt=.*-0[13]/")
    (None, None)
    >>> find_filter_problem("/dt=(/")
    "'/dt=(/' is not a regular expression: missing ), unterminated subpattern at position 3"
    """
    if not text.startswith("/"):
        problem = f"{quote_value(text)} ends with '/', but partition paths do not; remove it"
        return problem if text.endswith("/") else None
    if len(text) < len("/x/") or not text.endswith("/"):
        hint = "write a regular expression as /…/, or a glob without the slash"
        return f"{quote_value(text)} starts with '/', but partition paths do not; {hint}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a set in a set will change its meaning
            re.compile(text[1:-1])
    except (re.error, OverflowError, RecursionError, Warning) as error:
        return f"{quote_value(text)} is not a regular expression: {error}"
    return None


def find_day_problem(text: str) -> str | None:
    """Check a date, as YYYY-MM-DD.

    >>> find_day_problem("2026-02-28")
    >>> find_day_problem("2026-02-30")
    "'2026-02-30' is not a valid date"
    """
    try:
        date.fromisoformat(text)
    except ValueError:
        return f"{quote_value(text)} is not a valid date"
    return None


def find_location_problem(text: str) -> str | None:
    """Check the location of a table: a path, or a URL without credentials.

    >>> find_location_problem("../warehouse/orders"), find_location_problem("s3://lake/orders")
    (None, None)
    >>> find_location_problem("~/orders")
    "'~/orders': ~ is not expanded; write an absolute or relative path"
    """
    if not text.isprintable():
        return f"{quote_value(text)} has a control character; remove it"
    if text != text.strip():
        return f"{quote_value(text)} starts or ends with a blank; remove it"
    if text.startswith("~"):
        return f"{quote_value(text)}: ~ is not expanded; write an absolute or relative path"
    if "${" in text or "{{" in text:
        return f"{quote_value(text)}: variables are not expanded; write the full path"
    single = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):/(?!/)", text)
    if single is not None and single[1].lower() not in LOCAL_SCHEMES:
        return f"{quote_value(text)} {find_url_problem(text)}"
    return _find_url_problem(text) if "://" in text else None


def find_folder_problem(text: str) -> str | None:
    """Check the folder of a lock: a path, or a URL without credentials.

    >>> find_folder_problem(".hoodie"), find_folder_problem("s3://locks/orders")
    (None, None)
    """
    return _find_url_problem(text) if "://" in text else None


def find_pattern_problem(text: str) -> str | None:
    """Check a pattern of locations, which has a placeholder for the table's name.

    >>> find_pattern_problem("s3://lake/{schema}/{table}"), find_pattern_problem("../lake/{name}")
    (None, None)
    >>> find_pattern_problem("s3://lake/{nmae}")
    "'s3://lake/{nmae}': {nmae} is no placeholder; write {name}, {schema} or {table}"
    """
    if "${" in text or "{{" in text:
        return find_location_problem(text)
    for placeholder in re.findall(r"\{[^{}]*\}?|\}", text):
        if placeholder not in PLACEHOLDERS:
            problem = f"{quote_value(text)}: {placeholder} is no placeholder"
            return f"{problem}; write {{name}}, {{schema}} or {{table}}"
    if not any(placeholder in text for placeholder in PLACEHOLDERS):
        return f"{quote_value(text)} has no placeholder; write {{name}} where the table's name goes"
    return find_location_problem(fill_placeholders(text, "a.b"))


def fill_placeholders(pattern: str, name: str) -> str:
    """Return the location of a table by a pattern.

    >>> fill_placeholders("s3://lake/{schema}/{table}", "sales.eu.orders")
    's3://lake/sales.eu/orders'
    """
    schema, _, table = name.rpartition(".")
    values = dict(zip(PLACEHOLDERS, (name, schema, table), strict=True))
    return re.sub("|".join(map(re.escape, PLACEHOLDERS)), lambda match: values[match[0]], pattern)


def _find_url_problem(text: str) -> str | None:
    scheme, _, rest = text.partition("://")
    host, _, path = rest.partition("/")
    if ":" in host.rpartition("@")[0]:
        return "the URL has credentials; remove them and configure the store's client instead"
    if scheme.lower() in LOCAL_SCHEMES:
        is_here = host in ("", "localhost")
        return None if is_here else f"{quote_value(text)} has a host; write file:///path"
    if problem := find_url_problem(text):
        return f"{quote_value(text)} {problem}"
    if ".." in path.split("/"):
        return f"{quote_value(text)} has '..', which stores do not resolve; write the full path"
    return None
