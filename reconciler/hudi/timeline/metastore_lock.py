"""Hudi's lock in a Hive Metastore: an exclusive lock of the table's name, and who asked for it.

The metastore has a queue of locks for each name. A request that has to wait stays in the queue, so
whoever does not want to wait there takes it back. Source: HiveMetastoreBasedLockProvider of Hudi,
TxnHandler of Hive; the same from Hudi 0.14 to 1.2.
"""

from __future__ import annotations

from typing import Final

from reconciler.hudi.timeline.owner import Owner
from reconciler.lazy_dataclass import dataclass

#: seconds between renewals; a metastore ends a lock that is not renewed for 300 s by default
RENEWAL_S: Final = 20
#: the metastore's column of the agent has as many letters
_MAX_AGENT: Final = 128
_SEPARATOR: Final = "|"
_PARTS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class MetastoreLock:
    """A lock or a request for one; ``beat_ms``: its last sign of life, by the metastore's clock."""

    lock_id: int
    is_held: bool
    user: str
    host: str
    agent: str
    beat_ms: int

    @property
    def run(self) -> Owner | None:
        """The run of reconciler that has the lock, None for another program's."""
        return parse_agent(self.agent, who=self.user, host=self.host)


def make_agent(owner: Owner) -> str:
    """Return the text by which a run names itself beside user and host.

    >>> run = Owner(who="ann", host="a", pid=1, started="7", tool="hudi-reconciler 1", token="x")
    >>> make_agent(run)
    'hudi-reconciler 1|1|7|x'
    """
    return _SEPARATOR.join((owner.tool, str(owner.pid), owner.started, owner.token))[:_MAX_AGENT]


def parse_agent(agent: str, *, who: str, host: str) -> Owner | None:
    """Return the run of reconciler that an agent names; None for another program's.

    >>> parse_agent("hudi-reconciler 1|1|7|x", who="ann", host="a").pid
    1
    >>> parse_agent("Unknown", who="ann", host="a") is None
    True
    """
    parts = agent.split(_SEPARATOR)
    if len(parts) != _PARTS or not parts[1].isdecimal():
        return None
    tool, pid, started, token = parts
    return Owner(who=who, host=host, pid=int(pid), started=started, tool=tool, token=token)
