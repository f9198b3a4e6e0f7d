"""Which of the declared layouts Hudi can make, so that nobody gets another one than was reviewed.

Source: SpaceCurveSortingHelper, ZOrderingUtil, HilbertCurveUtils, RowCustomColumnsSortPartitioner;
0.15 to 1.2. Where Hudi itself would go on in silence, we refuse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from reconciler.errors import UnsupportedError
from reconciler.state.clustering_layout import ClusteringLayout

_INSTEAD: Final = "apply with --executor native"
#: Hudi's names
_STRATEGIES: Final = {
    None: "linear",
    "linear": "linear",
    "z-order": "z-order",
    "hilbert": "hilbert",
}
#: a Hilbert key is cut to 63 bytes
_MOST_OF_HILBERT: Final = 8
_LITTLE: Final = "no more than a few of the lowest bits of its key"


def find_strategy(layout: ClusteringLayout) -> str:
    """Hudi's ``hoodie.layout.optimize.find_strategy``; raises UnsupportedError where it has none."""
    if layout.curve not in _STRATEGIES:
        raise UnsupportedError(f"Hudi cannot lay rows out by a {layout.curve}: {_INSTEAD}")
    if layout.curve in ("z-order", "hilbert") and layout.mapping != "direct":
        raise UnsupportedError(
            f"Hudi cannot order a {layout.curve} by mapping {layout.mapping}, only by mapping "
            f"direct: {_INSTEAD}, or declare mapping: direct"
        )
    return _STRATEGIES[layout.curve]


def check_columns(layout: ClusteringLayout, types: Mapping[str, pa.DataType]) -> None:
    """Raises UnsupportedError for columns by which Hudi would not order, or could not.

    ``types``: of the table's columns by name. Only z-order and Hilbert's curve map values to bits;
    whatever else has an order in Spark will do for linear.
    """
    problems = tuple(_find_problems(layout, types))
    if problems:
        raise UnsupportedError(f"{'; '.join(problems)}: {_INSTEAD}")


def _find_problems(layout: ClusteringLayout, types: Mapping[str, pa.DataType]) -> Iterator[str]:
    for name in layout.columns:
        if name not in types:
            yield f"the table has no column {name} at its top, and Hudi would not order by it"
    known = {name: types[name] for name in layout.columns if name in types}
    if layout.curve not in ("z-order", "hilbert"):
        yield from (
            f"Spark has no order of {kind}, of which column {name} is"
            for name, kind in known.items()
            if pa.types.is_map(kind)
        )
        return
    for name, kind in known.items():
        if not _has_curve_key(kind):
            yield f"Hudi fails on column {name}: its {layout.curve} has no key for {kind}"
    if layout.curve == "hilbert" and len(layout.columns) > _MOST_OF_HILBERT:
        yield f"Hudi's Hilbert keys hold {_MOST_OF_HILBERT} columns, not {len(layout.columns)}"
    if len(known) > 1:
        yield from _find_ignored_columns(layout.curve, known)


def _find_ignored_columns(curve: str, known: Mapping[str, pa.DataType]) -> Iterator[str]:
    """Columns whose bits come after all bits of another: of those Hudi sees next to nothing."""
    width = _count_key_bits if curve == "z-order" else _count_hilbert_bits
    widest = max(map(width, known.values()))
    for name, kind in known.items():
        if width(kind) < widest:
            yield (
                f"Hudi would not order by column {name}: beside the other columns a {kind} is "
                f"{_LITTLE}"
            )


def _count_key_bits(kind: Any) -> int:
    """Bits of a z-order key that a type fills."""
    types = pa.types
    if types.is_boolean(kind):
        return 1
    if types.is_int8(kind):
        return 8
    return 32 if types.is_int16(kind) or types.is_int32(kind) else 64


def _count_hilbert_bits(kind: Any) -> int:
    """The same of a Hilbert key, in which a boolean is the smallest or the greatest number."""
    return 64 if pa.types.is_boolean(kind) else _count_key_bits(kind)


def _has_curve_key(kind: Any) -> bool:
    types = pa.types
    is_moment = types.is_timestamp(kind) and kind.tz is not None
    plain = (
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
    return is_moment or any(is_one(kind) for is_one in plain)
