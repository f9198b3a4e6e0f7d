"""Our index over files of real Hudi: no row is lost, and no more is read than Hudi reads."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.oracle.random_predicates import COLUMNS, LONG, SCHEMA, TEXTS, Predicates
from tests.oracle.skipping_tables import build_folder_index, ddl, list_kept_files, random_file
from tests.published_indexes import find_base_files
from tests.selection import rounds

pytestmark = pytest.mark.oracle
SKIPPING = {
    "hoodie.metadata.enable": "true",
    "hoodie.enable.data.skipping": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
}
#: types that Hudi keeps as they are, and has statistics of
TYPES = pa.schema(
    [SCHEMA.field(name) for name in ("i", "l", "f", "d", "m", "w", "S", "dt", "ts", "o", "p")]
)
INDEXED = tuple(name for name in COLUMNS if name.split(".")[0] in TYPES.names)
FILES, ASKED = 12, rounds("INDEX_ASKED", few=150, many=600)


@pytest.fixture(scope="module")
def hudi(real_hudi):
    return real_hudi("1.2.0")


def bulk_inserted(hudi, folder, files, columns):
    """A table with a base file for each of some Arrow tables."""
    source = folder / "source"
    source.mkdir()
    for at, rows in enumerate(files):
        keys = pa.array([f"{at}-{row}" for row in range(len(rows))])
        path = source / f"{at}.parquet"
        pq.write_table(rows.append_column("id", keys), path, store_schema=False)
    options = {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.index.column.stats.column.list": ",".join(columns),
        "hoodie.datasource.write.precombine.field": "id",
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.bulkinsert.sort.mode": "NONE",
    }
    table = hudi.table(folder / "table", partitioned=False, options=options)
    hudi.sql("set spark.sql.files.openCostInBytes=134217728")
    query = f"select * from parquet.`{source}`"
    hudi.ask("write_query", table=table, query=query, options=table.options, files=len(files))
    hudi.sql("reset spark.sql.files.openCostInBytes")
    assert len(files) == len(find_base_files(table.path))
    return table


@pytest.fixture(scope="module")
def written(hudi, tmp_path_factory):
    """A table of random files, its statistics true: no NaN, no long text."""
    chance = Random(20260101)
    files = [random_file(chance, TYPES, is_tame=True) for _ in range(FILES)]
    return bulk_inserted(hudi, tmp_path_factory.mktemp("beside"), files, INDEXED)


#: left to Spark: functions by name, fractions beyond the digits of Spark's common decimal, whole
#: numbers that no float is, truth values asked whether they are known
LEFT_OUT = ("double(", "float(", "1.0000000000000000001", "9007199254740993", "16777217",
            "UNKNOWN", "IS TRUE", "IS FALSE", "IS NOT TRUE", "IS NOT FALSE")  # fmt: skip


def of_the_same_bounds(folder, made):
    """The files of a table with more rows, of whose text they have the bounds already.

    By `s LIKE 'a%b'` Hudi reads files with least <= 'a' <= greatest. Where it loses no row so, that
    may be luck: another file of which it knows the same would have one.
    """
    for path in find_base_files(folder):
        rows = pq.read_table(path)
        present = [value.encode() for value in rows["S"].to_pylist() if value is not None]
        low, high = min(present, default=b"b"), max(present, default=b"a")
        between = [text for text in TEXTS if low <= text.encode() <= high and text != LONG]
        at, field = rows.schema.get_field_index("S"), rows.schema.field("S")
        copies = [rows.set_column(at, field, [[text] * len(rows)]) for text in between]
        pq.write_table(pa.concat_tables([rows, *copies]), made / path.name, store_schema=False)
    return made


def find_possible(hudi, folder, wheres):
    """Return per predicate the files in which a session finds a row, with or without ANSI mode.

    Hudi reads for the session that asks. Our index answers for both, as it does not know the mode.
    """
    found = {text: set() for text in wheres}
    try:
        for is_ansi in ("false", "true"):
            hudi.sql(f"set spark.sql.ansi.enabled={is_ansi}")
            here = hudi.ask("files_found", folder=folder, wheres=wheres, schema=ddl(TYPES))
            for text, files in here.items():
                found[text] |= {*files}
    finally:
        hudi.sql("reset spark.sql.ansi.enabled")
    return found


#: lists that ANSI mode compares as times and days, and that Spark compares as texts otherwise
AS_TEXT = ("ts IN ('2024-03-31', '1200-01-01')",
           "dt IN (TIMESTAMP '1970-01-01 00:00:00', '1200-01-01')")  # fmt: skip


def test_no_more_is_read_than_by_hudi_and_no_row_is_lost(hudi, written, tmp_path):
    made = Predicates(Random(7), INDEXED, is_plain=True).make(ASKED)
    asked = [text for text in made if not any(part in text for part in LEFT_OUT)] + [*AS_TEXT]
    theirs = hudi.ask("files_read", table=written, wheres=asked, options=SKIPPING)
    folder = str(written.path / "*.parquet")
    needed = hudi.ask("files_found", folder=folder, wheres=asked, schema=ddl(TYPES))
    index = build_folder_index(written.path, INDEXED, TYPES)
    ours = {text: list_kept_files(text, index, TYPES, "UTC") for text in needed}
    read = {text: files for text, files in zip(asked, theirs, strict=True) if files is not None}
    said = [text for text in needed if text in read]
    sound = [text for text in said if {*needed[text]} <= {*read[text]}]

    assert {} == {text: files for text in needed if (files := {*needed[text]} - ours[text])}
    counts = {text: (len(ours[text]), len(read[text])) for text in sound}
    more = {text: pair for text, pair in counts.items() if pair[0] > pair[1]}
    others = str(of_the_same_bounds(written.path, tmp_path))
    possible = find_possible(hudi, others, [*more])
    lucky = [text for text in more if not possible[text] <= {*read[text]}]
    more = {text: pair for text, pair in more.items() if text not in lucky}
    assert {} == more, "\n".join(map(str, more.items()))
    assert {*AS_TEXT} <= {*lucky}
    assert len(sound) > ASKED / 2
    assert sum(few for few, _ in counts.values()) < sum(many for _, many in counts.values())


#: filters for which Hudi loses a row of these files, so that to keep more is right
LOST = {
    "n | 2 = 2": {"n": [1, 2, 4]},
    "n + 1 < 0": {"n": [7, 2147483647, 8]},
    "lower(s) = 'b'": {"s": ["A", "B", "a"]},
    "upper(s) = 'AA'": {"s": ["Z", "aa", "c"]},
    "s = 'm'": {"s": ["m", "q" * 5000, "q"]},
    "date_format(t, 'ss') = '30'": {"t": [10_000_000, 30_000_000, 70_000_000]},
}


def test_where_we_read_more_than_hudi_it_loses_rows(hudi, tmp_path):
    schema = pa.schema([("n", pa.int32()), ("s", pa.string()), ("t", pa.timestamp("us", "UTC"))])
    usual = {"n": [7, 8, 9], "s": ["x", "y", "z"], "t": [1, 2, 3]}
    files = [pa.table(usual | said, schema=schema) for said in LOST.values()]
    table = bulk_inserted(hudi, tmp_path, files, schema.names)
    read = hudi.ask("files_read", table=table, wheres=list(LOST), options=SKIPPING)
    folder = str(table.path / "*.parquet")
    needed = hudi.ask("files_found", folder=folder, wheres=list(LOST), schema=ddl(schema))
    index = build_folder_index(table.path, schema.names, schema)

    assert dict.fromkeys(LOST, 1) == {text: len(files) for text, files in needed.items()}
    for text, theirs in zip(LOST, read, strict=True):
        assert set(needed[text]).isdisjoint(theirs), text
        assert set(needed[text]) <= list_kept_files(text, index, schema, "UTC")
