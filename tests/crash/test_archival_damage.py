"""What an archival reads is cut, flipped or emptied: an error names it, or all is right."""

from __future__ import annotations

import os
import random

import pytest

from reconciler.errors import FormatError
from tests.crash.archival_drill import make_drill
from tests.selection import examples
from tests.trees import Tree

CASES = examples(1, many=250)
#: what is damaged: of both timelines, and of an archive that has files already
FILES = {
    "plans": "{timeline}/*.clean.requested",
    "metadata properties": ".hoodie/metadata/.hoodie/hoodie.properties",
    "instants": "{timeline}/*.*",
    "archives": "{archive}/*",
}


def damage(data, chance):
    """Return damaged bytes, and what was done to them."""
    how = chance.choice(["cut", "flip", "empty"]) if data else "empty"
    if how == "cut":
        return data[: chance.randrange(len(data))]
    if how == "flip":
        at, changed = chance.randrange(len(data)), bytearray(data)
        changed[at] ^= 1 << chance.randrange(8)
        return bytes(changed)
    return b""


#: tables, and the limits that archive a part of what can be
TABLES = {"0.15.0_cow": "7..8", "1.2.0_cow": "12..13"}


@pytest.fixture(params=TABLES)
def it(tmp_path, request):
    """A table of which a part is archived, so that its archive is read."""
    it = make_drill(request.param, tmp_path / "it", keep=TABLES[request.param])
    it.apply(it.plan())
    return make_again(it, keep="1..2")


def make_again(it, **said):
    return type(it)(it.folder, {**it.said, **said})


def read_archived(it):
    """Return the archived instants, or the error of a file that cannot be read."""
    try:
        return it.archived()
    except FormatError as error:
        return str(error)


@pytest.mark.parametrize("kind", FILES)
def test_a_damaged_file_is_named_or_does_no_harm(it, kind):
    own = next(iter(it.timelines))
    pattern = FILES[kind].format(timeline=own.timeline_folder, archive=own.archive_folder)
    paths = sorted(path for path in it.table.glob(pattern) if path.is_file())
    chance, tree = random.Random(kind), Tree.from_folder(it.folder)
    before = it.active()

    for case in range(CASES if paths else 0):
        it.begin_again(tree)
        path = chance.choice(paths)
        time_ns = path.stat().st_mtime_ns  # version 6 takes it for the time of completion
        path.write_bytes(damage(path.read_bytes(), chance))
        os.utime(path, ns=(time_ns, time_ns))
        plan = it.plan()
        (told,) = it.apply(plan).tables if plan.tables[0].error is None else plan.tables
        if told.error is not None:
            assert ".hoodie" in told.error or path.name in told.error, (case, path, told.error)
            continue
        archived = read_archived(it)
        if isinstance(archived, str):  # of an older file, which an archival does not read
            assert path.name in archived
            continue
        known = zip(before, it.active(), archived, strict=True)
        assert all(one <= active | set(old) for one, active, old in known), (case, path)
        assert before != it.active(), (case, path)
