"""What a read touches, in numbers; pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.hudi.arrow import numbers
from reconciler.reader.arrow_spark import spark_name
from reconciler.reader.model import Scan
from reconciler.reader.request import Asked
from reconciler.reader.routes import BECAUSE, Reason, reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughPython:
    """Slices that Python workers read, for one reason."""

    reason: str
    because: str
    slices: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """A read before it runs.

    ``as_of``: the instant shown, None for a table without a completed write; ``columns``: names and
    types as Spark spells them; ``partitions`` are those that hold rows, ``kept`` those of them that
    are read; sizes in bytes; ``direct_slices``: base files alone, read by Spark's own reader.
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

    def document(self) -> dict[str, Any]:
        """The same as a JSON object has it."""
        found = asdict(self)
        found["through_python"] = list(found["through_python"])
        found["columns"] = [{"name": name, "type": kind} for name, kind in self.columns]
        return {"format": 1, **{_camel(name): value for name, value in found.items()}}


def explained(
    scan: Scan,
    kept: Scan,
    asked: Asked,
    *,
    where: str | None = None,
    spark_reaches: bool = True,
) -> Explained:
    """What a read touches. ``kept``: the scan of the partitions that ``where`` leaves."""
    found = reasons(kept, spark_reaches=spark_reaches)
    counts = [int(np.count_nonzero(found == at)) for at in range(len(Reason))]
    slices = kept.slices
    return Explained(
        table=scan.location,
        kind=asked.kind,
        as_of=scan.as_of,
        begin=asked.begin,
        end=asked.end,
        where=where,
        columns=tuple((field.name, spark_name(field.type)) for field in scan.schema),
        partitions=_distinct(scan.slices),
        kept_partitions=_distinct(slices),
        direct_slices=int(np.count_nonzero(found < 0)),
        python_slices=sum(counts),
        through_python=tuple(
            ThroughPython(reason=str(reason), because=BECAUSE[reason], slices=count)
            for reason, count in zip(Reason, counts, strict=True)
            if count
        ),
        base_files=len(slices) - slices.column("base").null_count,
        base_bytes=_sum(slices, "base_size"),
        log_files=int(pc.sum(pc.list_value_length(slices.column("logs"))).as_py() or 0),
        log_bytes=_sum(slices, "log_size"),
    )


def _distinct(slices: pa.Table) -> int:
    return int(pc.count_distinct(slices.column("partition")).as_py())


def _sum(slices: pa.Table, name: str) -> int:
    return int(numbers(slices.column(name).combine_chunks()).sum())


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)
