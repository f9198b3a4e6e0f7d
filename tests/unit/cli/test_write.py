"""``reconciler write`` refuses before Spark starts what options, the spec and the table tell."""

from __future__ import annotations

import pytest

from reconciler.cli import run_write
from tests.command import run
from tests.rewrite_jobs import TABLES
from tests.trees import Tree, unpack

HEAD = "apiVersion: reconciler/v1\nkind: HudiTable\nmetadata: {name: t}\nspec:\n"
LOCK = "  concurrency: {lock: {provider: none}}\n"
NEW = "  table: {type: COPY_ON_WRITE, version: 9, recordKey: [id]"
NO_SCHEMA = ", schema: {type: record, name: r, fields: []}}\n"

CASES = {
    "no lock": ("v9_tz_utc", "", ["a.csv"], 3, "concurrency.lock is missing"),
    "no zone": ("v9_cow_part", LOCK, ["a.csv"], 3, "spec.timezone has to name it"),
    "another zone": (
        "v9_cow_part", LOCK + "  timezone: Asia/Tokyo\n", ["a.csv"], 3,
        "the writers are at UTC by the times of the timeline's files, but timezone: Asia/Tokyo is",
    ),
    "another zone and no rows": (
        "v9_cow_part", LOCK + "  timezone: Asia/Tokyo\n",
        ["--operation", "delete-partition", "--partition", "a"], 3, "declare timezone: UTC",
    ),
    "other keys": (
        "v9_tz_utc", LOCK + NEW.replace("[id]", "[name]") + "}\n", ["a.csv"], 1,
        "spec.table.recordKey is name",
    ),
    "another type": (
        "v9_tz_utc", LOCK + NEW.replace("COPY_ON_WRITE", "MERGE_ON_READ") + "}\n", ["a.csv"], 1,
        "spec.table.type is MERGE_ON_READ, and the table at",
    ),
    "change data of log files": (
        "v9_cdc_mor", LOCK + "  timezone: UTC\n", ["a.csv"], 1, "keeps change data",
    ),
    "change data": ("v9_cdc_cow", LOCK + "  timezone: UTC\n", ["a.csv"], 1, "keeps change data"),
    "no table": ("none", LOCK, ["a.csv"], 1, "and the spec has no table block to create one"),
    "no columns": ("none", LOCK + NEW + NO_SCHEMA, ["a.csv"], 1, "is no Avro schema of a table"),
    "nothing to delete from": (
        "none", LOCK + NEW + "}\n", ["a.csv", "--operation", "delete"], 1, "to delete from",
    ),
    "no source": ("v9_tz_utc", LOCK, ["gone.csv"], 1, "gone.csv"),
    "unknown format": ("v9_tz_utc", LOCK, ["a.what"], 64, "--source-format"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_needs_no_rows_is_refused_before_spark_starts(name, tmp_path, monkeypatch, capsys):
    table, spec, arguments, code, message = CASES[name]
    monkeypatch.setattr(run_write, "open_spark_session", lambda *_, **__: pytest.fail("Spark"))
    if table != "none":
        unpack(TABLES / f"{table}.zip", tmp_path)
    (tmp_path / "t.yaml").write_text(f"{HEAD}  path: {table}\n{spec}")
    for source in ("a.csv", "a.what"):
        (tmp_path / source).write_text("id\n1\n")
    monkeypatch.chdir(tmp_path)
    before = Tree.from_folder(tmp_path)

    assert code == run("write", "t.yaml", *arguments)
    assert message in capsys.readouterr().err
    assert before == Tree.from_folder(tmp_path)
