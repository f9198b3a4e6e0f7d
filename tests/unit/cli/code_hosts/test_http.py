from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest

from reconciler.cli.code_hosts.http import (
    HttpError,
    HttpRequest,
    HttpResponse,
    RetryPolicy,
    find_origin,
    send,
)
from tests.unit.cli.code_hosts.server import Server, serving


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "*")
    with serving() as server:
        yield server


def ask(
    url: str, *, body: bytes | None = b"{}", method: str = "POST", is_repeatable: bool = True
) -> tuple[HttpResponse | str, list[float]]:
    """What came of it, in words where it is an error, and the pauses that were made."""
    pauses: list[float] = []
    patience = RetryPolicy(sleep=pauses.append, timeout=0.2, is_repeatable=is_repeatable)
    try:
        return send(HttpRequest(method=method, url=url, body=body), patience), pauses
    except HttpError as error:
        return str(error), pauses


def test_json_arrives_and_the_answer_comes_back(server):
    server.answers = [(201, {"X-Page": "2"}, b'{"id": 7}')]
    reply, pauses = ask(server.url, body=b'{"text": "hello"}')
    ((method, path, headers, body),) = server.asked

    assert ("POST", "/hook/SECRET?token=SECRET") == (method, path)
    assert {"text": "hello"} == json.loads(body)
    assert "application/json" == headers["Content-Type"]
    assert "hudi-reconciler" == headers["User-Agent"]
    assert isinstance(reply, HttpResponse)
    assert (201, "2", b'{"id": 7}') == (reply.status, reply.headers["x-page"], reply.body)
    assert [] == pauses


def test_a_question_without_a_body_has_no_content_type(server):
    server.answers = [(200, {}, b"[]")]
    ask(server.url, method="GET", body=None)

    assert "GET" == server.asked[0][0]
    assert "Content-Type" not in server.asked[0][2]


def test_what_passes_is_tried_again_and_pauses_grow(server):
    server.answers = [(503, {}, b""), (502, {}, b""), (200, {}, b"ok")]
    reply, pauses = ask(server.url)

    assert isinstance(reply, HttpResponse)
    assert [1.0, 2.0] == pauses


def test_a_server_may_say_how_long_to_wait_but_not_forever(server):
    server.answers = [
        (429, {"Retry-After": "3"}, b""),
        (429, {"Retry-After": "3600"}, b""),
    ]
    server.answers += [(429, {}, b"")]
    said, pauses = ask(server.url)

    assert f"http://127.0.0.1:{server.server_port}: answered 429" == said
    assert [3, 10] == pauses


def test_who_asks_too_often_is_turned_away_and_comes_again(server):
    server.answers = [(403, {"Retry-After": "3"}, b""), (500, {}, b""), (200, {}, b"ok")]
    reply, pauses = ask(server.url)

    assert isinstance(reply, HttpResponse)
    assert [3, 2] == pauses


def test_what_may_have_arrived_is_not_sent_again_where_that_would_matter(server):
    server.answers = [(502, {}, b"")]
    said, pauses = ask(server.url, is_repeatable=False)

    assert f"http://127.0.0.1:{server.server_port}: answered 502" == said
    assert [] == pauses


def test_a_refusal_is_final_and_keeps_what_the_server_said(server):
    server.answers = [(404, {}, b'{"message": "Not Found"}')]
    with pytest.raises(HttpError, match=r"^http://127\.0\.0\.1:\d+: answered 404$") as caught:
        send(HttpRequest(method="GET", url=server.url), RetryPolicy(sleep=lambda _: None))

    assert 404 == caught.value.status
    assert b'{"message": "Not Found"}' == caught.value.body


def test_a_redirect_is_not_followed(server):
    server.answers = [(302, {"Location": server.url}, b"")]
    said, _ = ask(server.url)

    assert f"http://127.0.0.1:{server.server_port}: answered 302; redirects are not followed" == (
        said
    )
    assert 1 == len(server.asked)


def test_nobody_there_is_said_after_every_try():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        port = taken.getsockname()[1]
        said, pauses = ask(f"http://127.0.0.1:{port}/SECRET", is_repeatable=False)

    assert f"http://127.0.0.1:{port}: cannot be reached: Connection refused" == said
    assert [1.0, 2.0] == pauses


def test_silence_is_not_waited_for_forever(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        said, pauses = ask(f"http://127.0.0.1:{port}/SECRET", is_repeatable=False)

    assert f"http://127.0.0.1:{port}: no answer within 0.2 s" == said
    assert [] == pauses


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://h/SECRET", "not a URL such as https://host/path"),
        ("file:///etc/SECRET", "not a URL such as https://host/path"),
        ("SECRET", "not a URL such as https://host/path"),
        ("https://h:port/SECRET", "not a URL such as https://host/path"),
        ("https://[h/SECRET", "not a URL such as https://host/path"),
        ("https://h/SEC RET", "the URL has invalid characters, such as blanks or line breaks"),
        ("https://h/SECRET\n", "the URL has invalid characters, such as blanks or line breaks"),
        ("https://h/SECRÈT", "the URL has invalid characters, such as blanks or line breaks"),
        ("https://SECRET:x@h/", "https://h: user names and passwords in URLs are not supported"),
    ],
)
def test_what_cannot_be_asked_is_said_without_its_secret(url, problem):
    with pytest.raises(HttpError) as caught:
        find_origin(url)

    assert problem == str(caught.value)


def test_a_token_with_a_line_break_is_not_repeated():
    asked = HttpRequest(method="GET", url="https://h/", headers={"Authorization": "SECRET\n"})
    with pytest.raises(HttpError) as caught:
        send(asked, RetryPolicy(sleep=lambda _: None))

    assert (
        "https://h: header Authorization has a line break or a character that is not ASCII"
    ) == str(caught.value)
