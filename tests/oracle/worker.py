"""Real Hudi in a process of its own: one JVM per Hudi version, driven by JSON lines.

``python worker.py JARS HEAP SETTINGS`` reads one request a line from stdin, ``{"do": NAME, ...}``,
and answers each with a line on stdout: ``{"ok": ...}`` or ``{"error": [exception, cause, ...]}``.
A heap that ends in ``!`` asks for a JVM as people run it (a benchmark), not one that starts fast.
Everything that Spark prints goes to stderr. `hudi.RealHudi` is the other end; tests use that.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fastavro
import psutil
import pyarrow as pa
import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

_NAMES = ("id", "p", "ts", "x", "n")
_COLUMNS = "id string, p string, ts bigint, x string, n double"
#: of Hadoop's Configuration: its settings, and where each comes from
_FIELDS = ("properties", "updatingResource")
#: settings that nothing here reads, or of which the code that reads them knows the same values:
#: of YARN, of its jobs but for what says how files are read and written, of servers, and of stores
_UNUSED = (
    r"^(yarn|map|mapred|mapreduce\.(?!input|output|fileoutputcommitter|framework)\w+"
    r"|fs\.(adl|azure|abfs|viewfs|ftp)|dfs|ha|hadoop\.(http|registry|ssl|zk)|ipc"
    r"|net|nfs|rpc)\."
)
_OF_S3 = r"^fs\.s3a\."
#: of all columns of all rows
SUM = ("count(1)", "sum(cast(xxhash64(*) as decimal(38, 0)))")
_AVRO = {
    "type": "record",
    "name": "t_record",
    "namespace": "hoodie.t",
    "fields": [
        {"name": "id", "type": ["null", "string"], "default": None},
        {"name": "p", "type": ["null", "string"], "default": None},
        {"name": "ts", "type": ["null", "long"], "default": None},
        {"name": "x", "type": ["null", "string"], "default": None},
        {"name": "n", "type": ["null", "double"], "default": None},
    ],
}


def session(jar: str, heap: str, more: dict[str, str]) -> SparkSession:
    """Start Spark with Hudi on the driver's class path; with spark.jars its delete blocks fail.

    ``more``: settings of Spark.
    """
    jvm = "-Duser.timezone=UTC -XX:+UseSerialGC"
    is_benchmark = heap.endswith("!")
    if is_benchmark:
        heap, jvm = heap[:-1], "-Duser.timezone=UTC"
    else:
        # collecting takes a tenth of the time where these begin as small as they do by themselves
        jvm += " -XX:TieredStopAtLevel=1 -Xmn400m -XX:MetaspaceSize=300m"
        # and finding code to throw away another tenth, where it has no more room than by itself
        jvm += " -XX:ReservedCodeCacheSize=400m"
    # of Spark's 250 jars the one that most classes are looked for in comes first
    core = next(Path(pyspark.__file__).parent.glob("jars/spark-core_*.jar"))
    conf = {
        "spark.driver.extraClassPath": f"{jar}{os.pathsep}{core}",
        "spark.driver.extraJavaOptions": jvm,
        "spark.driver.memory": heap,
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.session.timeZone": "UTC",
        # row by row: with vectors Hudi fails on structs that evolved
        "spark.sql.parquet.enableVectorizedReader": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.default.parallelism": "1",
        "spark.sql.warehouse.dir": os.path.join(os.getcwd(), "warehouse"),
    }
    if not is_benchmark and os.environ.get("ALL_TESTS") != "1":
        # compiling a query for a handful of rows takes longer than answering it
        conf["spark.sql.codegen.wholeStage"] = "false"
        conf["spark.sql.codegen.factoryMode"] = "NO_CODEGEN"
    if is_benchmark:
        for small in ("sql.shuffle.partitions", "sql.adaptive.enabled", "default.parallelism"):
            del conf[f"spark.{small}"]
        del conf["spark.sql.parquet.enableVectorizedReader"]
    conf |= more
    settings = SparkConf().setMaster("local[2]").setAppName("real-hudi").setAll(conf.items())
    gateway = launch_gateway(settings)
    if not is_benchmark:
        use_local_files(gateway.jvm)
        if os.environ.get("ALL_TESTS") != "1":
            leave_closures_unchecked(gateway)
    spark = SparkSession(SparkContext(gateway=gateway, conf=settings))
    spark.sparkContext.setLogLevel("ERROR")
    if not is_benchmark:
        unused = _UNUSED if "hadoop-aws" in jar else f"{_UNUSED}|{_OF_S3}"
        shorten_settings(gateway.jvm, spark.sparkContext._jsc.hadoopConfiguration(), unused)
    return spark


def use_local_files(jvm: Any) -> None:
    """Let Hadoop write local files without a process for each; `LocalFiles.java` says why."""
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook((Path(__file__).parent / "LocalFiles.java").read_text())
    files = compiler.getClassLoader().loadClass("LocalFiles")
    hadoop = jvm.org.apache.hadoop.fs.FileSystem
    hadoop.getFileSystemClass(
        "file", jvm.org.apache.hadoop.conf.Configuration()
    )  # reads the others
    base = jvm.java.lang.Class.forName("org.apache.hadoop.fs.FileSystem")
    _open_field(base, "SERVICE_FILE_SYSTEMS").get(None).put("file", files)


def leave_closures_unchecked(gateway: Any) -> None:
    """Let Spark run functions without a look at their code; `UncheckedClosures.java` says why."""
    jvm, load = gateway.jvm, gateway.jvm.java.lang.Class.forName
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook((Path(__file__).parent / "UncheckedClosures.java").read_text())
    kinds = gateway.new_array(jvm.java.lang.Class, 4)
    kinds[0], kinds[1] = load("java.lang.String"), load("[B")
    kinds[2] = kinds[3] = jvm.java.lang.Integer.TYPE
    define = load("java.lang.ClassLoader").getDeclaredMethod("defineClass", kinds)
    define.setAccessible(True)
    for name, code in compiler.getBytecodes().items():
        given = gateway.new_array(jvm.java.lang.Object, 4)
        given[0], given[1], given[2], given[3] = name, code, 0, len(code)
        define.invoke(load("org.apache.spark.SparkContext").getClassLoader(), given)


def shorten_settings(jvm: Any, conf: Any, unused: str) -> None:
    """Make Hadoop's settings short: Hudi sends all of them to every task, again and again.

    Those that match ``unused`` go. Of the others the JVM forgets which file each comes from,
    because Hadoop compresses each one's source by itself.
    """
    load = jvm.java.lang.Class.forName
    load("org.apache.hadoop.mapred.JobConf")  # adds files; the settings are read again after that
    settings, sources = (_open_field(load(conf.getClass().getName()), n) for n in _FIELDS)
    settings.get(conf).keySet().removeAll(conf.getValByRegex(unused).keySet())
    sources.get(conf).clear()


def _open_field(java_class: Any, name: str) -> Any:
    field = java_class.getDeclaredField(name)
    field.setAccessible(True)
    return field


def _passes(gate: str) -> bool:
    Path(gate, "reached").touch()
    until = time.monotonic() + 200
    while not Path(gate, "open").exists() and time.monotonic() < until:
        time.sleep(0.05)
    return True


class Worker:
    """Answers requests; every public method is one."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.jvm: Any = spark._jvm
        self._asleep: dict[str, tuple[Any, Any]] = {}

    def ping(self) -> str:
        return self.spark.version

    def write(self, table: str, rows: list[list[Any]], options: dict[str, str]) -> None:
        # through SQL, so that no Python worker is started; JSON, so that columns are nullable
        texts = (json.dumps(dict(zip(_NAMES, row, strict=True))) for row in rows)
        values = ", ".join("('" + t.replace("\\", "\\\\").replace("'", "\\'") + "')" for t in texts)
        parsed = f"select from_json(text, '{_COLUMNS}') as row from values {values} as t(text)"
        frame = self.spark.sql(f"select row.* from ({parsed})")
        frame.coalesce(1).write.format("hudi").options(**options).mode("append").save(table)

    def write_query(
        self,
        table: str,
        query: str,
        options: dict[str, str],
        files: int = 1,
        gate: str | None = None,
    ) -> None:
        """One commit of a query's rows, in so many tasks.

        ``gate``: a folder; when Spark begins with the query, there is a file ``reached`` in it, and
        Spark goes on when there is one ``open``. Hudi before 1.1 has its instant's time by then,
        and has not announced it.
        """
        if gate is not None:
            self.spark.udf.register("passes", _passes, "boolean")
            query = f"select * from ({query}) where (select passes('{gate}') from range(1))"
        frame = self.spark.sql(query).coalesce(files)
        frame.write.format("hudi").options(**options).mode("append").save(table)

    def read(
        self, table: str, options: dict[str, str], columns: list[str], where: str | None
    ) -> list[list[Any]]:
        frame = self.spark.read.format("hudi").options(**options).load(table)
        if where:
            frame = frame.where(where)
        return sorted([list(row) for row in frame.select(*columns).collect()], key=repr)

    def files_opened(self, table: str, options: dict[str, str], where: str) -> list[Any]:
        """Return how many files a read opens, and its keys."""
        frame = self.spark.read.format("hudi").options(**options).load(table)
        frame = frame.where(where).select("id")
        keys = sorted(row[0] for row in frame.collect())
        leaf = frame._jdf.queryExecution().executedPlan().collectLeaves().head()
        return [leaf.metrics().apply("numFiles").value(), keys]

    def read_all(
        self, table: str, queries: list[dict[str, str]], folder: str
    ) -> list[dict[str, Any]]:
        """Per query (read options) its schema, and its rows as an Arrow file; or what Hudi said.

        Two at a time: a read of a small table is mostly planning, which one core does.
        """
        return self.read_tables([{"table": table, "options": query} for query in queries], folder)

    def read_tables(self, reads: list[dict[str, Any]], folder: str) -> list[dict[str, Any]]:
        """As ``read_all``, of several tables.

        A read is ``{"table": path, "options": {...}}``, with a ``where`` if one is asked.
        """
        os.makedirs(folder, exist_ok=True)
        files = [os.path.join(folder, f"{number}.arrow") for number in range(len(reads))]
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda read, file: self._answer(**read, file=file), reads, files))

    def _answer(
        self, table: str, file: str, options: dict[str, str], where: str = "true"
    ) -> dict[str, Any]:
        try:
            frame = self.spark.read.format("hudi").options(**options).load(table).where(where)
            batches = frame._collect_as_arrow()
        except Exception as error:  # noqa: BLE001 - an answer too
            return {"error": _causes(error)}
        rows = pa.Table.from_batches(batches, to_arrow_schema(frame.schema))
        with pa.ipc.new_file(file, rows.schema) as out:
            out.write_table(rows)
        return {"schema": frame.schema.jsonValue(), "file": file}

    def files_read(
        self, table: str, wheres: list[str], options: dict[str, str]
    ) -> list[list[str] | None]:
        """Return per predicate the files that a scan reads; None where Spark refuses it."""
        frame = self.spark.read.format("hudi").options(**options).load(table)

        def read(where: str) -> list[str] | None:
            try:
                plan = frame.where(where)._jdf.queryExecution().executedPlan()
            except Exception:  # noqa: BLE001 - an answer too
                return None
            scan = plan.collectLeaves().head()
            if "FileSourceScan" not in scan.getClass().getName():
                return []  # what is never true is not scanned
            folders = [one.files() for one in scan.selectedPartitions()]
            found = [of.apply(at) for of in folders for at in range(of.size())]
            return sorted(str(file.getPath().getName()) for file in found)

        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(read, wheres))

    def files_found(self, folder: str, wheres: list[str], schema: str) -> dict[str, list[str]]:
        """Return per predicate the files with a matching row; without predicates that raise."""
        sys.path.insert(0, str(Path(__file__).parents[2]))
        from tests.oracle.skipping_tables import find_files_with_spark  # noqa: PLC0415 - few requests need it

        frame = self.spark.read.schema(schema).parquet(folder)
        return {text: sorted(files) for text, files in find_files_with_spark(frame, wheres).items()}

    def timed_read(self, table: str, options: dict[str, str]) -> dict[str, float]:
        """Read all rows and columns of a table; returns CPU and wall seconds."""
        cpu, wall = self._cpu(), time.perf_counter()
        frame = self.spark.read.format("hudi").options(**options).load(table)
        frame.write.format("noop").mode("overwrite").save()
        return {"cpu": self._cpu() - cpu, "wall": time.perf_counter() - wall}

    def sum_of(self, table: str, options: dict[str, str]) -> list[str]:
        """Return the number of rows, and the sum of their hashes over all columns."""
        frame = self.spark.read.format("hudi").options(**options).load(table)
        return [str(value) for value in frame.selectExpr(*SUM).first() or ()]

    def sql(self, statement: str) -> list[list[Any]]:
        return [[_plain(v) for v in row] for row in self.spark.sql(statement).collect()]

    def buckets(self, keys: list[str], fields: str, count: int) -> list[int]:
        """Return the bucket of each record key in a simple bucket index of ``count`` buckets."""
        identifier = self.jvm.org.apache.hudi.index.bucket.BucketIdentifier
        return [int(identifier.getBucketId(key, fields, count)) for key in keys]

    def schedule(self, table: str, service: str, options: dict[str, str]) -> str | None:
        client = self._client(table, options)
        try:
            kind = getattr(self.jvm.org.apache.hudi.common.model.TableServiceType, service)
            made = client.scheduleTableService(self._none(), kind)
            return str(made.get()) if made.isPresent() else None
        finally:
            client.close()

    def timed_clean_plan(
        self, table: str, options: dict[str, str], times: int
    ) -> list[dict[str, Any]]:
        """Schedule a clean repeatedly, removing each plan; returns CPU seconds of the JVM."""
        out: list[dict[str, Any]] = []
        for _ in range(times):
            cpu, wall = self._cpu(), time.perf_counter()
            made = self.schedule(table, "CLEAN", options)
            spent = {"cpu": self._cpu() - cpu, "wall": time.perf_counter() - wall}
            out.append({**spent, "instant": made, "files": self._take_back(table, made)})
        return out

    def timed_index_build(
        self, table: str, options: dict[str, str], times: int
    ) -> list[dict[str, Any]]:
        """Build the metadata table repeatedly from nothing; returns CPU seconds of the JVM."""
        hudi = self.jvm.org.apache.hudi
        context = self.spark.sparkContext
        engine = hudi.client.common.HoodieSparkEngineContext(context._jsc)
        hadoop = hudi.hadoop.fs.HadoopFSUtils.getStorageConf(context._jsc.hadoopConfiguration())
        config = self._config(table, options)
        out: list[dict[str, Any]] = []
        for _ in range(times):
            _without_metadata(Path(table))
            cpu, wall = self._cpu(), time.perf_counter()
            builder = hudi.common.table.HoodieTableMetaClient.builder()
            meta = builder.setBasePath(table).setConf(hadoop).build()
            create = hudi.metadata.SparkMetadataWriterFactory.create
            create(hadoop, config, engine, meta.getTableConfig()).close()
            spent = {"cpu": self._cpu() - cpu, "wall": time.perf_counter() - wall}
            built = Path(table, ".hoodie", "metadata").iterdir()
            out.append({**spent, "partitions": sorted(path.name for path in built)})
        return out

    def clean(self, table: str, options: dict[str, str]) -> dict[str, Any] | None:
        client = self._client(table, options)
        try:
            made = client.clean()
            if made is None:
                return None
            return {
                "instant": str(made.getStartCleanTime()),
                "deleted": int(made.getTotalFilesDeleted()),
                "earliest": str(made.getEarliestCommitToRetain()),
            }
        finally:
            client.close()

    def call(self, table: str, method: str, arguments: list[Any], options: dict[str, str]) -> Any:
        """Call any method of SparkRDDWriteClient, for example savepoint, rollback or compact."""
        client = self._client(table, options)
        try:
            return _plain(getattr(client, method)(*arguments))
        finally:
            client.close()

    def begin_compaction(self, table: str, instant: str, options: dict[str, str]) -> None:
        """Execute a compaction until its files are there; ``complete_compaction`` goes on."""
        client = self._client(table, options)
        done = client.compact(instant, False)
        done.getWriteStatuses().collect()  # Hudi 1.2 writes only then
        self._asleep[instant] = client, done

    def complete_compaction(self, instant: str) -> None:
        """Complete a compaction as its writer does who has slept since ``begin_compaction``."""
        client, done = self._asleep.pop(instant)
        is_old = done.getCommitMetadata().get().getWriteStats().size() > 0  # before Hudi 1.2
        what = done.getCommitMetadata().get() if is_old else done
        try:
            client.commitCompaction(instant, what, self._none())
        finally:
            client.close()

    def listing(self, table: str) -> dict[str, dict[str, int]]:
        """Return what the metadata table lists per partition, by point look-ups, no fallback."""
        hudi = self.jvm.org.apache.hudi
        engine = hudi.client.common.HoodieSparkEngineContext(self.spark.sparkContext._jsc)
        config = hudi.common.config.HoodieMetadataConfig.newBuilder().enable(True).build()
        hadoop = self.spark.sparkContext._jsc.hadoopConfiguration()
        conf = hudi.hadoop.fs.HadoopFSUtils.getStorageConf(hadoop)
        storage = hudi.storage.hadoop.HoodieHadoopStorage(table, conf)
        backed = hudi.metadata.HoodieBackedTableMetadata
        try:
            reader = backed(engine, storage, config, table)
        except Exception:  # noqa: BLE001 - the constructor gained an argument
            reader = backed(engine, storage, config, table, False)
        found: dict[str, dict[str, int]] = {}
        for partition in reader.getAllPartitionPaths():
            folder = f"{table}/{partition}" if partition else table
            files = reader.getAllFilesInPartition(hudi.storage.StoragePath(folder))
            found[str(partition)] = {str(f.getPath().getName()): int(f.getLength()) for f in files}
        reader.close()
        return found

    def archived(self, table: str) -> list[list[Any]]:
        """Return every archived state: time, action, state, its time, and whether it has content.

        Only contents of completed instants are loaded.
        """
        hudi = self.jvm.org.apache.hudi
        conf = hudi.hadoop.fs.HadoopFSUtils.getStorageConf(
            self.spark.sparkContext._jsc.hadoopConfiguration()
        )
        client = hudi.common.table.HoodieTableMetaClient.builder().setConf(conf)
        timeline = client.setBasePath(table).build().getArchivedTimeline()
        timeline.loadCompletedInstantDetailsInMemory()
        found = []
        instants = list(timeline.getInstants())
        is_old = bool(instants) and "getTimestamp" in dir(instants[0])  # Hudi 0.15
        for instant in instants:
            if is_old:
                times = instant.getTimestamp(), instant.getStateTransitionTime()
            else:
                times = instant.requestedTime(), instant.getCompletionTime()
            content = instant.isCompleted() and timeline.getInstantDetails(instant).isPresent()
            state = str(instant.getState().name())
            found.append([times[0], str(instant.getAction()), state, times[1], bool(content)])
        return sorted(found)

    def planner(self, table: str, options: dict[str, str]) -> dict[str, Any]:
        """Return CleanPlanner's plan, even if nothing would be written."""
        hudi = self.jvm.org.apache.hudi
        engine = hudi.client.common.HoodieSparkEngineContext(self.spark.sparkContext._jsc)
        config = self._config(table, options)
        hoodie_table = hudi.table.HoodieSparkTable.create(config, engine)
        planner = hudi.table.action.clean.CleanPlanner(engine, hoodie_table, config)
        earliest = planner.getEarliestCommitToRetain()
        partitions = {}
        for path in planner.getPartitionPathsToClean(earliest):
            pair = planner.getDeletePaths(path, earliest)
            names = sorted(os.path.basename(str(f.getFilePath())) for f in pair.getValue())
            partitions[str(path)] = {"delete": bool(pair.getKey()), "files": names}
        instant = earliest.get() if earliest.isPresent() else None
        return {
            "earliest": str(instant.toString()) if instant is not None else None,
            "partitions": partitions,
        }

    def expired_partitions(self, table: str, options: dict[str, str], instant: str) -> list[str]:
        """Return the partitions that Hudi's partition TTL would delete at an instant."""
        hudi = self.jvm.org.apache.hudi
        engine = hudi.client.common.HoodieSparkEngineContext(self.spark.sparkContext._jsc)
        config = self._config(table, options)
        hoodie_table = hudi.table.HoodieSparkTable.create(config, engine)
        factory = hudi.table.action.ttl.strategy.HoodiePartitionTTLStrategyFactory
        strategy = factory.createStrategy(hoodie_table, config.getProps(), instant)
        return sorted(map(str, strategy.getExpiredPartitionPaths()))

    def reconcile(self, plan: str) -> dict[str, Any]:
        """Run ``apply PLAN --executor hudi`` in this process, whose Spark has Hudi."""
        from reconciler.cli.files import read_plan  # noqa: PLC0415 - few requests need it
        from reconciler.cli.run_apply import ApplyRun, run_apply  # noqa: PLC0415
        from reconciler.render.result import result_json  # noqa: PLC0415

        result = run_apply(read_plan(Path(plan)), ApplyRun(by_hudi=True))
        answer: dict[str, Any] = json.loads(result_json(result))
        return answer

    def _client(self, table: str, options: dict[str, str]) -> Any:
        hudi = self.jvm.org.apache.hudi
        engine = hudi.client.common.HoodieSparkEngineContext(self.spark.sparkContext._jsc)
        return hudi.client.SparkRDDWriteClient(engine, self._config(table, options))

    def _config(self, table: str, options: dict[str, str]) -> Any:
        properties = self.jvm.java.util.Properties()
        schema = json.dumps(_AVRO)
        own = {"hoodie.avro.schema": schema, "hoodie.write.schema": schema}
        for key, value in (own | options).items():
            properties.setProperty(key, value)
        builder = self.jvm.org.apache.hudi.config.HoodieWriteConfig.newBuilder()
        return builder.withPath(table).withProperties(properties).build()

    def _none(self) -> Any:
        return self.jvm.org.apache.hudi.common.util.Option.empty()

    def _cpu(self) -> float:
        total = 0.0
        for child in psutil.Process().children(recursive=True):
            times = child.cpu_times()
            total += times.user + times.system
        return total

    def _take_back(self, table: str, instant: str | None) -> int:
        """Remove a requested clean; returns how many files it planned to delete."""
        files = 0
        for folder in (f"{table}/.hoodie", f"{table}/.hoodie/timeline"):
            for name in os.listdir(folder) if instant and os.path.isdir(folder) else ():
                if name == f"{instant}.clean.requested":
                    with open(f"{folder}/{name}", "rb") as data:
                        plan: Any = next(fastavro.reader(data))
                    files = sum(map(len, plan["filePathsToBeDeletedPerPartition"].values()))
                if name.lstrip(".").startswith(f"{instant}.clean."):
                    os.remove(f"{folder}/{name}")
        return files


def _without_metadata(table: Path) -> None:
    """Remove the table's metadata table."""
    own = table / ".hoodie"
    shutil.rmtree(own / "metadata", ignore_errors=True)
    shutil.rmtree(own / ".index_defs", ignore_errors=True)
    said = (own / "hoodie.properties").read_text().splitlines(keepends=True)
    kept = [line for line in said if "metadata.partitions" not in line and "index.def" not in line]
    (own / "hoodie.properties").write_text("".join(kept))
    (own / ".hoodie.properties.crc").unlink(missing_ok=True)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def _causes(error: BaseException) -> list[str]:
    """Return the exception and its causes, a line each, in Java's words for Java's errors."""
    cause = getattr(error, "java_exception", None)
    if cause is None and (origin := getattr(error, "_origin", None)) is not None:
        cause = origin
    if cause is None:
        return [f"{type(error).__name__}: {str(error)[:1500]}"]
    said = []
    while cause is not None and len(said) < 8:
        said.append(str(cause.toString())[:500])
        cause = cause.getCause()
    return said


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    worker = Worker(session(sys.argv[1], sys.argv[2], json.loads(sys.argv[3])))
    answers.write(json.dumps({"ok": "ready"}) + "\n")
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"ok": getattr(worker, request.pop("do"))(**request)}
        except Exception as error:  # noqa: BLE001 - the test wants to see it
            answer = {"error": _causes(error)}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
