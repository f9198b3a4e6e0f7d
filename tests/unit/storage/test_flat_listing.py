from __future__ import annotations

from threading import Event
from time import sleep

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.errors import NotFoundError
from reconciler.storage import flat_listing
from reconciler.storage.flat_listing import choose_prefixes, walk_prefixes
from tests.flat_store import FlatStore

FOLDERS = [f"dt=2026-{month:02d}-{day:02d}" for month in range(1, 13) for day in range(1, 29)]


@pytest.fixture
def lake():
    """A store with a folder for each day, files above and below them, and Hudi's own."""
    store = FlatStore()
    store.create_all({f"{folder}/{n}.parquet": b"1" * n for folder in FOLDERS for n in (1, 2)})
    store.create_all({f"{FOLDERS[7]}/h=1/a.parquet": b"x", "dt=2026-01-01": b"file", "f": b"yy"})
    store.create_all({f".hoodie/timeline/{n}.commit": b"" for n in range(1500)})
    store.create_all({f"{FOLDERS[3]}/1.parquet.crc": b"", "dt=2026-13/.x.parquet.crc": b""})
    return store


def walk(store, descend=lambda path: path != ".hoodie"):
    found = [(one.path, one.names, one.sizes) for one in store.open().walk(descend)]
    assert len({path for path, *_ in found}) == len(found)
    order = [path for path, *_ in found]
    assert all(order.index(path.rpartition("/")[0]) < at for at, path in enumerate(order) if path)
    return sorted((path, sorted(zip(names, sizes, strict=True))) for path, names, sizes in found)


def test_a_walk_by_prefixes_finds_what_one_listing_finds(lake, monkeypatch):
    at_once = walk(lake)
    prefixed = lake.counts["LIST"]
    lake.requests.clear()
    monkeypatch.setattr(flat_listing, "_FOLDERS_OF_A_PREFIX", 30)

    assert at_once == walk(lake)
    assert (4, 11) == (prefixed, lake.counts["LIST"])


@pytest.mark.parametrize("folder", [FOLDERS[7], "dt=2026-13", f"{FOLDERS[7]}/h=1"])
def test_a_folder_that_is_not_entered_is_not_in_either(lake, monkeypatch, folder):
    entered = walk(lake, {"", *FOLDERS, "dt=2026-13"}.difference([folder]).__contains__)
    monkeypatch.setattr(flat_listing, "_FOLDERS_OF_A_PREFIX", 30)

    assert entered == walk(lake, {"", *FOLDERS, "dt=2026-13"}.difference([folder]).__contains__)


@pytest.mark.parametrize("folders", [30, 1000])
def test_a_walk_asks_about_a_folder_once(lake, monkeypatch, folders):
    monkeypatch.setattr(flat_listing, "_FOLDERS_OF_A_PREFIX", folders)
    asked = []
    walk(lake, lambda path: asked.append(path) or path != ".hoodie")

    assert sorted({*FOLDERS, ".hoodie", "dt=2026-13", f"{FOLDERS[7]}/h=1"}) == sorted(asked)


def test_a_missing_table_is_an_error():
    with pytest.raises(NotFoundError, match="does not exist"):
        walk(FlatStore())


def test_very_many_small_folders_are_listed_in_pages_that_are_almost_full():
    store = FlatStore()
    folders = [f"p{number:05d}" for number in range(20_000)]
    store.create_all({f"{path}/{name}": b"" for path in folders for name in ("m", "f", "g")})
    walked = sum(1 for _folder in store.open().walk(lambda _: True))

    assert 20_001 == walked
    assert store.counts["LIST"] <= 1.2 * 60 + 20


def test_listings_under_way_end_at_their_page_when_a_walk_ends():
    has_begun, pages = Event(), []

    def list_objects(prefix):
        if prefix == "a":
            has_begun.wait(10)
            yield ["a/f"], [1]
            return
        for page in range(500):
            pages.append(page)
            has_begun.set()
            sleep(0.005)
            yield [f"b/{page}"], [1]

    folders = walk_prefixes(list_objects, ([], []), ["a", "b"], lambda _: True)
    assert ["", "a"] == [next(folders).path, next(folders).path]
    folders.close()

    assert 0 < len(pages) < 250


def test_an_error_of_one_prefix_ends_the_walk(lake, monkeypatch):
    monkeypatch.setattr(flat_listing, "_FOLDERS_OF_A_PREFIX", 30)
    call = lake.call_s3

    def fail_once(method, **arguments):
        if arguments["Prefix"] == "t/dt=2026-1":
            raise PermissionError("no")
        return call(method, **arguments)

    lake.call_s3 = fail_once
    with pytest.raises(Exception, match="no"):
        walk(lake)


@given(names=st.lists(st.text(alphabet="ab=0", min_size=1, max_size=5), max_size=40, unique=True))
def test_prefixes_cover_each_name_once(names):
    whole = {
        "_FOLDERS_OF_A_PREFIX": 2,
        "_MOST_PREFIXES": 8,
    }
    with pytest.MonkeyPatch.context() as patched:
        for name, value in whole.items():
            patched.setattr(flat_listing, name, value)
        prefixes = choose_prefixes(names)

    assert [1] * len(names) == [sum(f"{n}/".startswith(p) for p in prefixes) for n in names]
    assert len(prefixes) <= 8
