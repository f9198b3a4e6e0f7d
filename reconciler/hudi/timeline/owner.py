"""The owner of a lock or heartbeat: JSON in files of which Hudi reads only the time."""

from __future__ import annotations

import json
from dataclasses import asdict, field
from typing import Self

from reconciler.canonical_json import from_document
from reconciler.lazy_dataclass import dataclass


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
    until_ms: int = field(default=0, metadata={"name": "until_ms"})
    ended: bool = False

    @classmethod
    def parse(cls, data: bytes | str) -> Self | None:
        """Return the owner that a file names, None for another program's (Hudi's is empty)."""
        try:
            return from_document(cls, json.loads(data))
        except (ValueError, TypeError, AttributeError):
            return None

    def encode(self) -> bytes:
        return json.dumps(asdict(self), sort_keys=True).encode()

    def __str__(self) -> str:
        return f"{self.who} on {self.host}, process {self.pid} ({self.tool})"
