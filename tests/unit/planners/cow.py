"""A copy-on-write table in three lines."""

from __future__ import annotations

from dataclasses import replace

from reconciler.hudi.files.table_files import build_files
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.state.model import TableState


def stamp(hour):
    return f"20240101{hour:02d}0000000"


def base(group, hour):
    return f"{group}_0-0-0_{stamp(hour)}.parquet"


def log(group, hour):
    return f".{group}_{stamp(hour)}.log.1_0-0-0"


def timeline(*instants):
    return Timeline.from_files(TimelineFile(i, i.file_name, 1, 0) for i in instants)


def commit(hour, state=State.COMPLETED):
    done = f"{stamp(hour)[:-1]}5" if state is State.COMPLETED else None
    return Instant(stamp(hour), Action.COMMIT, state, done)


def table(names, instants, **more):
    """``names`` by partition. Everything else is as in an untouched table of version 9 in UTC."""
    files = build_files(((p, n, [10] * len(n)) for p, n in names.items()), ".parquet")
    line = timeline(*instants)
    state = TableState(
        location="/t",
        table_name="t",
        table_type="COPY_ON_WRITE",
        table_version=9,
        layout=2,
        timezone="UTC",
        partition_fields=("p",),
        metadata_partitions=(),
        properties={},
        timeline=line,
        files=files,
        partitions=files.partitions,
        metafile_partitions=frozenset(files.partitions),
        savepoints=(),
        compactions=(),
        clusterings=(),
        replaced={},
        cleans=(),
        pending_cleans=(),
        touched_partitions=None,
        completions={i.requested: i.completed for i in line.commits if i.completed},
        v6_completions={},
        observed_ms=0,
    )
    return replace(state, **more)


def upserts(count, **more):
    """One file group in partition ``a``, written by commits at 0, 1, 2… o'clock."""
    names = {"a": [base("g", hour) for hour in range(count)]}
    return table(names, [commit(hour) for hour in range(count)], **more)
