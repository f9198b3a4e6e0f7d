"""Choose whether work runs in this process or on Spark, and say which and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Self, assert_never

from reconciler import runtime
from reconciler.cli.options import Executor, SparkSettings
from reconciler.cli.spark import is_spark_running
from reconciler.cli.terminal import log_message
from reconciler.errors import UsageError
from reconciler.lazy_dataclass import dataclass
from reconciler.render import words
from reconciler.storage.parallel import MOST_THREADS

#: bytes of files that this process rewrites on two cores in the time that Spark takes to start, so
#: that no cluster is faster below: measured with ``tests.bench.local_speed``
MOST_BYTES_HERE: Final = 256 * 1024 * 1024
#: variables that may name a master
_MASTER_VARIABLES: Final = frozenset({"SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a command has to do, as text for people.

    ``is_small``: this process does it sooner than Spark starts and does it; ``limit``: up to which
    size that holds, "" if it needs no mention. ``needs_spark``: why only Spark can do it, "" if
    this process can, too. ``fits_threads``: threads of this process do as much of it as Spark would
    on the same few cores, whatever its size.
    """

    text: str
    is_small: bool = True
    limit: str = ""
    needs_spark: str = ""
    fits_threads: bool = False

    @classmethod
    def from_bytes(cls, size: int, what: str, *, fits_threads: bool = False) -> Self:
        """Return the work of going through files of so many bytes."""
        return cls(
            text=f"{words.format_size(size)} {what}",
            is_small=size <= MOST_BYTES_HERE,
            limit=words.format_size(MOST_BYTES_HERE),
            fits_threads=fits_threads,
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
            if is_spark_running():
                return Choice(is_local=False)
            cores = None if _has_cluster(settings) else runtime.count_cores()
            return choose_by_size(measure(), cores)
        case _:
            assert_never(settings.executor)


def _has_cluster(settings: SparkSettings) -> bool:
    """Return whether a Spark that starts now may have other cores than those of this machine."""
    master = settings.master or settings.conf.get("spark.master")
    if master is not None:
        return not (master == "local" or master.startswith("local["))
    return not _MASTER_VARIABLES.isdisjoint(runtime.environment())


def choose_by_size(work: Work, cores: int | None = None) -> Choice:
    """Return where work runs if nobody says otherwise.

    ``cores``: those that Spark would have, too, if it started; None if a cluster is configured.
    """
    if work.needs_spark:
        return Choice(is_local=False, because=f"on Spark: {work.needs_spark}")
    is_spare = work.fits_threads and cores is not None and cores <= MOST_THREADS
    if not work.is_small and is_spare:
        because = f"in this process: {work.text}; no cluster is configured, and Spark would have "
        because += "the same cores; --executor spark to use Spark"
        return Choice(is_local=True, because=because)
    if not work.is_small:
        because = f"on Spark: {work.text}, above {work.limit}; --executor local to do without"
        return Choice(is_local=False, because=because)
    limit = f", below {work.limit}" if work.limit else ""
    because = f"in this process: {work.text}{limit}; --executor spark to use Spark"
    return Choice(is_local=True, because=because)
