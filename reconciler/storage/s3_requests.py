"""Repeat failed requests to S3 in one place, below every call of its client.

The retries of botocore and s3fs are off, so that none multiply. Requests that fail for a while are
repeated until a budget is spent: throttling (503 SlowDown, 429), 500, 502, 504, a conflict of two
conditional writes (409), resets, and answers that do not come. Then there is one error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from itertools import count
from typing import Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

from reconciler.lazy_dataclass import dataclass
from reconciler.storage.redaction import redact_secrets
from reconciler.storage.request_budget import (
    RequestBudget,
    RequestPolicy,
    RequestsFailedError,
    find_shared_budget,
    read_clock,
    share_budget,
)
from reconciler.storage.s3_listing import install_page_parser
from reconciler.storage.silent_endpoints import (
    SILENT_ENDPOINTS,
    Answers,
    find_answers,
    find_endpoint,
)

_RETRIED_STATUS: Final = frozenset({429, 500, 502, 503, 504})
#: also what a store says of single keys in the answer to a bulk delete
RETRIED_CODES: Final = frozenset({
    "ConditionalRequestConflict", "OperationAborted", "RequestTimeout", "RequestTimeoutException",
    "SlowDown", "Throttling", "ThrottlingException", "TooManyRequestsException", "InternalError",
    "ServiceUnavailable", "TooManyRequests", "409",
})  # fmt: skip
#: failures that more tries do not mend: a wrong certificate, and names or ports that nobody answers
_CERTIFICATE_ERRORS: Final = ("SSLError", "ProxyConnectionError")
_UNREACHED_ERRORS: Final = ("EndpointConnectionError",)
_UNREACHED_TRIES: Final = 4
#: what the bytes of an answer fail with, after its head has come
_BODY_ERRORS: Final = (
    *("ClientPayloadError", "IncompleteRead", "IncompleteReadError", "ResponseStreamingError"),
    *("ReadTimeoutError", "AioReadTimeoutError", "ConnectionClosedError", "HTTPClientError"),
    *("ServiceResponseError", "ServiceResponseTimeoutError"),
    "FlexibleChecksumError",  # an object was replaced while it was read
)
#: four tables at a time, of which each is listed by four requests at a time, and their locks
_CONNECTIONS: Final = 32
_OWN_BUDGET: Final = "reconciler_budget"
_Result = TypeVar("_Result")


def make_config(policy: RequestPolicy, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return botocore's settings without its own retries; what the user gives wins."""
    return {
        "connect_timeout": min(policy.timeout_s, 5),
        "read_timeout": policy.timeout_s,
        "max_pool_connections": _CONNECTIONS,  # of all tables that share the client
        "retries": {"mode": "standard", "total_max_attempts": 1},
        **given,
    }


def install_retries(filesystem: Any, policy: RequestPolicy, secrets: Sequence[str] = ()) -> None:
    """Let every request of an s3fs filesystem, which has sent none yet, repeat by the policy.

    ``secrets``: texts that reports of repeated requests hide.
    """
    from aiobotocore.session import AioSession  # noqa: PLC0415 (heavy, comes with s3fs)

    session = AioSession(**filesystem.kwargs)
    install_page_parser(session)
    retries = _RequestRetries(policy, tuple(secrets))
    session.register("before-send.s3", retries.refuse_silent)
    session.register("needs-retry.s3", retries)
    filesystem.session, filesystem._session_is_owned = session, False  # noqa: SLF001
    filesystem.retries = 1


def repeat_broken_reads(read: Callable[[], _Result], policy: RequestPolicy, path: str) -> _Result:
    """Call a function again, within one budget with its requests, if its answer's bytes break off.

    Requests without an answer are repeated below, and not here.
    """
    with share_budget(policy) as budget:
        for tries in count(1):
            try:
                return read()
            except Exception as error:
                if type(error).__name__ not in _BODY_ERRORS:
                    raise
                problem = f"the store's answer broke off ({type(error).__name__})"
            budget.wait(f"a read of {path}", problem, tries)
    raise AssertionError("the budget ends the tries")


@dataclass(slots=True, eq=False)
class _RequestRetries:
    """Botocore's handler of finished requests: the seconds to wait before the next try, or None.

    ``answers``: of requests that no storage sends.
    """

    policy: RequestPolicy
    secrets: tuple[str, ...] = field(default=(), repr=False)
    answers: Answers = field(default_factory=Answers)

    def refuse_silent(self, *, request: Any, **_: Any) -> None:
        """Raise RequestsFailedError before a first request to an endpoint known to be silent."""
        if self._get_answers().have_come:
            return
        if refusal := SILENT_ENDPOINTS.find_refusal(find_endpoint(request.url), read_clock()):
            raise RequestsFailedError(redact_secrets(refusal, self.secrets))

    def __call__(
        self,
        *,
        response: tuple[Any, Mapping[str, Any]] | None,
        operation: Any,
        attempts: int,
        caught_exception: BaseException | None,
        request_dict: Mapping[str, Any],
        **_: Any,
    ) -> float | None:
        endpoint, answers = find_endpoint(request_dict["url"]), self._get_answers()
        if response is not None:
            answers.have_come = True
            SILENT_ENDPOINTS.forget(endpoint)
        problem = find_problem(response, caught_exception)
        if problem is None:
            return None
        context = request_dict["context"]
        budget = find_shared_budget()
        if budget is None:
            budget = context.setdefault(_OWN_BUDGET, RequestBudget(self.policy))
        is_unreached = type(caught_exception).__name__ in _UNREACHED_ERRORS
        is_last = is_unreached and attempts >= _UNREACHED_TRIES
        problem = redact_secrets(problem, self.secrets)
        try:
            return budget.compute_wait(
                f"{operation.name} of {unquote(urlsplit(request_dict['url']).path)}",
                problem,
                attempts,
                seed=str(context.get("retries", {}).get("invocation-id", "")),
                is_last=is_last or (not answers.have_come and SILENT_ENDPOINTS.is_known(endpoint)),
            )
        except RequestsFailedError:
            if not answers.have_come:
                reason = type(caught_exception).__name__
                SILENT_ENDPOINTS.record(endpoint, reason, read_clock())
            raise

    def _get_answers(self) -> Answers:
        return find_answers() or self.answers


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
    if http.status_code not in _RETRIED_STATUS and code not in RETRIED_CODES:
        return None
    text = f"{code} {error.get('Message', '')}".strip()
    return f"the store answered {http.status_code} ({text})"
