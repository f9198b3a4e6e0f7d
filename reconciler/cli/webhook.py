"""The webhook: posts a JSON summary when a table needs attention; never changes the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from reconciler.cli.environment import find_environment_name
from reconciler.cli.error_reports import describe_error
from reconciler.cli.terminal import log_message
from reconciler.errors import ReconcilerError, UsageError
from reconciler.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from reconciler.executor.result import ApplyResult
    from reconciler.plans.plan import Plan
    from reconciler.render.webhook_notice import NoticeEvent, TableNotice
    from reconciler.status.model import TableStatus

Webhook = Annotated[
    str | None,
    typer.Option(
        "--webhook",
        metavar="URL",
        envvar="RECONCILER_WEBHOOK",
        help="POST a JSON summary to URL when a table needs attention.",
    ),
]


#: what an exit code means; all others are "failed"
_EVENTS: Final[Mapping[int, NoticeEvent]] = {3: "blocked", 4: "stale", 5: "partial", 6: "busy"}


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookReporter:
    """Posts the summaries of one run of a command; posts nothing without a URL."""

    command: str
    url: str | None
    environment: str | None

    def report_plan(self, plan: Plan, exit_code: int) -> None:
        """Post the tables of a plan that need attention, if there are any."""
        if self.url is not None:
            from reconciler.render.webhook_notice import plan_notices  # noqa: PLC0415

            self._report_tables(plan_notices(plan), len(plan.tables), exit_code, plan.digest)

    def report_status(self, tables: Sequence[TableStatus], exit_code: int) -> None:
        """Post the tables whose status needs attention, if there are any."""
        if self.url is not None:
            from reconciler.render.webhook_notice import status_notices  # noqa: PLC0415

            self._report_tables(status_notices(tables), len(tables), exit_code, None)

    def report_result(self, result: ApplyResult) -> None:
        """Post the tables that were not applied as reviewed, if there are any."""
        if self.url is not None:
            from reconciler.render.webhook_notice import result_notices  # noqa: PLC0415

            notices, total = result_notices(result), len(result.tables)
            self._report_tables(notices, total, result.exit_code, result.plan_digest)

    def report_error(self, error: Exception) -> None:
        """Post the error that stopped the command before there was a result."""
        code = error.exit_code if isinstance(error, ReconcilerError) else 1
        self._post(exit_code=code, error=(_EVENTS.get(code, "failed"), describe_error(error)))

    def _report_tables(
        self, tables: tuple[TableNotice, ...], total: int, exit_code: int, digest: str | None
    ) -> None:
        if tables:
            self._post(exit_code=exit_code, plan_digest=digest, total=total, tables=tables)

    def _post(self, **fields: Any) -> None:
        """Post a notice with these fields."""
        if self.url is None:
            return
        from reconciler import runtime  # noqa: PLC0415
        from reconciler.cli.code_hosts.http import HttpError, HttpRequest, RetryPolicy, send  # noqa: PLC0415
        from reconciler.render.webhook_notice import Notice, notice_json  # noqa: PLC0415

        notice = Notice(command=self.command, environment=self.environment, **fields)
        try:
            request = HttpRequest(method="POST", url=self.url, body=notice_json(notice))
            send(request, RetryPolicy(sleep=runtime.SystemClock().sleep))
        except Exception as error:  # noqa: BLE001 (the work is done, whatever the error)
            # messages of other exceptions may contain the URL, which is a secret
            why = str(error) if isinstance(error, HttpError) else type(error).__name__
            log_message(
                f"warning: webhook delivery failed: {why}", level="warning", event="webhook"
            )


@dataclass(slots=True)
class _CurrentRun:
    hook: WebhookReporter | None = None


_RUN: Final = _CurrentRun()


def open_webhook(url: str | None, command: str, env: str | None) -> WebhookReporter:
    """Return the reporter of this run. An error that stops the run is posted too.

    Raises UsageError for an invalid URL, without repeating it: it is a secret.
    """
    if url is not None:
        from reconciler.cli.code_hosts.http import HttpError, find_origin  # noqa: PLC0415

        try:
            find_origin(url)
        except HttpError as error:
            raise UsageError(f"--webhook (or RECONCILER_WEBHOOK): {error}") from None
    _RUN.hook = WebhookReporter(command=command, url=url, environment=find_environment_name(env))
    return _RUN.hook


def reset() -> None:
    """Forget the reporter of a former run."""
    _RUN.hook = None


def report_failure(error: Exception) -> None:
    """Post an error that stopped this run, unless the command line was not valid."""
    if _RUN.hook is not None and not isinstance(error, UsageError):
        _RUN.hook.report_error(error)
