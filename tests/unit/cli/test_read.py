"""``reconciler read`` without Spark: what cannot be, and explanations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.cli import app, executor_choice, run_read
from reconciler.errors import ReconcilerError
from tests.trees import unpack

TABLES = Path(__file__).parents[2] / "tables"
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: sales.orders}
spec:
  path: v8_mor_part
  timezone: America/New_York
  retention: {commits: 2}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("read")
    unpack(TABLES / "v8_mor_part.zip", made)
    (made / "orders.yaml").write_text(SPEC)
    return made


def run(*arguments: object) -> int:
    return app.run([str(argument) for argument in arguments])


def test_a_read_is_explained_without_spark(folder, capsys):
    assert 0 == run("read", folder / "v8_mor_part", "--explain", "--columns", "id,p")
    out, err = capsys.readouterr()

    assert "" == err
    assert (
        f"{folder}/v8_mor_part\n"
        "  snapshot, as of 20261121050604109\n"
        "  columns  id bigint, p string\n"
        "  partitions  3 of 3 partitions read\n"
        "  files  4 base files (439.0 KiB), 6 log files (6.8 KiB)\n"
        "  by Spark's reader  1 slice\n"
        "  through Python  3 slices\n"
        "      3 slices: log files are merged with the base file\n"
        "  merging  3 slices: 3 base files (434.6 KiB, 22 rows) with 6 log files\n"
        "      (6.8 KiB, 12 rows), read whole\n"
    ) == out.replace("v8_mor_part  snapshot", "v8_mor_part\n  snapshot")  # if the path is short


def test_a_table_may_be_named_by_its_spec(folder, capsys):
    arguments = ("--specs", folder, "--explain", "--format", "json", "--read-optimized")
    assert 0 == run("read", "sales.orders", *arguments)
    found = json.loads(capsys.readouterr().out)

    assert str(folder / "v8_mor_part") == found["table"]
    assert ("readOptimized", 4, 0) == (found["kind"], found["directSlices"], found["logFiles"])


def test_an_offset_is_told_by_the_zone_of_the_spec(folder, capsys):
    arguments = ("--specs", folder, "--explain", "--format", "json")
    # 05:06:04.109 of the timeline is New York's
    assert 0 == run("read", "sales.orders", *arguments, "--as-of", "2026-11-21T11:06:05+01:00")
    assert "20261121050604109" == json.loads(capsys.readouterr().out)["asOf"]

    path = folder / "v8_mor_part"
    assert 64 == run("read", path, "--explain", "--as-of", "2026-11-21T11:06:05+01:00")
    assert "does not declare the zone of its timeline" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--env", "prod"], 1, "prod"),  # an environment that is not there
        (["--explain", "--format", "csv"], 64, "choose text or json"),
        (["--format", "parquet"], 64, "parquet"),
        (["--limit", "-1"], 64, "--limit"),
        (["--spark-conf", "x=y"], 64, "--spark-conf x: write it as spark.some.key=value"),
        (["--columns", "id,,p"], 64, "a name is empty"),
        (["--columns", "id,id"], 64, "columns: id is named twice"),
        (["--columns", "nosuch"], 64, "has no column 'nosuch'"),
        (["--as-of", "yesterday"], 64, "as of 'yesterday': not a valid instant or time"),
        (["--as-of", "20200101000000"], 3, "20261121"),
        (["--incremental", "000"], 64, "write it as BEGIN..END"),
        (["--incremental", "..2026"], 64, "write it as BEGIN..END"),
        (["--incremental", "000..", "--as-of", "2026-01-01"], 64, "give one of them"),
        (["--incremental", "000..", "--read-optimized"], 64, "give one of them"),
        (["--incremental", "soon.."], 64, "begin 'soon': not a valid instant or time"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line_before_spark_starts(
    folder, arguments, code, said, capsys
):
    assert code == run("read", folder / "v8_mor_part", *arguments)
    out, err = capsys.readouterr()

    assert "" == out
    assert 1 == len(err.splitlines())
    assert said in err


def test_a_path_without_a_table_and_a_name_without_a_spec_are_errors(folder, capsys):
    assert 1 == run("read", folder / "nothing")
    assert "no Hudi table here" in capsys.readouterr().err
    assert 64 == run("read", "sales.order", "--specs", folder)
    assert (
        "no spec is named sales.order (1 spec found); did you mean sales.orders?"
        in capsys.readouterr().err
    )


def test_a_condition_on_values_is_explained_without_spark(folder, capsys, monkeypatch):
    monkeypatch.setattr(run_read, "open_spark_session", lambda *_, **__: pytest.fail("Spark"))
    monkeypatch.setattr(run_read, "has_active_session", lambda: False)
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)
    where = "p = 'nowhere' AND id > 3"

    assert 0 == run("read", folder / "v8_mor_part", "--explain", "--where", where, "--format=json")
    said = json.loads(capsys.readouterr().out)
    assert (where, 0) == (said["where"], said["keptPartitions"])
    assert said["partitions"] > 0


@pytest.mark.parametrize(
    ("where", "options", "why"),
    [
        (
            "hash(p) = 1", ("--executor", "spark"),
            "the condition is more than comparisons of columns with values of their type",
        ),
        (
            "p = 'a'", ("--spark-conf", "spark.sql.ansi.enabled=true"),
            "the setting spark.sql.ansi.enabled configures Spark SQL",
        ),
    ],
)  # fmt: skip
def test_where_spark_must_interpret_a_condition_the_reason_is_given(
    where, options, why, folder, capsys, monkeypatch
):
    def stop(*_, **__):
        raise ReconcilerError("here Spark would start")

    monkeypatch.setattr(run_read, "open_spark_session", stop)
    monkeypatch.setattr(run_read, "has_active_session", lambda: False)

    assert 1 == run("read", folder / "v8_mor_part", "--explain", "--where", where, *options)
    assert f"Spark interprets the condition: {why}" in capsys.readouterr().err


@pytest.mark.parametrize("options", [(), ("--explain",)])
def test_a_condition_that_spark_cannot_parse_is_refused_before_spark_starts(
    options, folder, capsys, monkeypatch
):
    monkeypatch.setattr(run_read, "open_spark_session", lambda *_, **__: pytest.fail("Spark"))

    assert 64 == run("read", folder / "v8_mor_part", "--where", "customer_id = = 42", *options)
    assert (
        "--where: 'customer_id = = 42' is not an SQL condition: unexpected = at character 15\n"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("where", "options"),
    [
        ("hash(p) = 1 AS chosen", ()),
        ("hash(p) = 1", ()),
        ("p = 'a'", ("--executor", "spark")),
        ("p = = 'a'", ("--spark-conf", "spark.sql.extensions=their.Parser")),
    ],
)
def test_a_condition_that_some_session_takes_reaches_spark(
    where, options, folder, capsys, monkeypatch
):
    def stop(*_, **__):
        raise ReconcilerError("here Spark would start")

    monkeypatch.setattr(run_read, "open_spark_session", stop)

    assert 1 == run("read", folder / "v8_mor_part", "--where", where, *options)
    assert "here Spark would start" in capsys.readouterr().err


@pytest.fixture
def no_spark(monkeypatch):
    """Fail where Spark would start; nothing on this machine configures it, and there is no Java."""
    monkeypatch.setattr(run_read, "open_spark_session", lambda *_, **__: pytest.fail("Spark"))
    monkeypatch.setattr(run_read, "is_spark_running", lambda: False)
    monkeypatch.setattr(executor_choice, "is_spark_running", lambda: False)
    monkeypatch.setenv("PATH", "/nowhere")
    for name in ("JAVA_HOME", "SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_spark")
def test_rows_of_few_files_are_printed_without_java(folder, capsys):
    table = folder / "v8_mor_part"
    assert 0 == run("read", table, "--columns", "id,p", "--where", "id < 3", "--format", "json")
    out, err = capsys.readouterr()
    rows = sorted(map(json.loads, out.splitlines()), key=lambda row: row["id"])
    assert rows
    assert {"id", "p"} == set(rows[0])
    assert all(row["id"] < 3 for row in rows)
    assert err.startswith("in this process: ")
    assert "to read, below 256.0 MiB; --executor spark to use Spark\n" in err

    assert 0 == run("read", table, "--columns", "id", "--format", "csv", "--limit", "2")
    out, err = capsys.readouterr()
    assert ["id", 3] == [out.splitlines()[0], len(out.splitlines())]
    assert "in this process: 2 rows of 4 file slices; --executor spark to use Spark\n" == err

    assert 0 == run("read", table, "--limit", "0", "--executor", "local")
    assert capsys.readouterr().err.startswith("showing no row; use --limit N for more rows")

    assert 0 == run("read", table, "--columns", "id", "--limit", "1", "--executor", "local")
    out, err = capsys.readouterr()
    assert 3 == len(out.splitlines())
    assert (
        "showing the first 1 row; use --limit N for more rows, or --format csv or json for all\n"
        == err
    )


@pytest.mark.usefixtures("no_spark")
def test_an_explanation_never_starts_java(folder, capsys):
    for where in ("id = 1", "hash(p) = 1", "cast(id as string) = '1' and p = 'p1'"):
        assert 0 == run("read", folder / "v8_mor_part", "--explain", "--where", where)
        assert "Spark" not in capsys.readouterr().err


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--where", "hash(p) = 1", "--executor", "local"),
            "executor local: only Spark can do this: the condition is more than comparisons",
        ),
        (("--where", "idd = 1"), "--where: the table has no column 'idd'; did you mean 'id'?"),
        (("--where", "idd = 1", "--explain"), "--where: the table has no column 'idd'"),
        (
            ("--executor", "local", "--spark-conf", "spark.a=b"),
            "--executor local and --spark-conf contradict each other; give one of them",
        ),
    ],
)
def test_what_cannot_be_done_without_spark_is_said(arguments, said, folder, capsys):
    assert 64 == run("read", folder / "v8_mor_part", *arguments)
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("how", ["SPARK_CONF_DIR", "SPARK_HOME", "PYSPARK_SUBMIT_ARGS", "other"])
@pytest.mark.usefixtures("no_spark")
def test_a_spark_that_is_configured_prints_rows_in_its_own_way(
    how, folder, tmp_path, capsys, monkeypatch
):
    def stop(*_, **__):
        raise ReconcilerError("here Spark would start")

    monkeypatch.setattr(run_read, "open_spark_session", stop)
    setting = "spark.sql.ansi.enabled true" if how != "other" else "spark.executor.memory 1g"
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(f"{setting}\n")
    if how == "PYSPARK_SUBMIT_ARGS":
        monkeypatch.setenv(how, f"--conf {setting} pyspark-shell")
    else:
        folder_of_it = tmp_path if how == "SPARK_HOME" else conf
        monkeypatch.setenv(how if how != "other" else "SPARK_CONF_DIR", str(folder_of_it))

    assert int(how != "other") == run("read", folder / "v8_mor_part", "--format", "csv")
    assert ("on Spark: " in capsys.readouterr().err) == (how != "other")
