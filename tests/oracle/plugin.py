"""Fixtures for every test that needs real Hudi or Spark; loaded by the conftest at the root."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.oracle.bundles import BundleUnavailableError, bundle, java
from tests.oracle.hudi import RealHudi
from tests.oracle.stories import Library

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
) -> Library:
    """``library.table(kind, path)``: a copy of a table that real Hudi made; see stories."""
    return Library(real_hudi, tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="session")
def spark(needs_java: None) -> Iterator[SparkSession]:  # noqa: ARG001
    """Spark as an apply has it: no Hudi anywhere."""
    from reconciler.cli.spark import spark_session  # noqa: PLC0415 - heavy, and few tests need it

    with spark_session("local[2]", {"spark.sql.session.timeZone": "UTC"}) as session:
        yield session


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
