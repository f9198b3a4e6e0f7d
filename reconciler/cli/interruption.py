"""SIGINT, remembered: what it interrupts may swallow it or make an error of its own of it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Final, NoReturn


@dataclass(slots=True)
class _InterruptionState:
    is_interrupted: bool = False
    advice: str = ""


_STATE: Final = _InterruptionState()


def reset() -> None:
    """Forget everything: a command begins."""
    _STATE.is_interrupted, _STATE.advice = False, ""


def set_advice(what: str) -> None:
    """What people should do if the command is interrupted from here on."""
    _STATE.advice = what


def add_advice(message: str) -> str:
    """The one line that is said about it.

    >>> reset()
    >>> add_advice("interrupted")
    'interrupted'
    """
    return f"{message}; {_STATE.advice}" if _STATE.advice else message


def is_interrupted() -> bool:
    """Whether the command was interrupted."""
    return _STATE.is_interrupted


def raise_if_interrupted() -> None:
    """Raises KeyboardInterrupt when the command was interrupted, whatever became of it."""
    if _STATE.is_interrupted:
        raise KeyboardInterrupt


@contextmanager
def watch_interrupts() -> Iterator[Callable[[], None]]:
    """Remember a SIGINT of the block; to be called again when somebody else has set a handler.

    Where the signal is ignored, as in the background, it stays so.
    """
    before = signal.getsignal(signal.SIGINT)

    def watch() -> None:
        if threading.current_thread() is threading.main_thread():  # nobody else may
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
