"""Name the pages of tables: file names and anchors that are safe everywhere; pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

_UNSAFE: Final = re.compile(r"[^a-z0-9._-]+")
_MAX_LENGTH: Final = 80
_DIGITS: Final = 8
#: how a name that was changed ends, so that no table's own name may end so
_DIGEST: Final = re.compile(rf"-[0-9a-f]{{{_DIGITS}}}$")
#: names of devices, which Windows gives to no file, whatever follows a dot
_DEVICES: Final = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)")
#: begins the name of a table in links of a page, so that it is none of the page's own
_ANCHOR: Final = "table:"


def name_pages(tables: Iterable[str]) -> dict[str, str]:
    """Return a distinct name for the page of each table, also where capitals do not count.

    >>> name_pages(["sales.orders", "sales/orders", "SALES.orders"])
    {'sales.orders': 'sales.orders', 'sales/orders': 'sales-orders-648dd810', \
'SALES.orders': 'sales.orders-4ec6c614'}
    """
    return {table: _name_page(table) for table in tables}


def name_anchors(tables: Iterable[str]) -> dict[str, str]:
    """Return a distinct name for the place of each table in a page.

    >>> name_anchors(["content"])
    {'content': 'table:content'}
    """
    return {table: f"{_ANCHOR}{name}" for table, name in name_pages(tables).items()}


def _name_page(table: str) -> str:
    """Return a name that depends on nothing but the table's own."""
    name = _UNSAFE.sub("-", table.lower()).strip(".-")[:_MAX_LENGTH]
    if _DEVICES.match(name):
        name = f"table-{name}"
    if name and name == table and not _DIGEST.search(name):
        return name
    digest = hashlib.sha256(table.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]
    return f"{name}-{digest}" if name else f"table-{digest}"
