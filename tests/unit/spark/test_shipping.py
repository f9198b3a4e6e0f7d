# ruff: noqa: N802 (the names of PySpark)
from __future__ import annotations

from types import SimpleNamespace

import pytest

from reconciler.errors import ReconcilerError
from reconciler.spark import shipping
from reconciler.spark.shipping import listen_to_shipments, send_packages, wants_shipping
from tests.unit.spark.packages import install


class Context:
    """A SparkContext that takes archives."""

    def __init__(self, ship="true", **environment):
        self.environment, self.archives, self._ship = environment, [], ship

    def getConf(self):
        return {} if self._ship is None else {"spark.reconciler.ship": self._ship}

    def addArchive(self, path):
        self.archives.append(path)


class Listener:
    def __init__(self, cache):
        self.cache, self.heard = cache, []

    def report_packing(self, packages):
        self.heard.append(("packing", packages))

    def report_sending(self, shipment):
        assert shipment.bytes > 100
        self.heard.append(("sending", shipment.packages, shipment.was_packed))

    def report_arrival(self):
        self.heard.append(("arrived",))


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setattr(shipping, "_COMMON", ("one", "two"))
    (tmp_path / "session").mkdir()
    files = SimpleNamespace(getRootDirectory=lambda: str(tmp_path / "session"))
    monkeypatch.setattr("pyspark.SparkFiles", files)
    install(tmp_path / "site", "one", {"one.py": ""})
    install(tmp_path / "site", "two", {"two.py": ""})
    install(tmp_path / "site", "client", {"client.py": ""}, requires=["one"])
    return tmp_path


@pytest.mark.parametrize(
    ("text", "expected"), [("true", True), ("TRUE", True), ("false", False), (None, False)]
)
def test_a_session_says_whether_packages_are_sent(text, expected):
    assert expected is wants_shipping(Context(text))


def test_another_text_of_the_setting_is_an_error():
    with pytest.raises(ReconcilerError, match=r"spark\.reconciler\.ship=yes: write true or false"):
        wants_shipping(Context("yes"))


def test_common_packages_go_together_and_each_goes_once(site):
    context, listener = Context(), Listener(site / "cache")
    with listen_to_shipments(listener):
        send_packages(context, ["one"])
        send_packages(context, ["two"])
        send_packages(context, ["one", "client"])

    assert [
        ("packing", ("one", "two")),
        ("sending", ("one", "two"), False),
        ("packing", ("client",)),
        ("sending", ("client",), False),
    ] == listener.heard
    first, second = (path.rpartition("/")[2] for path in context.archives)
    assert f"./{second}:./{first}" == context.environment["PYTHONPATH"]


def test_a_package_outside_the_common_ones_brings_only_what_it_requires(site):
    listener = Listener(site / "cache")
    with listen_to_shipments(listener):
        send_packages(Context(), ["client"])

    assert ("sending", ("client", "one"), False) == listener.heard[-1]


def test_a_later_session_sends_what_an_earlier_one_packed(site):
    listener = Listener(site / "cache")
    contexts = [Context(), Context()]
    with listen_to_shipments(listener):
        for context in contexts:
            send_packages(context, ["one"])

    assert ["packing", "sending", "sending"] == [heard[0] for heard in listener.heard]
    assert listener.heard[-1][2]
    assert contexts[0].archives == contexts[1].archives


def test_the_path_that_the_user_gave_to_workers_stays(site):
    context = Context(PYTHONPATH="/opt/mine")
    with listen_to_shipments(Listener(site / "cache")):
        send_packages(context, ["one"])

    assert context.environment["PYTHONPATH"].endswith(".zip:/opt/mine")


def test_without_a_cache_the_archive_is_in_the_folder_of_the_session(site):
    context = Context()
    send_packages(context, ["one"])

    # Spark unpacks it on the driver as session/NAME, whatever is there
    folder = (site / "session" / "packages").as_uri()
    assert [folder] == [path.rpartition("/")[0] for path in context.archives]
