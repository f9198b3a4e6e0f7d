"""``reconciler comment``: post a plan or result to its pull request, or drift as an issue."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from reconciler import runtime
from reconciler.cli.code_hosts.target import TargetOptions, find_target
from reconciler.cli.files import read_input
from reconciler.cli.options import command
from reconciler.cli.terminal import log_message, print_result
from reconciler.errors import StorageError, UsageError
from reconciler.lazy_dataclass import dataclass
from reconciler.render import words

if TYPE_CHECKING:
    from reconciler.cli.code_hosts.api import CodeHost
    from reconciler.cli.code_hosts.posts import PostResult
    from reconciler.cli.code_hosts.target import CommentTarget

_TITLE: Final = re.compile(r"[^\x00-\x1f\x7f]{1,255}")
_TIMEOUT_S: Final = 30
_MAX_PAUSE_S: Final = 60  # what GitHub asks of clients that write too fast
_TRIES: Final = 4
_CLOSING_COMMENT: Final = "Closed by reconciler: no table differs from its spec any more."


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentOptions:
    """The options of the command, as given."""

    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Markdown written by `plan`, `show` or `apply` with --format markdown (- for "
            "standard input).",
        ),
    ]
    issue: Annotated[
        str | None,
        typer.Option(
            "--issue", metavar="TITLE", help="Open or edit an issue with this title instead."
        ),
    ] = None
    close: Annotated[
        bool, typer.Option("--close", help="With --issue: close the issue, as there is no drift.")
    ] = False
    target: TargetOptions


@command
def comment(options: CommentOptions) -> int:
    """Post a plan or result to its pull request, as one comment that is edited in place.

    Works on GitHub and GitLab with the variables that their CI sets. The token is read from
    GITHUB_TOKEN or RECONCILER_GITLAB_TOKEN.
    """
    _check_options(options)
    from reconciler.cli.code_hosts import posts  # noqa: PLC0415 (slow to import)

    body, name = _read_text(options.file)
    posts.find_marker(body, name)
    target = find_target(
        runtime.environment(), options.target, read=lambda path: Path(path).read_bytes()
    )
    host = _connect_host(target)
    if options.issue is None:
        number = _find_pull_request(host, target)
        if number is None:
            print_result(f"no pull request merged {target.commit}: nothing to comment on\n")
            return 0
        result = posts.post_comment(host, number, body, name)
    elif options.close:
        result = posts.close_issue(host, body, _CLOSING_COMMENT, name)
    else:
        result = posts.post_issue(host, options.issue, body, name)
    _report_result(result, "comment" if options.issue is None else "issue")
    return 0


def _check_options(options: CommentOptions) -> None:
    issue, target = options.issue, options.target
    if issue is None and options.close:
        raise UsageError("--close: only valid with --issue")
    if issue is not None and not _TITLE.fullmatch(issue):
        raise UsageError("--issue: the title must be one line of at most 255 characters")
    if issue is not None and (target.pull_request is not None or target.commit is not None):
        raise UsageError("--issue: not valid with --pull-request or --commit")
    if target.pull_request is not None and target.commit is not None:
        raise UsageError("--commit: not valid with --pull-request")


def _read_text(path: Path) -> tuple[str, str]:
    """Return the text and the name of its source; raise StorageError if it is not UTF-8."""
    data, name = read_input(path, "a Markdown file")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n"), name
    except UnicodeDecodeError:
        raise StorageError(name, "is not UTF-8; expected Markdown written by reconciler") from None


def _connect_host(target: CommentTarget) -> CodeHost:
    from reconciler.cli.code_hosts.github import connect_github  # noqa: PLC0415 (slow to import)
    from reconciler.cli.code_hosts.gitlab import connect_gitlab  # noqa: PLC0415
    from reconciler.cli.code_hosts.http import RetryPolicy  # noqa: PLC0415

    retry_policy = RetryPolicy(
        sleep=runtime.SystemClock().sleep,
        timeout=_TIMEOUT_S,
        tries=_TRIES,
        longest_pause=_MAX_PAUSE_S,
    )
    if target.api_url.startswith("http://"):
        url = words.escape_text(target.api_url)
        log_message(
            f"warning: {url} is not encrypted, and the token is sent there", level="warning"
        )
    return (
        connect_github(target, retry_policy)
        if target.provider == "github"
        else connect_gitlab(target, retry_policy)
    )


def _find_pull_request(host: CodeHost, target: CommentTarget) -> int | None:
    if target.commit is not None:
        return host.find_pull_request(target.commit)
    if target.pull_request is None:
        raise UsageError(
            "this job has no pull request; give --pull-request, or --commit after a merge"
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
