"""Values of partitions by their folders, as Hudi's hive sync derives them; pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import unquote

from reconciler.state.catalogs.api import CatalogPartition
from reconciler.storage.locations import PlaceIdentity, escape_hadoop_path, identify_text

#: takes a folder and the number of partition keys; returns None for a folder that it cannot read
PartitionValueRule = Callable[[str, int], tuple[str, ...] | None]

_DAY: Final = re.compile(r"(?:[^/=]+=)?(\d{4})/(?:[^/=]+=)?(\d{2})/(?:[^/=]+=)?(\d{2})")


def split_folders(path: str, keys: int) -> tuple[str, ...] | None:
    """Return a value for each folder (MultiPartKeysValueExtractor, HiveStylePartition…).

    >>> split_folders("year=2024/month=01", 2), split_folders("2024/01", 2)
    (('2024', '01'), ('2024', '01'))
    >>> split_folders("2024/01", 1)
    """
    parts = path.split("/")
    if len(parts) != keys:
        return None
    return tuple(part.partition("=")[2] if "=" in part else part for part in parts)


def take_whole_path(path: str, keys: int) -> tuple[str, ...] | None:
    """Return the path as the value of the only key (SinglePartPartitionValueExtractor).

    >>> take_whole_path("2024/01/31", 1)
    ('2024/01/31',)
    """
    return (path,) if keys == 1 else None


def join_day(path: str, keys: int) -> tuple[str, ...] | None:
    """Return a day in three folders as one value (SlashEncodedDayPartitionValueExtractor).

    >>> join_day("2024/01/31", 1)
    ('2024-01-31',)
    """
    day = _DAY.fullmatch(path) if keys == 1 else None
    return ("-".join(day.groups()),) if day else None


_RULES: Final = (split_folders, take_whole_path, join_day)


def choose_value_rule(known: Mapping[str, Sequence[str]], keys: int) -> PartitionValueRule:
    """Return the rule that explains the values of partitions that a catalog has already.

    Without such partitions it is the one that Hudi infers, which leaves URL-encoded folders encoded
    (``hoodie.meta.sync.decode_partition`` is off by default). ``known``: values by folder.
    """
    candidates = [*_RULES, *map(_decode_values, _RULES)]

    def explains(rule: PartitionValueRule) -> bool:
        return all(rule(path, keys) == tuple(values) for path, values in known.items())

    fitting = (rule for rule in candidates if known and explains(rule))
    return next(fitting, _combine_rules(_RULES[:2]))


def _decode_values(rule: PartitionValueRule) -> PartitionValueRule:
    def decode(path: str, keys: int) -> tuple[str, ...] | None:
        values = rule(path, keys)
        return None if values is None else tuple(map(unquote, values))

    return decode


def _combine_rules(rules: Iterable[PartitionValueRule]) -> PartitionValueRule:
    """Return a rule that takes the first of several that can read a folder."""
    ordered = tuple(rules)

    def infer(path: str, keys: int) -> tuple[str, ...] | None:
        found = (rule(path, keys) for rule in ordered)
        return next((values for values in found if values is not None), None)

    return infer


def find_folder(table: PlaceIdentity, location: str) -> str | None:
    """Return a partition's folder below its table, None for one at another place.

    >>> find_folder(identify_text("s3a://lake/t"), "s3://lake/t/day=1/")
    'day=1'
    >>> find_folder(identify_text("/lake/t"), "file:/lake/t/at=1%3A30")
    'at=1%3A30'
    >>> find_folder(identify_text("/lake/t"), "/lake/t2/day=1")
    """
    there = identify_text(escape_hadoop_path(location))
    is_below = there.place.startswith(f"{table.place}/")
    if not is_below or not replace(there, place=table.place).may_be(table):
        return None
    return there.place[len(table.place) + 1 :]


def group_by_folder(
    table: PlaceIdentity, partitions: Iterable[CatalogPartition]
) -> dict[str, CatalogPartition]:
    """Return the listed partitions by their folders below the table; others are left out."""
    folders = ((find_folder(table, partition.location), partition) for partition in partitions)
    return {folder: partition for folder, partition in folders if folder is not None}
