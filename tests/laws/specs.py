"""Strategies for specs, generated from the grammar, so that they cover all it allows."""

from __future__ import annotations

from typing import Any, assert_never

from hypothesis import strategies as st

from reconciler import units
from reconciler.spec.fields import (
    Anything,
    Block,
    Choice,
    Duration,
    Flag,
    Kind,
    ListOf,
    MapOf,
    Number,
    Options,
    Percent,
    Size,
    Text,
    TextMap,
    TextOr,
    Whole,
    WholeOf,
    WordOr,
)
from reconciler.spec.grammar import COUNTS, PATH, RETENTION, TABLE_SPEC
from reconciler.spec.rules import POLICY_BY_COUNT

_WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=12
)
_CHECKED = {
    "find_zone_problem": st.sampled_from(["UTC", "America/New_York", "Asia/Kolkata"]),
    "find_filter_problem": st.sampled_from(
        ["dt=2026-*", "a/b", "/dt=.*-0[13]/", "2026-01-01", "on"]
    ),
    "find_folder_problem": st.sampled_from([".hoodie", "locks/orders", "s3://locks/orders"]),
    "find_location_problem": st.sampled_from(["../orders", "/lake/é/t", "s3://lake/orders/"]),
    "find_pattern_problem": st.sampled_from(["../{name}", "s3://lake/{schema}/{table}"]),
}
_TABLES = st.sampled_from(["t", "sales.orders", "a-b_c"])
_LOOSE = st.dictionaries(
    _WORDS,
    st.recursive(
        st.none() | st.booleans() | st.integers() | _WORDS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=3),
        max_leaves=5,
    ),
    max_size=3,
)


def values(kind: Kind) -> st.SearchStrategy[Any]:  # noqa: C901, PLR0911, PLR0912
    """Return a strategy for the values of a kind."""
    match kind:
        case Text(check=check):
            return _CHECKED[check.__name__] if check else _WORDS
        case Choice(words=words):
            return st.sampled_from(words)
        case Whole(least=least, most=most):
            return st.integers(least, most)
        case WholeOf(numbers=numbers):
            return st.sampled_from(numbers)
        case Number(least=least, most=most):
            return st.floats(least, 1e9 if most is None else most) | st.integers(1, 1)
        case Flag():
            return st.booleans()
        case Size(least=least):
            sizes = st.integers(least, units.LARGEST_SIZE)
            return sizes | sizes.map(units.format_size)
        case Duration():
            return st.integers(0, units.LONGEST_DURATION).map(units.format_duration)
        case Percent():
            return st.decimals("0.001", 100, places=3).map(lambda percent: f"{percent}%")
        case ListOf(item=item, least=least, unique=unique):
            key = None if unique != "name" else lambda block: block["name"]
            by = key or (None if unique is None else str)
            return st.lists(values(item), min_size=least, max_size=3, unique_by=by)
        case TextMap():
            return st.dictionaries(_WORDS, _WORDS, max_size=2)
        case MapOf(item=item):
            return st.dictionaries(_TABLES, values(item), max_size=3)
        case Options(prefix=prefix):
            names = st.sampled_from([f"{prefix}region", f"{prefix}x.secret", f"{prefix}é"])
            references = st.fixed_dictionaries({"fromEnv": st.sampled_from(["A", "lake_KEY_1"])})
            return st.dictionaries(names, references, max_size=3)
        case Anything():
            return _LOOSE
        case Block():
            return retentions() if kind is RETENTION else blocks(kind)
        case WordOr(word=word, block=block):
            return st.just(word) | blocks(block).filter(bool)
        case TextOr(text=text, block=block):
            return values(text) | blocks(block).filter(bool)
        case _:
            assert_never(kind)


def blocks(block: Block) -> st.SearchStrategy[dict[str, Any]]:
    required = {field.name: values(field.kind) for field in block.fields if field.required}
    rest = {field.name: values(field.kind) for field in block.fields if not field.required}
    return st.fixed_dictionaries(required, optional=rest).map(_agreeing)


@st.composite
def retentions(draw: st.DrawFn) -> dict[str, Any]:
    found = draw(blocks(Block(fields=tuple(f for f in RETENTION.fields if f.name not in COUNTS))))
    count = draw(st.sampled_from(COUNTS))
    field = RETENTION.field(count)
    assert field is not None
    found[count] = draw(values(field.kind))
    if "policy" in found:
        found["policy"] = str(POLICY_BY_COUNT[count])
    return found


def _agreeing(block: dict[str, Any]) -> dict[str, Any]:
    """Return the block without fields that contradict another one."""
    if block.get("mapping") == "direct" and block.get("curve", "kd-tree") == "kd-tree":
        del block["mapping"]
    if "from" in block and "to" in block:
        block["from"], block["to"] = sorted((block["from"], block["to"]))
    return block


def table_specs() -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for the ``spec`` of valid HudiTables."""

    rest = {f.name: values(f.kind) for f in TABLE_SPEC.fields if f is not PATH}
    return st.fixed_dictionaries({"path": values(PATH.kind)}, optional=rest)
