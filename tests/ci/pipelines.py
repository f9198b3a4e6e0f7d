"""The stand-in for a forge's API, with what pipelines ask besides: merges, runs and their files."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.forge import Handler, StandIn


class Pipelines(StandIn):
    """``merges``: the last commit of the pull request that a commit of main brought."""

    def __init__(self) -> None:
        super().__init__()
        self.RequestHandlerClass = _Handler
        self.merges: dict[str, str] = {}
        #: GitHub's runs of workflows, the newest last
        self.runs: list[Any] = []


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

    def _runs(self, workflow: str):
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        for run in reversed(self.server.runs):
            said = {"event": run.event, "status": run.conclusion, "head_sha": run.head_sha}
            if run.workflow == workflow and all(query[name] == said[name] for name in said):
                yield {"id": run.number, "head_repository": {"full_name": run.head_repository}}
