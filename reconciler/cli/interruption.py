"""Ctrl-C (SIGINT), remembered: libraries may swallow it or turn it into another error."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

from reconciler.lazy_dataclass import dataclass


@dataclass(slots=True)
class _InterruptionState:
    is_interrupted: bool = False
    exit_code: int | None = None
    advice: str = ""


_STATE: Final = _InterruptionState()


def reset() -> None:
    """Forget a former interrupt: a command begins."""
    _STATE.is_interrupted, _STATE.exit_code, _STATE.advice = False, None, ""


def set_advice(what: str) -> None:
    """Set what the user should do if the command is interrupted from here on."""
    _STATE.advice = what


def add_advice(message: str) -> str:
    """Return the message about an interrupt with the advice, if there is one.

    >>> reset()
    >>> add_advice("interrupted")
    'interrupted'
    """
    return f"{message}; {_STATE.advice}" if _STATE.advice else message


def is_interrupted() -> bool:
    """Return whether the command was interrupted."""
    return _STATE.is_interrupted


def record_termination(exit_code: int) -> None:
    """Remember that the command was told to end, and the exit code for that."""
    _STATE.is_interrupted, _STATE.exit_code = True, exit_code


def raise_if_interrupted() -> None:
    """Raise what ends an interrupted command, even if a library swallowed it.

    That is KeyboardInterrupt, or SystemExit after a termination.
    """
    if _STATE.is_interrupted and _STATE.exit_code is not None:
        raise SystemExit(_STATE.exit_code)
    if _STATE.is_interrupted:
        raise KeyboardInterrupt


@contextmanager
def prefer_interrupt() -> Iterator[None]:
    """Raise what ends an interrupted command instead of an error of the block that hides it."""
    try:
        yield
    except Exception:
        raise_if_interrupted()
        raise


@contextmanager
def watch_interrupts() -> Iterator[Callable[[], None]]:
    """Remember a SIGINT during the block.

    Yields a function that installs the handler again after a library has replaced it. A signal that
    is ignored, as in a background job, stays ignored.
    """
    before = signal.getsignal(signal.SIGINT)

    def watch() -> None:
        if threading.current_thread() is threading.main_thread():  # only this one may set handlers
            signal.signal(signal.SIGINT, before if before is signal.SIG_IGN else _record_interrupt)

    watch()
    try:
        yield watch
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _record_interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    _STATE.is_interrupted = True
    raise KeyboardInterrupt
