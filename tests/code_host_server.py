"""A stand-in for GitHub's and GitLab's API, in this process: what this program asks of them.

``with StandIn() as forge`` serves it; ``forge.github_environment()`` and ``gitlab_environment()``
are what CI would set. It answers only who shows a token it knows.
"""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

#: tokens and whose they are; an app's may not ask for its user
ACCOUNTS = {
    "workflow-token": "github-actions[bot]",
    "person-token": "ann",
    "project-token": "project_7_bot",
    "job-token": "ann",
}


@dataclass
class Comment:
    """A comment or an issue."""

    number: int
    author: str
    body: str
    title: str = ""
    labels: tuple[str, ...] = ()
    is_open: bool = True
    remarks: list[str] = field(default_factory=list)
    is_pull_request: bool = False
    is_system: bool = False


class CodeHostServer(ThreadingHTTPServer):
    """Every comment is on pull request 5 of acme/tables, which is project 7."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.comments: list[Comment] = []
        self.issues: list[Comment] = []
        self.asked: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []
        #: (status, headers) of answers to give before any other, each to a request of its method
        self.failures: list[tuple[str, int, dict[str, str]]] = []
        #: whether a POST that fails is carried out all the same
        self.loses_answers = False
        self.page_size = 100
        #: what comes into being while a POST is on its way
        self.meanwhile: list[Comment] = []
        self.merged = {"abcdef1234": 5}
        self.graph_answers = True
        self.next = 100

    def __enter__(self) -> Self:
        serve = {"poll_interval": 0.01}
        self.thread = threading.Thread(target=self.serve_forever, kwargs=serve, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.thread.join()
        self.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def github_environment(self, event: str | None = None) -> dict[str, str]:
        found = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": f"{self.url}/api/v3",
            "GITHUB_GRAPHQL_URL": f"{self.url}/api/graphql",
            "GITHUB_REPOSITORY": "acme/tables",
            "GITHUB_TOKEN": "workflow-token",
            "GITHUB_REF": "refs/pull/5/merge",
            "no_proxy": "*",
        }
        return found | ({"GITHUB_EVENT_PATH": event} if event else {})

    def gitlab_environment(self) -> dict[str, str]:
        return {
            "GITLAB_CI": "true",
            "CI_API_V4_URL": f"{self.url}/api/v4",
            "CI_PROJECT_ID": "7",
            "CI_MERGE_REQUEST_IID": "5",
            "RECONCILER_GITLAB_TOKEN": "project-token",
            "no_proxy": "*",
        }

    def add(self, notes: list[Comment], author: str, body: str, **more: Any) -> Comment:
        self.next += 1
        notes.append(Comment(self.next, author, body, **more))
        return notes[-1]


class Handler(BaseHTTPRequestHandler):
    server: CodeHostServer
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        document = json.loads(self.rfile.read(length) or b"{}")
        self.server.asked.append((self.command, self.path))
        self.server.headers.append(dict(self.headers))
        failure = next((f for f in self.server.failures if f[0] == self.command), None)
        if failure is not None:
            self.server.failures.remove(failure)
            if self.server.loses_answers:
                self._find_answer(document)
            self._respond(failure[1], {"message": "it is broken"}, failure[2])
            return
        self._respond(*self._find_answer(document))

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = answer  # noqa: N815 (http.server's names)

    def log_message(self, *_: object) -> None:
        return

    def _respond(self, status: int, document: Any, headers: dict[str, str] | None = None) -> None:
        body = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _find_answer(self, document: Any) -> tuple[Any, ...]:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        token = token or self.headers.get("PRIVATE-TOKEN") or self.headers.get("JOB-TOKEN") or ""
        if token not in ACCOUNTS:
            return 401, {"message": f"Bad credentials {token}"}
        path = unquote(urlsplit(self.path).path)
        if path.startswith("/api/v4/"):
            return self._gitlab(path.removeprefix("/api/v4/"), document, token)
        if path == "/api/graphql":
            if not self.server.graph_answers:
                return 403, {"message": "no graph for you"}
            return 200, {"data": {"viewer": {"login": ACCOUNTS[token]}}}
        return self._github(path.removeprefix("/api/v3/"), document, ACCOUNTS[token])

    def _github(  # noqa: PLR0911 (a table of routes)
        self, path: str, document: Any, who: str
    ) -> tuple[Any, ...]:
        repository, server = "repos/acme/tables", self.server
        if path == "user":
            is_app = who.endswith("[bot]")
            said = {"message": "Resource not accessible by integration"}
            return (403, said) if is_app else (200, {"login": who})
        if found := re.fullmatch(f"{repository}/commits/(.*)/pulls", path):
            number = server.merged.get(found[1])
            if number is None:
                return 422, {"message": f"No commit found for SHA: {found[1]}"}
            pull = {"number": number, "merged_at": "then", "merge_commit_sha": found[1]}
            return self._page([{"number": 3, "merged_at": None}, pull])
        if path == f"{repository}/issues/5/comments":
            if self.command == "POST":
                return 201, _github_comment(self._create(server.comments, who, document["body"]))
            return self._page([_github_comment(note) for note in server.comments])
        if found := re.fullmatch(f"{repository}/issues/comments/(\\d+)", path):
            note = _find_comment(server.comments, found[1])
            return self._change(note, document, _github_comment) if note else (404, {})
        if path == f"{repository}/issues":
            if self.command == "POST":
                more = {"title": document["title"], "labels": tuple(document["labels"])}
                return 201, _github_comment(
                    self._create(server.issues, who, document["body"], **more)
                )
            return self._page([_github_comment(n) for n in self._find_comments("open")])
        if found := re.fullmatch(f"{repository}/issues/(\\d+)(/comments)?", path):
            note = _find_comment(server.issues, found[1])
            return self._answer_comment(note, document, _github_comment, is_remark=bool(found[2]))
        return 404, {"message": "Not Found"}

    def _gitlab(  # noqa: C901, PLR0911 (a table of routes)
        self, path: str, document: Any, token: str
    ) -> tuple[Any, ...]:
        server, who = self.server, ACCOUNTS[token]
        if path == "job" and token == "job-token":
            return 200, {"id": 1, "user": {"username": who}}
        if token == "job-token":
            return 401, {"message": "401 Unauthorized"}
        if path == "user":
            return 200, {"id": 1, "username": who}
        if not re.match(r"projects/(7|acme/tables)/", path):
            return 404, {"message": "404 Project Not Found"}
        path = re.sub(r"^projects/(7|acme/tables)/", "", path)
        if found := re.fullmatch("repository/commits/(.*)/merge_requests", path):
            number = server.merged.get(found[1])
            said = (404, {"message": "404 Commit Not Found"})
            return self._page([{"iid": number, "state": "merged"}]) if number else said
        if path == "merge_requests/5/notes":
            if self.command == "POST":
                return 201, _gitlab_note(self._create(server.comments, who, document["body"]))
            return self._page([_gitlab_note(note) for note in server.comments])
        if found := re.fullmatch(r"merge_requests/5/notes/(\d+)", path):
            note = _find_comment(server.comments, found[1])
            return self._change(note, document, _gitlab_note) if note else (404, {})
        if path == "issues":
            if self.command == "POST":
                more = {"title": document["title"], "labels": (document["labels"],)}
                made = self._create(server.issues, who, document["description"], **more)
                return 201, _gitlab_note(made)
            return self._page([_gitlab_note(note) for note in self._find_comments("opened")])
        if found := re.fullmatch(r"issues/(\d+)(/notes)?", path):
            note = _find_comment(server.issues, found[1])
            return self._answer_comment(note, document, _gitlab_note, is_remark=bool(found[2]))
        return 404, {"message": "404 Not found"}

    def _create(self, notes: list[Comment], who: str, body: str, **more: Any) -> Comment:
        notes.extend(self.server.meanwhile)
        self.server.meanwhile.clear()
        return self.server.add(notes, who, body, **more)

    def _find_comments(self, state: str) -> list[Comment]:
        query = parse_qs(urlsplit(self.path).query)
        assert [state] == query["state"], query
        return [n for n in self.server.issues if n.is_open and query["labels"][0] in n.labels]

    def _answer_comment(
        self, note: Comment | None, document: Any, shown: Any, *, is_remark: bool
    ) -> Any:
        if note is None:
            return 404, {}
        if is_remark:
            note.remarks.append(document["body"])
            return 201, {"id": 1, "body": document["body"]}
        if document.get("state") == "closed" or document.get("state_event") == "close":
            note.is_open = False
        return self._change(note, document, shown)

    def _change(self, note: Comment, document: Any, shown: Any) -> tuple[Any, ...]:
        if self.command == "DELETE":
            self.server.comments.remove(note)
            return 204, None
        note.body = document.get("body", document.get("description", note.body))
        note.title = document.get("title", note.title)
        return 200, shown(note)

    def _page(self, items: list[Any]) -> tuple[Any, ...]:
        query = parse_qs(urlsplit(self.path).query)
        assert query["per_page"] == ["100"]
        page, size = int(query.get("page", ["1"])[0]), self.server.page_size
        headers = {}
        if len(items) > page * size:
            path = self.path.partition("&page=")[0]
            first = f'<{self.server.url}{path}&page=1>; rel="first"'
            headers["Link"] = f'{first}, <{self.server.url}{path}&page={page + 1}>; rel="next"'
        return 200, items[(page - 1) * size : page * size], headers


def _find_comment(notes: list[Comment], number: str) -> Comment | None:
    return next((note for note in notes if note.number == int(number)), None)


def _github_comment(note: Comment) -> dict[str, Any]:
    kind = "Bot" if note.author.endswith("[bot]") else "User"
    document: dict[str, Any] = {
        "id": note.number,
        "number": note.number,
        "user": {"login": note.author, "type": kind} if note.author else None,
        "title": note.title,
        "body": note.body,
        "html_url": f"https://github.example/acme/tables/{note.number}",
    }
    return document | ({"pull_request": {}} if note.is_pull_request else {})


def _gitlab_note(note: Comment) -> dict[str, Any]:
    return {
        "id": note.number,
        "iid": note.number,
        "author": {"username": note.author},
        "title": note.title,
        "body": note.body,
        "description": note.body,
        "web_url": f"https://gitlab.example/acme/tables/{note.number}",
        "system": note.is_system,
    }
