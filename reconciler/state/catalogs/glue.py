"""AWS Glue's data catalog, by boto3. Needs the extra `glue`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any, Final

from reconciler.errors import CatalogError, NoCatalogTableError
from reconciler.state.catalogs.addresses import parse_account
from reconciler.state.catalogs.api import CatalogEntry, CatalogPartition

#: limits of one request of Glue
_CREATE_BATCH: Final = 100
_DELETE_BATCH: Final = 25
_SESSION_OPTIONS: Final = (
    "aws_access_key_id",
    "aws_secret_access_key",
    "aws_session_token",
    "profile_name",
    "region_name",
)
_CLIENT_OPTIONS: Final = ("endpoint_url",)
#: what another process did at the same time
_HARMLESS: Final = ("AlreadyExistsException", "EntityNotFoundException")


def connect_glue(uri: str | None, options: Mapping[str, str]) -> GlueCatalog:
    """Return Glue's catalog of an account; nothing is requested yet.

    Raises CatalogError if the client is not installed, or its options are wrong.
    """
    account = parse_account(uri)
    address = f"glue://{account or ''}"
    _check_options(address, options)
    try:
        import boto3  # noqa: PLC0415 (an extra)
        from botocore.config import Config  # noqa: PLC0415
        from botocore.exceptions import BotoCoreError, NoRegionError  # noqa: PLC0415
    except ImportError:
        remedy = "pip install 'hudi-reconciler[glue]'"
        raise CatalogError(address, f"needs a client that is not installed; {remedy}") from None
    session_options, client_options = (
        {key: options[key] for key in names if key in options}
        for names in (_SESSION_OPTIONS, _CLIENT_OPTIONS)
    )
    retries = {"mode": "standard", "max_attempts": 5}
    config = Config(connect_timeout=10, read_timeout=30, retries=retries)
    try:
        session = boto3.Session(**session_options)
        client = session.client("glue", config=config, **client_options)
    except NoRegionError:
        remedy = "set AWS_REGION, or region_name in catalogs.glue.options of the environment"
        raise CatalogError(address, f"no region is known; {remedy}") from None
    except (BotoCoreError, ValueError) as error:
        raise CatalogError(address, f"the client of glue did not start: {error}") from None
    return GlueCatalog(address, client, {"CatalogId": account} if account else {})


def _check_options(address: str, options: Mapping[str, str]) -> None:
    known = (*_SESSION_OPTIONS, *_CLIENT_OPTIONS)
    if unknown := sorted(options.keys() - set(known)):
        message = f"unknown option {', '.join(unknown)}; known for glue: {', '.join(known)}"
        raise CatalogError(address, message)


class GlueCatalog:
    """The data catalog of one account and region."""

    def __init__(self, address: str, client: Any, account: Mapping[str, str]) -> None:
        self._address, self._client, self._account = address, client, account

    @property
    def address(self) -> str:
        return self._address

    def find_table(self, name: str) -> CatalogEntry:
        table = self._read_table(name)
        descriptor = table.get("StorageDescriptor", {})
        return CatalogEntry(
            name=f"{table['DatabaseName']}.{table['Name']}",
            location=descriptor.get("Location", ""),
            properties=table.get("Parameters", {}),
            partition_keys=tuple(key["Name"] for key in table.get("PartitionKeys", ())),
            input_format=descriptor.get("InputFormat", ""),
        )

    def list_tables(self, database: str, table: str) -> Sequence[str]:
        with self._explain_errors(f"{database}.{table}"):
            pages = self._paginate("get_databases")
            names = [each["Name"] for page in pages for each in page["DatabaseList"]]
            chosen = [each for each in names if fnmatchcase(each, database.lower())]
            return sorted(
                f"{each}.{one['Name']}"
                for each in chosen
                for page in self._paginate("get_tables", DatabaseName=each)
                for one in page["TableList"]
                if fnmatchcase(one["Name"], table.lower())
            )

    def list_partitions(self, name: str) -> Sequence[CatalogPartition]:
        with self._explain_errors(name):
            pages = self._paginate("get_partitions", **_name_table(name), ExcludeColumnSchema=True)
            return [
                CatalogPartition(
                    tuple(each["Values"]), each.get("StorageDescriptor", {}).get("Location", "")
                )
                for page in pages
                for each in page["Partitions"]
            ]

    def add_partitions(self, name: str, partitions: Collection[CatalogPartition]) -> None:
        descriptor = self._read_table(name).get("StorageDescriptor", {})
        rows = [
            {
                "Values": list(each.values),
                "StorageDescriptor": {**descriptor, "Location": each.location},
            }
            for each in partitions
        ]
        self._send_batches("batch_create_partition", "PartitionInputList", rows, name)

    def drop_partitions(self, name: str, values: Collection[tuple[str, ...]]) -> None:
        rows = [{"Values": list(each)} for each in values]
        self._send_batches("batch_delete_partition", "PartitionsToDelete", rows, name)

    def close(self) -> None:
        self._client.close()

    def _send_batches(
        self, request: str, field: str, rows: Sequence[Mapping[str, Any]], name: str
    ) -> None:
        """Send rows in batches; raises CatalogError for the first that Glue refuses."""
        size = _CREATE_BATCH if request == "batch_create_partition" else _DELETE_BATCH
        with self._explain_errors(name):
            for start in range(0, len(rows), size):
                batch = {field: rows[start : start + size]}
                answer = getattr(self._client, request)(
                    **self._account, **_name_table(name), **batch
                )
                for each in answer.get("Errors", ()):
                    detail = each.get("ErrorDetail", {})
                    if detail.get("ErrorCode") not in _HARMLESS:
                        values = ", ".join(each.get("PartitionValues", ()))
                        reason = detail.get("ErrorMessage") or detail.get("ErrorCode")
                        raise CatalogError(self._address, f"{name}: partition {values}: {reason}")

    def _read_table(self, name: str) -> Any:
        arguments = _name_table(name)
        arguments["Name"] = arguments.pop("TableName")
        with self._explain_errors(name):
            return self._client.get_table(**self._account, **arguments)["Table"]

    def _paginate(self, request: str, **arguments: Any) -> Any:
        return self._client.get_paginator(request).paginate(**self._account, **arguments)

    @contextmanager
    def _explain_errors(self, name: str) -> Iterator[None]:
        """Raise errors of the client as CatalogError."""
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 (an extra)

        try:
            yield
        except ClientError as error:
            detail = error.response.get("Error", {})
            if detail.get("Code") == "EntityNotFoundException":
                raise NoCatalogTableError(self._address, f"has no table {name}") from None
            reason = f"{detail.get('Code', 'error')}: {detail.get('Message', '')}"
            raise CatalogError(self._address, f"{name}: {reason}") from None
        except BotoCoreError as error:
            raise CatalogError(self._address, f"{name}: {error}") from None
        except KeyError as error:  # of an answer, which botocore does not check
            problem = f"the answer has no {error.args[0]}; check endpoint_url"
            raise CatalogError(self._address, f"{name}: {problem}") from None


def _name_table(name: str) -> dict[str, str]:
    database, _, table = name.lower().partition(".")  # Glue stores names in lower case
    return {"DatabaseName": database, "TableName": table}
