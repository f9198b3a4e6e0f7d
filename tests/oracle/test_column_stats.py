"""Real Hudi skips with the index that we built for it, loses nothing and goes on with the table."""

from __future__ import annotations

import pytest

from tests.built_column_stats import build, open_test_session
from tests.oracle.hudi import COMPACT_METADATA, directory_listing, keep_commits
from tests.oracle.prepared_tables import Variant
from tests.selection import EVERY_CASE, long, take_turn

pytestmark = pytest.mark.oracle
#: so that no writer makes the index itself
WITHOUT = {"hoodie.metadata.index.column.stats.enable": "false"}
ALL = {"hoodie.metadata.index.column.stats.column.list": ""}
WITH = {"hoodie.metadata.index.column.stats.enable": "true"}
#: what to ask for, and the same of a row: id, p, ts, x, n
FILTERS = {
    "n = 3": lambda row: row[4] == 3,
    "n < 2": lambda row: row[4] < 2,
    "n > 2 and p = 'a'": lambda row: row[4] > 2 and row[1] == "a",
    "x = 'v2' and n >= 2": lambda row: row[3] == "v2" and row[4] >= 2,
    "id = 'a2' or x > 'v5'": lambda row: row[0] == "a2" or row[3] > "v5",
    "x is not null and not (n = 1)": lambda row: row[4] != 1,
    "x is null or ts in (1, 4)": lambda row: row[2] in {1, 4},
}
NAMES = {
    "0.15.0": ["column_stats", "files"],
    "1.0.2": ["column_stats", "files", "partition_stats"],
    "1.1.1": ["column_stats", "files", "partition_stats"],
    "1.2.0": ["column_stats", "files", "partition_stats"],
}


def write_without_index(hudi, path, variant):
    """Write five files, and no index."""
    table = hudi.table(path, merge_on_read=variant.name == "mor", options=WITHOUT)
    hudi.write(table, [("a1", "a", 1), ("b1", "b", 1)], "insert")
    hudi.write(table, [("a2", "a", 2), ("a3", "a", 3)], "insert", COMPACT_METADATA)
    hudi.write(table, [("a4", "a", 4)], "insert", COMPACT_METADATA)
    hudi.write(table, [("b5", "b", 5)], "insert")
    if variant.name == "mor":
        hudi.write(table, [("b1", "b", 7)])
    return table


@pytest.fixture
def made(library):
    """``made(version, kind, path)``: a copy of a table with five files and no index."""

    def copy(version, kind, path):
        return library.table(Variant(version=version, name=kind), path, write_without_index)

    return copy


def assert_right(hudi, table, rows, turn=None):
    """Hudi finds the rows, whatever it skips; ``turn``: by those filters whose turn it is."""
    assert directory_listing(table.path) == hudi.listing(table)
    assert rows == hudi.rows(table)
    assert rows == hudi.rows(table, metadata=True)
    filters = FILTERS.items() if turn is None else take_turn(FILTERS.items(), of=3, turn=turn)
    for where, is_wanted in filters:
        assert [*filter(is_wanted, rows)] == hudi.rows(table, where=where, metadata=True), where


def with_row(rows, *row):
    """The rows with another one of its key."""
    return sorted([*(other for other in rows if other[0] != row[0]), [*row]])


def indexing(table):
    """The same table, whose writers keep the index."""
    return type(table)(path=table.path, options={**table.options, **WITH})


@pytest.mark.parametrize("version", ["0.15.0", *map(long, ["1.0.2", "1.1.1"]), "1.2.0"])
def test_hudi_skips_with_what_we_built_and_goes_on(made, tmp_path, version):
    hudi, table = made(version, "cow", tmp_path / "t")
    rows = hudi.rows(table)
    before = hudi.files_opened(table, "n = 3")
    built = build(table.path, ["n", "x"])

    assert (5, ["a3"]) == before
    assert [name for name in NAMES[version] if name != "files"] == [*built.partitions]
    assert NAMES[version] == table.metadata_partitions()
    assert (1, ["a3"]) == hudi.files_opened(table, "n = 3")
    assert_right(hudi, table, rows)

    table = indexing(table)
    hudi.write(table, [("a2", "a", 6)])
    hudi.write(table, [("a9", "a", 50)], "insert")
    rows = with_row(with_row(rows, "a2", "a", 6, "v6", 6.0), "a9", "a", 50, "v50", 50.0)
    assert NAMES[version] == table.metadata_partitions()
    assert_right(hudi, table, rows, turn=0)
    assert (1, ["a9"]) == hudi.files_opened(table, "n = 50")

    for ts in (7, 8):
        hudi.write(table, [("a1", "a", ts), ("b1", "b", ts)], options=COMPACT_METADATA)
    rows = with_row(with_row(rows, "a1", "a", 8, "v8", 8.0), "b1", "b", 8, "v8", 8.0)
    assert_right(hudi, table, rows, turn=1)
    hudi.clean(table, keep_commits(1))
    assert_right(hudi, table, rows, turn=2)


@pytest.mark.parametrize("version", [long("0.15.0"), "1.2.0"])
def test_log_files_keep_their_slices(made, tmp_path, version):
    hudi, table = made(version, "mor", tmp_path / "t")
    rows = hudi.rows(table)
    build(table.path, ["n", "x"])

    assert_right(hudi, table, rows)
    table = indexing(table)
    # the bounds of partition b are computed anew from those of its files
    hudi.write(table, [("b9", "b", 50)], "insert", COMPACT_METADATA)
    rows = with_row(rows, "b9", "b", 50, "v50", 50.0)
    assert_right(hudi, table, rows, turn=1)
    assert [["b1"]] == hudi.rows(table, where="n = 7", columns=["id"], metadata=True)
    # and more goes to a log file of a slice that we have entries of
    hudi.write(table, [("b1", "b", 9)])
    rows = with_row(rows, "b1", "b", 9, "v9", 9.0)
    assert [["b1"]] == hudi.rows(table, where="n = 9", columns=["id"], metadata=True)
    assert [] == hudi.rows(table, where="n = 7", columns=["id"], metadata=True)

    instant = hudi.schedule(table, "COMPACT")
    hudi.compact(table, instant)
    hudi.write(table, [("a1", "a", 60)], options=COMPACT_METADATA)
    assert_right(hudi, table, with_row(rows, "a1", "a", 60, "v60", 60.0), turn=2)


def test_an_index_of_hudi_gets_more_columns(real_hudi, tmp_path):
    hudi = real_hudi("1.2.0")
    some = WITH | {"hoodie.metadata.index.column.stats.column.list": "n"}
    table = hudi.table(tmp_path / "t", options=some)
    for nth in (1, 2, 3):
        hudi.write(table, [(f"a{nth}", "a", nth), (f"b{nth}", "b", nth)], "insert")
    rows = hudi.rows(table)
    assert 6 == hudi.files_opened(table, "x = 'v2'")[0]
    build(table.path, ["x"])

    assert (2, ["a2", "b2"]) == hudi.files_opened(table, "x = 'v2'")
    assert_right(hudi, table, rows)

    table = type(table)(path=table.path, options={**table.options, **ALL})
    hudi.write(table, [("a9", "a", 50)], "insert", COMPACT_METADATA)
    assert_right(hudi, table, with_row(rows, "a9", "a", 50, "v50", 50.0), turn=0)


#: more than a writer indexes by itself, and one that it never does
MANY = {
    "st": "named_struct('u', {n})",
    **{f"c{nth:02}": f"{{n}} * 100 + {nth}" for nth in range(40)},
}


def insert(hudi, table, rows, more, options=None):
    """One commit of rows (id, partition, n), with more columns."""
    columns = {"id": "'{id}'", "p": "'{p}'", "ts": "{n}L", "x": "'v{n}'", "n": "{n}D", **more}
    cells = ", ".join(f"{cell} as {name}" for name, cell in columns.items())
    selects = [f"select {cells.format(id=id_, p=p, n=n)}" for id_, p, n in rows]
    said = {**table.options, "hoodie.datasource.write.operation": "insert", **(options or {})}
    hudi.ask("write_query", table=table, query=" union all ".join(selects), options=said)


def known(table, *columns):
    """What we know of Hudi's index as it is now."""
    return open_test_session(table.path, columns)[1].state.index_state


def test_a_table_of_many_columns_keeps_what_we_built(real_hudi, tmp_path):
    hudi = real_hudi("1.2.0")
    table = hudi.table(tmp_path / "t", options=WITHOUT)
    insert(hudi, table, [("a1", "a", 1), ("b2", "b", 2)], MANY)
    built = build(table.path, ["c01"]).columns
    assert (35, "c26") == (len(built), built[-1])
    assert (1, ["b2"]) == hudi.files_opened(table, "c01 = 201")

    # a writer as it is by default, and the compaction of the metadata table by it
    table = indexing(table)
    insert(hudi, table, [("a3", "a", 3)], MANY, COMPACT_METADATA)
    insert(hudi, table, [("a4", "a", 4)], MANY, COMPACT_METADATA)
    index = known(table, "c01", "c39")

    assert list((table.path / ".hoodie/metadata/column_stats").glob("*_00*.hfile")) == []
    assert (built, 0) == (index.hudi_columns, index.hudi_files_without_entries)
    assert () == build(table.path, ["c01", "c39"]).partitions
    assert (1, ["a4"]) == hudi.files_opened(table, "c01 = 401 and c39 = 439")
    for where, expected in {"c39 = 139": ["a1"], "st.u >= 3 and c02 > 302": ["a4"]}.items():
        assert expected == hudi.files_opened(table, where)[1]


def test_a_table_that_was_restored_and_got_a_younger_column(made, tmp_path):
    hudi, table = made("1.2.0", "cow", tmp_path / "t")
    rows = hudi.rows(table)
    instant = table.last_instant()
    hudi.savepoint(table, instant)
    hudi.write(table, [("a2", "a", 90)])
    hudi.write(table, [("b9", "b", 91)], "insert")
    hudi.restore(table, instant)
    build(table.path, ["n", "x"])

    assert_right(hudi, table, rows)
    assert (1, ["a3"]) == hudi.files_opened(table, "n = 3")

    table = indexing(table)
    insert(hudi, table, [("a9", "a", 50)], {"z": "nullif({n}, 0)"}, COMPACT_METADATA)
    rows = with_row(rows, "a9", "a", 50, "v50", 50.0)
    index = known(table, "n", "z")
    assert ("z" in index.hudi_columns, index.hudi_files_without_entries) == (
        True,
        5,
    )  # of which Hudi loses rows
    build(table.path, ["n", "z"])

    assert 0 == known(table, "n", "z").hudi_files_without_entries
    assert_right(hudi, table, rows, turn=1)
    wheres = {"z is null": 6, "z is null and n >= 0": 6, "z is not null and n = 50": 1}
    for where, count in wheres.items():
        assert count == len(hudi.rows(table, where=where, metadata=True)), where


TYPES = {
    "id": "string",
    "b": "boolean",
    "i": "int",
    "l": "bigint",
    "f": "float",
    "d": "double",
    "s": "string",
    "bin": "binary",
    "dec": "decimal(18,3)",
    "dt": "date",
    "ts": "timestamp",
    "nul": "int",
    "p": "string",
}
#: a file each: plain, NaN and old days, text that footers leave out, nothing but nulls, wide bounds
FILES = (
    (
        "'k1', true, 1, 10L, 1.5F, 1.5D, 'a', X'01', 1.25, date'2020-01-01', "
        "timestamp'2020-01-01 00:00:01', null, 'a'"
    ),
    (
        "'k2', false, 5, 50L, float('NaN'), double('NaN'), 'b', X'02', -2.5, date'0900-01-01', "
        "timestamp'1700-01-01 00:00:00', 7, 'a'"
    ),
    (
        "'k3', true, 9, 90L, -3.5F, -3.5D, repeat('q', 5000), X'03', 3.125, date'2021-06-01', "
        "timestamp'2021-06-01 12:00:00', null, 'a'"
    ),
    "'k4', null, null, null, null, null, null, null, null, null, null, null, 'b'",
    (
        "'k5', false, -2147483648, -9223372036854775807L, float('Infinity'), -0.0D, '\U0001f600', "
        "X'7A', -999999999999999.999, date'9999-12-31', timestamp'9999-12-31 00:00:00', 0, 'b'"
    ),
)
_CALENDAR = "spark.sql.parquet.datetimeRebaseModeInRead"
WHERE = (
    "b", "not b", "i = 5", "i < 0", "l > 50", "f > 1.5", "d > 1.5", "d < 0",
    "d is null", "d != 1.5", "d = 0.0", "s > 'b'", "s like 'q%'",
    "s = repeat('q', 5000)", "s != 'a'", "s is not null", "s is null",
    "dec > 2", "dec = 1.25", "dec < -3", "dt < date'1000-01-01'",
    "dt > date'2021-01-01'", "ts < timestamp'1800-01-01 00:00:00'",
    "ts > timestamp'2020-06-01 00:00:00'", "nul is null", "nul is null and i >= 0",
    "nul is not null and not b", "nul = 7 or d > 1", "i is null", "p = 'a' and d >= 1.5",
)  # fmt: skip


@pytest.fixture
def reading_old_days(real_hudi):
    """Real Hudi, which by itself refuses days whose calendar a file does not say."""
    changed = []

    def of(version):
        hudi = real_hudi(version)
        hudi.sql(f"set {_CALENDAR}=CORRECTED")
        changed.append(hudi)
        return hudi

    yield of
    for hudi in changed:
        hudi.sql(f"reset {_CALENDAR}")


@pytest.mark.parametrize("version", ["1.2.0", *(["0.15.0", "1.0.2"] if EVERY_CASE else [])])
def test_no_row_is_lost_whose_bounds_nothing_proves(reading_old_days, tmp_path, version):
    hudi = reading_old_days(version)
    table = hudi.table(tmp_path / "t", options=WITHOUT)
    for row in FILES:
        _insert(hudi, table, row)
    built = build(table.path, ["i", "d", "s"])
    assert {*TYPES} <= {*built.columns}

    assert (1, ["k2"]) == hudi.files_opened(table, "i = 5")
    assert_same(hudi, table)
    if version != "1.2.0":  # which fails to compare bytes with any index
        bigger = hudi.rows(table, where="bin > X'02'", columns=["id"], metadata=True)
        assert [["k3"], ["k5"]] == bigger

    _insert(hudi, indexing(table), FILES[0].replace("'k1'", "'k6'"))
    _insert(hudi, indexing(table), FILES[0].replace("'k1'", "'k7'").replace("'a'", "'b'"))
    assert_same(hudi, table, take_turn(WHERE, of=3))


def _insert(hudi, table, row):
    cast = ", ".join(f"cast({name} as {kind}) as {name}" for name, kind in TYPES.items())
    query = f"select {cast}, 1L as time from values ({row}) as t({', '.join(TYPES)})"
    options = {
        **table.options,
        "hoodie.datasource.write.operation": "insert",
        "hoodie.datasource.write.precombine.field": "time",
    }
    hudi.ask("write_query", table=table, query=query, options=options)


def assert_same(hudi, table, wheres=WHERE):
    """Every filter finds with the index what it finds without."""
    lost = {}
    for where in wheres:
        # filtered as well: Hudi may lose a row by itself, such as -0.0 where 0.0 is asked for
        expected = hudi.rows(table, where=where, columns=["id"])
        actual = hudi.rows(table, where=where, columns=["id"], metadata=True)
        if expected != actual:
            lost[where] = (expected, actual)
    assert {} == lost
