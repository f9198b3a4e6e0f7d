from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest

from reconciler.storage import cache_folder
from reconciler.storage.cache_folder import CachedDocument, CacheFolder


def document(number: int, size: int = 100) -> CachedDocument:
    buffers = [np.full(size, number, np.int32), np.full(3, number, np.int8), memoryview(b"")]
    return CachedDocument(data={"number": number, "size": size}, buffers=buffers)


def plain(found: CachedDocument | None) -> tuple | None:
    return None if found is None else (found.data, [bytes(buffer) for buffer in found.buffers])


def test_what_is_written_is_read(tmp_path):
    cache = CacheFolder(tmp_path / "new")
    cache.write("a", document(7))

    assert plain(document(7)) == plain(cache.read("a"))
    assert cache.read("b") is None


@pytest.mark.parametrize("at", [0, 3, 17, 25, 40, -1])
def test_a_flipped_bit_is_found(tmp_path, at):
    cache = CacheFolder(tmp_path)
    cache.write("a", document(7))
    (file,) = tmp_path.iterdir()
    content = bytearray(file.read_bytes())
    content[at] ^= 16
    file.write_bytes(content)

    assert cache.read("a") is None


@pytest.mark.parametrize("left", [0, 5, 33, 60])
def test_a_cut_file_is_found(tmp_path, left):
    cache = CacheFolder(tmp_path)
    cache.write("a", document(7))
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:left])

    assert cache.read("a") is None


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path):
    cache = CacheFolder(tmp_path)
    cache.write("a", document(7))
    (file,) = tmp_path.iterdir()
    file.unlink()
    os.mkfifo(file)
    ends_the_wait = threading.Timer(5, lambda: os.close(os.open(file, os.O_WRONLY)))
    ends_the_wait.daemon = True
    ends_the_wait.start()

    assert cache.read("a") is None
    assert ends_the_wait.is_alive(), "it waited for a writer"
    ends_the_wait.cancel()


def test_the_oldest_files_go_when_there_are_too_many_bytes(tmp_path, monkeypatch):
    cache = CacheFolder(tmp_path)
    cache.write("a", document(1))
    (file,) = tmp_path.iterdir()
    monkeypatch.setattr(cache_folder, "_MOST_BYTES", 2 * file.stat().st_size + 10)
    for use in (lambda: cache.write("b", document(2)), lambda: cache.read("a")):
        time.sleep(0.012)  # longer than a tick of the clock that stamps files
        use()
    time.sleep(0.012)
    cache.write("c", document(3))

    assert [True, False, True] == [cache.read(key) is not None for key in "abc"]


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").touch()
    cache = CacheFolder(tmp_path / "file")
    cache.write("a", document(1))

    assert cache.read("a") is None


def test_readers_see_a_whole_file_while_others_write(tmp_path):
    seen = []

    def work(number: int) -> None:
        cache = CacheFolder(tmp_path)
        for _ in range(10):
            cache.write("a", document(number, size=1000 * number))
            seen.append(plain(cache.read("a")))

    threads = [threading.Thread(target=work, args=(number,)) for number in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    whole = [plain(document(number, size=1000 * number)) for number in (1, 2, 3)]
    assert all(one in whole for one in seen if one is not None)
    assert any(one is not None for one in seen)
    assert [1] == [len(list(tmp_path.iterdir()))]
