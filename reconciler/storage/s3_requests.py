"""Repeat failed requests to S3 in one place, below every call of its client.

The retries of botocore and s3fs are off, so that none multiply. Requests that fail for a while are
repeated until a budget is spent: throttling (503 SlowDown, 429), 500, 502, 504, a conflict of two
conditional writes (409), resets, and answers that do not come. Then there is one error.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from reconciler.units import parse_duration

TIMEOUT_OPTION: Final = "requestTimeout"
BUDGET_OPTION: Final = "retryFor"
_RETRIED_STATUS: Final = frozenset({429, 500, 502, 503, 504})
_RETRIED_CODES: Final = frozenset({
    "ConditionalRequestConflict", "OperationAborted", "RequestTimeout", "RequestTimeoutException",
    "SlowDown", "Throttling", "ThrottlingException", "TooManyRequestsException", "InternalError",
})  # fmt: skip
#: failures that more tries do not mend: a wrong certificate, and names or ports that nobody answers
_CERTIFICATE_ERRORS: Final = ("SSLError", "ProxyConnectionError")
_UNREACHED_ERRORS: Final = ("EndpointConnectionError",)
_UNREACHED_TRIES: Final = 4
#: what the bytes of an answer fail with, after its head has come
_BODY_ERRORS: Final = (
    *("ClientPayloadError", "IncompleteRead", "IncompleteReadError", "ResponseStreamingError"),
    *("ReadTimeoutError", "AioReadTimeoutError", "ConnectionClosedError", "HTTPClientError"),
)
_BODY_TRIES: Final = 4
_FIRST_DELAY_S: Final = 0.2
_MAX_DELAY_S: Final = 5.0
_STARTED: Final = "reconciler_first_failure"
_Result = TypeVar("_Result")


class RequestsFailedError(Exception):
    """A store's requests failed until the budget was spent; says how often and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPolicy:
    """How long to wait for an answer, and how long to repeat what fails, both in seconds.

    An endpoint that never answers ends a request after about the budget and two timeouts.
    """

    timeout_s: int = 10
    budget_s: int = 30


def split_policy(options: Mapping[str, str]) -> tuple[RequestPolicy, dict[str, str]]:
    """Return the policy that the options declare, and the other options.

    Raises ValueError for a text that is no duration.

    >>> split_policy({"retryFor": "2m", "anon": "true"})
    (RequestPolicy(timeout_s=10, budget_s=120), {'anon': 'true'})
    """
    rest = dict(options)
    timeout, budget = rest.pop(TIMEOUT_OPTION, "10s"), rest.pop(BUDGET_OPTION, "30s")
    return RequestPolicy(timeout_s=parse_duration(timeout), budget_s=parse_duration(budget)), rest


def make_config(policy: RequestPolicy, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return botocore's settings without its own retries; what the user gives wins."""
    return {
        "connect_timeout": min(policy.timeout_s, 5),
        "read_timeout": policy.timeout_s,
        "retries": {"mode": "standard", "total_max_attempts": 1},
        **given,
    }


def install_retries(filesystem: Any, policy: RequestPolicy) -> None:
    """Let every request of an s3fs filesystem, which has sent none yet, repeat by the policy."""
    from aiobotocore.session import AioSession  # noqa: PLC0415 (heavy, comes with s3fs)

    session = AioSession(**filesystem.kwargs)
    session.register("needs-retry.s3", _RequestRetries(policy))
    filesystem.session, filesystem._session_is_owned = session, False  # noqa: SLF001
    filesystem.retries = 1


def repeat_broken_reads(read: Callable[[], _Result]) -> _Result:
    """Call a function again, a few times, if the bytes of its answer break off.

    A request without an answer has been repeated already, and is not repeated here.
    """
    for _ in range(_BODY_TRIES - 1):
        try:
            return read()
        except Exception as error:
            if type(error).__name__ not in _BODY_ERRORS:
                raise
    return read()


@dataclass(frozen=True, slots=True)
class _RequestRetries:
    """Botocore's handler of finished requests: the seconds to wait before the next try, or None."""

    policy: RequestPolicy

    def __call__(
        self,
        *,
        response: tuple[Any, Mapping[str, Any]] | None,
        attempts: int,
        caught_exception: BaseException | None,
        request_dict: Mapping[str, Any],
        **_: Any,
    ) -> float | None:
        problem = find_problem(response, caught_exception)
        if problem is None:
            return None
        context, now = request_dict["context"], asyncio.get_running_loop().time()
        spent = now - context.setdefault(_STARTED, now)
        invocation = context.get("retries", {}).get("invocation-id", request_dict.get("url"))
        delay = compute_delay(attempts, str(invocation))
        is_unreached = type(caught_exception).__name__ in _UNREACHED_ERRORS
        is_last = is_unreached and attempts >= _UNREACHED_TRIES
        if not is_last and spent + delay < self.policy.budget_s:
            return delay
        tries = "1 try" if attempts == 1 else f"{attempts} tries"
        raise RequestsFailedError(f"{problem}; gave up after {tries} ({spent:.0f} s of retries)")


def find_problem(
    response: tuple[Any, Mapping[str, Any]] | None, caught_exception: BaseException | None
) -> str | None:
    """Return what a request failed with if repeating it may help, else None."""
    if caught_exception is not None:
        kinds = {kind.__name__ for kind in type(caught_exception).__mro__}
        passing = ("HTTPClientError", "ResponseParserError", "OSError", "TimeoutError")
        if kinds.isdisjoint(passing) or not kinds.isdisjoint(_CERTIFICATE_ERRORS):
            return None
        return f"the store did not answer ({type(caught_exception).__name__}: {caught_exception})"
    if response is None:
        return None
    http, parsed = response
    error = parsed.get("Error", {})
    code = str(error.get("Code", ""))
    if http.status_code not in _RETRIED_STATUS and code not in _RETRIED_CODES:
        return None
    text = f"{code} {error.get('Message', '')}".strip()
    return f"the store answered {http.status_code} ({text})"


def compute_delay(attempts: int, seed: str) -> float:
    """Return the seconds before the next try: twice as long each time, and spread by the seed.

    >>> [round(compute_delay(tries, "a"), 1) <= 0.2 * 2**tries for tries in (1, 2, 3)]
    [True, True, True]
    >>> compute_delay(50, "a") <= 5.0
    True
    """
    spread = zlib.crc32(f"{seed} {attempts}".encode()) / 2**32
    longest = min(_MAX_DELAY_S, _FIRST_DELAY_S * 2.0 ** min(attempts, 10))
    return float(longest * (0.5 + spread / 2))
