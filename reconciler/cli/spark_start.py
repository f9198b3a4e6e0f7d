"""Start Spark on a thread, while the command does what needs no Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from reconciler.cli import interruption
from reconciler.cli.spark import is_spark_running, open_spark_session
from reconciler.cli.spark_master import check_master, check_own_settings
from reconciler.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from reconciler.cli.options import SparkSettings

#: how often a thread that waits looks whether the command has to stop
_WAKE_UP_S: Final = 0.2
#: how long an interrupted command waits for a Spark that is starting: Java ends with this process
_STOP_WAIT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class StartingSession:
    """A session that is being started, or runs already."""

    _started: Future[Any] = field(default_factory=Future)

    def get(self, check_stop: Callable[[], None] = lambda: None) -> Any:
        """Return the session as soon as it is there; raise why it did not start. On any thread.

        ``check_stop`` ends the wait by raising.
        """
        while True:
            check_stop()
            try:
                return self._started.result(_WAKE_UP_S)
            except TimeoutError:
                if self._started.done():  # the start itself ran out of time
                    raise

    def raise_failure(self) -> None:
        """Raise why the session did not start, if it is known by now that it did not."""
        if self._started.done():
            self._started.result()

    def cancel_jobs(self) -> None:
        """Cancel what runs on the session, if it has started; raises what Spark raises."""
        if self._started.done():
            self._started.result().sparkContext.cancelAllJobs()

    def start(self, open_session: Callable[[], Any]) -> None:
        """Open the session on this thread."""
        try:
            self._started.set_result(open_session())
        except BaseException as error:  # noqa: BLE001 (``get`` raises it)
            self._started.set_exception(error)


@contextmanager
def start_spark_session(
    settings: SparkSettings, *, in_python: bool, set_up: Callable[[Any], None]
) -> Iterator[StartingSession]:
    """Start a session for the block, on a thread unless this process has Spark already.

    ``set_up`` gets the session before anybody else. Raises UsageError at once for invalid settings;
    ``StartingSession.get`` raises the rest.
    """
    check_master(settings.master, settings.conf)
    check_own_settings(settings.conf)
    starting, stack = StartingSession(), ExitStack()

    def open_session() -> Any:
        opened = open_spark_session(
            settings.master,
            settings.conf,
            in_python=in_python,
            from_variables=settings.from_variables,
        )
        session = stack.enter_context(opened)
        with interruption.prefer_interrupt():
            set_up(session)
        return session

    if is_spark_running():
        with stack:
            starting.start(open_session)
            starting.raise_failure()
            yield starting
        return
    run = copy_context().run
    thread = threading.Thread(
        target=run, args=(starting.start, open_session), name="reconciler-spark", daemon=True
    )
    with interruption.watch_interrupts():
        thread.start()
        try:
            yield starting
        finally:
            thread.join(_STOP_WAIT_S if interruption.is_interrupted() else None)
            if not thread.is_alive():
                stack.close()
