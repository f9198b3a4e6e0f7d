"""Fixtures for every test that needs real Hudi or Spark; loaded by the conftest at the root."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.oracle.bundles import VERSIONS, BundleUnavailableError, bundle, java
from tests.oracle.hudi import RealHudi
from tests.oracle.prepared_tables import PreparedTables

#: modules of many tests that take half a second each
SHORT = ("test_read", "test_hand_made_clean_plans")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order tests by the Hudi that they start: first none, then version after version.

    A worker that takes a stretch of this order (``--dist worksteal``) starts the JVMs of one or two
    versions, and not one of each. Tests that take half a second come last in their version: the two
    workers end together if what is left to share is small.
    """
    items.sort(key=lambda item: (_release(item), item.path.stem in SHORT))


def _release(item: pytest.Item) -> int:
    """The place of a test in that order; a test that starts two is ordered by its parameters."""
    if not item.get_closest_marker("oracle") or "cluster" in getattr(item, "fixturenames", ()):
        return -1  # a cluster starts more processes than a Hudi, and its module keeps it running
    callspec = getattr(item, "callspec", None)
    values = callspec.params.values() if callspec else ()
    named = (getattr(value, "version", value) for value in values)
    found = [VERSIONS.index(value) for value in named if value in VERSIONS]
    return found[0] if found else len(VERSIONS) - 1


@pytest.fixture(scope="session")
def real_hudi() -> Iterator[Callable[[str], RealHudi]]:
    """``real_hudi("1.2.0")``: real Hudi of that version, one JVM for the whole run.

    Where the bundle can't be had the test is skipped with the reason; with CI=true it fails.
    """
    running: dict[str, RealHudi] = {}

    def of(version: str) -> RealHudi:
        if version not in running:
            _require(version)
            running[version] = RealHudi(version)
        return running[version]

    yield of
    for hudi in running.values():
        hudi.close()


@pytest.fixture(scope="session")
def library(
    real_hudi: Callable[[str], RealHudi], tmp_path_factory: pytest.TempPathFactory
) -> PreparedTables:
    """``library.table(kind, path)``: a copy of a table that real Hudi made; see stories."""
    return PreparedTables(real_hudi, tmp_path_factory.mktemp("library"))


class Sessions:
    """Spark sessions without any Hudi, as an apply has them; a process can hold one at a time."""

    def __init__(self) -> None:
        self._running = ExitStack()
        self._held: tuple[str, dict[str, str], SparkSession] | None = None

    def with_conf(self, master: str = "local[2]", **conf: str) -> SparkSession:
        """One of just these settings, dots written as underscores; it runs until another is asked.

        A test must not find the session of whatever test came before it on this process.
        """
        from reconciler.cli.spark import open_spark_session  # noqa: PLC0415 - heavy, and few need it

        settings = {f"spark.{key.replace('_', '.')}": value for key, value in conf.items()}
        settings["spark.driver.extraJavaOptions"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        if self._held is None or self._held[:2] != (master, settings):
            self.stop()
            session = self._running.enter_context(open_spark_session(master, settings))
            self._held = master, settings, session
        return self._held[2]

    def stop(self) -> None:
        self._held = None
        self._running.close()


@pytest.fixture(scope="session")
def sessions(needs_java: None) -> Iterator[Sessions]:  # noqa: ARG001
    """The one holder of this process's Spark session; tests that start their own stop it first."""
    holder = Sessions()
    yield holder
    holder.stop()


@pytest.fixture
def spark(sessions: Sessions) -> SparkSession:
    """Spark as an apply has it: no Hudi anywhere."""
    return sessions.with_conf(sql_session_timeZone="UTC")


@pytest.fixture(scope="session")
def needs_java() -> None:
    """Skips where there is no Java; with CI=true it fails."""
    try:
        java()
    except BundleUnavailableError as problem:
        _refuse(str(problem))


def _require(version: str) -> None:
    try:
        bundle(version)
    except BundleUnavailableError as problem:
        _refuse(str(problem))


def _refuse(why: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)
