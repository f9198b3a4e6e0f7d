"""The row of a lock in DynamoDB, by boto3. Needs the extra `dynamodb`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from reconciler.errors import LockServersError
from reconciler.hudi.timeline.dynamodb_lock import KEY, OWNER, VERSION, LockRow
from reconciler.lazy_dataclass import dataclass

_FAILED_CONDITION: Final = "ConditionalCheckFailedException"
_NO_TABLE: Final = "ResourceNotFoundException"
_TABLE_EXISTS: Final = "ResourceInUseException"
_UNREACHABLE: Final = (
    *("EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "SSLError"),
    *(
        "ConnectionClosedError",
        "ProxyConnectionError",
        "InvalidEndpointDiscoveryConfigurationError",
    ),
)
_BAD_KEYS: Final = "the credentials are not valid there; renew or replace them"
#: code of an error -> what to do
_REMEDIES: Final = {
    "AccessDeniedException": "allow dynamodb:GetItem, PutItem and DeleteItem on the table of locks",
    "ValidationException": f"a table of locks has the partition key `{KEY}`, a text, and no other",
    "UnrecognizedClientException": _BAD_KEYS,
    "InvalidSignatureException": _BAD_KEYS,
    "IncompleteSignatureException": _BAD_KEYS,
    "ExpiredTokenException": _BAD_KEYS,
}
_NAMES: Final = {"#key": KEY}
_FREE: Final = "attribute_not_exists(#key)"
_UNCHANGED: Final = "attribute_exists(#key) AND #version = :version"


class LockRows(Protocol):
    """The row of one lock. Methods raise LockServersError without an answer."""

    @property
    def location(self) -> str:
        """The lock's location, for people."""

    def read(self) -> LockRow | None:
        """Return the row; None if there is none."""

    def write(self, row: LockRow, replaced: LockRow | None) -> bool:
        """Write a row in place of exactly this one, or of none; return whether it was done."""

    def remove(self, row: LockRow) -> bool:
        """Remove exactly this row; return whether it was done."""


@dataclass(frozen=True, slots=True)
class DynamodbPlace:
    """Where a lock is. ``region`` and ``endpoint``: None for those of AWS's own settings."""

    table: str
    key: str
    region: str | None = None
    endpoint: str | None = None

    @property
    def location(self) -> str:
        region = f" ({self.region})" if self.region else ""
        return f"dynamodb:{self.table}/{self.key}{region}"


def connect_dynamodb(place: DynamodbPlace) -> DynamodbRows:
    """Return the row of a lock; nothing is requested yet.

    Credentials come from AWS's own chain. Raises LockServersError if the client is not installed or
    its settings are wrong.
    """
    try:
        import boto3  # noqa: PLC0415 (an extra)
        from botocore.config import Config  # noqa: PLC0415
        from botocore.exceptions import BotoCoreError, NoRegionError  # noqa: PLC0415
    except ImportError:
        remedy = "pip install 'hudi-reconciler[dynamodb]'"
        message = f"needs a client that is not installed; {remedy}"
        raise LockServersError(place.location, message) from None
    retries = {"mode": "standard", "total_max_attempts": 5}
    config = Config(connect_timeout=5, read_timeout=5, retries=retries)
    try:
        client = boto3.Session(region_name=place.region).client(
            "dynamodb", config=config, endpoint_url=place.endpoint
        )
    except NoRegionError:
        remedy = "add concurrency.lock.region, or set AWS_DEFAULT_REGION"
        raise LockServersError(place.location, f"no region is known; {remedy}") from None
    except (BotoCoreError, ValueError) as error:
        raise LockServersError(place.location, f"boto3 did not start: {error}") from None
    return DynamodbRows(place, client)


class DynamodbRows:
    """The row of one lock, through boto3's client."""

    def __init__(self, place: DynamodbPlace, client: Any) -> None:
        self._place, self._client = place, client

    @property
    def location(self) -> str:
        return self._place.location

    def read(self) -> LockRow | None:
        answer = self._ask(
            _NO_TABLE,
            self._client.get_item,
            Key=self._key,
            ConsistentRead=True,
        )
        row = None if answer is None else answer.get("Item")
        return None if row is None else LockRow.parse(row, self.location)

    def write(self, row: LockRow, replaced: LockRow | None) -> bool:
        item = row.encode(self._place.key)
        if replaced is None:
            condition = {"ConditionExpression": _FREE, "ExpressionAttributeNames": _NAMES}
        else:
            condition = _expect(replaced)
        try:
            answer = self._ask(_FAILED_CONDITION, self._client.put_item, Item=item, **condition)
        except _NoTableError:
            self._create_table()
            answer = self._ask(_FAILED_CONDITION, self._client.put_item, Item=item, **condition)
        if answer is not None:
            return True
        found = self.read()  # the answer to an earlier try of the client may have been lost
        return found is not None and found.version == row.version

    def remove(self, row: LockRow) -> bool:
        condition = _expect(row)
        condition["ConditionExpression"] += " AND #owner = :owner"
        condition["ExpressionAttributeNames"] |= {"#owner": OWNER}
        condition["ExpressionAttributeValues"] |= {":owner": {"S": row.owner}}
        answer = self._ask(_FAILED_CONDITION, self._client.delete_item, Key=self._key, **condition)
        if answer is not None:
            return True
        found = self.read()  # as in write
        return found is None

    @property
    def _key(self) -> dict[str, Any]:
        return {KEY: {"S": self._place.key}}

    def _create_table(self) -> None:
        """Create the table as Hudi's writers do, and wait until it can be used."""
        attribute = [{"AttributeName": KEY, "AttributeType": "S"}]
        schema = [{"AttributeName": KEY, "KeyType": "HASH"}]
        self._ask(
            _TABLE_EXISTS,
            self._client.create_table,
            AttributeDefinitions=attribute,
            KeySchema=schema,
            BillingMode="PAY_PER_REQUEST",
        )
        self._ask(None, self._client.get_waiter("table_exists").wait)

    def _ask(self, expected: str | None, send: Callable[..., Any], **arguments: Any) -> Any:
        """Send a request and return its answer; None for the expected error."""
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 (an extra)

        try:
            return send(TableName=self._place.table, **arguments) or {}
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            if code == expected:
                return None
            if code == _NO_TABLE:
                raise _NoTableError(self.location, "the table does not exist") from None
            remedy = _find_remedy(code)
            raise LockServersError(self.location, f"DynamoDB refused: {error}{remedy}") from None
        except BotoCoreError as error:
            remedy = _find_remedy(type(error).__name__)
            raise LockServersError(self.location, f"DynamoDB failed: {error}{remedy}") from None


class _NoTableError(LockServersError):
    """The table of locks does not exist."""


def _find_remedy(problem: str) -> str:
    """Return what to do about an error of DynamoDB, or of its client, by its name."""
    if "Credentials" in problem:
        return "; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use a role"
    if problem in _UNREACHABLE:
        return "; check concurrency.lock.region and endpoint, and the network"
    return f"; {_REMEDIES[problem]}" if problem in _REMEDIES else ""


def _expect(row: LockRow) -> dict[str, Any]:
    return {
        "ConditionExpression": _UNCHANGED,
        "ExpressionAttributeNames": _NAMES | {"#version": VERSION},
        "ExpressionAttributeValues": {":version": {"S": row.version}},
    }
