"""Compute the bucket of each record key in a simple bucket index, as Hudi's writers do.

A bucket is the Java hash of the list of a key's index fields, modulo the number of buckets. The
fields are parsed from the text of the key. Hudi 0.15 parses some texts differently than 1.0 and
later. Source: BucketIdentifier, KeyGenUtils.extractRecordKeysByFields (0.15.0, 1.0.2, 1.2.0).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Integers, Mask, to_arrow, to_numpy
from reconciler.hudi.codecs.java_hash import compute_java_hashes
from reconciler.lazy_dataclass import dataclass

#: the bucket of a key for which Hudi's writers have none, or not the same one
NO_BUCKET: Final = -1
#: table versions from this one on are not written by Hudi 0.15
_ONE_PARSER_FROM: Final = 8
_PART: Final = ","
_VALUE: Final = ":"
#: texts that stand for null and for an empty text; Java hashes both to 0
_ABSENT: Final = {"__null__": None, "__empty__": ""}
_POSITIVE: Final = np.uint32(0x7FFF_FFFF)
_FACTOR: Final = np.uint32(31)


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketRule:
    """The rule of a simple bucket index; picklable.

    ``buckets``: their number in each partition. ``fields``: the columns that are hashed, among
    those of ``record_key``. ``table_version``: tells which releases of Hudi write the table.
    """

    buckets: int
    fields: tuple[str, ...]
    record_key: tuple[str, ...]
    table_version: int

    def find_buckets(self, keys: Any) -> Integers:
        """Return the bucket of each record key; ``keys``: a string array without nulls.

        ``NO_BUCKET`` for a key that writers of the table put into different buckets, or none.
        """
        hashes, is_parsed = _hash_plain_keys(keys), ~self._needs_parser(keys)
        regular = _split_regular_keys(keys, self.record_key)
        if regular is not None:
            is_regular, parts = regular
            hashes[is_regular] = self._hash_parts(parts)
            is_parsed |= is_regular
        buckets: Integers = (hashes & _POSITIVE).astype(np.int64) % self.buckets
        for at in np.flatnonzero(~is_parsed).tolist():
            buckets[at] = self._find_bucket(keys[at].as_py())
        return buckets

    def _needs_parser(self, keys: Any) -> Mask:
        """Return which keys a release does not hash as a whole.

        Hudi 1.x looks for fields where a key has both separators, and 0.15 wherever it has a colon.
        """
        has_colon = to_numpy(pc.match_substring(keys, _VALUE))
        if self.table_version < _ONE_PARSER_FROM:
            return has_colon
        has_both: Mask = has_colon & to_numpy(pc.match_substring(keys, _PART))
        return has_both

    def _hash_parts(self, parts: Sequence[Any]) -> Any:
        """Return the hashes of keys by their values, a column for each field of the key."""
        hashes = np.ones(len(parts[0]), np.uint32)
        for name, values in zip(self.record_key, parts, strict=True):
            if name in self.fields:
                is_absent = pc.is_in(values, value_set=pa.array(list(_ABSENT)))
                own = compute_java_hashes(pc.if_else(is_absent, "", values)).view(np.uint32)
                hashes = hashes * _FACTOR + own
        return hashes

    def _find_bucket(self, key: str) -> int:
        newer = _parse_key(key, self.fields)
        if newer is None:
            return NO_BUCKET
        bucket = self._hash_values(newer)
        if self.table_version < _ONE_PARSER_FROM:
            older = self._hash_values(_parse_key_as_0_15(key, self.fields))
            return bucket if bucket == older else NO_BUCKET
        return bucket

    def _hash_values(self, values: Sequence[str | None]) -> int:
        """Return the bucket of values, by the hash of a Java list."""
        texts = pa.array([value or "" for value in values], pa.string())
        total = 1
        for own in compute_java_hashes(texts).tolist():
            total = (31 * total + own) & 0xFFFF_FFFF
        return (total & int(_POSITIVE)) % self.buckets


def _hash_plain_keys(keys: Any) -> Any:
    """Return the hash of each list of one key."""
    return _FACTOR + compute_java_hashes(keys).view(np.uint32)


def _split_regular_keys(keys: Any, names: Sequence[str]) -> tuple[Mask, list[Any]] | None:
    """Return which keys are ``a:1,b:2`` without other separators, and the values of their fields.

    None if the record key has one column only.
    """
    if len(names) < 2:  # noqa: PLR2004
        return None
    pattern = _PART.join(f"{_quote(name)}{_VALUE}([^,:]*)" for name in names)
    is_regular = to_numpy(pc.match_substring_regex(keys, f"^{pattern}$"))
    flat = pc.list_flatten(pc.split_pattern(keys.filter(to_arrow(is_regular)), _PART))
    return is_regular, [
        pc.utf8_slice_codeunits(
            flat.take(to_arrow(np.arange(nth, len(flat), len(names)))), len(name) + 1
        )
        for nth, name in enumerate(names)
    ]


def _quote(text: str) -> str:
    """Return a text as a regular expression that matches only it."""
    return "".join(sign if sign.isalnum() or sign == "_" else f"\\{sign}" for sign in text)


def _parse_key_as_0_15(key: str, fields: Sequence[str]) -> list[str | None]:
    """Return the values of a key as Hudi 0.15 parses them."""
    if _VALUE not in key:
        return [key]
    parts = key.split(_PART)
    while len(parts) > 1 and not parts[-1]:  # as String.split of Java
        parts.pop()
    values: list[str | None] = []
    for part in parts:
        name, separator, value = part.partition(_VALUE)
        if not separator:
            values.append(name)
        elif name in fields:
            values.append(_ABSENT.get(value, value))
    return values


def _parse_key(key: str, fields: Sequence[str]) -> list[str | None] | None:
    """Return the values of a key as Hudi 1.x parses them; None where it never ends."""
    if _PART not in key or _VALUE not in key:
        return [key]
    values: list[str | None] = []
    at = 0
    while at < len(key):
        colon = key.index(_VALUE, at)
        is_wanted = key[at:colon] in fields
        end = _find_end(key, colon, is_wanted=is_wanted)
        if end is None:
            return None
        if is_wanted:
            value = key[colon + 1 : end]
            values.append(_ABSENT.get(value, value))
        at = end + 1
    return values or [key]


def _find_end(key: str, colon: int, *, is_wanted: bool) -> int | None:
    """Return where the value after a colon ends: before the last comma in front of a later colon.

    None if Hudi looks for the end of a value that it does not want for ever.
    """
    following = key.find(_VALUE, colon + 1)
    if following < 0:
        return len(key)
    while following >= 0:
        comma = key.rfind(_PART, 0, following)
        if comma > colon:
            return comma
        following = key.find(_VALUE, following + 1)
    return len(key) if is_wanted else None
