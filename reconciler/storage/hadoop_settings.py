"""Settings of Hadoop's client for S3 that say the same as options of s3fs; pure.

Source: the documentation of hadoop-aws (S3A), "Configuring S3A", of Hadoop 3.3 and 3.4.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

_PREFIX: Final = "spark.hadoop.fs.s3a."
#: without it Spark knows only s3a://
_S3_SCHEME: Final = "spark.hadoop.fs.s3.impl"
_S3A: Final = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_ANONYMOUS: Final = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
#: option of s3fs -> setting of S3A
_CREDENTIALS: Final = {"key": "access.key", "secret": "secret.key", "token": "session.token"}
_AWS_DOMAIN: Final = ".amazonaws.com"


def make_s3a_settings(options: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return Spark's settings for the S3 that storage options describe, none if they are another's.

    Each is its value and the name of the option that it comes from. A profile has no setting there:
    Java takes it from the variable ``AWS_PROFILE``.

    >>> made = make_s3a_settings({"endpoint_url": "http://127.0.0.1:9000", "key": "k"})
    >>> made["spark.hadoop.fs.s3a.path.style.access"]
    ('true', 'endpoint_url')
    >>> make_s3a_settings({"account_name": "lake"})
    {}
    """
    if not _is_for_s3(options):
        return {}
    made = {
        f"{_PREFIX}{setting}": (options[name], name)
        for name, setting in _CREDENTIALS.items()
        if options.get(name)
    }
    if endpoint := options.get("endpoint_url"):
        made[f"{_PREFIX}endpoint"] = endpoint, "endpoint_url"
        if not endpoint.rstrip("/").endswith(_AWS_DOMAIN):  # as botocore does
            made[f"{_PREFIX}path.style.access"] = "true", "endpoint_url"
    if region := _find_region(options):
        made[f"{_PREFIX}endpoint.region"] = region, "client_kwargs"
    if options.get("anon") == "true":
        made[f"{_PREFIX}aws.credentials.provider"] = _ANONYMOUS, "anon"
    if made:
        made[_S3_SCHEME] = _S3A, "endpoint_url"
    return made


def _is_for_s3(options: Mapping[str, str]) -> bool:
    """Return whether they are options of s3fs; ``token`` and ``endpoint_url`` are also gcsfs's."""
    if "key" in options or "client_kwargs" in options:
        return True
    return "endpoint_url" in options and not {"token", "project"} & options.keys()


def _find_region(options: Mapping[str, str]) -> str | None:
    try:
        given = json.loads(options.get("client_kwargs", "{}"))
        region = given.get("region_name")
    except (ValueError, AttributeError):
        return None
    return region if isinstance(region, str) else None
