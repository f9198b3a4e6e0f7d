"""Which locations are one place: for policies, duplicates, reviewed plans and stores."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import fsspec
import pytest
from fsspec.registry import known_implementations
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.errors import StorageError
from reconciler.spec.locations import compile_glob, resolve_location
from reconciler.spec.text_rules import find_location_problem
from reconciler.storage.locations import (
    LocationMap,
    identify_place,
    is_opened_at,
    normalise_location,
)
from reconciler.storage.open import open_storage
from tests.selection import examples

ONE_PLACE = {
    "disk": ["/lake/t", "/lake//t/", "file:/lake/t", "file:///lake/t/", "FILE:////lake/t",
             "file://localhost/lake/x/../t", "local:///lake/t", "local:/lake/t", "Local:///lake/%74",
             "/lake/./t", "//lake/t"],
    "s3": ["s3://lake/t", "s3a://lake/t/", "s3n://Lake//t", "S3A://lake/./t", "s3://lake/x/../t"],
    "gs": ["gs://lake/t", "gcs://lake/t/", "GS://LAKE/t"],
    "azure": ["abfs://c@acct.dfs.core.windows.net/t", "abfss://C@ACCT.dfs.core.windows.net/t/",
              "wasbs://c@acct.blob.core.windows.net/t", "az://c@acct.dfs.core.windows.net//t"],
    "hdfs": ["hdfs://nn:8020/t", "HDFS://NN:8020//t/", "hdfs://etl@nn:8020/t"],
    "memory": ["memory://lake/t", "Memory://lake//t/", "memory:///lake/t", "memory:////lake/t/"],
}  # fmt: skip
MAYBE_ONE_PLACE = [
    ("abfss://c@acct.dfs.core.windows.net/t", "abfs://c/t"),
    ("abfss://c@acct.dfs.core.windows.net/t", "az://c/t"),
    ("hdfs://nn:8020/t", "hdfs://nn/t"),
    ("hdfs://nn/t", "hdfs:///t"),
    ("hdfs://nn:8020/t", "webhdfs://nn:9870/t"),
]
TWO_PLACES = [
    ("/lake/t", "/lake/T"),
    ("/lake/a b", "/lake/a%20b"),
    ("s3://lake/t", "s3://lake/T"),
    ("s3://lake/a b", "s3://lake/a%20b"),
    ("s3://lake/t", "gs://lake/t"),
    ("s3://lake/t", "s3://lake2/t"),
    ("abfss://c@prod.dfs.core.windows.net/t", "abfss://c@test.dfs.core.windows.net/t"),
    ("abfss://c@acct.dfs.core.windows.net/t", "abfss://d@acct.dfs.core.windows.net/t"),
    ("hdfs://nn:8020/t", "hdfs://nn:9000/t"),
    ("hdfs://a/t", "hdfs://b/t"),
    ("/lake/t", "memory://lake/t"),
]


@pytest.mark.parametrize("spellings", ONE_PLACE.values(), ids=ONE_PLACE)
def test_every_spelling_of_a_place_has_one_identity(spellings):
    identities = {identify_place(resolve_location(text, "/")) for text in spellings}

    assert identities == {identify_place(text) for text in spellings}
    assert len(identities) == 1


@pytest.mark.parametrize(("one", "other"), MAYBE_ONE_PLACE)
def test_what_a_spelling_leaves_out_makes_no_other_place(one, other):
    assert identify_place(one) != identify_place(other)
    assert identify_place(one).may_be(identify_place(other))
    assert identify_place(other).may_be(identify_place(one))


@pytest.mark.parametrize(("one", "other"), TWO_PLACES)
def test_two_places_stay_two(one, other):
    assert not identify_place(one).may_be(identify_place(other))


@pytest.mark.parametrize(("one", "other"), [*MAYBE_ONE_PLACE, *(
    pair for spellings in ONE_PLACE.values() for pair in combinations(spellings, 2)
)])  # fmt: skip
def test_a_glob_and_a_location_match_in_any_two_spellings_of_a_place(one, other):
    for glob, location in ((one, other), (other, one)):
        for pattern in (f"{glob.rpartition('/t')[0] or glob.rpartition('/')[0]}/**", glob):
            assert compile_glob(pattern, "/").matches(resolve_location(location, "/"))


@pytest.mark.parametrize(("one", "other"), TWO_PLACES)
def test_a_glob_of_one_place_does_not_match_another(one, other):
    assert not compile_glob(one, "/").matches(other)


@pytest.mark.parametrize(
    ("pattern", "location"),
    [
        ("abfss://*@prod.dfs.core.windows.net/**", "az://any/t"),
        ("abfss://data@**", "wasbs://data@prod.blob.core.windows.net/t"),
        ("hdfs://nn*/lake/**", "hdfs:///lake/t"),
        ("hdfs://**", "webhdfs://nn:9870/lake/t"),
        ("s3*://lake/**", "s3a://lake/t"),
        ("**/t", "hdfs://nn/lake/t"),
        ("**", "/lake/t"),
    ],
)
def test_a_glob_with_wildcards_before_the_path_covers_every_spelling(pattern, location):
    assert compile_glob(pattern, "/").matches(location)


def test_a_link_and_its_target_are_one_place(tmp_path):
    Path(tmp_path, "real").mkdir()
    Path(tmp_path, "link").symlink_to("real")
    known = LocationMap[str]()

    assert known.add(f"{tmp_path}/real/t", "first") is None
    assert known.find(f"local://{tmp_path}/link/t") == "first"
    assert known.add(f"file://{tmp_path}/link/t", "second") == "first"


def test_a_map_tells_two_accounts_apart_and_finds_either_without_one():
    known = LocationMap[str]()
    known.add("abfss://c@prod.dfs.core.windows.net/t", "prod")
    known.add("abfss://c@test.dfs.core.windows.net/t", "test")

    assert known.find("az://c@test.blob.core.windows.net/t") == "test"
    assert known.find("abfs://c/t") == "prod"
    assert known.find("abfs://d/t") is None


@pytest.mark.parametrize(
    ("written", "opened"),
    [
        ("file:////lake/t", "/lake/t"),
        ("file:///lake/a#b?c", "/lake/a#b?c"),
        ("local:///lake/a%20b", "/lake/a b"),
        ("s3a://Lake//t/", "s3://Lake//t"),
        ("abfss://c@acct.dfs.core.windows.net/t", "abfss://c@acct.dfs.core.windows.net/t"),
        ("hdfs://nn:8020/t", "hdfs://nn:8020/t"),
        ("az://c/t", "az://c/t"),
    ],
)
def test_a_store_opens_what_is_written(written, opened):
    assert normalise_location(written) == opened


@pytest.mark.parametrize("location", ["file://nas/lake/t", "local://nas/lake/t"])
def test_a_local_location_has_no_other_host(location):
    with pytest.raises(StorageError, match="names a host"):
        normalise_location(location)


@pytest.mark.parametrize("location", [
    "s3:///lake/t", "s3a:////lake/t", "gs:///lake/t", "abfs:///c/t", "az://",
    "abfs://acct.dfs.core.windows.net/c/t", "abfss://@acct.dfs.core.windows.net/c/t", "s3:/lake/t",
    "no_scheme://lake/t",
])  # fmt: skip
def test_a_location_without_a_bucket_is_neither_declared_nor_opened(location):
    problem = find_location_problem(location)

    assert problem
    with pytest.raises(StorageError) as raised:
        open_storage(location)
    assert str(raised.value).endswith(problem.partition("' ")[2])


@pytest.mark.parametrize("location", ["generic://file:///lake/t", "dir:///lake/t"])
def test_a_client_that_opens_other_stores_is_refused(location):
    with pytest.raises(StorageError, match="another store; write that location"):
        open_storage(location)


def test_a_place_that_a_client_makes_of_a_location_is_refused(monkeypatch):
    class _Cutting(type(fsspec.filesystem("memory"))):
        @classmethod
        def _strip_protocol(cls, path):
            return super()._strip_protocol(path.partition("?")[0])

    monkeypatch.setattr("fsspec.get_filesystem_class", lambda _: _Cutting)

    assert open_storage("memory://lake/t").location == "memory://lake/t"
    with pytest.raises(StorageError, match=r"is '/lake/t' for the client of memory://"):
        open_storage("memory://lake/t?x")


def _is_installed(scheme: str) -> bool:
    """Return whether a scheme's client can be imported, without importing it."""
    module, _, _ = known_implementations[scheme]["class"].partition(".")
    return find_spec(module) is not None


SCHEMES = [
    scheme
    for scheme in ("file", "local", "memory", "s3", "s3a", "gs", "gcs", "abfs", "abfss", "az")
    if _is_installed(scheme)
]


def open_by_client(location: str) -> str | None:
    """Return what fsspec opens for a location, of which client; None if it is refused."""
    try:
        normalised = normalise_location(location)
    except StorageError:
        return None
    scheme = normalised.partition("://")[0] if "://" in normalised else "file"
    client = fsspec.get_filesystem_class(scheme)
    opened = client._strip_protocol(normalised).rstrip("/")
    return f"{client.__name__} {opened}" if is_opened_at(normalised, opened) else None


PARTS = st.sampled_from(["c", "t", "c@acct.dfs.core.windows.net", "acct.dfs.core.windows.net", "."])
SPELLED = st.builds(
    lambda scheme, start, parts, end: f"{scheme}:{'/' * start}{parts}{end}",
    st.sampled_from([*SCHEMES, *map(str.upper, SCHEMES)]),
    st.integers(1, 4),
    st.lists(PARTS, min_size=1, max_size=3).flatmap(
        lambda parts: st.sampled_from(["/", "//"]).map(lambda between: between.join(parts))
    ),
    st.sampled_from(["", "/", "//", "?", "#"]),
)


@settings(max_examples=examples(150, many=5000), deadline=None)  # the first imports the clients
@given(st.lists(SPELLED, min_size=2, max_size=12, unique=True))
def test_locations_that_open_one_place_have_one_identity(locations):
    opened = [(text, place) for text in locations if (place := open_by_client(text))]

    for (one, place), (other, other_place) in combinations(opened, 2):
        if place == other_place and not find_location_problem(one):
            mine, others = (identify_place(resolve_location(text, "/")) for text in (one, other))
            assert mine.may_be(others), (one, other)
