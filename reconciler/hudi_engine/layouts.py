"""Check which declared layouts Hudi can make, so that the reviewed layout results.

Hudi itself would silently use another order. Source: SpaceCurveSortingHelper, ZOrderingUtil,
HilbertCurveUtils, RowCustomColumnsSortPartitioner; 0.15 to 1.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from reconciler.errors import UnsupportedError
from reconciler.state.clustering_layout import ClusteringLayout

_INSTEAD: Final = "apply with --executor native"
#: curve -> Hudi's name
_STRATEGIES: Final = {
    None: "linear",
    "linear": "linear",
    "z-order": "z-order",
    "hilbert": "hilbert",
}
#: Hudi cuts a Hilbert key to 63 bytes
_MAX_HILBERT_COLUMNS: Final = 8
_LOWEST_BITS: Final = "only a few of the lowest bits of the key"


def find_strategy(layout: ClusteringLayout) -> str:
    """Return Hudi's ``hoodie.layout.optimize.strategy``; raises UnsupportedError for none."""
    if layout.curve not in _STRATEGIES:
        raise UnsupportedError(f"Hudi cannot lay rows out by a {layout.curve}: {_INSTEAD}")
    if layout.curve in ("z-order", "hilbert") and layout.mapping != "direct":
        raise UnsupportedError(
            f"Hudi cannot order a {layout.curve} by mapping {layout.mapping}, only by mapping "
            f"direct: {_INSTEAD}, or declare mapping: direct"
        )
    return _STRATEGIES[layout.curve]


def check_columns(layout: ClusteringLayout, types: Mapping[str, pa.DataType]) -> None:
    """Raise UnsupportedError for columns that Hudi would ignore, or fails on.

    ``types``: the types of the table's columns by name. Only z-order and Hilbert map values to
    bits; a linear order takes whatever Spark can sort.
    """
    problems = tuple(_find_problems(layout, types))
    if problems:
        raise UnsupportedError(f"{'; '.join(problems)}: {_INSTEAD}")


def _find_problems(layout: ClusteringLayout, types: Mapping[str, pa.DataType]) -> Iterator[str]:
    for name in layout.columns:
        if name not in types:
            yield f"the table has no top-level column {name}, so Hudi would not order by it"
    known = {name: types[name] for name in layout.columns if name in types}
    if layout.curve not in ("z-order", "hilbert"):
        yield from (
            f"Spark cannot sort by column {name}, because it is {kind}"
            for name, kind in known.items()
            if pa.types.is_map(kind)
        )
        return
    for name, kind in known.items():
        if not _has_curve_key(kind):
            yield f"Hudi fails on column {name}: its {layout.curve} has no key for {kind}"
    if layout.curve == "hilbert" and len(layout.columns) > _MAX_HILBERT_COLUMNS:
        yield f"Hudi's Hilbert keys hold {_MAX_HILBERT_COLUMNS} columns, not {len(layout.columns)}"
    if len(known) > 1:
        yield from _find_ignored_columns(layout.curve, known)


def _find_ignored_columns(curve: str, known: Mapping[str, pa.DataType]) -> Iterator[str]:
    """Yield columns whose bits all come after those of another column, so they hardly count."""
    width = _count_key_bits if curve == "z-order" else _count_hilbert_bits
    widest = max(map(width, known.values()))
    for name, kind in known.items():
        if width(kind) < widest:
            yield (
                f"Hudi would not order by column {name}: next to the other columns, a {kind} is "
                f"{_LOWEST_BITS}"
            )


def _count_key_bits(kind: Any) -> int:
    """Return the number of bits that a type fills in a z-order key."""
    types = pa.types
    if types.is_boolean(kind):
        return 1
    if types.is_int8(kind):
        return 8
    return 32 if types.is_int16(kind) or types.is_int32(kind) else 64


def _count_hilbert_bits(kind: Any) -> int:
    """Return the same for a Hilbert key, where a boolean is the smallest or the largest number."""
    return 64 if pa.types.is_boolean(kind) else _count_key_bits(kind)


def _has_curve_key(kind: Any) -> bool:
    types = pa.types
    is_instant = types.is_timestamp(kind) and kind.tz is not None
    checks = (
        types.is_boolean,
        types.is_signed_integer,
        types.is_floating,
        types.is_decimal,
        types.is_date,
        types.is_string,
        types.is_large_string,
        types.is_binary,
        types.is_large_binary,
    )
    return is_instant or any(check(kind) for check in checks)
