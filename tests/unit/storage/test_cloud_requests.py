"""What of the clients of GCS and Azure is repeated, by their own exceptions."""

from __future__ import annotations

import asyncio

import pytest

from reconciler.storage.azure_requests import _load_policy_class
from reconciler.storage.google_requests import find_problem, install_google_retries
from reconciler.storage.request_budget import RequestPolicy, RequestsFailedError


class HttpError(Exception):
    """As gcsfs raises it."""

    def __init__(self, code):
        super().__init__(f"made, {code}")
        self.code = code


class ProxyError(Exception):
    pass


class ClientError(Exception):
    pass


class ClientConnectorCertificateError(ClientError):
    pass


class TransportError(Exception):
    retryable = True


class GoogleAuthError(Exception):
    retryable = False


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (HttpError(503), "the store answered 503 (made, 503)"),
        (HttpError("429"), "the store answered 429 (made, 429)"),
        (HttpError(401), None),
        (HttpError(None), None),
        (ProxyError(), "the store answered 502"),
        (ClientError("cut"), "the store did not answer (ClientError: cut)"),
        (TimeoutError(), "the store did not answer (TimeoutError: )"),
        (ConnectionResetError("gone"), "the store did not answer (ConnectionResetError: gone)"),
        (ClientConnectorCertificateError("self-signed"), None),
        (GoogleAuthError("revoked"), None),
        (FileNotFoundError("f"), None),
        (PermissionError("f"), None),
        (KeyError("a bug"), None),
    ],
)
def test_requests_to_google_are_repeated_where_it_may_help(error, problem):
    assert problem == find_problem(error)


def test_credentials_that_google_could_not_renew_just_now_are_asked_for_again():
    class RefreshError(GoogleAuthError):
        retryable = True

    assert find_problem(RefreshError("later")) == "the credentials could not be renewed (later)"


class Client:
    """The part of gcsfs that sends requests, with its own repetitions around them."""

    requests_timeout = None

    def __init__(self, *outcomes):
        self.outcomes, self.sent = list(outcomes), []

    async def _request(self, *_):
        raise AssertionError("the client repeats by itself")

    async def _plain(self, method, path, *names):
        self.sent.append((method, path, *names))
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


Client._request.__wrapped__ = Client._plain


def test_a_request_to_google_has_one_budget_and_a_timeout_for_each_answer():
    client = Client(HttpError(503), ClientError("cut"), b"x")
    install_google_retries(client, RequestPolicy(timeout_s=3, budget_s=9))

    assert asyncio.run(client._request("GET", "b/{}/o/{}", "lake", "f")) == b"x"
    assert len(client.sent) == 3
    assert (client.requests_timeout.sock_read, client.requests_timeout.sock_connect) == (3, 3)


def test_a_budget_that_is_spent_says_what_failed_and_hides_secrets():
    client = Client(ClientError("token hunter2-x refused"))
    install_google_retries(client, RequestPolicy(budget_s=0), ["hunter2-x"])
    with pytest.raises(RequestsFailedError) as caught:
        asyncio.run(client._request("GET", "b/{}", "lake"))

    assert str(caught.value) == (
        "the store did not answer (ClientError: token *** refused); gave up after 1 try, "
        "repeated for 0 s (retryFor 0 s)"
    )


class Sent:
    """A request of Azure's library on its way, and what the next policy answers."""

    def __init__(self, *outcomes, body=None):
        self.http_request, self.context = self, self
        self.options, self.method, self.url, self.body = {}, "PUT", "http://h/a/f?sig=1", body
        self.outcomes, self.bodies = list(outcomes), []

    async def send(self, _request):
        self.bodies.append(self.body.read() if self.body else None)
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return Answer(outcome)


class Answer:
    def __init__(self, status):
        self.http_response, self.status_code = self, status
        self.headers, self.reason = {"x-ms-error-code": "ServerBusy"}, "Busy"


def send(sent, **policy):
    retry = _load_policy_class()(RequestPolicy(**policy), ())
    retry.next = sent
    return asyncio.run(retry.send(sent))


def test_requests_to_azure_are_repeated_with_their_whole_body():
    import io  # noqa: PLC0415

    from azure.core.exceptions import ServiceResponseError  # noqa: PLC0415

    body = io.BytesIO(b"rows before")
    body.seek(5)
    sent = Sent(503, ServiceResponseError("cut"), 201, body=body)

    assert send(sent).status_code == 201
    assert sent.bodies == [b"before"] * 3


@pytest.mark.parametrize("status", [400, 403, 404, 409, 412])
def test_what_azure_means_is_not_asked_again(status):
    assert send(Sent(status)).status_code == status


def test_a_wrong_certificate_is_not_asked_again():
    from azure.core.exceptions import ServiceRequestError  # noqa: PLC0415

    error = ServiceRequestError("certificate verify failed")
    with pytest.raises(ServiceRequestError):
        send(Sent(error))


def test_a_budget_that_is_spent_ends_requests_to_azure():
    with pytest.raises(RequestsFailedError, match=r"answered 503 \(ServerBusy\); gave up after 1"):
        send(Sent(503), budget_s=0)
