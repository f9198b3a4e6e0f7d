from __future__ import annotations

from functools import cache
from xml.sax.saxutils import escape

import pytest
from botocore.handlers import decode_list_object_v2
from botocore.parsers import RestXMLParser
from botocore.session import get_session
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.errors import StorageError
from reconciler.storage.s3_listing import parse_page
from tests.flat_store import FlatStore

SPACE = ' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
ENCODED = "<EncodingType>url</EncodingType>"
ONE = "<Contents><Key>a/b</Key><Size>7</Size></Contents>"
#: characters that XML and URLs escape, and what object names may hold besides
TEXT = st.text(alphabet="ab/=&<>'\"%+ ;#\u00fc\u2028\U0001f600\t\n", min_size=1, max_size=12)


def build_page(content: str, space: str = SPACE) -> bytes:
    return f'<?xml version="1.0"?>\n<ListBucketResult{space}>{content}</ListBucketResult>'.encode()


def read_columns(body: bytes):
    page = parse_page(body)
    return None if page is None else page["KeysAndSizes"]


@cache
def load_shape():
    return get_session().get_service_model("s3").operation_model("ListObjectsV2").output_shape


def read_as_the_client(body: bytes):
    parsed = RestXMLParser().parse({"status_code": 200, "headers": {}, "body": body}, load_shape())
    decode_list_object_v2(parsed, {"encoding_type_auto_set": True})
    found = parsed.get("Contents", [])
    return [one["Key"] for one in found], [one["Size"] for one in found]


@pytest.mark.parametrize("space", [SPACE, ""])
@pytest.mark.parametrize("encoding", [ENCODED, ""])
@settings(max_examples=25, deadline=None)
@given(keys=st.lists(TEXT, max_size=4), size=st.integers(0, 5 * 2**40))
def test_keys_and_sizes_are_those_of_the_client(space, encoding, keys, size):
    objects = "".join(
        f"<Contents><ETag>&quot;x&quot;</ETag><Size>{size}</Size><Key>{escape(key)}</Key>"
        "<Owner><ID>o</ID></Owner></Contents>"
        for key in keys
    )
    body = build_page(f"<Name>b</Name><Prefix>t/</Prefix>{encoding}{objects}", space)

    assert read_as_the_client(body) == read_columns(body)


def test_an_encoded_key_is_decoded_only_where_the_store_says_so():
    one = "<Contents><Key>a%2Bb+c&amp;%25</Key><Size>1</Size></Contents>"

    assert (["a+b c&%"], [1]) == read_columns(build_page(ENCODED + one))
    assert (["a%2Bb+c&%25"], [1]) == read_columns(build_page(one))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        build_page(ONE)[:-5],
        b"<Error><Code>InternalError</Code></Error>",
        build_page(f"{ONE}<CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes>"),
        build_page("<Contents><Size>7</Size></Contents>"),
        build_page("<Contents><Key>a</Key></Contents>"),
        build_page("<Contents><Key>a</Key><Size>-1</Size></Contents>"),
    ],
)
def test_the_client_reads_what_is_not_a_whole_page_of_objects(body):
    assert read_columns(body) is None


def test_a_page_names_the_next_one():
    more = "<IsTruncated>true</IsTruncated><NextContinuationToken>n&amp;1</NextContinuationToken>"
    page = parse_page(build_page(ONE + more))

    assert (True, "n&1") == (page["IsTruncated"], page["NextContinuationToken"])
    assert parse_page(build_page(ONE))["IsTruncated"] is False


@pytest.mark.parametrize("token", ["", "1000"])
def test_a_listing_that_cannot_go_on_is_an_error(monkeypatch, token):
    store = FlatStore()
    store.create_all({f"p/{n}": b"" for n in range(1500)})
    call = store.call_s3

    def break_off(method, **asked):
        return call(method, **asked) | {"IsTruncated": True, "NextContinuationToken": token}

    monkeypatch.setattr(store, "call_s3", break_off)
    with pytest.raises(StorageError, match="more pages follow, but names no next"):
        list(store.open().walk(lambda _: True))
