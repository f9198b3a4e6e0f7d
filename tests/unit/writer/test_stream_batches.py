"""The newest batch of a stream in a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from reconciler.errors import FormatError, UsageError
from reconciler.spec.model import FileSizes
from reconciler.storage.open import open_storage
from reconciler.transaction.session import RunContext
from reconciler.writer.local import LocalWriter
from reconciler.writer.request import WriteMode, WriteRequest
from reconciler.writer.run import write_table
from reconciler.writer.stream_batches import find_last_batch, make_batch_extra
from tests.crash.drill import process
from tests.table_sessions import write_spec
from tests.write_runs import WriteRuns, make_rows


@pytest.fixture(params=[6, 9])
def it(request, tmp_path):
    return WriteRuns(write_spec(tmp_path, version=request.param))


def of(it, stream):
    return find_last_batch(open_storage(it.spec.path), stream)


def test_a_table_that_is_not_there_has_no_batch(it):
    assert of(it, "orders") is None


def test_the_newest_batch_of_a_stream_is_found_behind_other_writes(it):
    it.write(make_rows((1, "a", 1, "x")), extra=make_batch_extra("orders", 6))
    it.write(make_rows((2, "a", 1, "x")), extra=make_batch_extra("orders", 7))
    it.write(make_rows((3, "a", 1, "x")), extra=make_batch_extra("returns", 40))
    it.write(make_rows((4, "a", 1, "x")))

    assert (7, 40, None) == (of(it, "orders"), of(it, "returns"), of(it, "others"))


def test_what_is_no_number_is_damage(it):
    it.write(make_rows((1, "a", 1, "x")), extra={"reconciler.stream.orders": "seven"})

    with pytest.raises(FormatError, match="not a batch number"):
        of(it, "orders")


def brought(it, number, *found, way=WriteMode.INSERT):
    """Write a batch of the stream ``orders`` and return the status."""
    batch = make_rows(*found)
    storage = open_storage(it.spec.path)
    means = RunContext(
        open_storage=lambda ref, _options=None: open_storage(ref),
        clock=it.clock,
        process=process(1),
        report_wait=lambda *_said: None,
        check_stop=lambda: None,
    )
    done = write_table(
        it.spec,
        WriteRequest(mode=way, rows=[[batch]], schema=batch.schema, batch=("orders", number)),
        context=means,
        token=f"run-{number}-{len(found)}",
        writer=lambda _ref: LocalWriter(storage, shuffle_partitions=2),
    )
    return done.status


def test_a_batch_that_comes_again_is_not_written_again(it):
    first, second = (1, "a", 1, "x"), (2, "a", 1, "x")
    assert ["completed", "nothing"] == [brought(it, 0, first), brought(it, 0, first)]
    assert ["completed", "nothing"] == [brought(it, 1, second), brought(it, 1, second)]
    with pytest.raises(
        UsageError, match="batch 0 came, but the table already has batch 1; a query with a new"
    ):
        brought(it, 0, first)
    assert [first, second] == it.read_rows()


def test_by_hudis_rule_a_batch_goes_into_one_file_after_the_other(tmp_path):
    it = WriteRuns(write_spec(tmp_path))
    files = FileSizes(target=4_000_000, small=3_000_000, assign="hudi", record_size=40_000)
    it.spec = replace(it.spec, files=files)

    brought(it, 0, *((n, "a", 1, "x") for n in range(250)))

    found = [pq.read_metadata(path).num_rows for path in Path(it.spec.path).rglob("*.parquet")]
    assert [50, 100, 100] == sorted(found)


@pytest.mark.parametrize("way", [WriteMode.BULK_INSERT, WriteMode.INSERT_OVERWRITE])
def test_by_hudis_rule_a_batch_fills_no_small_file_that_another_write_would_not(tmp_path, way):
    it = WriteRuns(write_spec(tmp_path))
    it.spec = replace(it.spec, files=FileSizes(assign="hudi"))
    first, second = (1, "a", 1, "x"), (2, "a", 1, "x")
    brought(it, 0, first)

    assert "completed" == brought(it, 1, second, way=way)
    assert [first, second][way.replaces :] == it.read_rows()
