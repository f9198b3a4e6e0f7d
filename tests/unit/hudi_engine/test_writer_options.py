"""The options that a spec sets for writers with Hudi; Hudi knows each of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.hudi_engine.model import HudiRelease, WriterEngine
from reconciler.hudi_engine.writer_options import make_writer_options
from reconciler.spec.model import (
    BucketIndex,
    Clustering,
    Concurrency,
    FileSizes,
    IndexColumns,
    Lock,
    NewTable,
    Policy,
    Retention,
    TableSpec,
)

CASES = Path(__file__).parents[2] / "cases" / "options"
BUNDLES = {"0.15": "0.15.0", "1.0": "1.0.2", "1.1": "1.1.1", "1.2": "1.2.0"}
#: of TBLPROPERTIES; Spark SQL alone knows them (HoodieOptionConfig)
SQL = {"type", "primaryKey", "preCombineField", "orderingFields", "payloadClass"}
#: of HoodieStreamer.Config
FLAGS = {"--target-table", "--table-type", "--source-ordering-field", "--payload-class"}

LOCK = Concurrency(lock=Lock(provider="filesystem"))
ALONE = Concurrency(lock=Lock(provider="none"))
BARE = TableSpec(name="sales.orders", path="/lake/orders")
FULL = replace(
    BARE,
    files=FileSizes(target=1_500_000, small=1_000_000, record_size=300),
    retention=Retention(policy=Policy.COMMITS, keep=40),
    clustering=Clustering(columns=("a", "b")),
    index=IndexColumns(columns=("a", "b.c"), hudi="build"),
    concurrency=LOCK,
    table=NewTable(
        type="MERGE_ON_READ",
        version=6,
        record_key=("id", "n"),
        partition_by=("dt",),
        ordering=("ts",),
        index=BucketIndex(type="bucket", buckets=16, keys=("n",)),
    ),
)


def asked(spec: TableSpec, engine: WriterEngine = WriterEngine.SPARK, hudi: str | None = None):
    """Return the options as a dict; duplicate keys fail the test."""
    found = make_writer_options(spec, engine, None if hudi is None else HudiRelease(hudi))
    assert found.error is None
    assert len(found.options) == len({option.key for option in found.options})
    return {option.key: option.value for option in found.options}


def known(hudi: str) -> tuple[set[str], set[str]]:
    """Return the keys of a bundle: first names, and all names."""
    lines = (CASES / f"keys_{BUNDLES[hudi]}.txt").read_text().splitlines()
    return {line.split()[0] for line in lines}, {key for line in lines for key in line.split()}


def known_to_flink(hudi: str) -> set[str]:
    rows = [r.split() for r in (CASES / "flink.txt").read_text().splitlines() if r[0] != "#"]
    return {key for key, since, until in rows if since <= hudi <= until}


def each_policy(spec: TableSpec) -> list[TableSpec]:
    return [
        replace(spec, retention=Retention(policy=policy, keep=40, failed_writes=failed))
        for policy in Policy
        for failed in (None, "LAZY", "NEVER")
    ]


@pytest.mark.parametrize("hudi", list(BUNDLES))
@pytest.mark.parametrize("engine", list(WriterEngine))
def test_every_option_for_a_release_is_the_first_name_of_one_that_it_has(engine, hudi):
    first, _ = known(hudi)
    own = {
        WriterEngine.FLINK: known_to_flink(hudi),
        WriterEngine.SQL: SQL,
        WriterEngine.STREAMER: FLAGS,
    }

    for spec in each_policy(FULL):
        assert set() == set(asked(spec, engine, hudi)) - first - own.get(engine, set())


@pytest.mark.parametrize("hudi", list(BUNDLES))
def test_whoever_does_not_say_a_release_gets_all_that_any_release_gets(hudi):
    for engine in WriterEngine:
        assert asked(FULL, engine, hudi).items() <= asked(FULL, engine).items()


def test_what_was_renamed_is_said_by_both_names_where_both_are_about():
    found = asked(FULL)

    assert found["hoodie.cleaner.policy"] == found["hoodie.clean.policy"] == "KEEP_LATEST_COMMITS"
    assert found["hoodie.clean.async"] == found["hoodie.clean.async.enabled"] == "false"
    ordering = ("hoodie.datasource.write.precombine.field", "hoodie.table.ordering.fields")
    assert ["ts", "ts"] == [found[key] for key in ordering]
    assert ordering[1] not in asked(FULL, hudi="1.0")
    assert ordering[0] not in asked(FULL, hudi="1.1")


def test_a_spec_without_blocks_asks_nothing_and_says_so():
    found = make_writer_options(BARE, WriterEngine.SPARK)

    assert () == found.options
    assert ("the spec sets no writer options",) == found.notes


def test_every_option_names_its_field_and_says_why():
    for engine in WriterEngine:
        for option in make_writer_options(FULL, engine).options:
            assert option.field
            assert option.because
            assert option.because.isprintable()


def test_files_are_as_big_as_declared():
    found = asked(replace(BARE, files=FULL.files))

    assert found == {
        "hoodie.parquet.max.file.size": "1500000",
        "hoodie.parquet.small.file.limit": "1000000",
        "hoodie.copyonwrite.record.size.estimate": "300",
    }


@pytest.mark.parametrize(
    ("engine", "key"), [("spark", "hoodie.index.type"), ("flink", "index.type")]
)
def test_every_writer_places_rows_by_the_declared_buckets(engine, key):
    found = asked(FULL, WriterEngine(engine))

    assert ("BUCKET", "16", "n") == (
        found[key],
        found["hoodie.bucket.index.num.buckets"],
        found["hoodie.bucket.index.hash.field"],
    )
    assert FULL.table is not None
    index = BucketIndex(type="bucket", buckets=16)
    whole = replace(FULL, table=replace(FULL.table, index=index))
    assert "id,n" == asked(whole)["hoodie.bucket.index.hash.field"]


@pytest.mark.parametrize(
    ("target", "mib", "exact"),
    [(120 * 1024**2, "120", None), (1_500_000, "1", "1500000"), (1, "1", "1")],
)
def test_flink_counts_in_whole_mib_and_is_told_the_bytes_where_that_is_not_exact(
    target, mib, exact
):
    found = asked(replace(BARE, files=FileSizes(target=target, small=1)), WriterEngine.FLINK)

    assert mib == found["write.parquet.max.file.size"]
    assert exact == found.get("hoodie.parquet.max.file.size")


@pytest.mark.parametrize(
    ("policy", "key", "flinks"),
    [
        (Policy.COMMITS, "hoodie.clean.commits.retained", "clean.retain_commits"),
        (Policy.HOURS, "hoodie.clean.hours.retained", "clean.retain_hours"),
        (Policy.FILE_VERSIONS, "hoodie.clean.fileversions.retained", "clean.retain_file_versions"),
    ],
)
def test_writers_leave_cleaning_alone_and_know_the_retention_all_the_same(policy, key, flinks):
    spec = replace(BARE, retention=Retention(policy=policy, keep=7))

    found = asked(spec, hudi="1.2")
    assert found == {
        "hoodie.clean.automatic": "false",
        "hoodie.clean.async.enabled": "false",
        "hoodie.clean.policy": policy.value,
        key: "7",
    }
    assert asked(spec, WriterEngine.FLINK, "1.2") == {
        "hoodie.clean.automatic": "false",
        "clean.async.enabled": "false",
        "clean.policy": policy.value,
        flinks: "7",
    }


@pytest.mark.parametrize(
    ("engine", "keep", "least"),
    [
        (WriterEngine.SPARK, 10, None),
        (WriterEngine.SPARK, 11, "21"),
        (WriterEngine.FLINK, 30, None),
        (WriterEngine.FLINK, 31, "41"),
    ],
)
def test_commits_that_are_retained_are_not_archived(engine, keep, least):
    found = asked(replace(BARE, retention=Retention(policy=Policy.COMMITS, keep=keep)), engine)

    key = "archive.min_commits" if engine is WriterEngine.FLINK else "hoodie.keep.min.commits"
    assert least == found.get(key)


def test_hours_say_nothing_of_the_archive():
    found = asked(replace(BARE, retention=Retention(policy=Policy.HOURS, keep=1000)))

    assert "hoodie.keep.min.commits" not in found


@pytest.mark.parametrize(
    ("path", "lock", "expected"),
    [
        ("/lake/t", ".hoodie", "file:/lake/t/.hoodie"),
        ("s3://lake/t", ".hoodie", "s3://lake/t/.hoodie"),
        ("s3://lake/t", "s3://locks/t", "s3://locks/t"),
        ("s3://lake/t", "/locks", "file:/locks"),
    ],
)
def test_writers_take_the_lock_that_apply_takes(path, lock, expected):
    shared = Concurrency(lock=Lock(provider="filesystem", path=lock, expire=5))
    found = asked(replace(BARE, path=path, concurrency=shared), hudi="1.1")

    assert found == {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.write.lock.provider": (
            "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
        ),
        "hoodie.write.lock.filesystem.path": expected,
        "hoodie.write.lock.filesystem.expire": "5",
        "hoodie.clean.failed.writes.policy": "LAZY",
    }


@pytest.mark.parametrize(
    ("said", "concurrency", "expected"),
    [
        (None, LOCK, "LAZY"),
        ("EAGER", LOCK, "LAZY"),
        ("LAZY", LOCK, "LAZY"),
        ("NEVER", LOCK, "NEVER"),
        (None, ALONE, None),
        ("EAGER", ALONE, "EAGER"),
        ("LAZY", None, "LAZY"),
    ],
)
def test_several_writers_never_undo_what_another_is_writing(said, concurrency, expected):
    retention = Retention(policy=Policy.COMMITS, keep=1, failed_writes=said)
    found = asked(replace(BARE, retention=retention, concurrency=concurrency))

    assert expected == found.get("hoodie.clean.failed.writes.policy")
    assert expected == found.get("hoodie.cleaner.policy.failed.writes")


def test_that_eager_does_not_go_with_a_lock_is_said():
    retention = Retention(policy=Policy.COMMITS, keep=1, failed_writes="EAGER")
    found = make_writer_options(replace(FULL, retention=retention), WriterEngine.SPARK)

    assert any("EAGER does not work with a lock" in note for note in found.notes)


def test_failed_writes_are_rolled_back_although_nobody_cleans():
    """LAZY rolls back in a clean; from 1.2 on it can before a write, older writers cannot."""
    spec = replace(BARE, retention=FULL.retention, concurrency=LOCK)
    key = "hoodie.prewrite.cleaner.policy"

    assert "ROLLBACK_FAILED_WRITES" == asked(spec, hudi="1.2")[key]
    assert key not in asked(spec, hudi="1.1")
    assert key not in asked(replace(spec, concurrency=ALONE), hudi="1.2")
    notes = {
        r: " ".join(make_writer_options(spec, WriterEngine.SPARK, r).notes) for r in HudiRelease
    }
    assert {r: "run_clean" in notes[r] for r in HudiRelease} == {r: r < "1.2" for r in HudiRelease}


def test_that_nobody_cleans_a_suspended_table_is_said():
    notes = [
        make_writer_options(replace(FULL, suspend=on), WriterEngine.SPARK).notes
        for on in (True, False)
    ]

    assert [True, False] == ["suspend" in " ".join(some) for some in notes]


def test_a_single_writer_takes_no_lock():
    found = asked(replace(BARE, concurrency=ALONE))

    assert found == {"hoodie.write.concurrency.mode": "single_writer"}


def test_only_an_index_that_hudi_is_to_have_asks_for_the_metadata_table():
    keep = IndexColumns(columns=("a",), hudi="keep")

    assert {} == asked(replace(BARE, index=keep))
    assert asked(replace(BARE, index=FULL.index)) == {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.index.column.stats.column.list": "a,b.c",
    }


@pytest.mark.parametrize(
    ("version", "hudi", "can"),
    [
        (6, "0.15", True),
        (8, "0.15", False),
        (8, "1.0", True),
        (9, "1.0", False),
        (9, "1.1", True),
        (6, "1.2", True),
    ],
)
def test_a_release_that_does_not_write_the_declared_version_has_no_options(version, hudi, can):
    spec = replace(FULL, table=replace(FULL.table, version=version))
    found = make_writer_options(spec, WriterEngine.SPARK, HudiRelease(hudi))

    if can:
        assert found.options
        stays = asked(spec, hudi=hudi).get("hoodie.write.table.version")
        assert stays == (None if hudi == "0.15" else str(version))
    else:
        assert () == found.options
        assert f"does not write tables of version {version}" in (found.error or "")


def test_several_ordering_columns_need_a_release_that_has_them():
    spec = replace(FULL, table=replace(FULL.table, ordering=("a", "b")))

    error = make_writer_options(spec, WriterEngine.SPARK, HudiRelease.R1_0).error
    assert "Hudi 1.0 orders records by one column, and table.ordering has 2" in (error or "")
    assert "a,b" == asked(spec)["hoodie.table.ordering.fields"]


@pytest.mark.parametrize(
    ("engine", "key"),
    [
        (WriterEngine.SPARK, "hoodie.datasource.write.payload.class"),
        (WriterEngine.STREAMER, "--payload-class"),
        (WriterEngine.SQL, "payloadClass"),
    ],
)
def test_before_1_0_ordering_columns_decide_only_with_the_payload_of_event_time(engine, key):
    payload = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"

    assert payload == asked(FULL, engine, "0.15")[key]
    assert key not in asked(FULL, engine, "1.0")
    assert key not in asked(replace(FULL, table=replace(FULL.table, ordering=())), engine, "0.15")


def test_flink_is_told_that_nothing_orders_records_where_it_would_take_a_column_ts():
    spec = replace(FULL, table=replace(FULL.table, ordering=()))

    assert "no_precombine" == asked(spec, WriterEngine.FLINK, "1.0")["precombine.field"]
    assert not [key for key in asked(spec) if "precombine" in key or "ordering" in key]


def test_what_no_option_can_hold_is_an_error():
    spec = replace(BARE, index=IndexColumns(columns=("a\nb",), hudi="build"))

    error = make_writer_options(spec, WriterEngine.SPARK).error
    assert "index.columns contains a control character" in (error or "")


def test_writers_of_a_storage_lock_get_its_provider_and_times():
    spec = replace(
        BARE,
        path="s3://lake/t",
        concurrency=Concurrency(lock=Lock(provider="storage", validity=60)),
    )
    made = make_writer_options(spec, WriterEngine.SPARK)
    options = {option.key: option.value for option in made.options}

    assert made.releases == (HudiRelease.R1_1, HudiRelease.R1_2)
    assert options["hoodie.write.lock.provider"].endswith(".StorageBasedLockProvider")
    assert options["hoodie.write.lock.storage.validity.timeout.secs"] == "60"
    assert options["hoodie.write.lock.storage.renew.interval.secs"] == "6"
    assert "hoodie.write.lock.filesystem.path" not in options
    assert options["hoodie.clean.failed.writes.policy"] == "LAZY"


def test_writers_of_a_metastore_lock_lock_the_same_name():
    lock = Lock(provider="hivemetastore", table="sales.orders", uri="thrift://host:9083")
    spec = replace(BARE, path="gs://lake/t", concurrency=Concurrency(lock=lock))
    made = make_writer_options(spec, WriterEngine.SPARK)
    options = {option.key: option.value for option in made.options}

    prefix = "hoodie.write.lock.hivemetastore"
    assert options["hoodie.write.lock.provider"].endswith(".HiveMetastoreBasedLockProvider")
    assert (options[f"{prefix}.database"], options[f"{prefix}.table"]) == ("sales", "orders")
    assert options[f"{prefix}.uris"] == "thrift://host:9083"
    assert "hoodie.write.lock.filesystem.path" not in options


def test_writers_of_a_zookeeper_lock_get_its_servers_and_path():
    lock = Lock(provider="zookeeper", servers="a:1,b:2", base_path="/locks", key="t")
    spec = replace(BARE, path="gs://lake/t", concurrency=Concurrency(lock=lock))
    made = make_writer_options(spec, WriterEngine.SPARK)
    options = {option.key: option.value for option in made.options}

    prefix = "hoodie.write.lock.zookeeper"
    assert options["hoodie.write.lock.provider"].endswith(".ZookeeperBasedLockProvider")
    assert options[f"{prefix}.url"] == "a:1,b:2"
    assert (options[f"{prefix}.base_path"], options[f"{prefix}.lock_key"]) == ("/locks", "t")
    assert options[f"{prefix}.session_timeout_ms"] == "60000"


def test_writers_of_a_dynamodb_lock_get_its_row():
    lock = Lock(provider="dynamodb", table="locks", partition_key="t", region="eu-central-1")
    spec = replace(BARE, path="gs://lake/t", concurrency=Concurrency(lock=lock))
    made = make_writer_options(spec, WriterEngine.SPARK)
    options = {option.key: option.value for option in made.options}

    prefix = "hoodie.write.lock.dynamodb"
    assert options["hoodie.write.lock.provider"].endswith(".DynamoDBBasedLockProvider")
    assert (options[f"{prefix}.table"], options[f"{prefix}.partition_key"]) == ("locks", "t")
    assert options[f"{prefix}.region"] == "eu-central-1"
    assert f"{prefix}.endpoint_url" not in options
    assert any("hudi-aws-bundle" in note for note in made.notes)


@pytest.mark.parametrize("release", [None, HudiRelease.R1_0, HudiRelease.R1_1, HudiRelease.R1_2])
def test_writers_of_an_implicit_lock_find_the_same_place(release):
    lock = Lock(provider="zookeeper", servers="a:1", implicit=True)
    spec = replace(BARE, path="s3a://lake/orders", concurrency=Concurrency(lock=lock))
    made = make_writer_options(spec, WriterEngine.SPARK, release)
    options = {option.key: option.value for option in made.options}

    provider = options["hoodie.write.lock.provider"].rpartition(".")[2]
    path = options.get("hoodie.write.lock.zookeeper.base_path")
    key = options.get("hoodie.write.lock.zookeeper.lock_key")
    if release in (HudiRelease.R1_1, HudiRelease.R1_2):
        assert (provider, path, key) == ("ZookeeperBasedImplicitBasePathLockProvider", None, None)
    else:
        explicit = "ZookeeperBasedLockProvider", "/tmp/9BBEA24B29C16651", "lock_key"
        assert (provider, path, key) == explicit
    assert options["hoodie.write.lock.zookeeper.url"] == "a:1"


def test_writers_of_an_implicit_row_find_the_same_one():
    lock = Lock(provider="dynamodb", table="locks", implicit=True)
    spec = replace(BARE, path="s3://lake/orders", concurrency=Concurrency(lock=lock))
    found = []
    for release in (HudiRelease.R0_15, HudiRelease.R1_2):
        made = make_writer_options(spec, WriterEngine.SPARK, release)
        options = {option.key: option.value for option in made.options}
        provider = options["hoodie.write.lock.provider"].rpartition(".")[2]
        found.append((provider, options.get("hoodie.write.lock.dynamodb.partition_key")))

    assert found == [
        ("DynamoDBBasedLockProvider", "9BBEA24B29C16651"),
        ("DynamoDBBasedImplicitPartitionKeyLockProvider", None),
    ]


def test_a_release_without_storage_locks_is_refused():
    spec = replace(BARE, path="s3://lake/t", concurrency=Concurrency(lock=Lock(provider="storage")))
    made = make_writer_options(spec, WriterEngine.FLINK, HudiRelease.R1_0)

    assert made.error == (
        "Hudi 1.0 has no storage lock (concurrency.lock.provider): use Hudi 1.1 or newer"
    )


def test_a_file_lock_on_an_object_store_is_noted():
    spec = replace(
        BARE, path="s3://lake/t", concurrency=Concurrency(lock=Lock(provider="filesystem"))
    )

    assert any(
        "cannot take a filesystem lock on s3://" in note
        for note in make_writer_options(spec, WriterEngine.SPARK).notes
    )


def test_a_file_lock_on_an_object_store_that_only_reconciler_writes_is_no_problem():
    lock = Lock(provider="filesystem", single_writer=True)
    spec = replace(BARE, path="s3://lake/t", concurrency=Concurrency(lock=lock))
    notes = make_writer_options(spec, WriterEngine.SPARK).notes

    assert not any("cannot take" in note for note in notes)
    assert any("only reconciler writes" in note for note in notes)
