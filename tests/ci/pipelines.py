"""The stand-in for a forge's API, with what pipelines ask besides: merges, runs and their files."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.code_host_server import CodeHostServer, Handler


class Pipelines(CodeHostServer):
    """``merges``: the last commit of the pull request that a commit of main brought."""

    def __init__(self) -> None:
        super().__init__()
        self.RequestHandlerClass = _Handler
        self.merges: dict[str, str] = {}
        #: GitHub's runs of workflows, the newest last
        self.runs: list[Any] = []
        #: what the job of GitLab's merge request 5 left, and how the job ended
        self.plan: bytes | None = None
        self.job_status = "success"
        self.source_project = 7


class _Handler(Handler):
    server: Pipelines

    def _github(self, path: str, document: Any, who: str) -> tuple[Any, ...]:
        if found := re.fullmatch("repos/acme/tables/commits/(.*)/pulls", path):
            head = self.server.merges.get(found[1])
            pull = {
                "number": 5,
                "merged_at": "then",
                "merge_commit_sha": found[1],
                "base": {"ref": "main"},
                "head": {"sha": head},
            }
            other = {**pull, "number": 4, "merged_at": None, "head": {"sha": "0" * 40}}
            return self._page([other, pull] if head else [])
        if found := re.fullmatch("repos/acme/tables/actions/workflows/(.*)/runs", path):
            return 200, {"workflow_runs": [*self._runs(found[1])]}
        return super()._github(path, document, who)

    def _gitlab(self, path: str, document: Any, token: str) -> tuple[Any, ...]:
        server, route = self.server, path.removeprefix("projects/7/")
        if found := re.fullmatch("repository/commits/(.*)/merge_requests", route):
            merged = {"iid": 5, "source_project_id": server.source_project, "target_project_id": 7}
            other = {**merged, "iid": 4, "state": "opened"}
            is_known = found[1] in server.merges
            return self._page([other, {**merged, "state": "merged"}] if is_known else [])
        if route == "merge_requests/5":
            return 200, {"iid": 5, "head_pipeline": {"id": 9}}
        if route == "pipelines/9/jobs":
            lint = {"id": 10, "name": "reconciler-lint", "status": "success"}
            plan = {"id": 11, "name": "reconciler-plan", "status": server.job_status}
            return self._page([lint, plan])
        if route == "jobs/11/artifacts/plan.json":
            return (404, {}) if server.plan is None else (200, server.plan)
        return super()._gitlab(path, document, token)

    def _say(self, status: int, document: Any, headers: dict[str, str] | None = None) -> None:
        if not isinstance(document, bytes):
            super()._respond(status, document, headers)
            return
        self.send_response(status)
        self.send_header("Content-Length", str(len(document)))
        self.end_headers()
        self.wfile.write(document)

    def _runs(self, workflow: str):
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        for run in reversed(self.server.runs):
            said = {"event": run.event, "status": run.conclusion, "head_sha": run.head_sha}
            if run.workflow == workflow and all(query[name] == said[name] for name in said):
                yield {"id": run.number, "head_repository": {"full_name": run.head_repository}}
