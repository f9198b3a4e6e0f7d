"""``reconciler options``: text that can be pasted, a document for programs, and wrong input."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import jsonschema
import pytest

from reconciler.hudi_engine.model import WriterEngine
from reconciler.hudi_engine.writer_options import make_writer_options
from reconciler.spec.load import load_specs
from tests.command import run

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "schemas/options.v1.json").read_text())
GOLDENS = Path(__file__).parent / "options"
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: sales.orders, labels: {team: core}}
spec:
  path: hdfs://lake/sales/orders
  timezone: UTC
  table: {type: COPY_ON_WRITE, version: 8, recordKey: [id], partitionBy: [dt], ordering: [ts]}
  files: {target: 120MiB, small: 100MiB}
  retention: {commits: 40}
  clustering: {columns: [customer_id, order_ts]}
  index: {columns: [customer_id, order_ts], hudi: build}
  concurrency: {lock: {provider: filesystem}}
"""
SMALL = r"""
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: it-s.odd}
spec:
  path: hdfs://lake/it's
  index: {columns: ['a b;`c''', 'd\\e"f'], hudi: build}
"""
ENVIRONMENT = """\
apiVersion: reconciler/v1
kind: Environment
metadata: {name: prod}
spec:
  storageOptions: {key: {fromEnv: LAKE_SECRET}, endpoint_url: "https://store"}
"""


@pytest.fixture
def specs(tmp_path) -> Path:
    (tmp_path / "orders.yaml").write_text(SPEC)
    (tmp_path / "odd.yaml").write_text(SMALL)
    return tmp_path


def expected(specs: Path, engine: str) -> dict[str, dict[str, str]]:
    """By table what the engine is told."""
    tables = load_specs([specs])
    found = {
        table.name: make_writer_options(table, WriterEngine(engine)).options for table in tables
    }
    return {name: {one.key: one.value for one in options} for name, options in found.items()}


@pytest.mark.parametrize("engine", list(WriterEngine))
def test_the_text_is_as_reviewed(engine, specs, capsys, golden):
    assert 0 == run("options", specs / "orders.yaml", "--for", engine)
    said = capsys.readouterr()

    assert golden.expected(GOLDENS / f"orders.{engine}", said.out) == said.out
    assert "" == said.err


def test_the_text_for_spark_is_python(specs, capsys):
    assert 0 == run("options", specs, "--for", "spark")

    (assigned,) = ast.parse(capsys.readouterr().out).body
    assert isinstance(assigned, ast.Assign)
    assert expected(specs, "spark") == ast.literal_eval(assigned.value)


def test_the_text_for_the_streamer_is_properties_and_flags(specs, capsys):
    assert 0 == run("options", specs / "orders.yaml", "--for", "streamer")
    lines = capsys.readouterr().out.splitlines()

    said = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    flags = dict(re.findall(r"(--[a-z-]+) (\S+)", "\n".join(x for x in lines if x[0] == "#")))
    rest = {key: flags[key] for key in flags if key in expected(specs, "streamer")["sales.orders"]}
    assert expected(specs, "streamer")["sales.orders"] == said | rest
    assert "hdfs://lake/sales/orders" == flags["--target-base-path"]


def test_the_text_for_sql_is_settings(specs, capsys):
    assert 0 == run("options", specs, "--for", "sql")
    lines = capsys.readouterr().out.splitlines()

    statements = [line for line in lines if line and not line.startswith("--")]
    assert all(re.fullmatch(r"SET [\w.]+=(`([^`]|``)+`|[\w./:,-]+);", line) for line in statements)
    said = {line[4:].split("=", 1)[0] for line in statements}
    made = {"type", "primaryKey", "preCombineField", "orderingFields"}
    made |= {"hoodie.datasource.write.hive_style_partitioning"}
    assert {key for table in expected(specs, "sql").values() for key in table} == said | made
    (name,) = (name for name in expected(specs, "sql") if name.startswith("it"))
    key = "hoodie.metadata.index.column.stats.column.list"
    quoted = expected(specs, "sql")[name][key].replace("`", "``")
    assert f"SET {key}=`{quoted}`;" in statements


def test_the_text_for_flink_quotes_as_sql_does(specs, capsys):
    assert 0 == run("options", specs, "--for", "flink", "--name", "it*")
    said = capsys.readouterr().out

    pairs = dict(re.findall(r"^  '((?:[^']|'')*)' = '((?:[^']|'')*)',?$", said, re.MULTILINE))
    unquoted = {key: value.replace("''", "'") for key, value in pairs.items()}
    (table,) = (t for name, t in expected(specs, "flink").items() if name.startswith("it"))
    assert table == unquoted
    assert not re.search(r",\s*\)", said), "no comma before the end"


@pytest.mark.parametrize("engine", list(WriterEngine))
def test_the_document_keeps_to_its_schema(engine, specs, capsys):
    assert 0 == run("options", specs, "--for", engine, "--format", "json", "-l", "team=core")
    found = json.loads(capsys.readouterr().out)

    jsonschema.validate(found, SCHEMA)
    assert engine == found["for"]
    assert 1 == found["selection"]["tables"]
    (table,) = found["tables"]
    assert ["1.0", "1.1", "1.2"] == table["hudi"]
    said = {option["key"]: option["value"] for option in table["options"]}
    assert expected(specs, engine)["sales.orders"] == said


@pytest.mark.parametrize("engine", [WriterEngine.STREAMER, WriterEngine.SQL, WriterEngine.FLINK])
def test_a_local_table_has_a_scheme_where_writers_have_another_default(engine, specs, capsys):
    (specs / "orders.yaml").write_text(SPEC.replace("hdfs://lake/sales/orders", "/lake/orders"))

    assert 0 == run("options", specs / "orders.yaml", "--for", engine)
    said = capsys.readouterr().out
    assert said.count("file:/lake/orders") == said.count("/lake/orders") == 2


def test_a_table_that_the_release_cannot_write_is_an_error_and_the_others_go_on(specs, capsys):
    assert 1 == run("options", specs, "--for", "spark", "--hudi", "0.15")
    said = capsys.readouterr()

    assert "sales.orders: Hudi 0.15 does not write tables of version 8 (table.version)" in said.err
    assert 1 == len(said.err.splitlines())
    assert "hoodie.metadata.enable" in said.out
    assert "sales.orders" not in said.out


def test_a_table_without_options_has_its_error_in_the_document(specs, capsys):
    code = run("options", specs, "--for", "spark", "--hudi", "0.15", "--format", "json")

    assert 1 == code
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, SCHEMA)
    assert [True, False] == [table["error"] is None for table in found["tables"]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing option '--for'"),
        (["--for", "hive"], "'hive' is not one of"),
        (["--for", "spark", "--hudi", "0.9"], "'0.9' is not one of"),
        (["--for", "spark", "--format", "yaml"], "'yaml' is not one of"),
        (["--for", "spark", "--name", "nobody"], "none of 2 tables matches the selectors"),
    ],
)
def test_a_wrong_command_line_exits_with_64_and_one_line(arguments, message, specs, capsys):
    assert 64 == run("options", specs, *arguments)
    said = capsys.readouterr()

    assert message in said.err
    assert "" == said.out
    assert "Traceback" not in said.err


def test_a_wrong_spec_is_named_with_its_line(specs, capsys):
    (specs / "orders.yaml").write_text(SPEC.replace("commits: 40", "comits: 40"))

    assert 1 == run("options", specs, "--for", "spark")
    said = capsys.readouterr()
    assert "orders.yaml:9:" in said.err
    assert "" == said.out


def test_no_credential_is_printed(specs, capsys, monkeypatch):
    monkeypatch.setenv("LAKE_SECRET", "hush-hush-hush")
    (specs / "environments").mkdir()
    (specs / "environments" / "prod.yaml").write_text(ENVIRONMENT)

    for engine in WriterEngine:
        for format in ("text", "json"):  # noqa: A001
            assert 0 == run("options", specs, "--for", engine, "--format", format, "--env", "prod")
            said = capsys.readouterr()
            assert "hush" not in said.out + said.err
            assert "https://store" not in said.out


PAGE = (ROOT / "docs" / "writers.md").read_text()
SHOWN = re.findall(r"```\n\$ reconciler (options .*)\n((?:.*\n)*?)```", PAGE)


@pytest.mark.parametrize(("command", "shown"), SHOWN, ids=[command for command, _ in SHOWN])
def test_the_page_shows_what_the_command_prints(command, shown, tmp_path, capsys, monkeypatch):
    (declared,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "orders.yaml").write_text(declared)
    monkeypatch.chdir(tmp_path)

    assert 0 == run(*command.split())
    printed = capsys.readouterr().out

    assert printed == shown or (shown.endswith("…\n") and printed.startswith(shown[:-2]))


def test_the_page_shows_every_engine():
    assert set(WriterEngine) == {command.split("--for ")[1].split()[0] for command, _ in SHOWN}


def test_the_page_names_every_rule_about_writers():
    source = (ROOT / "reconciler" / "status/writers.py").read_text()
    rules = set(re.findall(r'Note\(\s*"(\w+)"', source))

    assert rules
    assert rules == set(re.findall(r"^\| `(writers\w+)` \|", PAGE, re.MULTILINE))
