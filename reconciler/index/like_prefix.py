"""Turn the fixed beginning of a LIKE pattern into a set of values."""

from __future__ import annotations

import re
from typing import Final

from reconciler.index.compared_types import UnsureError
from reconciler.index.value_sets import ANY_VALUE, ValueSet, cut_before, make_value_set

_LAST_BYTE: Final = 0xFF
_REPLACEMENT: Final = "�"  # Java decodes invalid bytes to this character


def split_like_prefix(pattern: str, escape: str) -> tuple[str, str]:
    """Split a pattern at its first wildcard; raises UnsureError for an invalid escape."""
    special = f"{re.escape(escape)}[%_{re.escape(escape)}]" if escape not in "%_" else "(?!)"
    match = re.match(rf"(?:[^%_{re.escape(escape)}]|{special})*", pattern, re.DOTALL)
    begin = match[0] if match else ""
    rest = pattern[len(begin) :]
    if rest.startswith(escape) or _REPLACEMENT in pattern or escape in "%_":
        raise UnsureError
    return re.sub(f"{re.escape(escape)}(.)", r"\1", begin, flags=re.DOTALL), rest


def make_prefix_values(prefix: bytes) -> ValueSet:
    """Return the set of all texts with a prefix."""
    kept = prefix.rstrip(bytes([_LAST_BYTE]))
    if not kept:
        return ValueSet(spans=ANY_VALUE.spans)
    return make_value_set([(cut_before(prefix), cut_before(kept[:-1] + bytes([kept[-1] + 1])))])
