"""Options of an environment as each store's client gets them."""

from __future__ import annotations

import pytest

from reconciler.storage.client_options import translate_options
from reconciler.storage.clients import make_client_options


def test_s3_keeps_what_its_client_is_told_besides():
    made = translate_options(
        "s3",
        {
            "endpoint": "http://a:9000",
            "region": "eu",
            "profile": "p",
            "pathStyle": "false",
            "anonymous": "true",
            "client_kwargs": '{"use_ssl": false}',
            "config_kwargs": '{"s3": {"payload_signing_enabled": true}, "proxies": {}}',
            "max_concurrency": "4",
        },
    )

    assert {
        "endpoint_url": "http://a:9000",
        "profile": "p",
        "anon": True,
        "client_kwargs": {"use_ssl": False, "region_name": "eu"},
        "config_kwargs": {
            "s3": {"payload_signing_enabled": True, "addressing_style": "virtual"},
            "proxies": {},
        },
        "max_concurrency": 4,
    } == made


def test_google_has_neither_regions_nor_profiles():
    options = {"endpoint": "http://g", "region": "eu", "profile": "p", "pathStyle": "true"}

    assert translate_options("gs", options) == {"endpoint_url": "http://g"}
    assert translate_options("gs", {"anonymous": "false"}) == {}


@pytest.mark.parametrize(
    ("options", "made"),
    [
        ({"anonymous": "true"}, {"anon": True}),
        (
            {"account_name": "a", "account_key": "k=", "endpoint": "http://h:1/a/"},
            {"connection_string": "AccountName=a;AccountKey=k=;BlobEndpoint=http://h:1/a"},
        ),
        (
            {"account_name": "a", "sas_token": "?sv=1", "endpoint": "http://h:1/a"},
            {"connection_string": "BlobEndpoint=http://h:1/a;SharedAccessSignature=sv=1"},
        ),
        ({"account_name": "a", "endpoint": "https://h"}, {"account_host": "h"}),
        ({"connection_string": "A=b", "endpoint": "http://h"}, {"connection_string": "A=b"}),
    ],
)
def test_azure_is_told_another_server_in_the_way_that_fits_its_credentials(options, made):
    assert made.items() <= translate_options("azure", options).items()


def test_the_account_of_a_url_counts_for_another_server():
    url = "abfss://box@lake.dfs.core.windows.net/in"
    made = make_client_options(url, {"account_key": "k", "endpoint": "http://h:1/lake"})

    assert "AccountName=lake;" in made["connection_string"]


@pytest.mark.parametrize(
    ("family", "options", "problem"),
    [
        ("s3", {"pathStyle": "yes"}, "pathStyle: 'yes' is neither true nor false"),
        ("gs", {"anonymous": "1"}, "anonymous: '1' is neither true nor false"),
        ("azure", {"endpoint": "http://h"}, "endpoint: http://h needs https"),
        ("s3", {"max_concurrency": "four"}, "max_concurrency: 'four' is not a number"),
    ],
)
def test_what_a_variable_holds_is_checked_too(family, options, problem):
    with pytest.raises(ValueError, match=problem):
        translate_options(family, options)


def test_other_clients_get_all_names_as_they_are():
    assert translate_options("other", {"region": "eu", "timeout": "3"}) == {
        "region": "eu",
        "timeout": "3",
    }
