"""Names are safe as files, unique, and the same every time."""

from __future__ import annotations

import re
from itertools import permutations

import pytest

from reconciler.adopt.naming import UnnamedTable, choose_names
from reconciler.spec.schema import load_definition


def found(location, table, database=""):
    return UnnamedTable(location=location, table=table, database=database)


def test_a_name_that_no_other_table_has_stays():
    tables = [found("/lake/sales/o", "orders"), found("s3://lake/crm/c", "clients", "crm")]

    assert choose_names(tables) == {"/lake/sales/o": "orders", "s3://lake/crm/c": "crm.clients"}


def test_the_default_database_tells_nothing():
    assert choose_names([found("/lake/o", "orders", "default")]) == {"/lake/o": "orders"}


def test_tables_of_one_name_are_told_apart_by_their_folders():
    tables = [found("/lake/sales/o", "orders"), found("/lake/crm/o", "orders")]

    assert choose_names(tables) == {"/lake/sales/o": "sales.orders", "/lake/crm/o": "crm.orders"}


def test_tables_of_one_name_in_one_folder_are_told_apart_by_their_own_folders():
    tables = [found("/lake/sales/a", "t"), found("/lake/sales/b", "t")]

    assert choose_names(tables) == {"/lake/sales/a": "sales.a", "/lake/sales/b": "sales.b"}


def test_names_that_differ_in_case_alone_are_one():
    tables = [found("/lake/a/x", "Orders"), found("/lake/b/x", "orders")]

    assert choose_names(tables) == {"/lake/a/x": "a.Orders", "/lake/b/x": "b.orders"}


def test_a_taken_name_is_left_alone_whatever_its_case():
    assert choose_names([found("/lake/a/x", "orders")], {"Orders"}) == {"/lake/a/x": "a.orders"}


def test_a_number_tells_apart_what_nothing_else_does():
    tables = [found("s3://lake/a/x", "t"), found("gs://lake/a/x", "t")]
    names = choose_names(tables, {"x-2"})

    assert sorted(names.values()) == ["x-3", "x-4"]


def test_the_order_of_tables_does_not_matter():
    tables = [found(f"/lake/{folder}/x", "t") for folder in "abc"] + [found("/t", "t")]
    results = [choose_names(list(order)) for order in permutations(tables)]

    assert [results[0]] * len(results) == results


HOSTILE = [
    "../../etc/passwd",
    "..",
    ".",
    "/",
    ".hidden",
    "a/b",
    "a\x00b",
    "a\nkind: Policy",
    "\x1b[31mred",
    "-rf",
    "заказы",
    "\u202egnp",
    "x" * 5000,
    "a" + "." * 300 + "b",
    "con trol",
    "'; rm -rf",
    "_" * 300,
    "name.",
]


@pytest.mark.parametrize("name", HOSTILE, ids=map(ascii, HOSTILE))
def test_hostile_names_become_names_that_a_spec_may_have(name):
    (made,) = choose_names([found(f"/lake/{name}", name, name)]).values()

    assert re.fullmatch(load_definition("name")["pattern"], made)
    assert len(f"{made}.yaml".encode()) < 255


def test_many_hostile_names_are_unique():
    tables = [found(f"/lake/{n}/{name}", name) for n, name in enumerate(HOSTILE * 3)]
    names = choose_names(tables)

    assert len({name.casefold() for name in names.values()}) == len(tables)
