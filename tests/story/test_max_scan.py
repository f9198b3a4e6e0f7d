"""A limit on what a query may read: it makes a clustering, once, or a sentence why none helps."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import reconciler
from reconciler.state.observe import observe
from reconciler.state.sampling.row_groups import ChosenFile, SampleReader
from reconciler.storage.open import open_storage
from tests.crash.clustering_drill import ClusteringDrill
from tests.crash.drill import NOW
from tests.plain_tables import make_orders, write_table
from tests.trees import unpack

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  timezone: UTC
  files: {{target: 40KiB, small: 1KiB}}
  clustering: {{columns: [customer], curve: linear, when: {{overlapAbove: 1000}}}}
  queries:
    - {{name: one customer, where: "customer = 4711", maxScan: {limit}}}
    - {{name: state, where: "state = 'new'"}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""


@pytest.fixture
def table(tmp_path):
    """Twenty thousand orders in sixteen files, in the order of their ids."""

    def made(limit):
        if not (tmp_path / "t").exists():
            write_table(tmp_path / "t" / "table", {"": make_orders(20_000, 16)})
        it = ClusteringDrill(tmp_path / "t", {})
        (tmp_path / "t/spec.yaml").write_text(SPEC.format(path=it.table, limit=limit))
        (it.spec,) = reconciler.load_specs(tmp_path / "t/spec.yaml")
        return it

    return made


def planned(it):
    plan = reconciler.plan([it.spec], now=NOW)
    (table,) = plan.tables
    assert (None, ()) == (table.error, table.refusals)
    return plan, table


def of(notes, rule):
    return [note.because for note in notes if note.rule == rule]


def test_a_query_that_reads_too_much_has_the_table_clustered_once(table):
    it = table("20%")
    plan, before = planned(it)
    rows = it.rows()
    it.apply(plan)
    _, after = planned(it)

    assert ["cluster"] == [step.kind for step in before.steps]
    (because,) = before.steps[0].groups.because.to_pylist()
    assert because.endswith(
        "query 'one customer' reads 100 % of the table's bytes, more than its maxScan of 20 %"
    )
    (drift,) = [found for found in before.drift if found.field.startswith("queries")]
    assert ("queries.one customer.maxScan", 0.2, 1.0) == (drift.field, drift.desired, drift.actual)
    assert [] == of(before.warnings, "maxScan")
    assert (16, 1) == (before.predictions[0]["filesBefore"], before.predictions[0]["filesAfter"])
    assert before.predictions[1]["filesAfter"] == before.layout.after.files
    assert (16, 16) == (before.layout.sampled.row_groups, before.layout.sampled.total_row_groups)
    assert ((), ()) == (after.steps, after.drift)
    assert rows == it.rows()
    assert [(1, 1, 0.0)] == [
        (one["filesBefore"], one["filesAfter"], one["error"]) for one in after.predictions[:1]
    ]


def test_a_limit_that_no_layout_reaches_is_explained_and_rewrites_nothing_again(table):
    it = table("1%")
    plan, before = planned(it)
    it.apply(plan)
    _, after = planned(it)

    assert ["cluster"] == [step.kind for step in before.steps]
    (said,) = of(before.warnings, "maxScan")
    assert said.startswith(
        "no layout on customer brings query 'one customer' below 1 % (maxScan): "
    )
    assert "it reads 100 % of the table's bytes today; the query's columns" in said
    assert said.endswith("are already clustered; raise its maxScan")
    assert () == after.steps
    (said,) = of(after.warnings, "maxScan")
    assert ": all files are clustered as declared; it reads 9.1 %" in said
    assert "today, and 9.1 % was measured after clustering 2026" in said
    assert said.startswith(
        "no layout on customer brings query 'one customer' below 1 % (maxScan): "
    )
    # the first rewrite was worth it, and nothing is to be done about the rest
    assert ["queries.one customer.maxScan"] == [
        found.field for found in before.drift if found.field.startswith("queries")
    ]
    assert () == after.drift


def test_what_is_laid_out_as_declared_is_not_written_again_without_a_gain(table):
    it = table("1%")
    plan, before = planned(it)
    it.apply(plan)
    # as if a commit elsewhere had opened the gate of afterCommits
    it.spec = replace(it.spec, clustering=replace(it.spec.clustering, after_commits=0))
    _, after = planned(it)

    assert ["cluster"] == [step.kind for step in before.steps]
    assert () == after.steps
    (said,) = of(after.warnings, "maxScan")
    assert said.startswith(
        "no layout on customer brings query 'one customer' below 1 % (maxScan): "
    )
    assert "predicted 9 %" in said
    assert () == after.drift


def test_a_layout_that_gains_nothing_is_not_written(table):
    it = table("50%")
    text = (it.folder / "spec.yaml").read_text()
    (it.folder / "spec.yaml").write_text(text.replace("[customer]", "[id]"))
    (it.spec,) = reconciler.load_specs(it.folder / "spec.yaml")
    _, found = planned(it)

    assert () == found.steps
    (said,) = of(found.warnings, "maxScan")
    assert said.startswith("no layout on id brings query 'one customer' below 50 % (maxScan): ")
    assert "predicted 100 %" in said
    assert () == found.drift


def test_without_a_clustering_block_the_limit_is_a_warning(table):
    it = table("20%")
    lines = (it.folder / "spec.yaml").read_text().splitlines(keepends=True)
    (it.folder / "spec.yaml").write_text("".join(x for x in lines if "clustering:" not in x))
    (it.spec,) = reconciler.load_specs(it.folder / "spec.yaml")
    _, found = planned(it)

    assert ((), ()) == (found.steps, found.drift)
    (said,) = of(found.warnings, "maxScan")
    assert said == (
        "query 'one customer' should read at most 20 % (maxScan), but it reads 100 % of the "
        "table's bytes today; add a clustering block to the spec"
    )
    assert [(16, 16, 0.0), (16, 16, 0.0)] == [
        (one["filesBefore"], one["filesAfter"], one["error"]) for one in found.predictions
    ]


def damaged_end(it):
    """A base file of the table, of which nobody can read the footer any more."""
    file = min(it.table.glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:-9] + b"notaparqu")
    return file.name


def damaged_page(it):
    """A base file of the table, of which the footer is well and the rows cannot be read."""
    file = min(it.table.glob("*.parquet"))
    data = bytearray(file.read_bytes())
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    data[4:end] = bytes(end - 4)
    file.write_bytes(bytes(data))
    return file.name


def damaged_levels(it):
    """A file of which pyarrow ends the process that asks for the chunk of a column no query names.

    Its levels are not as many as its column has.
    """
    file = sorted(it.table.glob("*.parquet"))[3]
    data = file.read_bytes()
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    levels = b"<)\x06\x19&\x00"
    assert levels in data[end:]
    footer = data[end:-8].replace(levels, b"<)\x06\x19\x16", 1)
    file.write_bytes(data[:end] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    return file.name


def test_where_no_row_may_be_sampled_the_limit_is_not_judged(tmp_path):
    """Files of a bootstrapped table may hold keys alone, so none is looked into."""
    archive = Path(__file__).parents[1] / "tables/v8_bootstrap.zip"
    text = SPEC.replace("customer = 4711", "id >= 0").replace("[customer]", "[id]")
    text = text.replace("overlapAbove: 1000", "smallFileShareAbove: 0.3")
    text = text.replace("{target: 40KiB, small: 1KiB}", "{target: 40KiB, small: 30KiB}")
    spec = tmp_path / "spec.yaml"
    spec.write_text(text.format(path=unpack(archive, tmp_path / "t") / "v8_bootstrap", limit="1%"))
    (table,) = reconciler.plan(reconciler.load_specs(spec), now=NOW).tables

    assert ["cluster"] == [step.kind for step in table.steps]
    (said,) = of(table.warnings, "maxScan")
    assert said == (
        "query 'one customer' should read at most 1 % (maxScan), but it reads 54 % of the table's "
        "bytes today; the effect of a clustering is unknown, because no row of the files could be "
        "sampled"
    )


def test_a_file_without_a_footer_is_read_by_every_query_and_named(table):
    it = table("20%")
    name = damaged_end(it)
    plan, found = planned(it)
    (said,) = of(found.warnings, "predictions")

    assert f"1 footer cannot be read, so every query reads them: {name}: " in said
    assert all(one["filesBefore"] == 16 for one in found.predictions)
    # it is in no group, the others are laid out, and it still counts as read
    (step,) = found.steps
    assert name not in step.groups.base.to_pylist()
    assert 15 == len(step.groups.base)
    assert found.predictions[0]["filesAfter"] == 2
    (said,) = of(found.warnings, "damagedFile")
    assert said.startswith(f"{name}: it does not end like a Parquet file; ")
    assert 0 == it.apply(plan).exit_code
    _, after = planned(it)
    assert () == after.steps


@pytest.mark.parametrize("damage", [damaged_end, damaged_page, damaged_levels])
def test_what_cannot_be_read_joins_no_group_of_small_files(damage, table):
    it = table("100%")
    clustering = it.spec.clustering
    when = replace(clustering.when, small_file_share_above=0.1)
    files = replace(it.spec.files, small=1 << 20)
    it.spec = replace(it.spec, clustering=replace(clustering, when=when), files=files)
    name = damage(it)
    plan, found = planned(it)

    (step,) = found.steps
    assert name not in step.groups.base.to_pylist()
    assert 15 == len(step.groups.base)
    (said,) = of(found.warnings, "damagedFile")
    assert f"{name}: " in said
    assert "not clustered" in said
    assert 0 == it.apply(plan).exit_code


def test_a_sample_asks_nothing_of_a_file_that_pyarrow_would_die_of(table):
    it = table("100%")
    name = damaged_levels(it)
    storage = open_storage(str(it.table))
    files = observe(storage, None, observed_ms=0).files
    row = files.name.to_pylist().index(name)
    reading = SampleReader(storage, files, ("customer",), pa.schema([("customer", pa.int64())]))

    assert reading.open_file(ChosenFile(row, 0, 0, 0)) is None
    assert (
        f"{name}: its footer cannot be read; restore the file from a copy" == reading.damaged[row]
    )


def with_logs(it):
    """Log files for what the last clustering wrote, half as big as the base files, and a commit."""
    newest = max(file.stem.rpartition("_")[2] for file in it.table.glob("*.parquet"))
    instant = f"{int(newest) + 60_000}"
    for file in it.table.glob(f"*_{newest}.parquet"):
        group = file.name.partition("_")[0]
        log = it.table / f".{group}_{newest}.log.1_0-0-0"
        log.write_bytes(bytes(file.stat().st_size // 2))
    timeline = it.table / ".hoodie"
    commit = (timeline / "20260101000000000.commit").read_text()
    (timeline / f"{instant}.deltacommit.requested").touch()
    (timeline / f"{instant}.deltacommit.inflight").touch()
    found = json.loads(commit) | {"partitionToWriteStats": {}, "operationType": "UPSERT"}
    (timeline / f"{instant}.deltacommit").write_text(json.dumps(found))


def test_log_files_are_no_reason_to_lay_out_again_what_lies_as_declared(table):
    it = table("20%")
    properties = it.table / ".hoodie/hoodie.properties"
    text = properties.read_text()
    properties.write_text(text.replace("COPY_ON_WRITE", "MERGE_ON_READ"))
    plan, before = planned(it)
    assert 0 == it.apply(plan).exit_code
    with_logs(it)
    _, after = planned(it)

    assert ["cluster"] == [step.kind for step in before.steps]
    # the log files may hold anything, so every query reads every slice
    assert after.predictions[0]["filesBefore"] == before.layout.after.files
    assert ((), ()) == (after.steps, after.drift)
    (said,) = of(after.warnings, "maxScan")
    assert "it reads 10 file slices only because of log files: compact them" in said
