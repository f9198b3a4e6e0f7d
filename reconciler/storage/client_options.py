"""Options of an environment as the clients of stores take them; pure.

reconciler's own names are alike for all stores; each client has names of its own for the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

#: names of reconciler's own that say how a store is reached
ACCESS_OPTIONS: Final = ("anonymous", "endpoint", "pathStyle", "profile", "region")
_SWITCHES: Final = frozenset({"anonymous", "pathStyle"})
_NUMBERS: Final = frozenset({
    "block_size", "blocksize", "connection_timeout", "default_block_size", "listings_expiry_time",
    "max_concurrency", "max_paths", "read_timeout", "requests_timeout",
})  # fmt: skip

_AZURE_HOST: Final = re.compile(r"(?:.*@)?([^.@]+)\.(?:dfs|blob)\.core\.windows\.net(?::\d+)?")


def find_azure_account(location: str) -> str | None:
    """Return the account that the host of a URL names; None for another URL.

    >>> find_azure_account("abfss://lake@analytics.dfs.core.windows.net/orders")
    'analytics'
    >>> find_azure_account("abfs://lake/orders") is None
    True
    """
    host = location.partition("://")[2].partition("/")[0]
    found = _AZURE_HOST.fullmatch(host)
    return found[1] if found else None


def translate_options(family: str, options: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of a client of fsspec; ``options`` have no policy.

    Clients of other stores than S3, Google's and Azure's get all names as they are. Raises
    ValueError for an option of the wrong form.

    >>> translate_options("s3", {"region": "eu-central-1", "pathStyle": "true"}) == {
    ...     "client_kwargs": {"region_name": "eu-central-1"},
    ...     "config_kwargs": {"s3": {"addressing_style": "path"}},
    ... }
    True
    >>> translate_options("gs", {"anonymous": "true", "endpoint": "http://gcs", "region": "eu"})
    {'endpoint_url': 'http://gcs', 'token': 'anon'}
    """
    if family not in ("s3", "gs", "azure"):
        return dict(_decode_options(list(options.items())))
    own = {name: options[name] for name in ACCESS_OPTIONS if name in options}
    rest = [(name, value) for name, value in options.items() if name not in own]
    decoded = dict(_decode_options(rest))
    switches = {name: _decode_switch(name, own[name]) for name in _SWITCHES & own.keys()}
    if family == "s3":
        return _add_s3_options(decoded, own, switches)
    if family == "gs":
        return _add_google_options(decoded, own, switches)
    return _add_azure_options(decoded, own, switches)


def _add_s3_options(
    client: dict[str, Any], own: Mapping[str, str], switches: Mapping[str, bool]
) -> dict[str, Any]:
    if "endpoint" in own:
        client["endpoint_url"] = own["endpoint"]
    if "profile" in own:
        client["profile"] = own["profile"]
    if "anonymous" in switches:
        client["anon"] = switches["anonymous"]
    if "region" in own:
        client["client_kwargs"] = {**client.get("client_kwargs", {}), "region_name": own["region"]}
    if "pathStyle" in switches:
        style = "path" if switches["pathStyle"] else "virtual"
        config = client.get("config_kwargs", {})
        s3 = {**config.get("s3", {}), "addressing_style": style}
        client["config_kwargs"] = {**config, "s3": s3}
    return client


def _add_google_options(
    client: dict[str, Any], own: Mapping[str, str], switches: Mapping[str, bool]
) -> dict[str, Any]:
    if "endpoint" in own:
        client["endpoint_url"] = own["endpoint"]
    if switches.get("anonymous"):
        client["token"] = "anon"  # noqa: S105 (no secret)
    return client


def _add_azure_options(
    client: dict[str, Any], own: Mapping[str, str], switches: Mapping[str, bool]
) -> dict[str, Any]:
    """Name another server: as a host, or with an account key as a connection string."""
    if "anonymous" in switches:
        client["anon"] = switches["anonymous"]
    if "endpoint" not in own or "connection_string" in client:
        return client
    endpoint = own["endpoint"].rstrip("/")
    account, key = client.get("account_name"), client.get("account_key")
    if account and key:
        parts = {"AccountName": account, "AccountKey": key, "BlobEndpoint": endpoint}
        client["connection_string"] = ";".join(f"{name}={value}" for name, value in parts.items())
    elif account and client.get("sas_token"):
        token = str(client["sas_token"]).lstrip("?")
        client["connection_string"] = f"BlobEndpoint={endpoint};SharedAccessSignature={token}"
    else:
        address = urlsplit(endpoint)
        if address.scheme != "https":
            raise ValueError(f"endpoint: {endpoint} needs https, or an account key or SAS")
        client["account_host"] = endpoint.partition("://")[2]
    return client


def _decode_switch(name: str, value: str) -> bool:
    if value not in ("true", "false"):
        raise ValueError(f"{name}: {value!r} is neither true nor false")
    return value == "true"


def _decode_options(options: Sequence[tuple[str, str]]) -> Iterator[tuple[str, Any]]:
    """Yield options as clients expect them: booleans, mappings and numbers instead of strings.

    Only options that are known to be numbers become numbers: a key or an account may be digits.
    """
    for key, value in options:
        if key in _NUMBERS:
            try:
                yield key, int(value) if value.isdigit() else float(value)
            except ValueError:
                raise ValueError(f"{key}: {value!r} is not a number") from None
            continue
        if value in ("true", "false"):
            yield key, value == "true"
        elif value.startswith("{"):
            yield key, json.loads(value)
        else:
            yield key, value
