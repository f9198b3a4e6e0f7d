"""Settings of Hadoop's clients for stores that say the same as storage options; pure.

Source: the documentation of hadoop-aws (S3A), "Configuring S3A", and of hadoop-azure (ABFS) of
Hadoop 3.3 and 3.4, and CONFIGURATION.md of Google's connector 2.2.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

from reconciler.storage.azure_settings import make_abfs_settings

#: a setting's value, and the name of the option that it comes from
Settings = dict[str, tuple[str, str]]

_PREFIX: Final = "spark.hadoop.fs.s3a."
#: without it Spark knows only s3a://
_S3_SCHEME: Final = "spark.hadoop.fs.s3.impl"
_S3A: Final = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_ANONYMOUS: Final = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
#: option of s3fs -> setting of S3A
_CREDENTIALS: Final = {"key": "access.key", "secret": "secret.key", "token": "session.token"}
#: an AWS profile's name for Spark's executors; the driver's Java gets the same variable
PROFILE_SETTING: Final = "spark.executorEnv.AWS_PROFILE"
#: the providers of Hadoop 3.3 and of 3.4, which have AWS's first and second library
_PROFILES: Final = (
    "com.amazonaws.auth.profile.ProfileCredentialsProvider",
    "software.amazon.awssdk.auth.credentials.ProfileCredentialsProvider",
)
_AWS_DOMAIN: Final = ".amazonaws.com"
_GOOGLE: Final = "spark.hadoop.fs.gs."
_GOOGLE_ACCOUNT: Final = f"{_GOOGLE}auth.service.account."
#: field of a service account's key -> setting of Google's connector
_GOOGLE_KEY: Final = {
    "client_email": "email",
    "private_key_id": "private.key.id",
    "private_key": "private.key",
}
#: tokens that name a way to find credentials, which the connector does by itself
_GOOGLE_SOURCES: Final = ("anon", "cache", "cloud", "google_default")


def make_hadoop_settings(
    options: Mapping[str, str],
    stores: Iterable[str],
    locations: Iterable[str] = (),
    *,
    hadoop: str = "",
) -> Settings:
    """Return Spark's settings for the stores ("s3", "gs", "azure") that storage options describe.

    ``locations``: URLs in these stores; those of Azure name the account. Without any store the
    options themselves tell whether they are for S3. ``hadoop``: the version of Spark's Hadoop.

    >>> made = make_hadoop_settings({"endpoint": "http://127.0.0.1:9000", "key": "k"}, ["s3"])
    >>> made["spark.hadoop.fs.s3a.path.style.access"]
    ('true', 'endpoint')
    >>> make_hadoop_settings({"account_name": "lake"}, [])
    {}
    """
    named = {*stores}
    made: Settings = {}
    if "s3" in named or (not named and _is_for_s3(options)):
        made |= _make_s3a_settings(options, hadoop)
    if "gs" in named:
        made |= _make_google_settings(options)
    if "azure" in named:
        made |= make_abfs_settings(options, locations)
    return made


def _make_s3a_settings(options: Mapping[str, str], hadoop: str) -> Settings:
    made = {
        f"{_PREFIX}{setting}": (options[name], name)
        for name, setting in _CREDENTIALS.items()
        if options.get(name)
    }
    for name in ("endpoint_url", "endpoint"):
        if endpoint := options.get(name):
            made[f"{_PREFIX}endpoint"] = endpoint, name
            if not endpoint.rstrip("/").endswith(_AWS_DOMAIN):  # as botocore does
                made[f"{_PREFIX}path.style.access"] = "true", name
    if style := _find_style(options):
        made[f"{_PREFIX}path.style.access"] = style
    if region := _find_region(options):
        made[f"{_PREFIX}endpoint.region"] = region
    if profile := options.get("profile"):
        is_second = bool(hadoop) and not hadoop.startswith("3.3.")
        made[f"{_PREFIX}aws.credentials.provider"] = _PROFILES[is_second], "profile"
        made[PROFILE_SETTING] = profile, "profile"
    for name in ("anon", "anonymous"):
        if options.get(name) == "true":
            made[f"{_PREFIX}aws.credentials.provider"] = _ANONYMOUS, name
    made[_S3_SCHEME] = _S3A, ""
    return made


def _is_for_s3(options: Mapping[str, str]) -> bool:
    """Return whether they are options of s3fs; ``token`` and ``endpoint_url`` are also gcsfs's."""
    if {"key", "client_kwargs", "config_kwargs", "pathStyle", "region"} & options.keys():
        return True
    is_other = {"token", "project", "account_name", "connection_string"} & options.keys()
    return bool({"endpoint_url", "endpoint"} & options.keys()) and not is_other


def _find_style(options: Mapping[str, str]) -> tuple[str, str] | None:
    if options.get("pathStyle") in ("true", "false"):
        return options["pathStyle"], "pathStyle"
    style = _find_setting(options, "config_kwargs", "s3", "addressing_style")
    known = {"path": "true", "virtual": "false"}.get(style or "")
    return None if known is None else (known, "config_kwargs")


def _find_region(options: Mapping[str, str]) -> tuple[str, str] | None:
    if region := options.get("region"):
        return region, "region"
    found = _find_setting(options, "client_kwargs", "region_name")
    return None if found is None else (found, "client_kwargs")


def _find_setting(options: Mapping[str, str], option: str, *names: str) -> str | None:
    """Return a text in an option that is JSON; None if it is not there or not JSON."""
    try:
        found = json.loads(options.get(option, "{}"))
    except (ValueError, RecursionError):
        return None
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, str) else None


def _make_google_settings(options: Mapping[str, str]) -> Settings:
    made: Settings = {
        f"{_GOOGLE}impl": ("com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem", ""),
        "spark.hadoop.fs.AbstractFileSystem.gs.impl": (
            "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFS",
            "",
        ),
    }
    if project := options.get("project"):
        made[f"{_GOOGLE}project.id"] = project, "project"
    for name in ("endpoint_url", "endpoint"):
        if endpoint := options.get(name):
            made[f"{_GOOGLE}storage.root.url"] = f"{endpoint.rstrip('/')}/", name
    return made | _make_google_credentials(options)


def _make_google_credentials(options: Mapping[str, str]) -> Settings:
    """Return how the connector finds credentials; without a token it looks for them itself."""
    token = options.get("token", "")
    if token == "anon" or options.get("anonymous") == "true":  # noqa: S105 (no secret)
        name = "token" if token else "anonymous"
        return {
            f"{_GOOGLE_ACCOUNT}enable": ("false", name),
            f"{_GOOGLE}auth.null.enable": ("true", name),
        }
    if not token or token in _GOOGLE_SOURCES:
        return {}
    made: Settings = {f"{_GOOGLE_ACCOUNT}enable": ("true", "token")}
    if token.startswith("{"):
        fields = {name: _find_setting(options, "token", name) for name in _GOOGLE_KEY}
        for name, value in fields.items():
            if value is not None:
                made[f"{_GOOGLE_ACCOUNT}{_GOOGLE_KEY[name]}"] = value, "token"
    else:
        made[f"{_GOOGLE_ACCOUNT}json.keyfile"] = token, "token"
    return made
