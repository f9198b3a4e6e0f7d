"""A compact step for a terminal: which file slices it compacts, what is left, and why.

Sizes of new files are estimated. The lines are those of ``plan_text``, of one table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from reconciler.plans.compact_step import CompactStep, ExpectedCompaction
from reconciler.render import words
from reconciler.render.cluster_step import group_lines, reason_lines
from reconciler.render.terminal import Terminal, limit_rows, name_rows

if TYPE_CHECKING:
    from reconciler.status.model import CompactionStatus

_MAX_PARTITIONS: Final = 8


def step_lines(
    step: CompactStep, terminal: Terminal, refused_by: str, *, full: bool
) -> Iterator[str]:
    """The step with its partitions and its reasons; ``full`` lists every file slice.

    ``refused_by``: the rules that refuse the step, empty if it is applied.
    """
    yield from terminal.step("~ compact", terminal.warn, format_amount(step), refused_by)
    yield from _partition_lines(step.expected, terminal)
    if full:
        yield from group_lines(step.groups, terminal)
    else:
        yield from reason_lines(step.groups, terminal)
    for rule in step.untouched:
        slices = words.format_count(rule.slices, "file slice")
        stay = "stays" if rule.slices == 1 else "stay"
        yield from terminal.detail(f"{rule.rule}: {slices} {stay}: {rule.because}")


def format_amount(step: CompactStep) -> str:
    """Return input and output of a step: slices, log files and bytes, and the new base files."""
    slices = len(step.groups)
    files = words.format_count(sum(one.log_files for one in step.expected), "log file")
    logs = sum(one.log_bytes for one in step.expected)
    read = int(step.groups.bytes.sum())
    names = [one.partition for one in step.expected]
    where = "" if names == [""] else f" in {words.format_count(len(names), 'partition')}"
    become = "becomes" if slices == 1 else "become"
    new = words.format_count(slices, "base file")
    return (
        f"{words.format_count(slices, 'file slice')}, {words.format_size(read)}{where}, "
        f"{words.format_share(logs, read)} of it in {files}, {become} {new} of about "
        f"{words.format_size(step.expected_bytes)}"
    )


def describe_compaction(compaction: CompactionStatus) -> str:
    """Return the status of a declared compaction in one sentence."""
    made = words.format_count(compaction.deltacommits, "deltacommit")
    sentence = f"{made} since {compaction.newest}" if compaction.newest else made
    if compaction.slices:
        slices = words.format_count(compaction.slices, "file slice")
        files = words.format_count(compaction.log_files, "log file")
        size = words.format_size(compaction.log_bytes)
        sentence += f"; the plan compacts {slices} with {files} of {size}"
    if compaction.waiting_slices:
        waits = "waits" if compaction.waiting_slices == 1 else "wait"
        slices = words.format_count(compaction.waiting_slices, "file slice")
        sentence += f"; {slices} {waits} for another run"
    return sentence


def _partition_lines(expected: Sequence[ExpectedCompaction], terminal: Terminal) -> Iterator[str]:
    """The partitions with most bytes of log files, in the order of their paths."""
    if [one.partition for one in expected] == [""]:
        return
    order = sorted(expected, key=lambda one: (-one.log_bytes, one.partition))
    limit = limit_rows(len(order), _MAX_PARTITIONS)
    shown = sorted(order[:limit], key=lambda one: one.partition)
    yield from name_rows((one.partition for one in shown), map(_format_partition, shown))
    if rest := order[limit:]:
        partitions = words.format_count(len(rest), "more partition")
        slices = words.format_count(sum(one.slices for one in rest), "file slice")
        size = words.format_size(sum(one.bytes for one in rest))
        yield from terminal.detail(f"… and {partitions} ({slices}, {size}); show --full lists all")


def _format_partition(one: ExpectedCompaction) -> str:
    return (
        f"{words.format_count(one.slices, 'file slice'):>15}  "
        f"{words.format_count(one.log_files, 'log file'):>13}  "
        f"{words.format_size(one.bytes):>10} → about {words.format_size(one.expected_bytes)}"
    )
