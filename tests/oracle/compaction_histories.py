"""Random histories of merge-on-read tables, and what real Hudi would compact at their end.

Beside writes they have compactions, log compactions and clusterings that are done or stay pending,
savepoints, rollbacks, writes that died, replaced file groups, cleans and archivals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from tests.oracle import failed_writes
from tests.oracle.hudi import HudiFailedError, HudiTable, RealHudi, keep_commits
from tests.scheduled_compactions import read_plan

DAYS: Final = tuple(f"2026/11/{day}" for day in range(20, 24))
#: with a bucket index every new row goes to a log file, so slices have no base files too
BUCKETS: Final = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
#: Hudi looks at every partition, not only at those that were written since its last compaction
ALL_PARTITIONS: Final = {"hoodie.table.services.incremental.enabled": "false"}
#: Hudi rolls dead writes back at its next write, and schedules nothing beside them in version 6
EAGER: Final = dict.fromkeys(failed_writes.LAZY, "EAGER")
_SERVICES: Final = ("compaction", "logcompaction", "clustering", "replacecommit")
#: what is done to the table, and how often of all
STEPS: Final[Mapping[str, int]] = {
    "upsert": 8,
    "insert": 3,
    "delete": 2,
    "compact": 2,
    "schedule compaction": 3,
    "compact logs": 1,
    "schedule log compaction": 1,
    "cluster": 1,
    "schedule clustering": 2,
    "savepoint": 1,
    "roll back": 1,
    "die": 3,
    "replace": 1,
    "clean": 1,
    "archive": 1,
}


@dataclass(slots=True, kw_only=True)
class CompactionHistory:
    """A table that real Hudi writes, and what it did so far."""

    hudi: RealHudi
    table: HudiTable
    random: Random
    has_buckets: bool
    partitions: tuple[str, ...]
    log: list[str] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def begin(self) -> None:
        """Write twice."""
        self._insert()
        self._upsert()

    def go_on(self, steps: int) -> None:
        """Do so many random steps."""
        for step in self.random.choices([*STEPS], [*STEPS.values()], k=steps):
            self._do(step)

    def schedule(self, options: Mapping[str, str]) -> dict[str, Any] | None:
        """Return the plan of a compaction that Hudi would make now; it is removed at once.

        Beside a pending clustering alone we compact other slices in version 6 too, as Hudi does
        for writers that are told of others.
        """
        patience = EAGER if self._has_dead_write() else failed_writes.LAZY
        instant = self.hudi.schedule(self.table, "COMPACT", {**patience, **options})
        if instant is None:
            return None
        name = f"{instant}.compaction.requested"
        plan = read_plan((self.table.timeline / name).read_bytes())
        for path in (self.table.timeline / name, self.table.timeline / f".{name}.crc"):
            path.unlink(missing_ok=True)
        return plan

    def _has_dead_write(self) -> bool:
        return bool(self._list_pending("deltacommit"))

    def _list_pending(self, *actions: str) -> set[str]:
        """Return the times of what was requested and is not completed."""
        names = self.table.instants()
        done = {name.split(".")[0].split("_")[0] for name in names if name.endswith("commit")}
        begun = tuple(f".{action}.requested" for action in actions)
        return {name.split(".")[0] for name in names if name.endswith(begun)} - done

    def _do(self, step: str) -> None:
        acts: dict[str, Callable[[], object]] = {
            "upsert": self._upsert,
            "insert": self._insert,
            "delete": self._delete,
            "compact": lambda: self._serve("COMPACT", self.hudi.compact),
            "schedule compaction": lambda: self.hudi.schedule(self.table, "COMPACT"),
            "compact logs": lambda: self._serve("LOG_COMPACT", self.hudi.compact_logs),
            "schedule log compaction": lambda: self.hudi.schedule(self.table, "LOG_COMPACT"),
            "cluster": lambda: self._serve("CLUSTER", self.hudi.cluster),
            "schedule clustering": self._schedule_clustering,
            "savepoint": self._save,
            "roll back": self._roll_back,
            "die": self._die,
            "replace": self._replace,
            "clean": lambda: self.hudi.clean(self.table, keep_commits(1)),
            "archive": lambda: self.hudi.archive(self.table),
        }
        self.log.append(step)
        try:
            done = acts[step]()
        except HudiFailedError as error:  # as an upsert beside a pending clustering
            done = f"failed: {error}"[:200]
        self.log[-1] += f": {done}" if done else ""

    def _pick(self) -> list[tuple[str, str, int]]:
        self.count += 1
        known = sorted(self.keys)
        some = self.random.sample(known, self.random.randint(1, len(known)))
        return [(key, self.keys[key], 10 ** (self.count % 12)) for key in some]

    def _write(self, rows: list[tuple[str, str, int]], operation: str = "upsert") -> str:
        """Write rows and return the instant; the newest one may be of a rollback."""
        self.hudi.write(self.table, rows, operation)
        return max(self.table.instants(".deltacommit")).split(".")[0].split("_")[0]

    def _upsert(self) -> str:
        return self._write(self._pick())

    def _insert(self) -> str:
        self.count += 1
        new = {
            f"k{self.count}-{number}": self.random.choice(self.partitions)
            for number in range(self.random.randint(2, 6))
        }
        self.keys |= new
        return self._write([(key, day, 1) for key, day in new.items()])

    def _delete(self) -> str:
        return self._write(self._pick()[:2], "delete") if len(self.keys) > 4 else ""

    def _serve(self, service: str, run: Callable[[HudiTable, str], None]) -> str:
        if service == "CLUSTER" and self.has_buckets:
            return "not with buckets"
        instant = self.hudi.schedule(self.table, service)
        if instant:
            run(self.table, instant)
        return instant or ""

    def _schedule_clustering(self) -> str:
        """Plan to cluster one partition; writes to it are refused from then on."""
        if self.has_buckets:
            return "not with buckets"
        chosen = self.random.choice(self.partitions)
        only = {"hoodie.clustering.plan.strategy.partition.selected": chosen} if chosen else {}
        return self.hudi.schedule(self.table, "CLUSTER", only) or ""

    def _save(self) -> str:
        done = sorted({name.split(".")[0].split("_")[0] for name in self.table.instants("commit")})
        chosen = self.random.choice(done)
        self.hudi.savepoint(self.table, chosen)
        return chosen

    def _roll_back(self) -> str:
        newest = self._upsert()
        self.hudi.rollback(self.table, newest)
        return newest

    def _die(self) -> str:
        if self.table.metadata_partitions():
            return "its metadata table would go on without it"
        instant = self._upsert()
        failed_writes.restore_markers(self.table, instant)
        failed_writes.remove_completed(self.table, instant)
        return instant

    def _replace(self) -> str:
        if len(self.partitions) < 2 or self._list_pending(*_SERVICES):
            return "one partition only, or a pending table service"
        day = self.random.choice(self.partitions)
        done = self.hudi.delete_partition(self.table, day)
        self.keys = {key: of for key, of in self.keys.items() if of != day}
        if not self.keys:
            self._insert()
        return done


def make_history(hudi: RealHudi, folder: Any, random: Random, version: int) -> CompactionHistory:
    """Return a table before its first write; ``version``: of the table."""
    is_flat, has_buckets = random.random() < 0.15, random.random() < 0.5
    options = {
        "hoodie.metadata.enable": str(random.random() < 0.2).lower(),
        **(BUCKETS if has_buckets else {}),
    }
    table = hudi.table(folder / "t", merge_on_read=True, partitioned=not is_flat, options=options)
    return CompactionHistory(
        hudi=hudi,
        table=hudi.foreign(table, version),
        random=random,
        has_buckets=has_buckets,
        partitions=("",) if is_flat else DAYS[: random.randint(1, len(DAYS))],
    )
