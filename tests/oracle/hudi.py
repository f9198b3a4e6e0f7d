"""Real Hudi for tests: create, write, serve and read tables with the bundle of one version.

In a test, use the fixture ``real_hudi`` and pick a version; one JVM per version serves the run:

    def test_...(real_hudi, tmp_path):
        hudi = real_hudi("1.2.0")
        table = hudi.table(tmp_path / "t", merge_on_read=True)
        hudi.write(table, [("a1", "a", 1), ("b1", "b", 1)])      # upsert of (id, partition, ts)
        hudi.write(table, [("a1", "a", 2)])
        hudi.clean(table, keep_commits(1))
        assert hudi.rows(table, metadata=True) == hudi.rows(table, metadata=False)
        assert hudi.listing(table) == directory_listing(table.path)
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.oracle.bundles import TABLE_VERSION, bundle

Options = Mapping[str, object]
_WORKER = Path(__file__).parent / "worker.py"

NOTHING_BY_ITSELF = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.bulkinsert.shuffle.parallelism": "1",
    "hoodie.delete.shuffle.parallelism": "1",
    "hoodie.simple.index.parallelism": "1",
    "hoodie.global.simple.index.parallelism": "1",
}
#: in addition to what Hudi enables by default
INDEXES = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
}
#: of what rows there are a handful of; how Hudi spreads keys over many is a matter of its defaults,
#: which `test_metadata_sync` and `test_metadata_rewrite` keep
SMALL_FILTERS = {
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.bloom.index.filter.dynamic.max.entries": "200",
}
FEW_GROUPS = {
    **SMALL_FILTERS,
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.record.index.max.filegroup.count": "2",
    "hoodie.metadata.index.bloom.filter.file.group.count": "2",
}
COMPACT_METADATA = {"hoodie.metadata.compact.max.delta.commits": "1"}


class HudiFailedError(Exception):
    """Real Hudi raised an error; ``causes`` are Java's lines, outermost first."""

    def __init__(self, causes: Sequence[str]) -> None:
        super().__init__(*causes)
        self.causes = tuple(causes)


def keep_commits(count: int) -> dict[str, str]:
    return _policy("KEEP_LATEST_COMMITS", "commits", count)


def keep_versions(count: int) -> dict[str, str]:
    return _policy("KEEP_LATEST_FILE_VERSIONS", "fileversions", count)


def keep_hours(count: int) -> dict[str, str]:
    return _policy("KEEP_LATEST_BY_HOURS", "hours", count)


def _policy(name: str, unit: str, count: int) -> dict[str, str]:
    said = {"hoodie.cleaner.policy": name, f"hoodie.cleaner.{unit}.retained": str(count)}
    return said | {key.replace("cleaner", "clean"): value for key, value in said.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class HudiTable:
    """A table that real Hudi writes; ``options`` are those of every write."""

    path: Path
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def timeline(self) -> Path:
        folder = self.path / ".hoodie" / "timeline"
        return folder if folder.is_dir() else self.path / ".hoodie"

    def instants(self, suffix: str = "") -> list[str]:
        """Return timeline file names, sorted, without checksums; optionally with one suffix."""
        names = (entry.name for entry in self.timeline.iterdir() if entry.is_file())
        return sorted(n for n in names if re.match(r"\d{9,}", n) and n.endswith(suffix))

    def last_instant(self) -> str:
        return max(re.split(r"[._]", name)[0] for name in self.instants())

    def metadata_partitions(self) -> list[str]:
        text = (self.path / ".hoodie" / "hoodie.properties").read_text()
        found = re.search(r"^hoodie\.table\.metadata\.partitions=(.*)$", text, re.MULTILINE)
        return sorted(found[1].split(",")) if found and found[1] else []

    def at(self, path: Path) -> Self:
        """Return the table at another path, for a copy."""
        return type(self)(path=path, options=self.options)


def directory_listing(path: Path) -> dict[str, dict[str, int]]:
    """Return every partition's data files with sizes, from the folders."""
    found: dict[str, dict[str, int]] = {}
    for folder, below, names in os.walk(path):
        below[:] = [name for name in below if name != ".hoodie"]
        if any(name.startswith(".hoodie_partition_metadata") for name in names):
            files = [n for n in names if not n.startswith(".hoodie_partition") and not _is_crc(n)]
            relative = os.path.relpath(folder, path)
            found["" if relative == "." else relative] = {
                name: (Path(folder) / name).stat().st_size for name in files
            }
    return found


def data_files(path: Path) -> list[str]:
    """Return the paths of all data files below a table, relative, sorted."""
    return sorted(
        f"{folder}/{name}".lstrip("/")
        for folder, files in directory_listing(path).items()
        for name in files
    )


def _is_crc(name: str) -> bool:
    return name.startswith(".") and name.endswith(".crc")


class RealHudi:
    """One version of Hudi in its own JVM; it starts at the first request, `close` stops it."""

    def __init__(
        self,
        version: str,
        *,
        heap: str = "1500m",
        timeout: float = 300,
        jars: str = "",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """``jars``: a class path in addition to Hudi's; ``settings``: of Spark."""
        self.version, self.heap, self.timeout = version, heap, timeout
        self.jars, self.settings = jars, dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = b""
        self._log: Any = None

    # tables and rows

    def table(
        self,
        path: Path,
        *,
        merge_on_read: bool = False,
        partitioned: bool = True,
        options: Options | None = None,
    ) -> HudiTable:
        """Return options for a table at this path; the first `write` creates it."""
        kind = "MERGE_ON_READ" if merge_on_read else "COPY_ON_WRITE"
        own = NOTHING_BY_ITSELF | {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": "p" if partitioned else "",
        }
        if not partitioned:
            keys = "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
            own["hoodie.datasource.write.keygenerator.class"] = keys
        return HudiTable(path=path, options=own | _strings(options))

    def foreign(self, table: HudiTable, table_version: int) -> HudiTable:
        """Return the table for this Hudi to write without upgrading it."""
        if TABLE_VERSION[self.version] == table_version:
            return table
        stay = {
            "hoodie.write.auto.upgrade": "false",
            "hoodie.write.table.version": str(table_version),
        }
        return HudiTable(path=table.path, options={**table.options, **stay})

    def write(
        self,
        table: HudiTable,
        rows: Iterable[Sequence[object]],
        operation: str = "upsert",
        options: Options | None = None,
    ) -> str:
        """One commit; the newest instant on the timeline afterwards.

        ``operation``: upsert, insert, bulk_insert, delete, insert_overwrite,
        insert_overwrite_table or delete_partition.
        """
        own = {**table.options, "hoodie.datasource.write.operation": operation}
        self.ask(
            "write", table=table, rows=[_full(r) for r in rows], options=own | _strings(options)
        )
        return table.last_instant()

    def delete_partition(
        self, table: HudiTable, *partitions: str, options: Options | None = None
    ) -> str:
        said = {"hoodie.datasource.write.partitions.to.delete": ",".join(partitions)}
        row = ("-", partitions[0], 0)
        return self.write(table, [row], "delete_partition", said | _strings(options))

    def rows(
        self,
        table: HudiTable,
        *,
        metadata: bool = False,
        where: str | None = None,
        as_of: str | None = None,
        columns: Sequence[str] = ("id", "p", "ts", "x", "n"),
        options: Options | None = None,
    ) -> list[list[Any]]:
        """Read the snapshot (or as of an instant), sorted; ``metadata`` sets data skipping too."""
        said = {
            "hoodie.metadata.enable": str(metadata).lower(),
            "hoodie.enable.data.skipping": str(metadata).lower(),
            "hoodie.metadata.index.column.stats.enable": str(metadata).lower(),
        }
        if as_of:
            said["as.of.instant"] = as_of
        found: list[list[Any]] = self.ask(
            "read",
            table=table,
            options=said | _strings(options),
            columns=list(columns),
            where=where,
        )
        return found

    def rows_at(self, url: str, columns: Sequence[str]) -> list[list[Any]]:
        """Read the snapshot of a table in a store, sorted."""
        found: list[list[Any]] = self.ask(
            "read", at=url, options={}, columns=list(columns), where=None
        )
        return found

    def files_opened(self, table: HudiTable, where: str) -> tuple[int, list[str]]:
        """Return how many files a read with data skipping opens, and the keys it finds."""
        said = {
            "hoodie.metadata.enable": "true",
            "hoodie.enable.data.skipping": "true",
            "hoodie.metadata.index.column.stats.enable": "true",
        }
        files, keys = self.ask("files_opened", table=table, options=said, where=where)
        return int(files), keys

    def read_all(self, path: Path, queries: Sequence[Options], folder: Path) -> list[Any]:
        """Return each query's answer, for `Answer.from_record`; rows are in ``folder``."""
        said = [_strings(options) for options in queries]
        table = HudiTable(path=path)
        found: list[Any] = self.ask("read_all", table=table, queries=said, folder=str(folder))
        return found

    # table services

    def clean(self, table: HudiTable, options: Options) -> dict[str, Any] | None:
        """Schedule and run a clean, resuming pending ones; None when Hudi did nothing."""
        answer: dict[str, Any] | None = self.ask(
            "clean", table=table, options=self._service(table, options)
        )
        return answer

    def schedule(
        self, table: HudiTable, service: str, options: Options | None = None
    ) -> str | None:
        """Make the plan only; ``service``: CLEAN, COMPACT, LOG_COMPACT, CLUSTER."""
        usual = {
            "hoodie.compact.inline.max.delta.commits": "1",
            "hoodie.clustering.plan.strategy.small.file.limit": str(10**9),
            "hoodie.log.compaction.blocks.threshold": "1",
        }
        answer: str | None = self.ask(
            "schedule",
            table=table,
            service=service,
            options=self._service(table, usual | _strings(options)),
        )
        return answer

    def compact(self, table: HudiTable, instant: str) -> None:
        self._call(table, "compact", [instant, True])

    def compact_logs(self, table: HudiTable, instant: str) -> None:
        self._call(table, "logCompact", [instant, True])

    def begin_compaction(self, table: HudiTable, instant: str) -> None:
        """Execute a compaction without completing it; its writer sleeps then."""
        options = self._service(table, None)
        self.ask("begin_compaction", table=table, instant=instant, options=options)

    def complete_compaction(self, instant: str) -> None:
        """Wake up the writer of ``begin_compaction``, who completes the compaction."""
        self.ask("complete_compaction", instant=instant)

    def cluster(self, table: HudiTable, instant: str, options: Options | None = None) -> None:
        self._call(table, "cluster", [instant, True], options)

    def savepoint(self, table: HudiTable, instant: str) -> None:
        self._call(table, "savepoint", [instant, "tester", "oracle"])

    def delete_savepoint(self, table: HudiTable, instant: str) -> None:
        self._call(table, "deleteSavepoint", [instant])

    def restore(self, table: HudiTable, instant: str) -> None:
        self._call(table, "restoreToSavepoint", [instant])

    def rollback(self, table: HudiTable, instant: str) -> None:
        self._call(table, "rollback", [instant])

    def archive(self, table: HudiTable, options: Options | None = None) -> None:
        """Archive as early as Hudi allows."""
        early = {
            "hoodie.archive.automatic": "true",
            "hoodie.archive.async": "false",
            "hoodie.archive.merge.enable": "false",
            "hoodie.keep.min.commits": "2",
            "hoodie.keep.max.commits": "3",
            "hoodie.commits.archival.batch": "1",
            **keep_commits(1),
        }
        self._call(table, "archive", [], early | _strings(options))

    def listing(self, table: HudiTable) -> dict[str, dict[str, int]]:
        """Return the metadata table's listing, comparable with `directory_listing`."""
        answer: dict[str, dict[str, int]] = self.ask("listing", table=table)
        return answer

    def archived(self, table: HudiTable) -> list[list[Any]]:
        """Return every archived state: time, action, state, its time, and if it has content."""
        answer: list[list[Any]] = self.ask("archived", table=table)
        return answer

    def planner(self, table: HudiTable, options: Options) -> dict[str, Any]:
        """Return CleanPlanner's view: ``earliest``, ``partitions`` -> {``delete``, ``files``}."""
        answer: dict[str, Any] = self.ask(
            "planner", table=table, options=self._service(table, options)
        )
        return answer

    def expired_partitions(self, table: HudiTable, instant: str, options: Options) -> list[str]:
        """Return the partitions that Hudi's partition TTL would delete at an instant."""
        answer: list[str] = self.ask(
            "expired_partitions",
            table=table,
            instant=instant,
            options=self._service(table, options),
        )
        return answer

    def timed_clean_plan(
        self, table: HudiTable, options: Options, times: int
    ) -> list[dict[str, Any]]:
        """Schedule a clean ``times`` times, removing each plan; returns CPU and wall seconds."""
        answer: list[dict[str, Any]] = self.ask(
            "timed_clean_plan", table=table, times=times, options=self._service(table, options)
        )
        return answer

    def timed_index_build(
        self, table: HudiTable, options: Options, times: int
    ) -> list[dict[str, Any]]:
        """Build the metadata table ``times`` times; returns the JVM's CPU and wall seconds."""
        answer: list[dict[str, Any]] = self.ask(
            "timed_index_build", table=table, times=times, options=self._service(table, options)
        )
        return answer

    def reconcile(self, plan: Path) -> dict[str, Any]:
        """Run ``apply PLAN --executor hudi`` with this Hudi; returns the JSON result."""
        answer: dict[str, Any] = self.ask("reconcile", plan=str(plan))
        return answer

    def sql(self, statement: str) -> list[list[Any]]:
        answer: list[list[Any]] = self.ask("sql", statement=statement)
        return answer

    def _call(
        self,
        table: HudiTable,
        method: str,
        arguments: list[object],
        options: Options | None = None,
    ) -> None:
        said = self._service(table, options)
        self.ask("call", table=table, method=method, arguments=arguments, options=said)

    def _service(self, table: HudiTable, options: Options | None) -> dict[str, str]:
        writer_only = ("hoodie.datasource.write.operation",)
        own = {k: v for k, v in table.options.items() if k not in writer_only}
        return own | _strings(options)

    # the process

    def ask(
        self, do: str, *, table: HudiTable | None = None, at: str = "", **arguments: object
    ) -> Any:
        """Send a request; HudiFailedError when Hudi raised, TimeoutError when it hangs.

        ``at``: the URL of a table in a store.
        """
        process = self._started()
        request = {"do": do, **arguments}
        if table is not None or at:
            request["table"] = at or str(table.path if table else "")
        assert process.stdin is not None
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        answer = json.loads(self._line())
        if "error" in answer:
            raise HudiFailedError(answer["error"])
        return answer["ok"]

    def close(self) -> None:
        """End the process; its JVM goes with it."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdout is not None
            process.stdout.close()
        if self._log is not None:
            self._log.close()
            self._log = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            jars = os.pathsep.join(filter(None, (str(bundle(self.version)), self.jars)))
            settings = json.dumps(self.settings)
            self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
            folder = tempfile.mkdtemp(prefix="real-hudi-")
            self._process = subprocess.Popen(
                [sys.executable, str(_WORKER), jars, self.heap, settings],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                cwd=folder,
                env={
                    **os.environ,
                    "TZ": "UTC",
                    "SPARK_LOCAL_IP": "127.0.0.1",
                    "PYSPARK_PYTHON": sys.executable,
                },
            )
            self._line()
        return self._process

    def _line(self) -> bytes:
        process, until = self._process, time.monotonic() + self.timeout
        assert process is not None
        assert process.stdout is not None
        descriptor = process.stdout.fileno()
        while b"\n" not in self._unread:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, until - time.monotonic()))
            data = os.read(descriptor, 1 << 20) if ready else b""
            if not data:
                said = self._last_words()
                process.kill()
                self.close()
                reason = "ended" if ready else f"did not answer for {self.timeout:.0f} s"
                raise TimeoutError(f"Hudi {self.version} {reason}:\n{said}")
            self._unread += data
        line, self._unread = self._unread.split(b"\n", 1)
        return line

    def _last_words(self) -> str:
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - 4000))
        return str(self._log.read().decode(errors="replace"))


def _full(row: Sequence[object]) -> list[object]:
    if len(row) == 5:
        return list(row)
    key, partition, ts = row
    return [key, partition, ts, f"v{ts}", float(str(ts))]


def _strings(options: Options | None) -> dict[str, str]:
    return {key: str(value) for key, value in (options or {}).items()}
