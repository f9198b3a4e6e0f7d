"""Rules for the fields of a compaction that depend on other fields, and for partition filters."""

from __future__ import annotations

from typing import Final

from reconciler.errors import quote_value
from reconciler.spec.rule_block import Block

_COPY_ON_WRITE: Final = "COPY_ON_WRITE"


def check_compaction(spec: Block, block: Block) -> None:
    """Report a compaction that no table of this type has, and conditions that hold for all slices.

    A lock of ``none`` is reported too: a compaction that a run leaves behind would stay pending.
    """
    if spec.data.get("table", {}).get("type") == _COPY_ON_WRITE:
        message = f"table.type is {_COPY_ON_WRITE}, and such tables have no log files to compact"
        block.problems.error(block.node.position, block.path, message, "remove it")
    lock = spec.data.get("concurrency", {}).get("lock", {})
    if lock.get("provider") == "none":
        message = "needs a lock: without one nobody can tell whether a compaction is left behind"
        hint = "declare another lock, or remove compaction"
        block.problems.warning(block.node.position, block.path, message, hint)
    if when := block.find_block("when"):
        _check_conditions(when)
    if partitions := block.find_block("partitions"):
        check_bounds(partitions)


def check_bounds(block: Block) -> None:
    """Report a partition filter whose last partition comes before its first."""
    low, high = block.data.get("from"), block.data.get("to")
    if low is not None and high is not None and low > high:
        message = f"{quote_value(low)} comes after to, {quote_value(high)}, as text"
        block.error("from", message, "swap them")


def _check_conditions(when: Block) -> None:
    """Warn about a condition that every slice with log files meets, and of one that none meets."""
    for name, value in when.data.items():
        if value == 0:
            message = "0 holds for every file slice with log files, as no condition does"
            when.warn(name, message, "remove when, or give a greater number")
    if when.data.get("logShareAbove") == 1:
        message = "1 holds for no file slice: log files have at most all of its bytes"
        when.warn("logShareAbove", message, "give a share below 1, such as 0.5")
