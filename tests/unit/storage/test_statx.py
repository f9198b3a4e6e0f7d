"""Sizes of many files at once are those that the system tells of each."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from reconciler.errors import StorageError
from reconciler.storage import local_entries, statx
from reconciler.storage.local import LocalStorage

NAMES = [
    "a.parquet",
    "with space.parquet",
    "größe.parquet",
    "日本.log",
    ".f.log.1_0-1-2",
    "x" * 255,
]


def fill(folder, names, start=0):
    """Write files, each with a size of its own; return the sizes by name."""
    folder.mkdir(exist_ok=True)
    for number, name in enumerate(names):
        (folder / name).write_bytes(b"." * (start + number))
    return {name: start + number for number, name in enumerate(names)}


def read_sizes(folder, names):
    found = read(folder, names)
    return None if found is None else found[1]


def read(folder, names):
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return statx.read_modes_and_sizes(handle, names)
    finally:
        os.close(handle)


@pytest.mark.parametrize("count", [1, 511, 512, 513, 1100])
def test_sizes_are_those_of_the_files_in_the_order_of_their_names(tmp_path, count):
    sizes = fill(tmp_path, [f"{number}.parquet" for number in range(count)])
    names = sorted(sizes)

    assert [sizes[name] for name in names] == read_sizes(tmp_path, names)


def test_names_may_have_any_letters(tmp_path):
    sizes = fill(tmp_path, NAMES)

    assert list(sizes.values()) == read_sizes(tmp_path, list(sizes))


def test_a_large_file_has_its_size(tmp_path):
    with (tmp_path / "a").open("wb") as file:
        file.truncate(5_000_000_001)

    assert [5_000_000_001] == read_sizes(tmp_path, ["a"])


def make_folder(path):
    path.mkdir()


def make_link(path):
    path.symlink_to(path.parent / "a.parquet")


def make_pipe(path):
    os.mkfifo(path)


@pytest.mark.parametrize("make", [make_folder, make_link, make_pipe])
@pytest.mark.parametrize("before", [0, 5, 600])
def test_modes_are_those_of_the_entries_and_not_of_what_links_point_to(tmp_path, make, before):
    names = [*fill(tmp_path, [f"{number}" for number in range(before)]), "a.parquet", "odd"]
    fill(tmp_path, ["a.parquet"])
    make(tmp_path / "odd")

    modes, sizes = read(tmp_path, names)
    told = [os.lstat(tmp_path / name) for name in names]
    assert ([one.st_mode for one in told], [one.st_size for one in told]) == (modes, sizes)


@pytest.mark.parametrize("before", [0, 5, 600])
def test_a_file_that_is_gone_lets_all_be_asked_for_one_by_one(tmp_path, before):
    sizes = fill(tmp_path, [f"{number}" for number in range(before)])

    assert read(tmp_path, [*sizes, "gone"]) is None


def test_a_name_that_is_no_utf_8_lets_all_be_asked_for_one_by_one(tmp_path):
    name = os.fsdecode(b"\xff.parquet")
    fill(tmp_path, [name])

    assert read(tmp_path, [name]) is None


def test_names_of_a_system_with_another_encoding_are_not_taken_for_utf_8(monkeypatch):
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: "iso8859-1")

    assert statx._find_statx() is None


LIST_WITHOUT_CTYPES = """
import sys
sys.modules["_ctypes"] = None
from reconciler.storage.local import LocalStorage
[folder] = LocalStorage(sys.argv[1]).walk(lambda _path: True)
print(sum(folder.sizes))
"""


def test_a_python_without_ctypes_asks_one_by_one(tmp_path):
    sizes = fill(tmp_path / "t", [f"{number}.parquet" for number in range(40)])
    command = [sys.executable, "-c", LIST_WITHOUT_CTYPES, str(tmp_path / "t")]
    done = subprocess.run(command, capture_output=True, check=False, text=True)

    assert (f"{sum(sizes.values())}\n", "") == (done.stdout, done.stderr)


def test_a_signal_that_lists_another_folder_changes_no_answer(tmp_path):
    names = [f"{number}.parquet" for number in range(200)]
    ours, others = fill(tmp_path / "a", names), fill(tmp_path / "b", names, start=5000)
    answers, wrong = [], []

    def list_other(*_):
        [folder] = LocalStorage(str(tmp_path / "b")).walk(lambda _path: True)
        answers.append(dict(zip(folder.names, folder.sizes, strict=True)))

    before = signal.signal(signal.SIGALRM, list_other)
    try:
        for number in range(600):
            signal.setitimer(signal.ITIMER_REAL, 0.00001 * (1 + number % 60))
            found = read_sizes(tmp_path / "a", names)
            wrong += [found] * (found != list(ours.values()))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert ([], True) == (wrong, len(answers) > 100)
    assert all(one == others for one in answers)


def test_a_system_that_refuses_the_function_is_asked_for_each(tmp_path, monkeypatch):
    """Some containers do not let programs call it."""
    sizes = fill(tmp_path / "t", [f"{n}.parquet" for n in range(40)])
    monkeypatch.setattr(statx, "_STATX", lambda *_: -1)
    [folder] = LocalStorage(str(tmp_path / "t")).walk(lambda _path: True)

    assert sizes == dict(zip(folder.names, folder.sizes, strict=True))


def test_threads_do_not_see_the_answers_of_others(tmp_path):
    names = [f"{number}.parquet" for number in range(300)]
    folders = {start: fill(tmp_path / str(start), names, start) for start in (0, 1000, 5000, 9000)}
    wrong = []

    def compare(start):
        found = [read_sizes(tmp_path / str(start), names) for _round in range(40)]
        wrong.extend(sizes for sizes in found if sizes != list(folders[start].values()))

    threads = [threading.Thread(target=compare, args=[start]) for start in folders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == wrong


@pytest.mark.parametrize("least", [1, 10**6])
def test_a_listing_is_the_same_at_once_and_one_by_one(tmp_path, monkeypatch, least):
    monkeypatch.setattr(local_entries, "_MANY", least)
    sizes = fill(tmp_path, [*NAMES, ".hidden.crc", os.fsdecode(b"\xfe.parquet")], start=3)
    del sizes[".hidden.crc"]
    (tmp_path / ".odd.crc").mkdir()
    inner = fill(tmp_path / "p=1", [".hoodie_partition_metadata", *NAMES], start=7)
    root, *below = sorted(
        LocalStorage(str(tmp_path)).walk(lambda _path: True), key=lambda folder: folder.path
    )

    assert (sizes, "") == (dict(zip(root.names, root.sizes, strict=True)), root.path)
    assert [".odd.crc", "p=1"] == [folder.path for folder in below]
    assert inner == dict(zip(below[1].names, below[1].sizes, strict=True))
    assert all(folder.names == sorted(folder.names) for folder in below)


@pytest.mark.parametrize("least", [1, 10**6])
@pytest.mark.parametrize(
    ("make", "words"), [(make_link, "symbolic link"), (make_pipe, "neither a file nor a folder")]
)
def test_what_is_no_file_is_named(tmp_path, monkeypatch, least, make, words):
    monkeypatch.setattr(local_entries, "_MANY", least)
    fill(tmp_path, [f"{number}.parquet" for number in range(20)])
    make(tmp_path / "odd.parquet")

    with pytest.raises(StorageError, match=rf"odd\.parquet: is (a )?{words}"):
        list(LocalStorage(str(tmp_path)).walk(lambda _path: True))
