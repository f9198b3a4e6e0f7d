"""Versions, footers and stores that are damaged: reads go on, the next apply builds what it can."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.errors import PermissionDeniedError, StorageError
from reconciler.index.codec import Provenance, encode_index
from reconciler.index.version_store import list_versions, publish_version, read_newest
from reconciler.index.versions import FOLDER
from reconciler.status.index import index_status
from reconciler.storage.api import DeletionResult, Storage
from reconciler.transaction.recovery.finished_runs import remove_old_index_versions
from tests.crash.index_drill import IndexDrill, get_index_outcome, make_index_drill
from tests.storage_wrappers import RecordingStorage, StorageCall, _StorageWrapper

TABLES = Path(__file__).parents[1] / "tables"


@pytest.fixture
def it(tmp_path) -> IndexDrill:
    """A table with an index."""
    it = make_index_drill(TABLES / "indexed/1.2.0.zip", tmp_path / "t", index="[i, s, d, ts]")
    it.apply(it.plan())
    return it


def file_of(it: IndexDrill) -> Path:
    (name,) = it.versions()
    (file,) = (it.table / FOLDER / name).iterdir()
    return file


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-9])


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def with_a_bit_flipped(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 4
    file.write_bytes(data)


def of_another_format(file: Path) -> None:
    file.write_bytes(b"PAR1" + b"\0" * (file.stat().st_size - 8) + b"PAR1")


def a_folder_instead(file: Path) -> None:
    file.unlink()
    (file / "below").mkdir(parents=True)


def gone(file: Path) -> None:
    file.unlink()


DAMAGE = [cut_short, emptied, with_a_bit_flipped, of_another_format, a_folder_instead, gone]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_version_is_read_past_and_built_anew(it, damage: Callable[[Path], None]):
    first = file_of(it)
    damage(first)

    assert None is read_newest(it.storage, list_versions(it.storage))
    assert ["index"] == it.steps()
    done = get_index_outcome(it.apply(it.plan()))
    assert (3, 3, 0) == (done.files, done.footers, done.kept)
    assert [] == it.steps() == it.problems("i >= 1")
    assert 1 == len(it.versions())
    assert (5 if damage is a_folder_instead else 2) == len(it.below())


def test_of_a_damaged_version_and_an_older_one_only_what_is_lacking_is_read(it):
    newer = file_of(it).parent.with_name("20990101000000000_0")
    shutil.copytree(file_of(it).parent, newer)
    with_a_bit_flipped(next(newer.iterdir()))

    done = get_index_outcome(it.apply(it.plan()))

    assert (3, 0, 3, 2) == (done.files, done.footers, done.kept, done.tidied)
    assert ["20990101000000000_1"] == it.versions()
    assert [] == it.steps() == it.problems("i >= 1")


def test_only_a_version_that_can_be_read_supersedes_others(it):
    """What removes leftovers runs before an index is looked at."""
    whole = file_of(it)
    newer = whole.parent.with_name("20990101000000000_0")
    shutil.copytree(whole.parent, newer)
    with_a_bit_flipped(next(newer.iterdir()))

    remove_old_index_versions(it.storage)

    assert whole.exists()


def base_files(it: IndexDrill) -> list[Path]:
    return sorted(path for path in it.table.glob("p=*/*.parquet"))


def test_a_footer_that_cannot_be_read_is_unknown_and_said(tmp_path):
    it = make_index_drill(TABLES / "indexed/1.2.0.zip", tmp_path / "t", index="[i, s]")
    bad, *_ = base_files(it)
    data = bytearray(bad.read_bytes())
    data[-4:] = b"JUNK"
    bad.write_bytes(data)

    result = it.apply(it.plan())

    done = get_index_outcome(result)
    (table,) = result.tables
    (outcome,) = table.outcomes
    assert (0, 3, 3, 1) == (result.exit_code, done.files, done.footers, done.unread)
    said = (
        f"nothing is known of 1 file, so every read opens it: {bad.relative_to(it.table)}: it does "
        "not end like a Parquet file; restore the file from a copy"
    )
    assert [said] == [note.because for note in outcome.warnings]
    found = read_newest(it.storage, list_versions(it.storage))
    assert found is not None
    assert [-1, 1, 1] == sorted(min(rows, 1) for rows in found[1].rows.tolist())
    assert [] == it.steps()


def test_a_footer_that_is_readable_again_is_read(tmp_path):
    it = make_index_drill(TABLES / "indexed/1.2.0.zip", tmp_path / "t", index="[i, s]")
    bad, *_ = base_files(it)
    good = bad.read_bytes()
    bad.write_bytes(good[:-4] + b"JUNK")
    it.apply(it.plan())
    bad.write_bytes(good)
    more = it.now(index="[i, s, d]")

    done = get_index_outcome(more.apply(more.plan()))

    assert (3, 0) == (done.footers, done.unread)
    assert [] == more.steps() == more.problems("i >= 1")


class Refusing(_StorageWrapper):
    """Refuses some calls with an error."""

    def __init__(
        self, inner: Storage, refuses: Callable[[StorageCall], bool], error: Exception
    ) -> None:
        super().__init__(inner)
        self._refuses, self._error = refuses, error

    def _intercept(self, call, act, torn=None):  # noqa: ARG002 (the wrapper's)
        if self._refuses(call):
            raise self._error
        return act()


def of_the_index(method: str) -> Callable[[StorageCall], bool]:
    return lambda call: call.method == method and FOLDER in call.paths[0]


DENIED = PermissionDeniedError("/lake/t/.hoodie/.zindex", "may not be written; give it the right")


def test_an_index_that_may_not_be_written_is_said_and_the_clean_goes_on(tmp_path):
    said = {"index": "[id]", "retention": "fileVersions: 1"}
    it = make_index_drill(TABLES / "v9_cow_nopart.zip", tmp_path / "t", **said)

    assert ["index", "clean"] == it.steps()
    refusing = of_the_index("create")
    result = it.apply(it.plan(), around=lambda s: Refusing(s, refusing, DENIED))

    (table,) = result.tables
    index, clean = table.outcomes
    assert ("failed", str(DENIED)) == (index.how, index.indexed.error)
    assert ("completed", True) == (clean.how, clean.removed > 0)
    assert (5, None) == (result.exit_code, table.error)
    assert ["index"] == it.steps()
    assert 0 == it.apply(it.plan()).exit_code
    assert [] == it.steps() == it.problems("id >= 50")


def test_a_file_in_place_of_the_folder_is_as_good_as_no_index_and_stops_nothing_else(tmp_path):
    said = {"index": "[id]", "retention": "fileVersions: 1"}
    it = make_index_drill(TABLES / "v9_cow_nopart.zip", tmp_path / "t", **said)
    (it.table / FOLDER).write_bytes(b"")

    result = it.apply(it.plan())

    index, clean = result.tables[0].outcomes
    assert (5, "failed", "completed") == (result.exit_code, index.how, clean.how)
    said = "is a file, but must be the folder of the index; remove it and apply again"
    assert f"{it.table / FOLDER}: {said}" == index.indexed.error
    assert ["index"] == it.steps()


def test_a_file_in_place_of_the_next_version_is_left_alone_and_the_index_goes_beside_it(tmp_path):
    it = make_index_drill(TABLES / "indexed/1.2.0.zip", tmp_path / "t", index="[i]")
    it.apply(it.plan())
    version = file_of(it).parent
    shutil.rmtree(version)
    version.write_bytes(b"not ours")

    assert 0 == it.apply(it.plan()).exit_code
    assert [] == it.steps() == it.problems("i >= 1")
    assert b"not ours" == version.read_bytes()


def of_folders(it: IndexDrill) -> list[str]:
    return [note.because for note in it.plan().tables[0].warnings if note.rule == "indexFolder"]


def test_an_empty_folder_in_place_of_a_version_s_file_goes_with_the_next_apply(it):
    file = file_of(it)
    file.unlink()
    file.mkdir()

    (outcome,) = it.apply(it.plan()).tables[0].outcomes
    assert (None, ()) == (outcome.indexed.error, outcome.warnings)
    assert (False, 1) == (file.is_dir(), len(it.versions()))
    assert [] == of_folders(it) == it.steps()


def test_a_folder_with_somebody_s_files_in_place_of_a_version_s_is_named_until_it_is_gone(it):
    file = file_of(it)
    a_folder_instead(file)
    path = file.relative_to(it.table)
    says = f"{path}: is a folder inside an index version; remove it and its contents"

    (outcome,) = it.apply(it.plan()).tables[0].outcomes
    assert [f"an older index could not be removed: {says}"] == [
        note.because for note in outcome.warnings
    ]
    assert [says] == of_folders(it)
    assert [] == it.steps()
    remove_old_index_versions(it.storage)
    assert (file / "below").is_dir()

    (file / "below").rmdir()
    remove_old_index_versions(it.storage)
    assert [] == of_folders(it)
    assert 1 == len(it.versions())


@pytest.mark.parametrize("method", ["delete_many", "remove_folder"])
def test_old_versions_that_may_not_be_removed_are_said_and_go_with_the_next_apply(it, method):
    more = it.now(index="[i]")
    old = file_of(it)

    def around(storage: Storage) -> Storage:
        if method == "delete_many":  # it tells of paths, and raises nothing
            return Undeletable(storage, old.name)
        return Refusing(storage, of_the_index(method), DENIED)

    result = more.apply(more.plan(), around=around)

    (outcome,) = result.tables[0].outcomes
    assert (0, "completed", 1) == (result.exit_code, outcome.how, len(outcome.warnings))
    assert [] == more.steps() == more.problems("i >= 1")
    more.apply(more.plan())
    assert 1 == len(list_versions(more.storage).version_files)


class Undeletable(_StorageWrapper):
    """Cannot delete files of a name."""

    def __init__(self, inner: Storage, name: str) -> None:
        super().__init__(inner)
        self._name = name

    def delete_many(self, paths):
        if any(path.endswith(self._name) for path in paths):
            return [
                DeletionResult(path, existed=False, error="permission denied") for path in paths
            ]
        return super().delete_many(paths)

    def _intercept(self, call, act, torn=None):  # noqa: ARG002 (the wrapper's)
        return act()


def test_where_the_index_cannot_be_listed_afterwards_nothing_is_taken_for_done(it):
    more = it.now(index="[i]")
    created: list[bool] = []

    def refuses(call: StorageCall) -> bool:
        if of_the_index("create")(call):
            created.append(True)
        return bool(created) and call.method == "list" and FOLDER in call.paths[0]

    error = StorageError("/lake/t/.hoodie/.zindex", "the store does not answer")
    result = more.apply(more.plan(), around=lambda s: Refusing(s, refuses, error))

    (outcome,) = result.tables[0].outcomes
    assert (5, "failed", str(error)) == (result.exit_code, outcome.how, outcome.indexed.error)
    assert [] == more.steps() == more.problems("i >= 1")
    more.apply(more.plan())
    assert 1 == len(more.versions())


class Racing(_StorageWrapper):
    """Another process publishes just before we do; ``size``: whether in a file of our name."""

    def __init__(self, inner: Storage, it: IndexDrill, times: int, *, is_same_file: bool) -> None:
        super().__init__(inner)
        self._it, self._left, self._is_same = it, times, is_same_file

    def _intercept(self, call, act, torn=None):  # noqa: ARG002 (the wrapper's)
        if of_the_index("create")(call) and self._left:
            self._left -= 1
            self._publish(call.paths[0])
        return act()

    def _publish(self, path: str) -> None:
        versions = list_versions(self._inner)
        found = read_newest(self._inner, versions)
        assert found is not None
        said = Provenance(table="t", instant=found[0].name.instant, tool="another one, longer")
        data = encode_index(found[1], said).to_pybytes()
        if self._is_same:
            self._inner.create(path, b"x" * int(path.rsplit("-", maxsplit=1)[-1].partition(".")[0]))
        else:
            publish_version(self._inner, versions, found[0].name.instant, data)


@pytest.mark.parametrize("is_same_file", [True, False])
def test_of_two_applies_at_once_the_second_builds_on_the_first(it, is_same_file):
    more = it.now(index="[i, s]")

    result = more.apply(more.plan(), around=lambda s: Racing(s, more, 1, is_same_file=is_same_file))

    assert (0, None) == (result.exit_code, result.tables[0].error)
    done = get_index_outcome(result)
    assert (("i", "s"), 0, 3) == (done.columns, done.footers, done.kept)
    assert 1 == len(more.versions()) == len(list_versions(more.storage).version_files)
    assert [] == more.steps() == more.problems("i >= 1")


def test_who_is_overtaken_again_and_again_gives_up(it):
    more = it.now(index="[i, s]")

    result = more.apply(more.plan(), around=lambda s: Racing(s, more, 99, is_same_file=True))

    (outcome,) = result.tables[0].outcomes
    assert (5, "failed") == (result.exit_code, outcome.how)
    assert (
        "others published an index 8 times while this one was being built; run apply again"
        == outcome.indexed.error
    )


def test_a_column_that_cannot_be_indexed_any_more_is_left_out(it):
    more = it.now(index="[i, s]")
    plan = more.plan()
    (table,) = plan.tables
    (step,) = table.steps
    gone = replace(step, columns=("i", "gone"))
    result = more.apply(replace(plan, tables=(replace(table, steps=(gone,)),)))

    done = get_index_outcome(result)
    assert (4, ("i",)) == (result.exit_code, done.columns)
    assert [("gone", "the spec does not declare column gone")] == [
        (note.column, note.because) for note in done.left
    ]


def test_an_index_step_of_a_spec_without_an_index_is_refused(it):
    plan = it.now(index="[i]").plan()
    (table,) = plan.tables
    spec = {key: value for key, value in table.spec.items() if key != "index"}
    edited = replace(plan, tables=(replace(table, spec=spec),))

    (result,) = it.apply(edited).tables

    assert (1, (), "t: its spec has no index block, and the plan an index step") == (
        result.exit_code,
        result.outcomes,
        result.error,
    )


def test_the_same_plan_again_has_nothing_to_do(it):
    more = it.now(index="[i]")
    plan = more.plan()
    more.apply(plan)
    counted: list[RecordingStorage] = []

    result = more.apply(plan, around=lambda s: counted.append(RecordingStorage(s)) or counted[-1])

    (outcome,) = result.tables[0].outcomes
    assert (0, "nothing", None) == (result.exit_code, outcome.how, outcome.indexed.version)
    assert [] == [call for call in counted[0].mutations if FOLDER in call.paths[0]]


def of_a_newer_format(file: Path) -> Path:
    """The same index as a later version of reconciler writes it."""
    parquet = pq.ParquetFile(file)
    said = parquet.metadata.metadata[b"reconciler.index"]
    pairs = {b"reconciler.index": said.replace(b'"format":1', b'"format":2')}
    sink = pa.BufferOutputStream()
    pq.write_table(parquet.read().replace_schema_metadata(pairs), sink)
    data = sink.getvalue().to_pybytes()
    parquet.close()
    file.unlink()
    newer = file.with_name(f"index-{len(data)}.parquet")
    newer.write_bytes(data)
    return newer


NEWER = "its format is 2, and this version of reconciler knows format 1; upgrade reconciler"


def test_a_version_of_a_newer_format_is_left_alone(it):
    """Whoever has a later version of reconciler keeps the index: we add nothing to it."""
    newer = of_a_newer_format(file_of(it))
    data = newer.read_bytes()
    plan = it.now(index="[i]").plan()

    assert ["newerIndex"] == [note.rule for note in plan.tables[0].warnings]
    assert NEWER in plan.tables[0].warnings[0].because
    assert [] == it.steps() == it.now(index="[i]").steps()
    remove_old_index_versions(it.storage)
    it.apply(plan)
    assert (1, data) == (len(it.versions()), newer.read_bytes())
    status = index_status(it.state())
    assert status is not None
    assert (None, 1) == (status.file, len(status.damaged))
    assert NEWER in status.damaged[0]


def test_a_reviewed_step_leaves_a_version_of_a_newer_format_alone(tmp_path):
    it = make_index_drill(TABLES / "indexed/1.2.0.zip", tmp_path / "t", index="[i, s, d, ts]")
    reviewed = it.plan()
    it.apply(it.plan())
    newer = of_a_newer_format(file_of(it))

    result = it.apply(reviewed)

    assert 0 == result.exit_code
    (outcome,) = result.tables[0].outcomes
    assert "nothing" == outcome.how
    assert [NEWER in note.because for note in outcome.warnings] == [True]
    assert newer.exists()
    assert 1 == len(it.versions())


def test_an_older_version_of_a_newer_format_stays_too(it):
    other = file_of(it).parent.with_name("20000101000000000_0")
    shutil.copytree(file_of(it).parent, other)
    newer = of_a_newer_format(next(other.iterdir()))

    remove_old_index_versions(it.storage)

    assert newer.exists()
    assert 2 == len(it.versions())
