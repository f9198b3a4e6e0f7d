"""What a clustering is judged by: read from tables that real Hudi wrote."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.metadata_stats import read_column_stats
from reconciler.hudi.metadata_table import open_metadata
from reconciler.state.footers import read_footers
from reconciler.storage.open import open_storage
from tests.trees import unpack

INDEXED = Path(__file__).parent / "indexed"
VERSIONS = ("0.15.0", "1.0.2", "1.2.0")
COLUMNS = ["id", "b", "i", "l", "f", "s", "bin", "d7", "d18", "d38", "dt", "ts", "nul", "p"]
#: 1.0 keeps no decimals beyond 30 digits
UNKNOWN = {"0.15.0": set(), "1.0.2": {"d38"}, "1.2.0": set()}


@pytest.fixture(scope="module", params=VERSIONS)
def version(request):
    return request.param


@pytest.fixture(scope="module")
def folder(version, tmp_path_factory):
    return unpack(INDEXED / f"{version}.zip", tmp_path_factory.mktemp("indexed"))


def base_files(folder):
    """Partition -> names."""
    found = {}
    for path in sorted(folder.rglob("*.parquet")):
        if ".hoodie" not in path.parts:
            found.setdefault(str(path.parent.relative_to(folder)), []).append(path.name)
    return found


def by_index(folder, columns):
    """(column, place of the file) -> bounds and number of values."""
    storage = open_storage(str(folder))
    properties = load_properties(storage)
    timeline = load_timeline(storage, properties)
    table = open_metadata(storage, version=properties.table_version, data=timeline)
    return {
        (columns[stats.column], file): (least, greatest, values)
        for stats in read_column_stats(table, columns, base_files(folder).items())
        for file, least, greatest, values in zip(
            stats.file, stats.least, stats.greatest, stats.values, strict=True
        )
    }


def by_footer(folder, columns):
    storage = open_storage(str(folder))
    paths = [f"{p}/{name}" for p, names in base_files(folder).items() for name in names]
    files = [(path, (folder / path).stat().st_size) for path in paths]
    return {
        (column, place): (*(bounds or (None, None)), footer.rows)
        for place, footer in enumerate(read_footers(storage, files, columns))
        for column, bounds in zip(columns, footer.bounds, strict=True)
    }


def test_the_index_says_what_the_footers_say(folder, version):
    index, footers = by_index(folder, COLUMNS), by_footer(folder, COLUMNS)

    assert {c for c, _ in footers} - {c for c, _ in index} == UNKNOWN[version]
    assert index == {key: told for key, told in footers.items() if key[0] not in UNKNOWN[version]}
    assert (Decimal("-2.125"), Decimal("-1.125"), 2) == index["d18", 0]
    assert (None, None, 2) == index["nul", 0]
    assert (b"k1", b"k2", 2) == index["id", 0]
    assert (-8876544, -7876544, 2) == index["ts", 0]


def test_of_zeros_nobody_knows_what_they_hide(folder):
    index = by_index(folder, ["d"])

    assert (0.0, 1.0, 2) == index["d", 0]
