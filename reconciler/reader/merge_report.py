"""Measure what a read merges: slices with log files, and the rows that go through the merge.

A log file is read whole whatever the condition, and all rows of its base file pass, because a log
record may replace any of them. Their columns are those that the read wants.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import ReconcilerError
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.index.footer_tails import FooterTails
from reconciler.lazy_dataclass import dataclass
from reconciler.reader.model import Scan
from reconciler.state.log_sizes import read_log_records
from reconciler.storage import parallel
from reconciler.storage.api import Storage

#: maximum number of footers to read for numbers of rows, and how many files are read at once
MAX_FOOTERS: Final = 64
_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeReport:
    """What a read merges.

    ``base_rows``: rows of the base files; ``log_records``: records and deletions in the log files;
    None if unknown. Sizes are in bytes.
    """

    slices: int
    base_files: int
    base_bytes: int
    base_rows: int | None
    log_files: int
    log_bytes: int
    log_records: int | None


def measure_merging(storage: Storage, kept: Scan) -> MergeReport | None:
    """Return what a read of these slices merges; None if none has log files.

    Reads the writes of the active timeline that tell of the log files, and at most ``MAX_FOOTERS``
    footers; what cannot be read is unknown. Raises nothing.
    """
    if not kept.has_logs.any():
        return None
    merged = kept.select_slices(kept.has_logs)
    bases = merged.slices.filter(pc.is_valid(merged.slices.column("base")))
    logs = [path for paths in merged.slices.column("logs").to_pylist() for path in paths]
    return MergeReport(
        slices=len(merged.slices),
        base_files=len(bases),
        base_bytes=int(merged.get_numbers("base_size").sum()),
        base_rows=_count_rows(storage, bases),
        log_files=len(logs),
        log_bytes=int(merged.get_numbers("log_size").sum()),
        log_records=_count_records(storage, logs),
    )


def _count_records(storage: Storage, logs: list[str]) -> int | None:
    keys = [(folder, name) for folder, _, name in (path.rpartition("/") for path in logs)]
    try:
        properties = load_properties(storage)
        timeline = load_timeline(storage, properties)
        counts = read_log_records(storage, properties, timeline, frozenset(keys), at_once=_AT_ONCE)
    except ReconcilerError:
        return None
    known = [counts[key].records for key in keys if key in counts]
    return sum(known) if len(known) == len(keys) else None


def _count_rows(storage: Storage, bases: pa.Table) -> int | None:
    if len(bases) > MAX_FOOTERS:
        return None
    tails = FooterTails(storage)
    paths, sizes = bases.column("base").to_pylist(), bases.column("base_size").to_pylist()

    def count(at: int) -> int:
        import pyarrow.parquet as pq  # noqa: PLC0415 (heavy)

        footer = pq.read_metadata(pa.BufferReader(tails.read(paths[at], sizes[at])))
        return int(footer.num_rows)

    try:
        counts = parallel.run_parallel(count, range(len(paths)), parallelism=_AT_ONCE)
    except (ReconcilerError, pa.ArrowException, OSError, ValueError):
        return None
    return sum(counts)
