"""Hudi executes the plan, keeps the live indexes, and does nothing else."""

from __future__ import annotations

import pytest

from reconciler.errors import UnsupportedError
from reconciler.hudi.table.properties import (
    TableProperties,
    compute_checksum,
    format_java_properties,
)
from reconciler.hudi_engine.table_options import (
    add_conflict_check,
    make_clustering_options,
    make_index_options,
    make_table_options,
)
from reconciler.spec.model import Lock
from reconciler.state.clustering_layout import ClusteringLayout

INDEX = "hoodie.metadata.index."


def properties(**more):
    raw = {
        "hoodie.table.name": "t",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": "9",
        "hoodie.table.recordkey.fields": "id",
        "hoodie.populate.meta.fields": "false",
        "hoodie.table.checksum": str(compute_checksum({"hoodie.table.name": "t"})),
    } | {key.replace("_", "."): value for key, value in more.items()}
    return TableProperties.parse(format_java_properties(raw), "hoodie.properties")


def options(bundle="1.2.0", lock=None, schema=None, **more):
    return make_table_options(
        properties(**more),
        location="/lake/t",
        lock=lock,
        bundle=bundle,
        schema=schema,
        indexes=make_index_options(properties(**more).metadata_partitions),
    )


def test_what_the_table_says_of_itself_is_said_to_hudi():
    said = options()

    assert "false" == said["hoodie.populate.meta.fields"]
    assert "id" == said["hoodie.datasource.write.recordkey.field"]
    assert "COPY_ON_WRITE" == said["hoodie.datasource.write.table.type"]
    assert "hoodie.avro.schema" not in said


def test_hudi_neither_upgrades_the_table_nor_serves_it_otherwise():
    said = options()
    older = options(bundle="0.15.0")

    assert ("false", "9") == (
        said["hoodie.write.auto.upgrade"],
        said["hoodie.write.table.version"],
    )
    assert "hoodie.write.table.version" not in older
    assert {"false"} == {
        said[f"hoodie.{service}"]
        for service in ("clean.automatic", "archive.automatic", "compact.inline")
    }
    assert "NEVER" == said["hoodie.clean.failed.writes.policy"]


def test_every_index_is_said_to_be_on_or_off():
    said = make_index_options(["files", "record_index"])

    assert {
        "hoodie.metadata.enable": "true",
        f"{INDEX}column.stats.enable": "false",
        f"{INDEX}partition.stats.enable": "false",
        f"{INDEX}bloom.filter.enable": "false",
        "hoodie.metadata.record.index.enable": "true",
    } == said


def test_no_metadata_table_is_made():
    assert {"false"} == set(make_index_options([]).values())


def test_statistics_are_kept_of_the_columns_that_have_them():
    said = make_index_options(["files", "column_stats"], ["_hoodie_commit_time", "x", "y.z"])

    assert "x,y.z" == said[f"{INDEX}column.stats.column.list"]


def test_a_record_index_by_partition_stays_one():
    said = make_index_options(["files", "record_index"], by_partition=True)

    assert "true" == said["hoodie.metadata.record.level.index.enable"]
    assert "hoodie.metadata.record.index.enable" not in said


def test_an_index_that_hudi_might_drop_is_refused():
    with pytest.raises(UnsupportedError, match="secondary_index_x, which Hudi may not keep"):
        make_index_options(["files", "secondary_index_x"])


def test_the_lock_is_the_one_that_the_spec_declares():
    said = options(lock=Lock(provider="filesystem", expire=5))
    elsewhere = options(lock=Lock(provider="filesystem", path="/locks/t"))
    metastore = options(lock=Lock(provider="hivemetastore", table="a.b", uri="thrift://host"))
    none = options(lock=Lock(provider="none"))

    assert "b" == metastore["hoodie.write.lock.hivemetastore.table"]
    assert "file:/lake/t/.hoodie" == said["hoodie.write.lock.filesystem.path"]
    assert "5" == said["hoodie.write.lock.filesystem.expire"]
    assert "file:/locks/t" == elsewhere["hoodie.write.lock.filesystem.path"]
    assert "hoodie.write.lock.provider" not in none


def test_conflicts_are_checked_where_there_is_a_lock():
    lock = Lock(provider="filesystem")
    mode = "hoodie.write.concurrency.mode"

    assert "optimistic_concurrency_control" == add_conflict_check(options(lock=lock), lock)[mode]
    assert "single_writer" == add_conflict_check(options(), Lock(provider="none"))[mode]


def test_a_layout_is_said_in_options_because_plans_do_not_carry_it():
    layout = ClusteringLayout(columns=("x", "y"), curve="hilbert", mapping="direct")
    said = make_clustering_options(layout, target=100, outputs=7, codec="none")

    assert {
        "hoodie.layout.optimize.strategy": "hilbert",
        "hoodie.layout.optimize.curve.build.method": "direct",
        "hoodie.clustering.plan.strategy.target.file.max.bytes": "800",
        "hoodie.bulkinsert.shuffle.parallelism": "7",
        "hoodie.parquet.compression.codec": "uncompressed",
        "hoodie.clustering.plan.strategy.sort.columns": "x,y",
    } == said


def test_packing_names_no_columns():
    said = make_clustering_options(ClusteringLayout(), target=100, outputs=1, codec="zstd")

    assert "hoodie.clustering.plan.strategy.sort.columns" not in said
    assert "linear" == said["hoodie.layout.optimize.strategy"]
