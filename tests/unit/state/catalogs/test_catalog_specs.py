"""Specs that name a table in a catalog instead of its path."""

from __future__ import annotations

import pytest

from reconciler.errors import SpecError
from reconciler.spec.document import spec_from_document
from reconciler.spec.load import load_specs, read_specs
from reconciler.spec.model import CatalogTable, FromEnv
from reconciler.state.catalogs.open import TableLocator
from tests.memory_catalog import MemoryCatalog, make_entry

CATALOG = MemoryCatalog(
    make_entry("db.orders", "s3a://lake/orders/"),
    make_entry("db.local", "file:/lake/a%20b"),
    make_entry("db.view", ""),
    make_entry("db.relative", "lake/orders"),
    make_entry("db.mounted", "dbfs:/mnt/orders"),
)


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    (tmp_path / "environments").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder, name, spec, kind="HudiTable"):
    head = f"apiVersion: reconciler/v1\nkind: {kind}\nmetadata: {{name: {name}}}\n"
    place = folder / "environments" if kind == "Environment" else folder
    (place / f"{name}.yaml").write_text(f"{head}spec: {spec}\n")
    return place / f"{name}.yaml"


def load(file, environment=None):
    locator = TableLocator(CATALOG.open)
    (spec,) = load_specs([file], environment, locate=locator.locate)
    locator.close()
    return spec


def test_the_catalog_gives_the_location_and_the_environment_its_access(project):
    options = "{region_name: eu-west-1, aws_access_key_id: {fromEnv: KEY}}"
    glue = f"{{glue: {{uri: 'glue://123456789012', options: {options}}}}}"
    write(project, "prod", f"{{catalogs: {glue}}}", "Environment")
    spec = load(write(project, "t", "{catalog: {type: glue, name: db.orders}}"), "prod")

    assert "s3a://lake/orders" == spec.path
    expected = CatalogTable(
        type="glue",
        name="db.orders",
        uri="glue://123456789012",
        options={"region_name": "eu-west-1", "aws_access_key_id": FromEnv(variable="KEY")},
    )
    assert expected == spec.catalog
    again = spec_from_document(spec.document, "t", spec.path)
    assert (expected, spec.document) == (again.catalog, again.document)
    assert 0 == CATALOG.opened


def test_a_location_of_hadoop_has_no_escapes(project):
    place = "{catalog: {type: hive, name: db.local, uri: 'thrift://h'}}"

    assert "/lake/a%20b" == load(write(project, "t", place)).path


def test_a_location_in_the_environment_counts_more_and_then_no_catalog_is_synced(project):
    write(project, "test", "{tables: {t: s3://test/t}}", "Environment")
    place = "{catalog: {type: hive, name: db.none, uri: 'thrift://h'}}"
    spec = load(write(project, "t", place), "test")

    assert ("s3://test/t", None) == (spec.path, spec.catalog)
    assert "catalog" not in spec.document


def test_without_a_locator_a_table_has_no_path_and_no_problem(project):
    file = write(project, "t", "{catalog: {type: hive, name: db.orders}}")
    loaded = read_specs([file])

    assert [] == list(loaded.problems)
    assert [""] == [spec.path for spec in loaded.tables]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("{catalog: {type: hive, name: db.orders}}", "spec.catalog.uri: is missing; add it here"),
        (
            "{catalog: {type: hive, name: db.none, uri: 'thrift://h'}}",
            "spec.catalog: memory:: has no table db.none; check type, name and uri",
        ),
        (
            "{catalog: {type: hive, name: db.view, uri: 'thrift://h'}}",
            "db.view has no location there, as a view has none; give the table a path instead",
        ),
        (
            "{catalog: {type: hive, name: db.relative, uri: 'thrift://h'}}",
            "spec.catalog: memory:: db.relative is at 'lake/orders' there, which is neither an",
        ),
        (
            "{catalog: {type: hive, name: db.mounted, uri: 'thrift://h'}}",
            "db.mounted is at 'dbfs:/mnt/orders' there, which has one slash after the scheme",
        ),
        (
            "{catalog: {type: hive, name: db.orders, uri: 'glue://123456789012'}}",
            "spec.catalog.uri: 'glue://123456789012' is none of type hive; write thrift://",
        ),
        ("{catalog: {type: hive, name: orders}}", "expected a database and a table, such as"),
        ("{catalog: {type: nessie, name: db.orders}}", "spec.catalog.type: expected"),
        ("{catalog: {type: hive}}", "spec.catalog.name: is missing"),
        (
            "{catalog: {type: hive, name: db.o, uri: 'thrift://h', options: {a: b}}}",
            ".options: unknown",
        ),
        (
            "{path: ./t, catalog: {type: hive, name: db.orders, uri: 'thrift://h'}}",
            "spec.catalog: is given beside spec.path, and either is the location of the table",
        ),
    ],
)
def test_a_mistake_has_a_place_and_a_remedy(project, spec, problem):
    with pytest.raises(SpecError) as caught:
        load(write(project, "t", spec))

    assert problem in str(caught.value)
    assert 1 == len(str(caught.value).splitlines())


def test_a_table_by_path_and_by_catalog_is_one_table(project):
    write(project, "one", "{catalog: {type: hive, name: db.orders, uri: 'thrift://h'}}")
    write(project, "two", "{path: 's3://lake/orders'}")
    with pytest.raises(SpecError) as caught:
        load_specs([project], locate=TableLocator(CATALOG.open).locate)

    assert "is already declared, as one in" in str(caught.value)
