"""What a read touches, in numbers; pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.hudi.arrow import booleans, numbers
from reconciler.reader.arrow_spark import spark_name
from reconciler.reader.pruning import Pruned
from reconciler.reader.request import Asked
from reconciler.reader.routes import BECAUSE, Reason, reasons
from reconciler.reader.row_groups import RowGroups
from reconciler.reader.skipping import BECAUSE as BECAUSE_DECIDED
from reconciler.reader.skipping import LEFT_OUT, Decision, code_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughPython:
    """Slices that Python workers read, for one reason."""

    reason: str
    because: str
    slices: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What is left to read after a stage: all, partitions, index."""

    stage: str
    base_files: int
    base_bytes: int
    log_files: int
    log_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """Slices of one fate. ``files``: each by its base file, or by its first log file."""

    decision: str
    because: str
    is_read: bool
    slices: int
    bytes: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """A read before it runs.

    ``as_of``: the instant shown, None for a table without a completed write; ``columns``: names and
    types as Spark spells them; ``partitions`` are those that hold rows, ``kept`` those of them that
    are read; sizes in bytes; ``direct_slices``: base files alone, read by Spark's own reader.
    ``stages``, ``decided``: of slices, down to those that are read; ``row_groups``: of those, None
    where nothing is left out by them. ``index``: the file that was asked, below the table, and
    ``problems`` why something was not. ``damaged``: log files of it that lost their end.
    """

    table: str
    kind: str
    as_of: str | None
    begin: str | None
    end: str | None
    where: str | None
    columns: tuple[tuple[str, str], ...]
    partitions: int
    kept_partitions: int
    direct_slices: int
    python_slices: int
    through_python: tuple[ThroughPython, ...]
    base_files: int
    base_bytes: int
    log_files: int
    log_bytes: int
    stages: tuple[Stage, ...] = ()
    decided: tuple[Decided, ...] = ()
    row_groups: RowGroups | None = None
    index: str | None = None
    problems: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """The same as a JSON object has it."""
        found = asdict(self)
        found["columns"] = [{"name": name, "type": kind} for name, kind in self.columns]
        return {"format": 1, **_json(found)}


def explained(
    found: Pruned,
    asked: Asked,
    *,
    where: str | None = None,
    spark_reaches: bool = True,
    row_groups: RowGroups | None = None,
    damaged: tuple[str, ...] = (),
) -> Explained:
    """What a read touches. ``found``: what ``where`` leaves of its scan."""
    scan, kept = found.scan, found.kept
    why = reasons(kept, spark_reaches=spark_reaches)
    counts = [int(np.count_nonzero(why == at)) for at in range(len(Reason))]
    stages = _stages(found)
    return Explained(
        table=scan.location,
        kind=asked.kind,
        as_of=scan.as_of,
        begin=asked.begin,
        end=asked.end,
        where=where,
        columns=tuple((field.name, spark_name(field.type)) for field in scan.schema),
        partitions=_distinct(scan.slices),
        kept_partitions=_distinct(kept.slices),
        direct_slices=int(np.count_nonzero(why < 0)),
        python_slices=sum(counts),
        through_python=tuple(
            ThroughPython(reason=str(reason), because=BECAUSE[reason], slices=count)
            for reason, count in zip(Reason, counts, strict=True)
            if count
        ),
        base_files=stages[-1].base_files,
        base_bytes=stages[-1].base_bytes,
        log_files=stages[-1].log_files,
        log_bytes=stages[-1].log_bytes,
        stages=stages,
        decided=_decided(found),
        row_groups=row_groups,
        index=found.index,
        problems=found.problems,
        damaged=damaged,
    )


def _stages(found: Pruned) -> tuple[Stage, ...]:
    in_partitions = found.decisions != code_of(Decision.PARTITION)
    slices = found.scan.slices
    return (
        _stage("all", slices),
        _stage("partitions", slices.filter(booleans(in_partitions))),
        _stage("index", found.kept.slices),
    )


def _stage(name: str, slices: pa.Table) -> Stage:
    return Stage(
        stage=name,
        base_files=len(slices) - slices.column("base").null_count,
        base_bytes=_sum(slices, "base_size"),
        log_files=int(pc.sum(pc.list_value_length(slices.column("logs"))).as_py() or 0),
        log_bytes=_sum(slices, "log_size"),
    )


def _decided(found: Pruned) -> tuple[Decided, ...]:
    """By fate, those that are left out first."""
    decided = []
    for decision in Decision:
        mask = found.decisions == code_of(decision)
        if mask.any():
            slices = found.scan.slices.filter(booleans(mask))
            decided.append(
                Decided(
                    decision=str(decision),
                    because=BECAUSE_DECIDED[decision],
                    is_read=decision not in LEFT_OUT,
                    slices=len(slices),
                    bytes=_sum(slices, "base_size") + _sum(slices, "log_size"),
                    files=tuple(_names(slices)),
                )
            )
    return tuple(decided)


def _names(slices: pa.Table) -> list[str]:
    bases: list[str | None] = slices.column("base").to_pylist()
    logs: list[list[str]] = slices.column("logs").to_pylist()
    return [base or some[0] for base, some in zip(bases, logs, strict=True)]


def _distinct(slices: pa.Table) -> int:
    return int(pc.count_distinct(slices.column("partition")).as_py())


def _sum(slices: pa.Table, name: str) -> int:
    return int(numbers(slices.column(name).combine_chunks()).sum())


def _json(value: Any) -> Any:
    """The same with names as JSON has them here, and lists."""
    match value:
        case dict():
            return {_camel(name): _json(one) for name, one in value.items()}
        case list() | tuple():
            return [_json(one) for one in value]
        case _:
            return value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)
