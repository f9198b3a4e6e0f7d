"""Differences between a table's metadata and its files; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final, Literal

from reconciler.lazy_dataclass import dataclass

#: what differs: an entry is missing, an entry has no file, or an entry is wrong
DifferenceKind = Literal["missing", "extra", "wrong"]
#: the name of the table's own index among metadata partitions
OWN_INDEX: Final = ".zindex"
#: the effect of a listed file that is gone although a read of now needs it
LOST_FILE: Final = (
    "a read of now needs the file, which is not there: readers that list files by the metadata "
    "table fail, and others lose its rows"
)
#: what is there instead of an entry, where a file of the metadata table cannot be read
DAMAGED_FILE: Final = "a damaged file"
#: most differences of a metadata partition that are named; further ones are only counted
MAX_NAMED: Final = 100_000
#: most reasons why something was not compared that are named
_MAX_REASONS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataDifference:
    """One entry of the metadata table that a reader or writer is misled by.

    ``metadata_partition``: such as ``files``, or ``.zindex`` for the table's own index.
    ``partition``: the table's, "" if it has none. ``file``: a file name or file id, "" for a whole
    partition. ``key``: a record key. ``recorded``: what the metadata table says; ``actual``: what
    is there; ``effect``: who is misled.
    """

    metadata_partition: str
    kind: DifferenceKind
    partition: str
    file: str
    column: str | None = field(default=None, metadata={"optional": True})
    key: str | None = field(default=None, metadata={"optional": True})
    recorded: str
    actual: str
    effect: str


def describe_difference(one: MetadataDifference) -> str:
    """Return where a difference is, what is recorded and what is there, or a file's damage."""
    if one.actual == DAMAGED_FILE:
        is_path = one.file.startswith(".hoodie/")
        folder = "" if is_path else f".hoodie/metadata/{one.metadata_partition}/"
        return f"{folder}{one.file}: {one.recorded}"
    where = "/".join(filter(None, (one.partition, one.file))) or "the whole table"
    column = f", column {one.column}" if one.column else ""
    key = f", key {one.key}" if one.key is not None else ""
    return f"{where}{column}{key}: recorded: {one.recorded}; actual: {one.actual}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionCheck:
    """The check of one metadata partition.

    ``compared``: number of ``unit`` that were compared: files, ranges, filters, keys.
    ``differences``: number of all differences; at most ``MAX_NAMED`` are named. ``not_compared``:
    what was left out, and why.
    """

    metadata_partition: str
    unit: str
    compared: int
    differences: int = 0
    not_compared: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataVerification:
    """The result of verifying a table's metadata.

    ``instant``: the newest completed instant then, None without any. ``sample``: the share of the
    files whose footers and keys were read. ``checks``: one per metadata partition.
    ``leftovers``: metadata partitions whose folders are there although the properties do not
    list them; ``files`` alone if they list none. ``obstacles``: why some metadata partitions could
    not be built anew.
    """

    instant: str | None = None
    sample: float = 1.0
    checks: tuple[PartitionCheck, ...] = ()
    differences: tuple[MetadataDifference, ...] = ()
    leftovers: tuple[str, ...] = ()
    obstacles: Mapping[str, str] = field(default_factory=dict)

    @property
    def difference_count(self) -> int:
        return sum(check.differences for check in self.checks)

    def count_differences(self, metadata_partitions: Iterable[str]) -> int:
        """Return the number of differences of some metadata partitions."""
        names = set(metadata_partitions)
        return sum(c.differences for c in self.checks if c.metadata_partition in names)


@dataclass(slots=True, kw_only=True)
class CheckBuilder:
    """Collects the differences of one metadata partition; ``obstacle``: to building it anew."""

    metadata_partition: str
    unit: str
    compared: int = 0
    count: int = 0
    differences: list[MetadataDifference] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)
    obstacle: str | None = None

    def add(  # noqa: PLR0913 (the fields of a difference)
        self,
        kind: DifferenceKind,
        partition: str,
        file: str,
        *,
        recorded: str,
        actual: str,
        effect: str,
        column: str | None = None,
        key: str | None = None,
    ) -> None:
        """Count a difference, and name it unless there are too many."""
        self.count += 1
        if self.count > MAX_NAMED:
            return
        self.differences.append(
            MetadataDifference(
                metadata_partition=self.metadata_partition,
                kind=kind,
                partition=partition,
                file=file,
                column=column,
                key=key,
                recorded=recorded,
                actual=actual,
                effect=effect,
            )
        )

    def build(self) -> tuple[PartitionCheck, Sequence[MetadataDifference]]:
        """Return the check and its differences, sorted by partition and file."""
        check = PartitionCheck(
            metadata_partition=self.metadata_partition,
            unit=self.unit,
            compared=self.compared,
            differences=self.count,
            not_compared=_shorten(tuple(dict.fromkeys(self.not_compared))),
        )
        order = sorted(
            self.differences,
            key=lambda one: (one.partition, one.file, one.column or "", one.key or ""),
        )
        return check, order


def _shorten(reasons: tuple[str, ...]) -> tuple[str, ...]:
    """Return the first reasons, and how many others there are."""
    if len(reasons) <= _MAX_REASONS:
        return reasons
    return (*reasons[:_MAX_REASONS], f"{len(reasons) - _MAX_REASONS} more for like reasons")
