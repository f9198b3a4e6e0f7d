"""Repeat failed requests to Google Cloud Storage in one place, below every call of its client.

gcsfs repeats a request six times by rules of its own, which take no limit of time. Those are taken
off, and requests that fail for a while are repeated until a budget is spent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Any, Final

from reconciler.storage.redaction import redact_secrets
from reconciler.storage.request_budget import RequestBudget, RequestPolicy, find_shared_budget

_RETRIED_STATUS: Final = frozenset({408, 429, 500, 502, 503, 504})
#: the methods of gcsfs that send requests and have its own repetitions around them
_REQUESTS: Final = ("_request", "_get_file_request", "_get_file_concurrent")
#: a connection or an answer that fails, by the names of aiohttp's and Python's classes
_PASSING_ERRORS: Final = ("ClientError", "ConnectionError", "TimeoutError", "ChecksumError")
_CERTIFICATE_ERRORS: Final = ("ClientSSLError", "ClientConnectorCertificateError", "SSLError")
#: names or ports that nobody answers
_UNREACHED_ERRORS: Final = ("ClientConnectorError",)
_UNREACHED_TRIES: Final = 4
_CONNECT_S: Final = 5


def install_google_retries(
    filesystem: Any, policy: RequestPolicy, secrets: Sequence[str] = ()
) -> None:
    """Let every request of a gcsfs filesystem repeat by the policy.

    ``secrets``: texts that reports of repeated requests hide.
    """
    from aiohttp import ClientTimeout  # noqa: PLC0415 (heavy, comes with gcsfs)

    if filesystem.requests_timeout is None:
        filesystem.requests_timeout = ClientTimeout(
            sock_connect=min(policy.timeout_s, _CONNECT_S), sock_read=policy.timeout_s
        )
    for name in _REQUESTS:
        plain = getattr(getattr(type(filesystem), name, None), "__wrapped__", None)
        if plain is not None:
            bound = plain.__get__(filesystem)
            setattr(filesystem, name, _repeat_by(bound, policy, tuple(secrets)))


def _repeat_by(
    send: Callable[..., Awaitable[Any]], policy: RequestPolicy, secrets: Sequence[str]
) -> Callable[..., Awaitable[Any]]:
    async def send_until_answered(*args: Any, **kwargs: Any) -> Any:
        budget = find_shared_budget() or RequestBudget(policy)
        what = _describe_request(args)
        for tries in count(1):
            try:
                return await send(*args, **kwargs)
            except Exception as error:
                problem = find_problem(error)
                if problem is None:
                    raise
                is_unreached = _has_kind(error, _UNREACHED_ERRORS)
            await asyncio.sleep(
                budget.compute_wait(
                    what,
                    redact_secrets(problem, secrets),
                    tries,
                    is_last=is_unreached and tries >= _UNREACHED_TRIES,
                )
            )
        raise AssertionError("the budget ends the tries")

    return send_until_answered


def _describe_request(args: Sequence[Any]) -> str:
    """Return the method and the names of a request, which come as its template and its parts."""
    words = [str(arg) for arg in args if isinstance(arg, str)]
    return f"{words[0]} of {'/'.join(words[2:]) or words[-1]}" if words else "a request"


def find_problem(error: BaseException) -> str | None:
    """Return what a request failed with if repeating it may help, else None."""
    kind = type(error).__name__
    if _has_kind(error, ("HttpError",)):
        code = getattr(error, "code", None)
        is_passing = str(code).isdigit() and int(str(code)) in _RETRIED_STATUS
        return f"the store answered {code} ({error})" if is_passing else None
    if kind == "ProxyError":  # gcsfs's word for 502
        return "the store answered 502"
    if _has_kind(error, ("GoogleAuthError",)):
        is_passing = bool(getattr(error, "retryable", False))
        return f"the credentials could not be renewed ({error})" if is_passing else None
    if _has_kind(error, _CERTIFICATE_ERRORS) or not _has_kind(error, _PASSING_ERRORS):
        return None
    return f"the store did not answer ({kind}: {error})"


def _has_kind(error: BaseException, names: Sequence[str]) -> bool:
    return not {each.__name__ for each in type(error).__mro__}.isdisjoint(names)
