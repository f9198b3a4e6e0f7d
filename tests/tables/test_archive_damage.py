"""Archives that we wrote, and the files they are made of, damaged: an error that names the file.

What is read in spite of damage is right in layout 2, whose pages have checksums. In layout 1 a cut
hides instants, as in Hudi, and adds none.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.errors import FormatError, NotFoundError, UnsupportedError
from reconciler.hudi.timeline.archive_merge import MERGE_PLAN, ArchiveMerge, merge_archive_files
from reconciler.hudi.timeline.archive_v1 import read_archive
from reconciler.hudi.timeline.archive_v2 import read_history
from reconciler.hudi.timeline.archive_writer_v1 import encode_archive_file
from reconciler.hudi.timeline.archive_writer_v2 import encode_lsm_file, name_lsm_file
from reconciler.hudi.timeline.history_manifest import HistoryFile, HistoryManifest
from reconciler.storage.api import StorageEntry
from tests.archivable import load_archivable
from tests.selection import examples
from tests.trees import unpack

TABLES = Path(__file__).parent
CASES = examples(40, many=1000)
ARCHIVE, MERGED = ".commits_.archive.1_1-0-1", ".commits_.archive.2_1-0-1"


class Files:
    """A folder in memory."""

    def __init__(self, files):
        self._files = files

    def list(self, _folder):
        return [StorageEntry(name, 1, 0, is_folder=False) for name in self._files]

    def read(self, path):
        name = path.rpartition("/")[2]
        if name not in self._files:
            raise NotFoundError(path, "is not there")
        return self._files[name]


def load(name, folder):
    table = unpack(TABLES / f"{name}.zip", folder, hollow=True) / name
    layout2 = table / ".hoodie" / "timeline"
    return load_archivable(layout2 if layout2.is_dir() else table / ".hoodie")


@pytest.fixture(scope="module")
def instants_v1(tmp_path_factory):
    return load("v6_mor_nopart", tmp_path_factory.mktemp("v1"))


@pytest.fixture(scope="module")
def instants_v2(tmp_path_factory):
    return load("v8_mor_nopart", tmp_path_factory.mktemp("v2"))


def damage(data, chance):
    """Return how the bytes were damaged, and the damaged ones."""
    at = chance.randrange(len(data))
    how = chance.choice(["cut", "flipped", "flipped", "overwritten", "emptied"])
    match how:
        case "cut":
            return how, data[:at]
        case "flipped":
            return how, data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
        case "overwritten":
            noise = chance.randbytes(min(16, len(data) - at))
            return how, data[:at] + noise + data[at + len(noise) :]
        case _:
            return how, b""


def damage_one(files, chance):
    """Return the name of a damaged file, how it was damaged, and the files with it."""
    name = chance.choice(sorted(files))
    how, data = damage(files[name], chance)
    return name, how, files | {name: data}


def outcome(act, *arguments):
    """Return what a function returns, or the text of the error that it raises."""
    try:
        return act(*arguments)
    except (FormatError, UnsupportedError) as error:
        return str(error)


def names_file(message, name):
    return name in message and len(message) < 500


def test_a_damaged_history_is_an_error_or_the_right_timeline(instants_v2):
    halves = instants_v2[::2], instants_v2[1::2]
    files = {name_lsm_file(half): encode_lsm_file(half) for half in halves}
    listed = tuple(HistoryFile(name=name, size=len(data)) for name, data in files.items())
    files |= {"manifest_7": HistoryManifest(files=listed).encode(), "_version_": b"7"}
    chance, errors = random.Random("history"), 0

    def read(files):
        return sorted(read_history(Files(files), "h"))

    assert len(instants_v2) == len(read(files))
    for _ in range(CASES):
        name, how, damaged = damage_one(files, chance)
        found = outcome(read, damaged)
        if isinstance(found, str):  # a manifest with another digit lists a file that is not there
            assert names_file(found, name) or name == "manifest_7", (name, how, found)
            errors += 1
        else:
            assert read(files) == found, (name, how)
    assert errors > CASES // 3


def test_a_damaged_archive_is_an_error_or_hides_instants_as_in_hudi(instants_v1):
    files = {
        ARCHIVE: encode_archive_file(instants_v1[:4]),
        MERGED: encode_archive_file(instants_v1),
        MERGE_PLAN: ArchiveMerge(sources=(".gone", ARCHIVE), target=MERGED).encode("/t"),
    }
    chance, errors = random.Random("archive"), 0

    def read(files):
        return list(read_archive(Files(files), "a"))

    expected = read(files)
    assert 3 * len(instants_v1) == len(expected)
    for _ in range(CASES):
        name, how, damaged = damage_one(files, chance)
        found = outcome(read, damaged)
        if isinstance(found, str):
            assert names_file(found, name), (name, how, found)
            errors += 1
        elif name != MERGED:
            assert set(found) == set(expected), (name, how)
        elif how in ("cut", "emptied"):
            assert found == expected[: len(found)], (name, how)
    assert errors > CASES // 9


def test_a_damaged_file_is_not_merged(instants_v1):
    whole = encode_archive_file(instants_v1)
    chance, errors = random.Random("merge"), 0
    for _ in range(CASES):
        how, data = damage(whole, chance)
        found = outcome(merge_archive_files, [("a/1", whole), ("a/2", data)])
        if isinstance(found, str):
            assert names_file(found, "a/2"), (how, found)
            errors += 1
        else:  # a bit of a text, or a cut where a block ends
            assert whole + data == found
    assert errors > CASES // 3


@pytest.mark.parametrize(
    ("instants", "encode"),
    [("instants_v1", encode_archive_file), ("instants_v2", encode_lsm_file)],
)
def test_a_damaged_file_of_an_instant_is_not_archived(request, instants, encode):
    chance, errors = random.Random(instants), 0
    fields = ("requested_bytes", "inflight_bytes", "completed_bytes")
    for _ in range(CASES):
        instant = chance.choice(request.getfixturevalue(instants))
        field = chance.choice([name for name in fields if getattr(instant, name)])
        how, data = damage(getattr(instant, field), chance)
        found = outcome(encode, [replace(instant, **{field: data})])
        if isinstance(found, str):
            assert names_file(found, instant.requested), (field, how, found)
            errors += 1
        else:
            assert how != "cut" or not data, (field, how)
    assert errors > CASES // 3
