"""Remember endpoints that never answered, so that a look at many tables waits for each once.

Applies and tasks on workers do not use it: they repeat until their own time is over. Only storages
without any answer so far find an endpoint silent, and only those are refused because of it. Where
storages share a client, each has answers of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from threading import Lock
from typing import Final
from urllib.parse import urlsplit

from reconciler.lazy_dataclass import dataclass

#: a silent endpoint is not asked again for this long; afterwards it gets a single try
_TRUSTED_S: Final = 60.0


@dataclass(slots=True)
class SilentEndpoints:
    """Endpoints, such as ``https://s3.example.com``, that gave no answer, with time and reason."""

    _found: dict[str, tuple[float, str]] = field(default_factory=dict)
    _guard: Lock = field(default_factory=Lock)
    _looks: int = 0

    @contextmanager
    def remember(self) -> Iterator[None]:
        """Remember silent endpoints until the block ends, for all clients of the process."""
        with self._guard:
            self._looks += 1
        try:
            yield
        finally:
            with self._guard:
                self._looks -= 1
                if not self._looks:
                    self._found.clear()

    def record(self, endpoint: str, reason: str, now: float) -> None:
        """Remember that a client waited in vain; ``now``: seconds of a clock that only goes on."""
        with self._guard:
            if self._looks:
                self._found[endpoint] = now, reason

    def forget(self, endpoint: str) -> None:
        """An answer came after all."""
        if endpoint in self._found:
            with self._guard:
                self._found.pop(endpoint, None)

    def is_known(self, endpoint: str) -> bool:
        """Return whether an endpoint was silent and has not answered since, however long ago."""
        return endpoint in self._found

    def find_refusal(self, endpoint: str, now: float) -> str | None:
        """Return why an endpoint is not asked now; None if it is.

        >>> silent = SilentEndpoints()
        >>> with silent.remember():
        ...     silent.record("http://s3:9000", "ReadTimeoutError", 100.0)
        ...     print(silent.find_refusal("http://s3:9000", 112.0))
        ...     print(silent.find_refusal("http://s3:9000", 161.0), silent.is_known("http://s3:9000"))
        http://s3:9000 was silent 12 s ago and is not asked again for a minute (ReadTimeoutError)
        None True
        >>> silent.record("http://s3:9000", "ReadTimeoutError", 200.0)
        >>> silent.is_known("http://s3:9000")
        False
        """
        with self._guard:
            when, reason = self._found.get(endpoint, (now - _TRUSTED_S, ""))
        if now - when >= _TRUSTED_S:
            return None
        silence = f"{endpoint} was silent {now - when:.0f} s ago"
        return f"{silence} and is not asked again for a minute ({reason})"


#: of all clients of this process
SILENT_ENDPOINTS: Final = SilentEndpoints()


@dataclass(slots=True, eq=False)
class Answers:
    """Whether a store has answered one of those who ask it; ``have_come``: whatever it said."""

    have_come: bool = False


_ANSWERS: Final[ContextVar[Answers | None]] = ContextVar("answers", default=None)


@contextmanager
def note_answers(answers: Answers) -> Iterator[None]:
    """Note there the answers to the requests of the block, whichever client sends them.

    The client's event loop takes this over with the context of the calling thread.
    """
    token = _ANSWERS.set(answers)
    try:
        yield
    finally:
        _ANSWERS.reset(token)


def find_answers() -> Answers | None:
    """Return where the block around notes answers; None outside of one."""
    return _ANSWERS.get()


def find_endpoint(url: str) -> str:
    """Return the scheme, host and port of a URL.

    >>> find_endpoint("http://s3:9000/lake/t?list-type=2")
    'http://s3:9000'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
