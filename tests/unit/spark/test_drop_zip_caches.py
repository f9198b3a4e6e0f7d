"""Workers do not read Spark's archives again for every task, and can still import from them."""

from __future__ import annotations

import importlib
import sys
import zipfile

import pytest

from reconciler.spark.jobs import drop_zip_caches


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """Make an archive with a module, put it on the path and import the module."""
    made = []

    def make(name, module):
        path = tmp_path / name
        with zipfile.ZipFile(path, "w") as file:
            file.writestr(f"{module}.py", "")
            file.writestr(f"{module}_later.py", "")
        monkeypatch.syspath_prepend(str(path))
        importlib.import_module(module)
        made.extend([module, f"{module}_later"])
        return str(path)

    yield make
    for module in made:
        sys.modules.pop(module, None)


@pytest.mark.parametrize(
    "name", ["pyspark.zip", "py4j-0.10.9.7-src.zip", "spark-core_2.12-3.5.9.jar"]
)
def test_importers_of_sparks_own_archives_are_let_go_and_come_back(archive, name):
    path = archive(name, "unburden_of_spark")
    assert path in sys.path_importer_cache

    drop_zip_caches()

    assert path not in sys.path_importer_cache
    assert importlib.import_module("unburden_of_spark_later").__file__.startswith(path)


@pytest.mark.parametrize("name", ["mine.zip", "my-pyspark.zip", "mine.jar"])
def test_what_others_have_put_on_the_path_stays(archive, name):
    path = archive(name, "unburden_of_others")

    drop_zip_caches()

    assert path in sys.path_importer_cache
