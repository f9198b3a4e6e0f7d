"""Choose whether work runs in this process or on Spark, and say which and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self, assert_never

from reconciler.cli.options import Executor, SparkSettings
from reconciler.cli.spark import is_spark_running
from reconciler.cli.terminal import log_message
from reconciler.errors import UsageError
from reconciler.render import words

#: bytes of files that this process rewrites on two cores in the time that Spark takes to start, so
#: that no cluster is faster below: measured with ``tests.bench.local_speed``
MOST_BYTES_HERE: Final = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a command has to do, as text for people.

    ``is_small``: this process does it sooner than Spark starts and does it; ``limit``: up to which
    size that holds, "" if it needs no mention. ``needs_spark``: why only Spark can do it, "" if
    this process can, too.
    """

    text: str
    is_small: bool = True
    limit: str = ""
    needs_spark: str = ""

    @classmethod
    def from_bytes(cls, size: int, what: str) -> Self:
        """Return the work of going through files of so many bytes."""
        return cls(
            text=f"{words.format_size(size)} {what}",
            is_small=size <= MOST_BYTES_HERE,
            limit=words.format_size(MOST_BYTES_HERE),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Where work runs. ``because``: why, as a line for people; "" if the user has said so."""

    is_local: bool
    because: str = ""

    def report(self) -> None:
        """Say where the work runs, unless the user has said it."""
        if self.because:
            log_message(words.escape_text(self.because), event="executor")


def choose_executor(settings: SparkSettings, measure: Callable[[], Work]) -> Choice:
    """Return where work runs. ``measure`` is not called if it runs on Spark anyway.

    A Spark that runs already is used, unless the user wants it otherwise. Raises UsageError if the
    user wants in this process what only Spark can do.
    """
    match settings.executor:
        case Executor.SPARK:
            return Choice(is_local=False)
        case Executor.LOCAL:
            if needed := measure().needs_spark:
                raise UsageError(
                    f"executor local: only Spark can do this: {needed}; use --executor spark"
                )
            return Choice(is_local=True)
        case Executor.AUTO:
            return Choice(is_local=False) if is_spark_running() else choose_by_size(measure())
        case _:
            assert_never(settings.executor)


def choose_by_size(work: Work) -> Choice:
    """Return where work runs if nobody says otherwise."""
    if work.needs_spark:
        return Choice(is_local=False, because=f"on Spark: {work.needs_spark}")
    if not work.is_small:
        because = f"on Spark: {work.text}, above {work.limit}; --executor local to do without"
        return Choice(is_local=False, because=because)
    limit = f", below {work.limit}" if work.limit else ""
    because = f"in this process: {work.text}{limit}; --executor spark to use Spark"
    return Choice(is_local=True, because=because)
