"""Select the blocks of a slice's log files that count, in the order they apply.

Corrupt blocks and blocks of uncommitted writes are ignored. A rollback removes earlier blocks of
its target. A block that log compaction wrote takes the position of the last block it replaces.
Source: BaseHoodieLogRecordReader.scanInternal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Self, assert_never

from reconciler.errors import UnsupportedError
from reconciler.file_slices.merge.merge_counts import MergeCounts
from reconciler.hudi.codecs.log_blocks import BlockType, HeaderKey, LogBlock, read_blocks
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.instant import WRITES, Action
from reconciler.lazy_dataclass import dataclass

_COMMITS: Final = frozenset(
    {Action.COMMIT, Action.DELTACOMMIT, Action.REPLACECOMMIT, Action.CLUSTERING}
)
_ROLLBACK: Final = "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedInstants:
    """The instants whose blocks count. ``as_of``: the latest instant, None for all.

    ``completed``, ``start``: the completed writes of the timeline and the oldest of them. An older
    instant is completed too, unless it is ``pending``. ``completed`` is None in version 8 and
    later, where whole log files count or do not.
    """

    as_of: str | None = None
    completed: frozenset[str] | None = None
    pending: frozenset[str] = frozenset()
    start: str = ""

    @classmethod
    def from_timeline(
        cls, timeline: Timeline, *, table_version: int, as_of: str | None = None
    ) -> Self:
        """Return the instants that count by a timeline.

        A log file of version 6 holds blocks of several writes.
        """
        if table_version >= LOGS_BY_COMPLETION:
            return cls(as_of=as_of)
        completed = timeline.completed(_COMMITS)
        return cls(
            as_of=as_of,
            completed=frozenset(i.requested for i in completed),
            pending=frozenset(i.requested for i in timeline.pending(WRITES)),
            start=completed[0].requested if completed else "",
        )

    def __contains__(self, instant: str) -> bool:
        if self.as_of is not None and instant > self.as_of:
            return False
        if self.completed is None or instant in self.completed:
            return True
        return instant < self.start and instant not in self.pending


def read_committed_blocks(
    logs: Iterable[str],
    read: Callable[[str], bytes],
    committed: CommittedInstants,
    counts: MergeCounts | None = None,
) -> list[LogBlock]:
    """Return the data and delete blocks of log files in merge order, in the order they apply.

    ``counts``: blocks of every kind are added to it. Raises FormatError for damage,
    UnsupportedError for a block of an unsupported kind.
    """
    by_instant: dict[str, list[LogBlock]] = {}
    counts = counts or MergeCounts()
    for path in logs:
        for block in read_blocks(read(path), path):
            counts.blocks += 1
            match block.type:
                case BlockType.CORRUPT:
                    counts.corrupt_blocks += 1
                case BlockType.CDC_DATA:
                    continue
                case BlockType.COMMAND:
                    counts.rollback_blocks += 1
                    _apply_rollback(block, by_instant)
                case (
                    BlockType.AVRO_DATA
                    | BlockType.PARQUET_DATA
                    | BlockType.HFILE_DATA
                    | BlockType.DELETE
                ):
                    instant = block.require_instant()
                    if instant in committed:
                        _check_mergeable(block)
                        by_instant.setdefault(instant, []).append(block)
                case _:
                    assert_never(block.type)
    return _order_blocks(by_instant)


def _apply_rollback(block: LogBlock, by_instant: dict[str, list[LogBlock]]) -> None:
    command = block.header.get(HeaderKey.COMMAND_BLOCK_TYPE)
    if command != _ROLLBACK:
        raise UnsupportedError(
            f"{block.path}: unknown command {command!r} in the log block at byte {block.start}, so "
            "its slice cannot be read"
        )
    by_instant.pop(block.header.get(HeaderKey.TARGET_INSTANT_TIME, ""), None)


def _check_mergeable(block: LogBlock) -> None:
    what = ""
    if block.type is BlockType.HFILE_DATA:
        what = "an HFile data block"
    elif block.header.get(HeaderKey.IS_PARTIAL, "").lower() == "true":
        what = "a partial update"
    if what:
        raise UnsupportedError(
            f"{block.path}: the log block at byte {block.start} is {what}, which is not supported; "
            "compact the table with Hudi to read it"
        )


def _order_blocks(by_instant: dict[str, list[LogBlock]]) -> list[LogBlock]:
    """Return the blocks by instant, a compacted one in place of the newest that it replaces."""
    stands_for: dict[str, str] = {}
    order: list[str] = []
    for instant in reversed(by_instant):
        times = by_instant[instant][0].header.get(HeaderKey.COMPACTED_BLOCK_TIMES)
        final = stands_for.get(instant, instant)
        if times is not None:
            replaced = [time.strip() for time in times.split(",")]
            stands_for.update(dict.fromkeys(replaced, final))
            if not by_instant.keys().isdisjoint(replaced):
                continue
        if final not in order:
            order.append(final)
    return [block for instant in reversed(order) for block in by_instant[instant]]
