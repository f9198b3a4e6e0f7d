"""Repeat failed requests to Azure's blobs in one place, below every call of its client.

Azure's library waits for a minute for an answer and repeats three times, half a minute apart. Its
policy of retries is replaced by one that repeats until a budget is spent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache
from itertools import count
from typing import Any, Final

from reconciler.storage.redaction import redact_secrets
from reconciler.storage.request_budget import RequestBudget, RequestPolicy, find_shared_budget

_RETRIED_STATUS: Final = frozenset({408, 429, 500, 502, 503, 504})
_CONNECT_S: Final = 5
_UNREACHED_TRIES: Final = 4
_HIDDEN_TIMEOUTS: Final = ("connection_timeout", "read_timeout")


def install_azure_retries(
    filesystem: Any, policy: RequestPolicy, secrets: Sequence[str] = ()
) -> None:
    """Let every request of an adlfs filesystem, which has sent none yet, repeat by the policy.

    ``secrets``: texts that reports of repeated requests hide.
    """
    from azure.storage.blob.aio import BlobServiceClient  # noqa: PLC0415 (comes with adlfs)

    given = {
        name: value
        for name, value in filesystem._timeout_kwargs.items()  # noqa: SLF001
        if name in _HIDDEN_TIMEOUTS
    }
    service = filesystem.service_client
    filesystem.service_client = BlobServiceClient(
        service.url,
        credential=service.credential,
        retry_policy=_load_policy_class()(policy, tuple(secrets)),
        **{
            "connection_timeout": min(policy.timeout_s, _CONNECT_S),
            "read_timeout": policy.timeout_s,
            **given,
        },
    )


@cache
def _load_policy_class() -> Any:
    """Build the policy: its base class is Azure's, which is loaded only for tables there."""
    from azure.core.exceptions import AzureError  # noqa: PLC0415 (comes with adlfs)
    from azure.storage.blob.aio import ExponentialRetry  # noqa: PLC0415

    class BudgetRetry(ExponentialRetry):  # type: ignore[misc]
        """Sends a request until it is answered, or until its budget is spent."""

        def __init__(self, policy: RequestPolicy, secrets: Sequence[str]) -> None:
            super().__init__(retry_total=0)
            self._budget_policy, self._secrets = policy, secrets

        async def send(self, request: Any) -> Any:
            budget = find_shared_budget() or RequestBudget(self._budget_policy)
            sent, settings = request.http_request, self.configure_retries(request)
            start = _find_start(sent.body)
            for tries in count(1):
                _rewind(sent.body, start)
                is_last = False
                try:
                    response = await self.next.send(request)
                    problem = _find_answered_problem(response.http_response)
                    if problem is None:
                        response.http_response.location_mode = settings["mode"]
                        return response
                except AzureError as error:
                    problem = _find_unanswered_problem(error)
                    if problem is None:
                        raise
                    is_last = _is_unreached(error) and tries >= _UNREACHED_TRIES
                what = f"{sent.method} of {sent.url.partition('?')[0]}"
                known = redact_secrets(problem, self._secrets)
                await asyncio.sleep(budget.compute_wait(what, known, tries, is_last=is_last))
            raise AssertionError("the budget ends the tries")

    return BudgetRetry


def _find_start(body: Any) -> int | None:
    """Return where a stream of bytes is; None for bytes."""
    return int(body.tell()) if hasattr(body, "tell") else None


def _rewind(body: Any, start: int | None) -> None:
    if start is not None:
        body.seek(start)


def _find_answered_problem(response: Any) -> str | None:
    """Return what a server answered if repeating the request may help, else None."""
    if response.status_code not in _RETRIED_STATUS:
        return None
    code = response.headers.get("x-ms-error-code") or response.reason or ""
    return f"the store answered {response.status_code} ({code})"


def _find_unanswered_problem(error: BaseException) -> str | None:
    """Return what a request without an answer failed with if repeating it may help, else None."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds.isdisjoint({"ServiceRequestError", "ServiceResponseError"}):
        return None
    if "certificate" in str(error).lower():
        return None
    return f"the store did not answer ({type(error).__name__}: {error})"


def _is_unreached(error: BaseException) -> bool:
    """Return whether nobody answers at the name or port: a connection is refused at once."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    return "ServiceRequestError" in kinds and "ServiceRequestTimeoutError" not in kinds
