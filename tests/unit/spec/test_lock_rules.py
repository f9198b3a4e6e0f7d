"""Locks in a Hive Metastore: where the name and the URI come from."""

from __future__ import annotations

import pytest

import reconciler
from reconciler.errors import SpecError
from reconciler.spec.lock_rules import Metastore, complete_lock
from reconciler.spec.model import Lock
from reconciler.transaction.locks.declared_lock import find_declared_lock

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: orders}}
spec:
  path: /lake/orders
  retention: {{commits: 1}}
  concurrency: {{lock: {{provider: hivemetastore, table: sales.orders{uri}}}}}
"""
ENVIRONMENT = """\
apiVersion: reconciler/v1
kind: Environment
metadata: {name: prod}
spec:
  catalogs: {hive: {uri: "thrift://prod:9083"}}
"""


def load_lock(folder, *, uri="", env=None):
    (folder / ".git").mkdir()
    (folder / "environments").mkdir()
    (folder / "environments/prod.yaml").write_text(ENVIRONMENT)
    (folder / "orders.yaml").write_text(SPEC.format(uri=f", uri: {uri}" if uri else ""))
    (spec,) = reconciler.load_specs(folder / "orders.yaml", env=env)
    return spec.concurrency.lock


def test_the_environment_gives_the_metastore(tmp_path):
    assert load_lock(tmp_path, env="prod").uri == "thrift://prod:9083"


def test_the_uri_of_the_environment_counts_more_than_that_of_the_spec(tmp_path):
    assert load_lock(tmp_path, uri="thrift://test", env="prod").uri == "thrift://prod:9083"


def test_without_an_environment_that_of_the_spec_counts(tmp_path):
    assert load_lock(tmp_path, uri="thrift://test").uri == "thrift://test"


def test_a_lock_without_a_metastore_is_refused(tmp_path):
    with pytest.raises(SpecError, match=r"orders\.yaml:7:24: .* needs the URI of a metastore"):
        load_lock(tmp_path)


def test_the_catalog_names_the_table_of_a_lock_that_names_none():
    metastore = Metastore(table="sales.orders", uri="thrift://host:9083")

    lock = complete_lock(Lock(provider="hivemetastore"), metastore)
    assert (lock.table, lock.uri) == ("sales.orders", "thrift://host:9083")


def test_other_locks_take_nothing_from_a_metastore():
    lock = Lock(provider="storage")

    assert complete_lock(lock, Metastore(table="a.b", uri="thrift://host")) == lock


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_an_implicit_lock_has_its_place_from_the_location(tmp_path, scheme):
    text = SPEC.format(uri="").replace("/lake/orders", f"{scheme}://lake/orders")
    declared = '{provider: zookeeper, servers: "zk:2181", implicit: true}'
    text = text.replace("{provider: hivemetastore, table: sales.orders}", declared)
    (tmp_path / "orders.yaml").write_text(text)
    (spec,) = reconciler.load_specs(tmp_path / "orders.yaml")

    lock = find_declared_lock(spec)
    assert (lock.base_path, lock.key) == ("/tmp/9BBEA24B29C16651", "lock_key")
    assert "basePath" not in spec.document["concurrency"]["lock"]
