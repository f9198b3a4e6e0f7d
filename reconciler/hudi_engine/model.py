"""Options for writers that use Hudi itself, so that they follow a spec; frozen values."""

from __future__ import annotations

from dataclasses import field as dataclass_field
from enum import StrEnum

from reconciler.lazy_dataclass import dataclass


class WriterEngine(StrEnum):
    """A writer of a table: a Spark DataFrame, Flink, Hudi's streamer, or Spark SQL."""

    SPARK = "spark"
    FLINK = "flink"
    STREAMER = "streamer"
    SQL = "sql"


class HudiRelease(StrEnum):
    """A release line of Hudi, oldest first."""

    R0_15 = "0.15"
    R1_0 = "1.0"
    R1_1 = "1.1"
    R1_2 = "1.2"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterOption:
    """One option. ``field``: the spec's field; ``because``: why a writer needs it.

    ``creates_table``: the option says how the table is created, not how it is written. ``key``
    begins with ``--`` if it is a flag of a command.
    """

    key: str
    value: str
    field: str
    because: str
    creates_table: bool = dataclass_field(default=False, metadata={"name": "makesTable"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterOptions:
    """The options of one table for one engine; if a newer name exists, under both names.

    ``releases``: those that the options hold for. ``notes``: what options cannot express, a
    sentence each. ``error``: why there are no options.
    """

    name: str
    path: str
    engine: WriterEngine = dataclass_field(metadata={"name": None})
    releases: tuple[HudiRelease, ...] = dataclass_field(default=(), metadata={"name": "hudi"})
    options: tuple[WriterOption, ...] = ()
    partition_by: tuple[str, ...] = dataclass_field(default=(), metadata={"name": None})
    notes: tuple[str, ...] = ()
    error: str | None = None
