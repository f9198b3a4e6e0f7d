"""Telling a webhook what needs somebody; the command ends as it would have without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer

from reconciler.cli.environment import name_of
from reconciler.cli.failures import sentence
from reconciler.cli.terminal import say
from reconciler.errors import ReconcilerError, UsageError

if TYPE_CHECKING:
    from reconciler.apply.result import Result
    from reconciler.plan.model import Plan
    from reconciler.render.notice import Event, Notice, TableNotice
    from reconciler.status import TableStatus

Webhook = Annotated[
    str | None,
    typer.Option(
        "--webhook",
        metavar="URL",
        envvar="RECONCILER_WEBHOOK",
        help="Post what needs somebody to this URL, as JSON; nothing when all is fine.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """Where one run of a command reports to; nowhere without a URL."""

    command: str
    url: str | None
    environment: str | None

    def tell_plan(self, plan: Plan, exit_code: int) -> None:
        """Post what the plan has to say, if there is anything."""
        if self.url is None:
            return
        from reconciler.render.notice import of_plan  # noqa: PLC0415

        if found := of_plan(plan):
            from reconciler.plan.document import plan_digest  # noqa: PLC0415

            self._tell(found, len(plan.tables), exit_code, plan_digest(plan))

    def tell_status(self, tables: Sequence[TableStatus], exit_code: int) -> None:
        """Post the tables that are not as they should be, if there are any."""
        if self.url is None:
            return
        from reconciler.render.notice import of_status  # noqa: PLC0415

        if found := of_status(tables):
            self._tell(found, len(tables), exit_code, None)

    def tell_result(self, result: Result) -> None:
        """Post the tables that were not applied as reviewed, if there are any."""
        if self.url is None:
            return
        from reconciler.render.notice import of_result  # noqa: PLC0415

        if found := of_result(result):
            self._tell(found, len(result.tables), result.exit_code, result.plan_digest)

    def _tell(
        self, tables: tuple[TableNotice, ...], total: int, exit_code: int, digest: str | None
    ) -> None:
        from reconciler.render.notice import Notice  # noqa: PLC0415

        self._post(
            Notice(
                command=self.command,
                exit_code=exit_code,
                environment=self.environment,
                plan_digest=digest,
                total=total,
                tables=tables,
            )
        )

    def tell_error(self, error: Exception) -> None:
        """Post what stopped the command before there was a result."""
        if self.url is None:
            return
        from reconciler.render.notice import Notice  # noqa: PLC0415

        code = error.exit_code if isinstance(error, ReconcilerError) else 1
        what: tuple[Event, str] = (_event(code), sentence(error))
        notice = Notice(
            command=self.command, exit_code=code, environment=self.environment, error=what
        )
        self._post(notice)

    def _post(self, notice: Notice) -> None:
        if self.url is None:
            return
        from reconciler import world  # noqa: PLC0415
        from reconciler.forge.http import HttpError, Outgoing, Patience, send  # noqa: PLC0415
        from reconciler.render.notice import notice_json  # noqa: PLC0415

        try:
            request = Outgoing(method="POST", url=self.url, body=notice_json(notice))
            send(request, Patience(sleep=world.SystemClock().sleep))
        except Exception as error:  # noqa: BLE001 (whatever it is, the work is done)
            # only our own words: others may repeat the URL, which is a secret
            why = str(error) if isinstance(error, HttpError) else type(error).__name__
            say(f"warning: the webhook was not told: {why}", level="warning", event="webhook")


@dataclass(slots=True)
class _Run:
    hook: Hook | None = None


_RUN: Final = _Run()


def open_hook(url: str | None, command: str, env: str | None) -> Hook:
    """The hook of this run from here on: what stops the run is told to it too.

    Raises UsageError for a URL that none can be, without repeating it: it is a secret.
    """
    if url is not None:
        from reconciler.forge.http import HttpError, place  # noqa: PLC0415

        try:
            place(url)
        except HttpError as error:
            raise UsageError(f"--webhook (or RECONCILER_WEBHOOK): {error}") from None
    _RUN.hook = Hook(command=command, url=url, environment=name_of(env))
    return _RUN.hook


def reset() -> None:
    """A command begins: it has no hook yet."""
    _RUN.hook = None


def tell_what_stopped(error: Exception) -> None:
    """Tell the hook of this run, if there is one, unless it is only how the command was called."""
    if _RUN.hook is not None and not isinstance(error, UsageError):
        _RUN.hook.tell_error(error)


def _event(exit_code: int) -> Event:
    match exit_code:
        case 3:
            return "blocked"
        case 4:
            return "stale"
        case 5:
            return "partial"
        case 6:
            return "busy"
        case _:
            return "failed"
