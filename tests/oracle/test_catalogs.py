"""Tables of real catalogs: found, planned, applied, and their partitions synced."""

from __future__ import annotations

import json
import re
from contextlib import closing

import pytest

import reconciler
from reconciler import runtime
from reconciler.spec.model import CatalogTable, FromEnv
from reconciler.state.catalogs.api import CatalogPartition
from tests.command import run
from tests.crash.drill import CASES, NOW, make_drill
from tests.oracle.catalog_servers import GlueServer, HiveServer

#: a clean removes its partition a, and b stays
TABLE = CASES / "cow_mdt_delete_partition__1.2.0" / "table.zip"
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: {name}}}
spec:
  {place}
  timezone: UTC
  retention: {{commits: 1}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""
ENVIRONMENT = """\
apiVersion: reconciler/v1
kind: Environment
metadata: {{name: prod}}
spec:
  catalogs: {catalogs}
"""


@pytest.fixture(scope="module", params=[HiveServer, GlueServer], ids=["hive", "glue"])
def server(request, tmp_path_factory):
    with request.param.start(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def project(server, tmp_path, monkeypatch):
    """A folder with an environment for the server; it is the current folder."""
    monkeypatch.setenv("GLUE_KEY", "k")
    monkeypatch.setenv("GLUE_SECRET", "very-secret")
    access = {"options": server.options} | ({"uri": server.uri} if server.uri else {})
    (tmp_path / ".git").mkdir()
    (tmp_path / "environments").mkdir()
    catalogs = json.dumps({server.type: access})
    (tmp_path / "environments/prod.yaml").write_text(ENVIRONMENT.format(catalogs=catalogs))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def open_client(server):
    options = {
        key: FromEnv(variable=value["fromEnv"]) if isinstance(value, dict) else value
        for key, value in server.options.items()
    }
    table = CatalogTable(type=server.type, name="", uri=server.uri, options=options)
    return closing(runtime.open_catalog(table))


def list_values(server, name):
    with open_client(server) as client:
        return sorted(partition.values for partition in client.list_partitions(name))


def load(text, folder, name="spec.yaml"):
    (folder / name).write_text(text)
    (spec,) = reconciler.load_specs(folder / name, env="prod")
    return spec


@pytest.mark.oracle
def test_a_table_of_a_catalog_is_adopted_planned_and_synced(server, project, capsys):
    drill = make_drill(TABLE, project / "lake", retention="commits: 1")
    for side_file in drill.table.rglob("*.crc"):
        side_file.unlink()
    home = f"file:{drill.table}"
    server.create_table("sales.orders", home, ["p"])
    server.create_table("sales.logs", f"file:{project}/logs", is_hudi=False)
    with open_client(server) as client:
        known = [CatalogPartition((name,), f"{home}/{name}") for name in ("a", "b", "stray")]
        client.add_partitions("sales.orders", known)
        client.add_partitions("sales.orders", known[:1])  # is left as it is

    specs = project / "specs"
    specs.mkdir()
    find = ("init", "--from", f"{server.address}/sales*", "-o", specs, "--env", "prod")
    assert 0 == run(*find)
    text = (specs / "sales.orders.yaml").read_text()
    assert f'  catalog: {{type: {server.type}, name: "sales.orders"' in text
    assert "  path:" not in text
    assert "1 table skipped: not Hudi's" in capsys.readouterr().err
    assert 0 == run(*find)
    assert "already declared" in capsys.readouterr().err
    assert 0 == run("lint", specs, "--env", "prod")

    place = f"catalog: {{type: {server.type}, name: sales.orders}}"
    spec = load(SPEC.format(name="orders", place=place), project)
    assert str(drill.table) == spec.path
    plan = reconciler.plan([spec], now=NOW)
    assert "very-secret" not in str(plan.tables[0].spec)
    result = drill.apply(plan, specs=[spec], open_catalog=runtime.open_catalog)

    assert (0, ()) == (result.exit_code, result.tables[0].warnings)
    assert ("a",) == result.tables[0].outcomes[0].partitions_removed
    assert [("b",), ("stray",)] == list_values(server, "sales.orders")

    with open_client(server) as client:
        client.drop_partitions("sales.orders", [("b",), ("never there",)])
    capsys.readouterr()
    assert 0 == run("sync", "spec.yaml", "--env", "prod")
    assert "partitions: 1 added, 1 dropped" in capsys.readouterr().out
    assert [("b",)] == list_values(server, "sales.orders")

    (project / "other.yaml").write_text(SPEC.format(name="other", place=f"path: {drill.table}"))
    assert 1 == run("plan", "spec.yaml", "other.yaml", "--env", "prod")
    assert "is already declared" in capsys.readouterr().err


@pytest.mark.oracle
def test_a_catalog_without_the_table_or_out_of_reach_is_one_clear_error(server, project, capsys):
    place = f"catalog: {{type: {server.type}, name: sales.none}}"
    (project / "spec.yaml").write_text(SPEC.format(name="none", place=place))

    assert 1 == run("plan", "spec.yaml", "--env", "prod")
    assert "has no table sales.none; check type, name and uri" in capsys.readouterr().err
    assert 0 == run("lint", "spec.yaml")

    text = (project / "environments/prod.yaml").read_text().replace("prod", "gone")
    moved = re.sub(r"127\.0\.0\.1:[0-9]+", "127.0.0.1:1", text)
    (project / "environments/gone.yaml").write_text(moved)
    assert 1 == run("plan", "spec.yaml", "--env", "gone")
    problem = capsys.readouterr().err
    assert "Traceback" not in problem
    assert "127.0.0.1:1" in problem


ODD_VALUES = ("a b", "x=y", "a/b", "a%2Fb", "50%", "ü", "e\u0301", "it's", 'q"', "a:b", "#", "A")


class CountingClient:
    """Passes calls on and records their names."""

    def __init__(self, client):
        self._client, self.calls = client, []

    def __getattr__(self, name):
        self.calls.append(name)
        return getattr(self._client, name)


@pytest.mark.oracle
def test_partitions_of_any_name_are_added_and_dropped_in_few_requests(server, project):
    name = f"odd.{server.type}"
    home = project / "lake"
    server.create_table(name, f"file:{home}", ["p"])
    made = {CatalogPartition((one,), f"file:{home}/{at}") for at, one in enumerate(ODD_VALUES)}
    with open_client(server) as client:
        client.add_partitions(name, made)
        assert made == set(client.list_partitions(name))

        counting = client._client = CountingClient(client._client)
        client.drop_partitions(name, [partition.values for partition in made])
        client._client = counting._client
        assert [] == client.list_partitions(name)
    assert len(counting.calls) <= 4


@pytest.fixture(scope="module")
def metastore(tmp_path_factory):
    with HiveServer.start(tmp_path_factory.mktemp("metastore")) as running:
        yield running


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("style", "encoded", "is_merged"),
    [
        ("true", "true", True),
        pytest.param("false", "false", False, marks=pytest.mark.long),
        pytest.param("false", "true", False, marks=pytest.mark.long),
    ],
)
def test_partitions_are_those_that_real_hudi_lists(
    style, encoded, is_merged, metastore, real_hudi, tmp_path
):
    hudi = real_hudi("1.2.0")
    table = hudi.table(
        tmp_path / "t",
        merge_on_read=is_merged,
        options={
            "hoodie.datasource.hive_sync.enable": "true",
            "hoodie.datasource.hive_sync.mode": "hms",
            "hoodie.datasource.hive_sync.metastore.uris": metastore.uri,
            "hoodie.datasource.hive_sync.database": "hudi",
            "hoodie.datasource.hive_sync.table": f"t_{style}_{encoded}",
            "hoodie.datasource.hive_sync.partition_fields": "p",
            "hoodie.datasource.write.hive_style_partitioning": style,
            "hoodie.datasource.write.partitionpath.urlencode": encoded,
        },
    )
    names = ("a", "b c", "x:y") if encoded == "true" else ("a", "b", "c")
    hudi.write(table, [(str(number), name, 1) for number, name in enumerate(names)])
    with open_client(metastore) as client:
        names = client.list_tables("hudi", f"t_{style}_{encoded}*")
        expected = {name: set(client.list_partitions(name)) for name in names}
        for name in names:
            client.drop_partitions(name, [one.values for one in expected[name]])
    place = f"catalog: {{type: hive, name: {names[0]}, uri: '{metastore.uri}'}}"
    (tmp_path / "spec.yaml").write_text(SPEC.format(name="t", place=place))
    (spec,) = reconciler.load_specs(tmp_path / "spec.yaml")
    done = reconciler.sync(spec)

    assert (3 * len(names), 0) == (done.added, done.dropped)
    with open_client(metastore) as client:
        assert expected == {name: set(client.list_partitions(name)) for name in names}
