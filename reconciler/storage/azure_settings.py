"""Settings of Hadoop's client for Azure (ABFS) that say the same as options of adlfs; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

from reconciler.storage.client_options import find_azure_account

_PREFIX: Final = "spark.hadoop.fs.azure."
_OAUTH: Final = "org.apache.hadoop.fs.azurebfs.oauth2."
_LOGIN: Final = "https://login.microsoftonline.com"
_CLOUD: Final = "core.windows.net"


def make_abfs_settings(
    options: Mapping[str, str], locations: Iterable[str] = ()
) -> dict[str, tuple[str, str]]:
    """Return Spark's settings for the account of storage options, or of the URLs of tables.

    Each is its value and the name of the option that it comes from. There are none without an
    account. Of several accounts, each gets the same credentials, as the client of Python does.

    >>> made = make_abfs_settings({"account_name": "lake", "account_key": "k"})
    >>> made["spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net"]
    ('k', 'account_key')
    """
    connection = parse_connection_string(options.get("connection_string", ""))
    found = {account for each in locations if (account := find_azure_account(each))}
    named = options.get("account_name") or connection.get("AccountName")
    hosts = {f"{account}.dfs.{_CLOUD}" for account in found}
    if named is not None and named not in found:
        hosts.add(_find_host(named, options, connection))
    made: dict[str, tuple[str, str]] = {}
    for host in sorted(hosts):
        settings = _make_credentials(options, connection)
        made |= {f"{_PREFIX}{name}.{host}": value for name, value in settings.items()}
    return made


def parse_connection_string(text: str) -> dict[str, str]:
    """Return the parts of a connection string by their names; parts without ``=`` are left out.

    >>> parse_connection_string("AccountName=lake;AccountKey=a2V5==;EndpointSuffix=core.x")
    {'AccountName': 'lake', 'AccountKey': 'a2V5==', 'EndpointSuffix': 'core.x'}
    """
    pairs = (part.strip().partition("=") for part in text.split(";"))
    return {name: value for name, equals, value in pairs if equals}


def _find_host(account: str, options: Mapping[str, str], connection: Mapping[str, str]) -> str:
    """Return the host of an account's file systems, which ABFS has instead of a blob's."""
    endpoint = connection.get("BlobEndpoint") or options.get("endpoint") or ""
    host = urlsplit(endpoint).hostname or options.get("account_host") or ""
    if host.startswith(f"{account}.blob."):
        return host.replace(".blob.", ".dfs.", 1)
    return f"{account}.dfs.{connection.get('EndpointSuffix', _CLOUD)}"


def _make_credentials(
    options: Mapping[str, str], connection: Mapping[str, str]
) -> dict[str, tuple[str, str]]:
    """Return the settings of one account, in the order in which adlfs chooses credentials."""
    whole = "connection_string"
    if connection:
        key, sas = connection.get("AccountKey"), connection.get("SharedAccessSignature")
        return _use_key(key, whole) if key else _use_sas(sas, whole) if sas else {}
    if key := options.get("account_key"):
        return _use_key(key, "account_key")
    if sas := options.get("sas_token"):
        return _use_sas(sas, "sas_token")
    if options.get("client_id") and options.get("client_secret"):
        return _use_client(options)
    if identity := options.get("managed_identity_client_id"):
        return {
            "account.auth.type": ("OAuth", "managed_identity_client_id"),
            "account.oauth.provider.type": (f"{_OAUTH}MsiTokenProvider", ""),
            "account.oauth2.client.id": (identity, "managed_identity_client_id"),
        }
    return {}


def _use_key(key: str, option: str) -> dict[str, tuple[str, str]]:
    return {"account.auth.type": ("SharedKey", option), "account.key": (key, option)}


def _use_sas(sas: str, option: str) -> dict[str, tuple[str, str]]:
    """Return the settings of a fixed SAS, which Hadoop 3.4.1 and later have."""
    return {"account.auth.type": ("SAS", option), "sas.fixed.token": (sas.lstrip("?"), option)}


def _use_client(options: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    endpoint = f"{_LOGIN}/{options.get('tenant_id', 'common')}/oauth2/token"
    return {
        "account.auth.type": ("OAuth", "client_id"),
        "account.oauth.provider.type": (f"{_OAUTH}ClientCredsTokenProvider", ""),
        "account.oauth2.client.endpoint": (endpoint, "tenant_id"),
        "account.oauth2.client.id": (options["client_id"], "client_id"),
        "account.oauth2.client.secret": (options["client_secret"], "client_secret"),
    }
