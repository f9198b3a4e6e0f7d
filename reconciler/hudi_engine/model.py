"""What writers with Hudi itself have to be told, so that they do as a spec says; frozen."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class WriterEngine(StrEnum):
    """Who writes: a Spark DataFrame, Flink, Hudi's streamer, Spark SQL."""

    SPARK = "spark"
    FLINK = "flink"
    STREAMER = "streamer"
    SQL = "sql"


class HudiRelease(StrEnum):
    """A line of Hudi's releases, oldest first."""

    R0_15 = "0.15"
    R1_0 = "1.0"
    R1_1 = "1.1"
    R1_2 = "1.2"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterOption:
    """One option. ``field``: of the spec; ``because``: why a writer needs it.

    ``creates_table``: it says how the table is made, not how it is written to. ``key`` begins with ``--``
    where it is a flag of a command.
    """

    key: str
    value: str
    field: str
    because: str
    creates_table: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterOptions:
    """The options of one table for one engine; of those that a newer name exists of, both names.

    ``releases``: those for which they hold. ``notes``: what options cannot say, a sentence each.
    ``error``: why there are none.
    """

    name: str
    path: str
    engine: WriterEngine
    releases: tuple[HudiRelease, ...] = ()
    options: tuple[WriterOption, ...] = ()
    partition_by: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    error: str | None = None
