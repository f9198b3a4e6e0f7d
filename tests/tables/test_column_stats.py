"""Read a hand-made column_stats index with rewritten, deleted and damaged entries."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from reconciler.errors import FormatError, UnsupportedError
from reconciler.hudi.codecs import hfile_writer
from reconciler.hudi.codecs.log_blocks import (
    BlockType,
    HeaderKey,
    encode_block,
    encode_deletes,
    get_block_schema,
    read_blocks,
)
from reconciler.hudi.metadata import column_stats, record_encoder
from reconciler.hudi.metadata.column_stats import read_column_stats
from reconciler.hudi.metadata.index_keys import build_stats_keys
from reconciler.hudi.metadata.record_encoder import BoundWrapper, ColumnRange, RecordEncoder
from reconciler.hudi.metadata.table import open_metadata_table
from reconciler.hudi.timeline.active import Timeline
from reconciler.storage.open import open_storage
from tests.trees import unpack

INDEXED = Path(__file__).parent / "indexed"
MODEL = "org.apache.hudi.avro.model"
WRAPPINGS = {
    "n": BoundWrapper(
        wrapper=f"{MODEL}.LongWrapper", value_type={"typeOrdinal": 4, "additionalInfo": None}
    ),
    "ms": BoundWrapper(
        wrapper=f"{MODEL}.LongWrapper", value_type={"typeOrdinal": 15, "additionalInfo": None}
    ),
    "y": BoundWrapper(wrapper=f"{MODEL}.DoubleWrapper"),
}
FOLDER = ".hoodie/metadata/column_stats"
_number = count()


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    folder = unpack(INDEXED / "1.2.0.zip", tmp_path_factory.mktemp("indexed"))
    (path, *_) = sorted((folder / FOLDER).glob(".*_2*.log.*"))
    blocks = read_blocks(path.read_bytes(), path.name)
    return get_block_schema(next(b for b in blocks if b.type is BlockType.HFILE_DATA))


class Index:
    """A metadata table of version 9 in memory, with one file group."""

    def __init__(self, schema):
        self.schema = schema
        self.storage = open_storage(f"memory://stats/{next(_number)}")
        self.names = 0

    def cells(self, **files):
        """Return the entries of files: name -> bounds of a column."""
        made = RecordEncoder(schema=self.schema, path="")
        return sorted(
            cell
            for name, bounds in files.items()
            for column, (least, greatest) in bounds.items()
            for cell in made.encode_column_stats(
                "p",
                name,
                [
                    ColumnRange(
                        column=column,
                        least=least,
                        greatest=greatest,
                        values=10,
                        nulls=0,
                        size=1,
                        plain_size=1,
                    )
                ],
                WRAPPINGS,
            )
        )

    def base(self, **files):
        data = hfile_writer.encode_hfile(self.cells(**files), self.schema)
        self.put("col-stats-0000-0_0-0-0_{}.hfile", data)

    def log(self, **files):
        content = hfile_writer.encode_hfile(self.cells(**files), self.schema)
        self._block(BlockType.HFILE_DATA, content, (HeaderKey.SCHEMA, self.schema))

    def delete(self, column, name):
        (key,) = build_stats_keys([column], "p", [name])
        self._block(BlockType.DELETE, encode_deletes([key], "column_stats"))

    def _block(self, kind, content, *header):
        header = [(HeaderKey.INSTANT_TIME, f"2026010{self.names + 1}000000000"), *header]
        self.put(".col-stats-0000-0_{}.log.1_0-0-0", encode_block(kind, header, content))

    def put(self, name, data):
        """Write a file of the next instant."""
        self.names += 1
        time = f"2026010{self.names}000000000"
        line = f".hoodie/metadata/.hoodie/timeline/{time}_{time[:-1]}5.deltacommit"
        self.storage.create(line, b"")
        self.storage.create(f"{FOLDER}/{name.format(time)}", data)

    def told(self, *columns, names=("a", "b")):
        table = open_metadata_table(self.storage, version=9, data=Timeline.from_files([]))
        return {
            (columns[stats.column], names[file]): (least, greatest)
            for stats in read_column_stats(table, columns, [("p", list(names))])
            for file, least, greatest in zip(stats.file, stats.least, stats.greatest, strict=True)
        }


def test_the_last_written_entry_counts(schema):
    index = Index(schema)
    index.base(a={"n": (1, 2)}, b={"n": (3, 4)})
    index.log(b={"n": (5, 6)}, c={"n": (0, 0)})

    assert {("n", "a"): (1, 2), ("n", "b"): (5, 6)} == index.told("n")


def test_a_deleted_entry_is_unknown_until_it_is_written_again(schema):
    index = Index(schema)
    index.base(a={"n": (1, 2)}, b={"n": (3, 4), "y": (0.5, 1.5)})
    index.delete("n", "b")

    assert {("n", "a"): (1, 2), ("y", "b"): (0.5, 1.5)} == index.told("n", "y")

    index.log(b={"n": (7, 8)})

    assert (7, 8) == index.told("n")["n", "b"]


def test_unrequested_columns_are_left_out(schema):
    index = Index(schema)
    index.base(a={"n": (1, 2), "y": (0.5, 1.5)})

    assert {("y", "a"): (0.5, 1.5)} == index.told("y")
    assert {} == index.told("nobody")


def test_milliseconds_are_returned_as_microseconds(schema):
    index = Index(schema)
    index.base(a={"ms": (-1, 7)})

    assert {("ms", "a"): (-1000, 7000)} == index.told("ms")


@pytest.mark.parametrize("bounds", [(-0.0, 0.0), (float("nan"), float("nan"))])
def test_bounds_that_may_hide_nan_are_unknown(schema, bounds, monkeypatch):
    # as Hudi writes it; ours has infinity for NaN
    monkeypatch.setattr(record_encoder, "_replace_nan", lambda f: (f.least, f.greatest))
    index = Index(schema)
    index.base(a={"y": bounds}, b={"y": (0.0, 1.0)})

    assert {("y", "a"): (None, None), ("y", "b"): (0.0, 1.0)} == index.told("y")


def test_more_log_files_than_fit_are_not_read(schema, monkeypatch):
    index = Index(schema)
    index.base(a={"n": (1, 2)})
    index.log(b={"n": (5, 6)})
    monkeypatch.setattr(column_stats, "_MAX_LOG_BYTES", 100)

    with pytest.raises(UnsupportedError, match="let a writer compact the metadata table"):
        index.told("n")


def test_a_damaged_entry_names_its_file(schema):
    index = Index(schema)
    (cell,) = index.cells(a={"n": (1, 2)})
    index.put(
        "col-stats-0000-0_0-0-0_{}.hfile",
        hfile_writer.encode_hfile([(cell[0], b"\x7f" * 9)], schema),
    )

    with pytest.raises(FormatError, match="column_stats/col-stats-0000-0_0-0-0_2026"):
        index.told("n")
