"""Every kind of file that is decoded, damaged: a FormatError that names it, or a value.

Each kind has one file of a real table. Cut short it is never a value but for texts that end a line;
with a bit flipped it may be one, since payloads carry no checksum.
"""

from __future__ import annotations

import io
import random
import time
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.errors import FormatError, NotFoundError, UnsupportedError
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.archive_v1 import read_archive
from reconciler.hudi.timeline.archive_v2 import read_history
from reconciler.hudi.timeline.clean import CleanerPlan, CleanMetadata
from reconciler.hudi.timeline.commit import CommitMetadata
from reconciler.hudi.timeline.instant import Instant
from reconciler.hudi.timeline.plans import RequestedReplace, parse_compaction
from reconciler.hudi.timeline.savepoint import SavepointMetadata
from reconciler.storage.api import StorageEntry
from tests.timeline_payloads import decode_instant_file

TABLES = Path(__file__).parent
#: seconds; a small payload takes longer only if a damaged length was followed
SECONDS = 2.0


def generic(suffix):
    """Return a parser for a timeline file that no product module reads."""
    instant = Instant.parse(f"20260101000000000.{suffix}")
    return lambda data, path: decode_instant_file(instant, data, path)


def replacecommit(data, path):
    return CommitMetadata.parse(data, path, replaces=True)


class Archive:
    """A source whose archive holds the files of a table, one of them replaced."""

    def __init__(self, files, path, data):
        self._files = files | {path: data}

    def list(self, folder):
        inside = (path.removeprefix(f"{folder}/") for path in self._files)
        return [StorageEntry(name, 1, 0, is_folder=False) for name in inside if "/" not in name]

    def read(self, path):
        if path not in self._files:
            raise NotFoundError(path, "is not there")
        return self._files[path]

    def read_range(self, path, start, length):
        return self.read(path)[start : start + length]


def archived(table, read):
    """Return a parser of one archive file together with the rest of the archive."""

    def parse(data, path):
        return list(read(Archive(files_of(table), path, data), path.rpartition("/")[0]))

    return parse


def files_of(table):
    with zipfile.ZipFile(TABLES / f"{table}.zip") as archive:
        prefix = f"{table}/.hoodie/"
        return {
            name.removeprefix(f"{table}/"): archive.read(name)
            for name in archive.namelist()
            if name.startswith(prefix)
            and "metadata/" not in name
            and not name.endswith(("/", ".crc"))
        }


#: table, end of the file's path, parser
KINDS = {
    "properties": ("v9_cow_part", "hoodie.properties", TableProperties.parse),
    "cleaner plan": ("v8_mor_part", ".clean.requested", CleanerPlan.parse),
    "clean metadata": ("v9_cow_part", ".clean", CleanMetadata.parse),
    "savepoint": ("v6_cow_part", ".savepoint", SavepointMetadata.parse),
    "compaction plan": ("v8_mor_part", ".compaction.requested", parse_compaction),
    "clustering plan": ("v9_cow_part", ".clustering.requested", RequestedReplace.parse),
    "overwrite plan": ("v6_cow_part", ".replacecommit.requested", RequestedReplace.parse),
    "commit, JSON": ("v6_cow_part", ".commit", CommitMetadata.parse),
    "commit, Avro": ("v9_cow_part", ".commit", CommitMetadata.parse),
    "replacecommit, JSON": ("v6_cow_part", ".replacecommit", replacecommit),
    "replacecommit, Avro": ("v9_cow_part", ".replacecommit", replacecommit),
    "rollback": ("v6_cow_part", ".rollback", generic("rollback")),
    "rollback plan": ("v9_cow_part", ".rollback.requested", generic("rollback.requested")),
    "restore": ("v8_mor_nopart", ".restore", generic("restore")),
    "indexing": ("v8_index", ".indexing", generic("indexing")),
    "archive": (
        "v6_cow_nopart",
        ".commits_.archive.1_1-0-1",
        archived("v6_cow_nopart", read_archive),
    ),
    "history": ("v9_cow_nopart", "_1.parquet", archived("v9_cow_nopart", read_history)),
    "manifest": ("v9_cow_nopart", "/manifest_", archived("v9_cow_nopart", read_history)),
}


def the_file(table, ending):
    """Return path and bytes of the smallest file of a kind, or of the current manifest."""
    found = {
        path: data
        for path, data in files_of(table).items()
        if data and (path.endswith(ending) or ending == "/manifest_" in path)
    }
    if ending == "/manifest_":
        path = max(found, key=lambda name: int(name.rpartition("_")[2]))
    else:
        path = min(found, key=lambda name: (len(found[name]), name))
    return path, found[path]


def outcome(parse, data, path):
    """Return the value or the FormatError; any other error fails the test."""
    started = time.process_time()
    try:
        return parse(data, path)
    except (FormatError, UnsupportedError, NotFoundError) as error:
        return error
    finally:
        assert time.process_time() - started < SECONDS


@pytest.fixture(params=KINDS)
def kind(request):
    table, ending, parse = KINDS[request.param]
    path, data = the_file(table, ending)
    assert not isinstance(outcome(parse, data, path), Exception)
    return request.param, parse, path, data


def test_a_truncated_file_is_not_read_as_whole(kind):
    name, parse, path, data = kind
    lengths = {0, 1, 4, len(data) - 1, *range(0, len(data), max(1, len(data) // 60))}
    taken = [
        n for n in sorted(lengths) if not isinstance(outcome(parse, data[:n], path), Exception)
    ]

    if name == "archive":  # as in Hudi, a truncated last block is a write that did not happen
        whole = len(parse(data, path))
        assert all(len(parse(data[:n], path)) < whole for n in taken)
    else:
        assert [] == taken


def test_a_flipped_bit_is_damage_or_a_value(kind):
    name, parse, path, data = kind
    chance = random.Random(name)
    for _ in range(150):
        at, bit = chance.randrange(len(data)), chance.randrange(8)
        found = outcome(parse, data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :], path)
        if isinstance(found, FormatError):
            said = str(found)
            assert path.rpartition("/")[2] in said or "manifest" in name, said
            assert len(said) < 500


def test_noise_is_damage(kind):
    name, parse, path, data = kind
    if name == "archive":
        pytest.skip("as in Hudi, a block that is none is passed over")
    chance = random.Random(name)
    for size in (1, 16, 300):
        noise = chance.randbytes(size)

        assert isinstance(outcome(parse, noise, path), FormatError)
        found = outcome(parse, data[:60] + noise + data[60:], path)
        assert isinstance(found, Exception) or name in ("properties", "commit, JSON")


def test_a_page_of_the_history_that_lost_a_bit_is_damage():
    rows = {"instantTime": ["1"], "completionTime": ["20260101000000000"], "action": ["commit"]}
    out = io.BytesIO()
    pq.write_table(
        pa.table(rows), out, compression="none", use_dictionary=False, write_page_checksum=True
    )
    files = {"h/manifest_1": b'{"files": [{"fileName": "1_1_0.parquet"}]}'}

    def read(data):
        (instant,) = read_history(Archive(files, "h/1_1_0.parquet", data), "h")
        return instant.completed

    assert "20260101000000000" == read(out.getvalue())
    with pytest.raises(FormatError, match="is not a history file"):
        read(out.getvalue().replace(b"20260101000000000", b"20260103000000000"))
