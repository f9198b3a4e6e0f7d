"""``reconciler comment``: the one comment on a pull request, or the one issue about drift."""

from __future__ import annotations

import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from reconciler import runtime
from reconciler.cli.terminal import log_message, print_result
from reconciler.errors import NotFoundError, StorageError, UsageError
from reconciler.render import words

if TYPE_CHECKING:
    from reconciler.cli.code_hosts.api import CodeHost
    from reconciler.cli.code_hosts.posts import PostResult
    from reconciler.cli.code_hosts.target import CommentTarget

_STDIN: Final = Path("-")
_TITLE: Final = re.compile(r"[^\x00-\x1f\x7f]{1,255}")
_TIMEOUT_S: Final = 30
_LONGEST_PAUSE_S: Final = 60  # what GitHub asks of who writes too fast
_TRIES: Final = 4
_CLOSING_COMMENT: Final = "Closed by reconciler: no table differs from its spec any more."


class ProviderName(StrEnum):
    GITHUB = "github"
    GITLAB = "gitlab"


def comment(  # noqa: PLR0913 (options of a command)
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="What `plan`, `show` or `apply` wrote with --format markdown (-: standard input).",
        ),
    ],
    *,
    issue: Annotated[
        str | None,
        typer.Option("--issue", metavar="TITLE", help="Open or edit an issue with this title."),
    ] = None,
    close: Annotated[
        bool, typer.Option("--close", help="With --issue: close it, as nothing differs any more.")
    ] = False,
    pull_request: Annotated[
        int | None,
        typer.Option(
            "--pull-request", metavar="NUMBER", min=1, help="Comment here (default: CI's own)."
        ),
    ] = None,
    commit: Annotated[
        str | None,
        typer.Option(
            "--commit", metavar="SHA", help="Comment on the pull request that brought this commit."
        ),
    ] = None,
    repository: Annotated[
        str | None,
        typer.Option("--repository", metavar="OWNER/NAME", help="Default: CI's own."),
    ] = None,
    provider: Annotated[
        ProviderName | None, typer.Option("--provider", help="Whose API it is (default: CI's).")
    ] = None,
) -> int:
    """Say a plan or a result on its pull request: one comment, edited in place.

    Works on GitHub and GitLab, from the variables that their CI sets. The token comes from
    GITHUB_TOKEN or RECONCILER_GITLAB_TOKEN.
    """
    _check_options(issue, pull_request, commit, close=close)
    from reconciler.cli.code_hosts import posts  # noqa: PLC0415 (heavy)
    from reconciler.cli.code_hosts.target import TargetOptions, find_target  # noqa: PLC0415

    body, name = _read_text(file)
    posts.find_marker(body, name)
    wanted = TargetOptions(
        provider=None if provider is None else provider.value,
        repository=repository,
        pull_request=pull_request,
        commit=commit,
    )
    where = find_target(runtime.environment(), wanted, read=lambda path: Path(path).read_bytes())
    forge = _connect_host(where)
    if issue is None:
        number = _find_pull_request(forge, where)
        if number is None:
            print_result(f"no merged pull request brought {where.commit}: nothing to comment on\n")
            return 0
        done = posts.post_comment(forge, number, body, name)
    elif close:
        done = posts.close_issue(forge, body, _CLOSING_COMMENT, name)
    else:
        done = posts.post_issue(forge, issue, body, name)
    _report_result(done, "comment" if issue is None else "issue")
    return 0


def _check_options(
    issue: str | None, pull_request: int | None, commit: str | None, *, close: bool
) -> None:
    if issue is None and close:
        raise UsageError("--close: goes with --issue")
    if issue is not None and not _TITLE.fullmatch(issue):
        raise UsageError("--issue: a title is one line of at most 255 characters")
    if issue is not None and (pull_request is not None or commit is not None):
        raise UsageError("--issue: goes without --pull-request and --commit")
    if pull_request is not None and commit is not None:
        raise UsageError("--commit: goes without --pull-request")


def _read_text(path: Path) -> tuple[str, str]:
    """The text and what to call it; one that is not UTF-8 is an error."""
    name = "standard input" if path == _STDIN else str(path)
    try:
        data = sys.stdin.buffer.read() if path == _STDIN else path.read_bytes()
        return data.decode("utf-8-sig").replace("\r\n", "\n"), name
    except FileNotFoundError:
        raise NotFoundError(name, "is not there") from None
    except OSError as error:
        raise StorageError(name, error.strerror or str(error)) from None
    except UnicodeDecodeError:
        raise StorageError(name, "is not UTF-8, so it is no Markdown of ours") from None


def _connect_host(target: CommentTarget) -> CodeHost:
    from reconciler.cli.code_hosts.github import connect_github  # noqa: PLC0415 (heavy)
    from reconciler.cli.code_hosts.gitlab import connect_gitlab  # noqa: PLC0415
    from reconciler.cli.code_hosts.http import RetryPolicy  # noqa: PLC0415

    patience = RetryPolicy(
        sleep=runtime.SystemClock().sleep,
        timeout=_TIMEOUT_S,
        tries=_TRIES,
        longest_pause=_LONGEST_PAUSE_S,
    )
    if target.api_url.startswith("http://"):
        url = words.escape_text(target.api_url)
        log_message(f"warning: {url} is not encrypted, and the token goes there", level="warning")
    return (
        connect_github(target, patience)
        if target.provider == "github"
        else connect_gitlab(target, patience)
    )


def _find_pull_request(host: CodeHost, target: CommentTarget) -> int | None:
    if target.commit is not None:
        return host.find_pull_request(target.commit)
    if target.pull_request is None:
        raise UsageError(
            "this job runs for no pull request; say --pull-request, or --commit after a merge"
        )
    return target.pull_request


def _report_result(result: PostResult, what: str) -> None:
    if result.status == "absent":
        print_result(f"no open {what} to close\n")
        return
    print_result(f"{what} {result.status}: {words.escape_text(result.url)}\n")
    for other in result.removed_urls:
        verb = "removed" if what == "comment" else "closed"
        log_message(f"{verb} a second {what} with the same marker: {words.escape_text(other)}")
