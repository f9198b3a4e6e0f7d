"""Name the pages of tables: file names and anchors that are safe everywhere; pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

_UNSAFE: Final = re.compile(r"[^a-z0-9._-]+")
_MAX_LENGTH: Final = 80
_DIGITS: Final = 8


def name_pages(tables: Iterable[str]) -> dict[str, str]:
    """Return a distinct name for the page of each table, also where capitals do not count.

    >>> name_pages(["sales.orders", "sales/orders", "SALES.orders"])
    {'sales.orders': 'sales.orders', 'sales/orders': 'sales-orders-648dd810', \
'SALES.orders': 'sales.orders-4ec6c614'}
    """
    return {table: _name_page(table) for table in tables}


def _name_page(table: str) -> str:
    """Return a name that depends on nothing but the table's own."""
    name = _UNSAFE.sub("-", table.lower()).strip(".-")[:_MAX_LENGTH]
    if name and name == table:
        return name
    digest = hashlib.sha256(table.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]
    return f"{name}-{digest}" if name else f"table-{digest}"
