"""--env on the commands: tables in a store that wants a credential; no JVM."""

from __future__ import annotations

import json
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem

from reconciler import api
from reconciler.cli import run_apply
from reconciler.cli.environment import find_spark_options
from reconciler.cli.options import SparkSettings
from reconciler.errors import SpecError
from reconciler.plans.document import load_plan
from tests.command import run
from tests.trees import unpack

TABLE = Path(__file__).parents[2] / "cases" / "clean" / "cow_basic__1.2.0" / "table.zip"
SECRET = "hunter2-and-more"
NOW = ("--now", "2026-11-22T00:00:00+00:00")
HEAD = "apiVersion: reconciler/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec:\n"
SPEC = "  retention: {commits: 2}\n  concurrency: {lock: {provider: none}}\n"
ENVIRONMENT = """\
  pattern: vault:/{lake}/{{name}}
  timezone: UTC
  storageOptions:
    region: eu
    secret: {{fromEnv: LAKE_SECRET}}
  spark:
    master: local[3]
    conf:
      spark.executor.memory: 2g
      spark.x.token: {{fromEnv: LAKE_SECRET}}
"""


class Vault(LocalFileSystem):
    """Local files for those who know the secret; whoever does not is told what they said."""

    protocol = "vault"

    def __init__(self, region: str, secret: str, **more: object) -> None:
        super().__init__(**more)
        self.refusal = None if (region, secret) == ("eu", SECRET) else f"{secret} is no key"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return f"/{path.removeprefix('vault://').strip('/')}"

    def cat_file(self, *where: object, **range_: object) -> bytes:
        if self.refusal is not None:
            raise PermissionError(self.refusal)
        found: bytes = super().cat_file(*where, **range_)
        return found


@pytest.fixture(scope="module")
def lake(tmp_path_factory) -> Path:
    """Two tables; nothing here writes to them."""
    folder = tmp_path_factory.mktemp("lake")
    for name in ("sales.orders", "web.clicks"):
        unpack(TABLE, folder / name)
    return folder


@pytest.fixture(autouse=True)
def repo(tmp_path, monkeypatch, lake) -> Path:
    fsspec.register_implementation("vault", Vault, clobber=True)
    root = tmp_path / "repo"
    for folder in (".git", "specs", "environments"):
        (root / folder).mkdir(parents=True)
    for name in ("sales.orders", "web.clicks"):
        spec = HEAD.format(kind="HudiTable", name=name) + SPEC
        (root / "specs" / f"{name}.yaml").write_text(spec)
    head = HEAD.format(kind="Environment", name="prod")
    (root / "environments/prod.yaml").write_text(head + ENVIRONMENT.format(lake=lake))
    monkeypatch.chdir(root)
    monkeypatch.setenv("LAKE_SECRET", SECRET)
    return root


def planned() -> Path:
    assert run("plan", "specs", "--env", "prod", "-o", "plan.json", *NOW) == 0
    return Path("plan.json")


def test_a_plan_names_places_and_variables_and_never_a_secret(lake, capsys):
    document = json.loads(planned().read_text())
    said = capsys.readouterr()

    assert [f"vault:/{lake}/{name}" for name in ("sales.orders", "web.clicks")] == [
        table["path"] for table in document["tables"]
    ]
    assert [4, 4] == [table["impact"]["filesRemoved"] for table in document["tables"]]
    assert {"region": "eu", "secret": {"fromEnv": "LAKE_SECRET"}} == document["tables"][0]["spec"][
        "storageOptions"
    ]
    assert SECRET not in Path("plan.json").read_text() + said.out + said.err


@pytest.mark.parametrize(
    "command",
    [
        ("plan", "--format", "text", "--full"),
        ("plan", "--format", "json"),
        ("plan", "--format", "markdown"),
        ("status", "--format", "json"),
        ("status",),
        ("--debug", "plan"),
        ("lint",),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("secret", [SECRET, "wrong-secret"])
def test_no_command_says_a_secret(command, secret, monkeypatch, capsys):
    monkeypatch.setenv("LAKE_SECRET", secret)

    run(*command, "specs", "--env", "prod")

    said = capsys.readouterr()
    assert "sales.orders" in said.out + said.err or command == ("lint",)
    assert secret not in said.out + said.err


def test_what_a_store_says_of_a_secret_is_blotted_out_in_the_plan(monkeypatch, capsys):
    monkeypatch.setenv("LAKE_SECRET", "wrong-secret")

    assert run("plan", "specs", "--env", "prod", "--format", "json") == 1

    [error, _] = [table["error"] for table in json.loads(capsys.readouterr().out)["tables"]]
    assert error.endswith("/sales.orders/.hoodie/hoodie.properties: *** is no key")


@pytest.mark.parametrize("command", ["plan", "status"])
def test_a_variable_that_is_not_set_is_one_error(command, monkeypatch, capsys):
    monkeypatch.delenv("LAKE_SECRET")

    assert run(command, "specs", "--env", "prod") == 1
    assert (
        "error: environments/prod.yaml:9:5: spec.storageOptions.secret: "
        "the variable LAKE_SECRET is not set; set it where reconciler runs\n"
    ) == capsys.readouterr().err


def test_lint_needs_no_variable(monkeypatch, capsys):
    monkeypatch.delenv("LAKE_SECRET")

    assert run("lint", "specs") == 0
    assert run("lint", "specs", "--env", "prod") == 0
    assert run("lint", ".") == 0
    assert capsys.readouterr().out == "2 tables, no problems\n" * 3


def test_a_plan_alone_knows_how_tables_are_reached(monkeypatch, capsys):
    plan = load_plan(planned().read_bytes(), "plan.json")
    capsys.readouterr()
    monkeypatch.delenv("LAKE_SECRET")

    with pytest.raises(SpecError) as caught:
        run_apply.run_apply(plan, run_apply.ApplyRun())

    assert (
        "plan of sales.orders: spec.storageOptions.secret: "
        "the variable LAKE_SECRET is not set; set it where reconciler runs"
    ) == str(caught.value)


def test_specs_in_another_environment_are_not_the_reviewed_ones(capsys):
    file = planned()
    other = Path("environments/prod.yaml").read_text().replace("name: prod", "name: dev")
    Path("environments/dev.yaml").write_text(other.replace("region: eu", "region: us"))
    capsys.readouterr()

    assert run("apply", file, "--specs", "specs", "--env", "dev") == 4
    assert "the spec of sales.orders is no longer the reviewed one" in capsys.readouterr().out


def test_without_an_environment_a_command_says_which_there_are(capsys):
    assert run("plan", "specs/sales.orders.yaml") == 1
    assert (
        "error: specs/sales.orders.yaml:5:3: spec.path: is missing: the table has no path; "
        "select an environment: --env prod\n"
    ) == capsys.readouterr().err


def test_unlock_finds_the_table_in_its_environment(lake, capsys):
    spec = Path("specs/sales.orders.yaml")
    spec.write_text(spec.read_text().replace("provider: none", "provider: filesystem"))

    assert run("unlock", spec, "--env", "prod") == 0
    assert capsys.readouterr().out == (
        f"sales.orders: not locked (vault:/{lake}/sales.orders/.hoodie/lock does not exist)\n"
    )


def test_the_package_loads_specs_in_an_environment(lake):
    by_name = api.load_specs("specs", env="prod")
    by_file = api.load_specs("specs", env=Path("environments/prod.yaml"))

    assert f"vault:/{lake}/sales.orders" == by_name[0].path
    assert by_name == by_file


def test_the_command_line_wins_over_what_an_environment_says_of_spark():
    theirs = {"spark.executor.memory": "2g", "spark.x.token": SECRET}
    secret = frozenset({"spark.x.token"})

    found = find_spark_options("prod", [Path("specs")], SparkSettings())
    assert SparkSettings(master="local[3]", conf=theirs, from_variables=secret) == found
    given = SparkSettings(master="yarn", conf={"spark.executor.memory": "9g"})
    assert SparkSettings(
        master="yarn", conf={**theirs, "spark.executor.memory": "9g"}, from_variables=secret
    ) == find_spark_options("prod", [Path()], given)
    alone = SparkSettings(conf={"spark.a": "b"})
    assert alone == find_spark_options(None, [], alone)


S3_ENVIRONMENT = """\
  storageOptions:
    endpoint_url: http://store:9000
    key: {fromEnv: LAKE_KEY}
    secret: {fromEnv: LAKE_SECRET}
    client_kwargs: '{"region_name": "eu-central-1"}'
    retryFor: 60s
  spark:
    conf: {spark.hadoop.fs.s3a.endpoint: "http://inside:9000"}
"""


def test_spark_gets_the_s3_of_the_storage_options(tmp_path, monkeypatch):
    monkeypatch.setenv("LAKE_KEY", "ann")
    monkeypatch.setenv("LAKE_SECRET", SECRET)
    (tmp_path / ".git").mkdir()
    (tmp_path / "environments").mkdir()
    text = HEAD.format(kind="Environment", name="prod") + S3_ENVIRONMENT
    (tmp_path / "environments" / "prod.yaml").write_text(text)
    prefix = "spark.hadoop.fs.s3a"
    given = SparkSettings(conf={f"{prefix}.path.style.access": "false"})
    made = find_spark_options("prod", [tmp_path], given)

    assert made.conf == {
        f"{prefix}.access.key": "ann",
        f"{prefix}.secret.key": SECRET,
        f"{prefix}.endpoint": "http://inside:9000",  # Spark's own settings count more
        f"{prefix}.endpoint.region": "eu-central-1",
        f"{prefix}.path.style.access": "false",  # and those of the command line most
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    }
    assert made.from_variables == {f"{prefix}.access.key", f"{prefix}.secret.key"}
    assert SECRET not in repr(made)


def test_spark_gets_the_store_that_a_command_reads_and_no_other(tmp_path, monkeypatch):
    monkeypatch.setenv("LAKE_CONNECTION", f"AccountName=lake;AccountKey={SECRET}")
    (tmp_path / ".git").mkdir()
    (tmp_path / "environments").mkdir()
    options = "  storageOptions: {connection_string: {fromEnv: LAKE_CONNECTION}, project: p}\n"
    text = HEAD.format(kind="Environment", name="prod") + options
    (tmp_path / "environments" / "prod.yaml").write_text(text)

    def find(*locations):
        return find_spark_options("prod", [tmp_path], SparkSettings(), locations)

    azure = find("abfss://box@lake.dfs.core.windows.net/t", "/local")
    host = "lake.dfs.core.windows.net"
    assert azure.conf == {
        f"spark.hadoop.fs.azure.account.auth.type.{host}": "SharedKey",
        f"spark.hadoop.fs.azure.account.key.{host}": SECRET,
    }
    assert azure.from_variables == azure.conf.keys()
    assert find("gs://lake/t").conf["spark.hadoop.fs.gs.project.id"] == "p"
    assert find("/local").conf == {}
    alone = find_spark_options(None, [], SparkSettings(), ["s3a://lake/t"])
    assert alone.conf == {"spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"}
