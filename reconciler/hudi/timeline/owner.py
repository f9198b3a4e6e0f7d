"""The owner of a lock or heartbeat: JSON in files of which Hudi reads only the time."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """One run of one process.

    ``started``: start of the process in the form its host gives; it tells a reused ``pid`` apart.
    ``token``: unique per run. ``until_ms``: when the owner expects to finish or beat again, in
    milliseconds since 1970. ``ended``: the run is over although its work is not.

    >>> me = Owner(who="ann", host="a", pid=1, started="7", tool="t 1", token="x")
    >>> Owner.parse(me.encode()) == me
    True
    >>> Owner.parse(b"") is None
    True
    """

    who: str
    host: str
    pid: int
    started: str
    tool: str
    token: str
    until_ms: int = 0
    ended: bool = False

    @classmethod
    def parse(cls, data: bytes | str) -> Self | None:
        """Return the owner that a file names, None for another program's (Hudi's is empty)."""
        try:
            document = json.loads(data)
        except ValueError:
            return None
        if not isinstance(document, dict) or not document.keys() >= _FIELDS:
            return None
        owner = cls(
            **{name: document[name] for name in cls.__dataclass_fields__ if name in document}
        )
        return owner if owner.is_well_formed() else None

    def encode(self) -> bytes:
        return json.dumps(asdict(self), sort_keys=True).encode()

    def is_well_formed(self) -> bool:
        """Return whether every field has its type, unlike a similar file of another program."""
        texts = (self.who, self.host, self.started, self.tool, self.token)
        numbers = (self.pid, self.until_ms)
        return all(isinstance(text, str) for text in texts) and all(
            isinstance(number, int) for number in numbers
        )

    def __str__(self) -> str:
        return f"{self.who} on {self.host}, process {self.pid} ({self.tool})"


_FIELDS = frozenset({"who", "host", "pid", "started", "tool", "token"})
