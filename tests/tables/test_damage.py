"""Every file of a table's .hoodie, damaged: a clear error or a plan that harms nothing.

An error names the damaged file. One about a readable property (``base file format RARQUET``, a
timeline folder that is not there) names what the property says instead.
"""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from pathlib import Path

import fastavro
import pytest

from reconciler.errors import ReconcilerError
from reconciler.planners.compose import plan_table
from reconciler.spec.model import Policy, Retention, TableSpec
from reconciler.state.observe import observe
from reconciler.storage.api import FolderListing, StorageEntry
from reconciler.storage.open import open_storage
from reconciler.storage.read_only import ReadOnlyStorage
from tests.selection import examples, long
from tests.trees import unpack

HERE = Path(__file__).parent
TABLES = (
    "v6_cow_part",
    "v6_mor_overlap",
    "v8_mor_part",
    "v9_cow_nopart",
    "v9_cow_part",
    "v9_mor_part",
)
NOW = datetime(2026, 11, 22, tzinfo=UTC)
#: files whose readable content decides which files a plan removes
SAYS_WHAT_IS_REPLACED = ("replacecommit", "clustering")
SAYS_WHAT_IS_SAVED = ("savepoint",)


class Remembered(ReadOnlyStorage):
    """A storage that nothing changes, asked for everything once; ``opened``: whose bytes it was."""

    def __init__(self, inner):
        super().__init__(inner)
        self.opened, self._known = set(), {}

    def read(self, path):
        self.opened.add(path)
        return self._once("read", path)

    def read_range(self, path, start, length):
        self.opened.add(path)
        return self._once("read_range", path, start, length)

    def stat(self, path):
        return self._once("stat", path)

    def list(self, folder):
        return self._once("list", folder)

    def _once(self, *call):
        if call not in self._known:
            self._known[call] = getattr(super(), call[0])(*call[1:])
        return self._known[call]


class Damaged(ReadOnlyStorage):
    """A storage in which one file has other bytes."""

    def __init__(self, inner, path, data):
        super().__init__(inner)
        self._path, self._data = path, data
        self._folder, _, self._name = path.rpartition("/")

    def read(self, path):
        return self._data if path == self._path else super().read(path)

    def read_range(self, path, start, length):
        if path != self._path:
            return super().read_range(path, start, length)
        start = max(0, start + len(self._data)) if start < 0 else start
        return self._data[start : start + length]

    def stat(self, path):
        found = super().stat(path)
        return self._resized(found) if found is not None and path == self._path else found

    def list(self, folder):
        entries = super().list(folder)
        if folder != self._folder:
            return entries
        return [self._resized(e) if e.name == self._name else e for e in entries]

    def walk(self, descend):
        for folder in super().walk(descend):
            if folder.path == self._folder and self._name in folder.names:
                sizes = list(folder.sizes)
                sizes[folder.names.index(self._name)] = len(self._data)
                yield FolderListing(folder.path, folder.names, sizes)
            else:
                yield folder

    def _resized(self, entry):
        return StorageEntry(entry.name, len(self._data), entry.modified_ms, entry.is_folder)


def damages(path, data):
    """Yield name and bytes of every damage of a file, the same in every run."""
    yield "emptied", b""
    few = path.startswith(".hoodie/metadata/")  # test_metadata_table damages these
    for share in (0.5,) if few else (0.02, 0.5, 0.95):
        at = int(len(data) * share)
        if 0 < at < len(data):
            yield f"cut at {at}", data[:at]
    chance = random.Random(path)
    for _ in range(1 if few else examples(2, many=5)):
        at, bit = chance.randrange(len(data)), chance.randrange(8)
        yield f"bit {bit} of byte {at}", _flipped(data, at, bit)


def _flipped(data, at, bit):
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def spec_of(root, name):
    return TableSpec(
        name=name,
        path=str(root),
        timezone="UTC",
        retention=Retention(policy=Policy.COMMITS, keep=1),
        document={"path": str(root), "retention": {"commits": 1}},
    )


def plan_with(storage, spec):
    state = observe(storage, spec, observed_ms=round(NOW.timestamp() * 1000))
    return plan_table(spec, state, NOW)


def removed(plan):
    """Return the rule of every file that the plan's clean removes, by name."""
    found = {}
    for step in plan.steps:
        if step.kind == "clean":
            names, rules = step.files.name.to_pylist(), step.files.rule.tolist()
            found |= dict(zip(names, rules, strict=True))
    return found


def newest_files(name):
    """Return the files of the newest slices by Hudi's view, merged ones too."""
    said = json.loads((HERE / f"{name}.expected.json").read_text())["fsview"]["partitions"]
    slices = [s for partition in said.values() for s in partition["latest"] + partition["merged"]]
    return {s[2] for s in slices if s[2]} | {log for s in slices for log in s[3]}


def savepointed_files(root):
    """Return the files in the savepoints of the undamaged table."""
    found = set()
    for file in (root / ".hoodie").rglob("*.savepoint"):
        with file.open("rb") as data:
            (said,) = fastavro.reader(data)
        for partition in said["partitionMetadata"].values():
            found |= set(partition["savepointDataFile"])
    return found


#: their timelines are that of v9_cow_nopart, their files those of v6_cow_part and v8_mor_part
ALIKE = ("v9_cow_part", "v9_mor_part")


@pytest.fixture(scope="module", params=[long(t) if t in ALIKE else t for t in TABLES])
def table(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    unpack(HERE / f"{request.param}.zip", folder, hollow=True)
    return request.param, folder / request.param


def test_no_damage_of_one_file_harms_a_table(table):
    name, root = table
    spec, storage = spec_of(root, name), Remembered(open_storage(str(root)))
    newest, saved = newest_files(name), savepointed_files(root)
    whole = removed(plan_with(storage, spec))
    opened = frozenset(storage.opened)
    files = [p for p in sorted((root / ".hoodie").rglob("*")) if p.is_file() and p.stat().st_size]
    files = [p for p in files if p.suffix != ".crc"]
    wrong, errors, same = [], 0, 0
    for file in files:
        path, data = file.relative_to(root).as_posix(), file.read_bytes()
        for what, bytes_ in damages(path, data):
            if path not in opened and len(bytes_) == len(data):
                same += 1  # planning opens no such file, so nothing changes
                continue
            try:
                found = removed(plan_with(Damaged(storage, path, bytes_), spec))
            except ReconcilerError as error:
                errors += 1
                if file.name not in str(error):
                    wrong.append((path, what, f"error names no file: {error}"))
                continue
            except Exception as error:  # noqa: BLE001 - any other is what this test is about
                wrong.append((path, what, repr(error)))
                continue
            same += found == whole
            lost = set(found) & harmless_to_none(path, found, newest, saved)
            if lost:
                wrong.append((path, what, f"would remove {sorted(lost)}"))

    assert [] == wrong
    assert errors >= examples(5, many=10)
    assert same > len(files)


def harmless_to_none(path, found, newest, saved):
    """Return the files that no damage of this file may cause to be removed."""
    if any(word in path for word in SAYS_WHAT_IS_REPLACED):
        replaced = {name for name, rule in found.items() if rule == 1}
        return (newest - replaced) | saved
    if any(word in path for word in SAYS_WHAT_IS_SAVED):
        return newest
    return newest | saved


def test_the_undamaged_tables_lose_no_new_or_savepointed_file(table):
    name, root = table
    found = removed(plan_with(open_storage(str(root)), spec_of(root, name)))

    assert set() == set(found) & (newest_files(name) | savepointed_files(root))
    assert name in ("v6_mor_overlap", "v9_cow_nopart") or found
