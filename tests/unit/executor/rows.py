"""Plan columns from short literals."""

from __future__ import annotations

import numpy as np

from reconciler.arrays import to_arrow
from reconciler.hudi.files.table_files import TableFiles, build_files
from reconciler.plans.model import KEEP_RULES, CleanStep, KeptFiles, RemovedFiles


def make_base_name(group: str, instant: int | str) -> str:
    return f"{group}-0_0-0-0_{instant}.parquet"


def make_log_name(group: str, instant: int | str, version: int = 1) -> str:
    return f".{group}-0_{instant}.log.{version}_0-0-0"


def make_removed_files(*paths: str) -> RemovedFiles:
    """Files to remove, a byte each; paths are ``partition/name``."""
    pairs = sorted(path.rpartition("/")[::2] for path in paths)
    count = len(pairs)
    return RemovedFiles(
        partition=to_arrow([partition for partition, _ in pairs]).dictionary_encode(),
        name=to_arrow([name for _, name in pairs]),
        bytes=np.ones(count, np.int64),
        kind=np.zeros(count, np.int8),
        rule=np.zeros(count, np.int8),
        because=to_arrow(["old"] * count).dictionary_encode(),
    )


def make_kept_files(rule: str, *paths: str, because: str = "kept") -> KeptFiles:
    pairs = sorted(path.rpartition("/")[::2] for path in paths)
    return KeptFiles(
        partition=to_arrow([partition for partition, _ in pairs]).dictionary_encode(),
        name=to_arrow([name for _, name in pairs]),
        rule=np.full(len(pairs), KEEP_RULES.index(rule), np.int8),
        because=to_arrow([because] * len(pairs)).dictionary_encode(),
    )


def make_clean_step(
    *paths: str, earliest: str | None = "5", partitions: tuple[str, ...] = ()
) -> CleanStep:
    return CleanStep(
        policy="KEEP_LATEST_COMMITS",
        earliest_instant_to_retain=earliest,
        files=make_removed_files(*paths),
        delete_partitions=partitions,
    )


def make_present_files(*paths: str) -> TableFiles:
    folders: dict[str, list[str]] = {}
    for path in paths:
        partition, _, name = path.rpartition("/")
        folders.setdefault(partition, []).append(name)
    return build_files(((p, n, [1] * len(n)) for p, n in folders.items()), ".parquet")
