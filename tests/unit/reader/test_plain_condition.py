from __future__ import annotations

import pytest

from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.reader.plain_condition import parse_plain_condition, prune_plainly
from reconciler.storage.open import open_storage
from tests.rewrite_jobs import unpack_table


@pytest.fixture(scope="module")
def scan(tmp_path_factory):
    folder = unpack_table("v9_cow_part", tmp_path_factory.mktemp("plain"))
    return open_scan(open_storage(str(folder)), ReadRequest())


@pytest.mark.parametrize(
    "where",
    [
        "p = hash('a')", "P = 1", "missing = 'a'", "t.p = 'a'", 'p = "a"', "p = = 'a'", "p = 'a' b",
        "cast(p as string) = 'a'", "p in ('a', null)", "p in ('a', 1)", "p like 'a%'",
        "p is unknown",
        "p = 'a' or rand() > 0.5", "upper(p) = 'A'", "1 = 1", "p = ${x}", "id > 1.5 and p = p",
    ],
)  # fmt: skip
def test_what_only_spark_can_interpret_is_left_to_it(where, scan):
    assert parse_plain_condition(where, scan) is None


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("p = '{0}'", [0]),
        ("P <> '{0}'", [1]),
        ("not (p = '{0}' or id = 1)", [0, 1]),
        ("p = '{0}' or id = 1", [0, 1]),
        ("p = '{0}' and id = 1", [0]),
        ("(p > '{0}' and id > 0) or p in ('{1}', 'zz')", [1]),
        ("p between '{0}' and '{1}'", [0, 1]),
        ("p is null", []),
        ("p <=> '{1}' and not p is null", [1]),
        ("not (p is not null and p != '{0}')", [0]),
    ],
)
def test_partitions_that_can_match_are_kept(where, kept, scan):
    paths = sorted(scan.partitions.column("p").to_pylist())[:2]
    predicate = parse_plain_condition(where.format(*paths), scan)
    pruned = prune_plainly(scan, predicate, None)
    found = {
        scan.partitions.column("p")[code].as_py() for code in pruned.kept.get_numbers("partition")
    }

    assert {paths[at] for at in kept} == found & set(paths)
