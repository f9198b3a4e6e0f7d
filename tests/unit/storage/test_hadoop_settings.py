"""Storage options as settings of Hadoop's clients, word for word."""

from __future__ import annotations

import json

import pytest

from reconciler.storage.hadoop_settings import PROFILE_SETTING, make_hadoop_settings

PREFIX = "spark.hadoop.fs.s3a"
GOOGLE = "spark.hadoop.fs.gs"
AZURE = "spark.hadoop.fs.azure"
HOST = "lake.dfs.core.windows.net"
OAUTH = "org.apache.hadoop.fs.azurebfs.oauth2"


def settings(options, *stores, locations=(), hadoop=""):
    made = make_hadoop_settings(options, stores, locations, hadoop=hadoop)
    return {name: value for name, (value, _) in made.items()}


def azure(options, *locations):
    made = settings(options, "azure", locations=locations)
    return {name.removeprefix(f"{AZURE}."): value for name, value in made.items()}


def test_aws_itself_keeps_the_names_of_buckets_in_its_hosts():
    made = settings({"endpoint_url": "https://s3.eu-central-1.amazonaws.com"}, "s3")

    assert f"{PREFIX}.path.style.access" not in made


def test_a_session_token_and_anonymous_access_are_passed_on():
    made = settings({"key": "k", "secret": "s", "token": "t"}, "s3")
    public = [settings(o, "s3") for o in ({"anon": "true"}, {"anonymous": "true"})]

    assert made[f"{PREFIX}.session.token"] == "t"
    for each in public:
        assert each[f"{PREFIX}.aws.credentials.provider"].endswith(
            ".AnonymousAWSCredentialsProvider"
        )


def test_the_names_of_the_environment_say_the_same_as_those_of_s3fs():
    own = {"endpoint": "http://store", "region": "eu", "pathStyle": "true"}
    client = {
        "endpoint_url": "http://store",
        "client_kwargs": json.dumps({"region_name": "eu"}),
        "config_kwargs": json.dumps({"s3": {"addressing_style": "path"}}),
    }

    assert {
        f"{PREFIX}.endpoint": "http://store",
        f"{PREFIX}.endpoint.region": "eu",
        f"{PREFIX}.path.style.access": "true",
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    } == settings(own, "s3")
    assert settings(own, "s3") == settings(client, "s3")
    assert settings(own | {"pathStyle": "false"}, "s3")[f"{PREFIX}.path.style.access"] == "false"


@pytest.mark.parametrize(
    ("hadoop", "provider"),
    [
        ("3.3.4", "com.amazonaws.auth.profile.ProfileCredentialsProvider"),
        ("3.4.1", "software.amazon.awssdk.auth.credentials.ProfileCredentialsProvider"),
    ],
)
def test_a_profile_is_read_by_the_library_that_hadoop_has(hadoop, provider):
    made = settings({"profile": "analytics"}, "s3", hadoop=hadoop)

    assert made[f"{PREFIX}.aws.credentials.provider"] == provider
    assert made[PROFILE_SETTING] == "analytics"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"account_name": "lake", "account_key": "k"},
        {"token": "cloud.json", "endpoint_url": "http://gcs"},
        {"project": "p", "endpoint_url": "http://gcs"},
        {"anon": "true"},
    ],
)
def test_options_of_another_store_say_nothing_of_s3(options):
    assert settings(options) == {}


def test_a_region_that_cannot_be_read_is_left_to_the_client_of_python_to_report():
    assert f"{PREFIX}.endpoint.region" not in settings({"client_kwargs": "{oops"}, "s3")


def test_google_gets_the_server_the_project_and_anonymous_access():
    made = settings({"endpoint": "http://gcs:4443", "project": "p", "anonymous": "true"}, "gs")

    assert made == {
        f"{GOOGLE}.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
        "spark.hadoop.fs.AbstractFileSystem.gs.impl": (
            "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFS"
        ),
        f"{GOOGLE}.project.id": "p",
        f"{GOOGLE}.storage.root.url": "http://gcs:4443/",
        f"{GOOGLE}.auth.service.account.enable": "false",
        f"{GOOGLE}.auth.null.enable": "true",
    }


def test_google_gets_a_key_as_a_file_or_as_its_fields_and_finds_others_itself():
    account = f"{GOOGLE}.auth.service.account"
    file = settings({"token": "/run/key.json"}, "gs")
    key = {"type": "service_account", "client_email": "a@b", "private_key": "p"}
    whole = settings({"token": json.dumps(key | {"private_key_id": "1"})}, "gs")

    assert file[f"{account}.json.keyfile"] == "/run/key.json"
    assert [whole[f"{account}.{name}"] for name in ("email", "private.key", "private.key.id")] == [
        "a@b",
        "p",
        "1",
    ]
    for token in ("cloud", "google_default"):
        assert not [name for name in settings({"token": token}, "gs") if ".auth." in name]


def test_azure_gets_an_account_key_by_its_options_or_by_the_url_of_the_table():
    expected = {f"account.auth.type.{HOST}": "SharedKey", f"account.key.{HOST}": "a2V5=="}

    assert expected == azure({"account_name": "lake", "account_key": "a2V5=="})
    assert expected == azure({"account_key": "a2V5=="}, f"abfss://box@{HOST}/orders")
    assert expected == azure(
        {"account_name": "lake", "account_key": "a2V5==", "endpoint": f"https://blob.{HOST}"}
    )


def test_azure_gets_what_a_connection_string_says():
    text = "DefaultEndpointsProtocol=https;AccountName=lake;AccountKey=a2V5==;EndpointSuffix=x.cn"
    signed = "AccountName=lake;SharedAccessSignature=sv=1&sig=c2ln=;"

    assert {
        "account.auth.type.lake.dfs.x.cn": "SharedKey",
        "account.key.lake.dfs.x.cn": "a2V5==",
    } == azure({"connection_string": text})
    assert {
        f"account.auth.type.{HOST}": "SAS",
        f"sas.fixed.token.{HOST}": "sv=1&sig=c2ln=",
    } == azure({"connection_string": signed})


def test_azure_gets_a_sas_a_client_of_its_directory_or_a_managed_identity():
    assert {
        f"account.auth.type.{HOST}": "SAS",
        f"sas.fixed.token.{HOST}": "sv=1&sig=a",
    } == azure({"account_name": "lake", "sas_token": "?sv=1&sig=a"})
    client = {"tenant_id": "t", "client_id": "c", "client_secret": "s"}
    assert {
        f"account.auth.type.{HOST}": "OAuth",
        f"account.oauth.provider.type.{HOST}": f"{OAUTH}.ClientCredsTokenProvider",
        f"account.oauth2.client.endpoint.{HOST}": "https://login.microsoftonline.com/t/oauth2/token",
        f"account.oauth2.client.id.{HOST}": "c",
        f"account.oauth2.client.secret.{HOST}": "s",
    } == azure({"account_name": "lake", **client})
    assert {
        f"account.auth.type.{HOST}": "OAuth",
        f"account.oauth.provider.type.{HOST}": f"{OAUTH}.MsiTokenProvider",
        f"account.oauth2.client.id.{HOST}": "m",
    } == azure({"account_name": "lake", "managed_identity_client_id": "m"})


def test_azure_without_an_account_or_credentials_gets_nothing():
    assert azure({"account_key": "k"}) == {}
    assert azure({"account_name": "lake", "anonymous": "true"}) == {}


def test_each_setting_names_its_option_so_that_those_of_variables_stay_private():
    made = make_hadoop_settings({"connection_string": "AccountName=a;AccountKey=k"}, ["azure"])

    assert {"connection_string"} == {name for _, name in made.values()}
