"""Options of s3fs as settings of Spark's client for S3."""

from __future__ import annotations

import pytest

from reconciler.storage.hadoop_settings import make_s3a_settings

PREFIX = "spark.hadoop.fs.s3a"


def test_aws_itself_keeps_the_names_of_buckets_in_its_hosts():
    made = make_s3a_settings({"endpoint_url": "https://s3.eu-central-1.amazonaws.com"})

    assert f"{PREFIX}.path.style.access" not in made


def test_a_session_token_and_anonymous_access_are_passed_on():
    made = make_s3a_settings({"key": "k", "secret": "s", "token": "t"})
    public = make_s3a_settings({"anon": "true", "endpoint_url": "http://store"})

    assert made[f"{PREFIX}.session.token"] == ("t", "token")
    provider, _ = public[f"{PREFIX}.aws.credentials.provider"]
    assert provider.endswith(".AnonymousAWSCredentialsProvider")


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
    assert make_s3a_settings(options) == {}


def test_a_region_that_cannot_be_read_is_left_to_the_client_of_python_to_report():
    assert f"{PREFIX}.endpoint.region" not in make_s3a_settings({"client_kwargs": "{oops"})
