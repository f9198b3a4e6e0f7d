"""The nodes of a lock in ZooKeeper, through one session. Needs the extra `zookeeper`."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from reconciler.errors import LockServersError
from reconciler.hudi.timeline.owner import Owner
from reconciler.hudi.timeline.zookeeper_lock import join_lock_path, make_node_prefix, sort_nodes
from reconciler.lazy_dataclass import dataclass

_CONNECT_S: Final = 15
_ANSWER_S: Final = 15


@dataclass(frozen=True, slots=True)
class LockNode:
    """A node of a lock; ``data``: what its owner wrote."""

    name: str
    data: bytes

    @property
    def run(self) -> Owner | None:
        """The run of reconciler that created it, None for another program's."""
        return Owner.parse(self.data)


class LockNodes(Protocol):
    """The nodes of one lock in one session. Methods raise LockServersError without an answer."""

    def enter(self, identifier: str, data: bytes) -> str:
        """Create a node of the session behind all others; return its name."""

    def list(self) -> Sequence[str]:
        """Return the names in the order in which they get the lock."""

    def read(self, name: str) -> LockNode | None:
        """Return a node; None if it is gone."""

    def remove(self, name: str) -> None:
        """Remove a node; nothing happens if it is gone."""

    def wait_for_removal(self, name: str, seconds: float) -> None:
        """Return when a node is gone, at the latest after the time."""

    def close(self) -> None:
        """End the session: its nodes go."""


@dataclass(frozen=True, slots=True)
class ZookeeperPlace:
    """Where a lock is; ``servers``: ``host:port``, several with commas, as Curator takes them."""

    servers: str
    base_path: str
    key: str
    session_s: int

    @property
    def path(self) -> str:
        return join_lock_path(self.base_path, self.key)

    @property
    def location(self) -> str:
        return f"zookeeper://{self.servers}{self.path}"


def connect_zookeeper(place: ZookeeperPlace) -> ZookeeperNodes:
    """Begin a session; raises LockServersError if no server answers or the client is missing."""
    try:
        from kazoo.client import KazooClient  # noqa: PLC0415 (an extra)
        from kazoo.exceptions import KazooException  # noqa: PLC0415
    except ImportError:
        remedy = "pip install 'hudi-reconciler[zookeeper]'"
        message = f"needs a client that is not installed; {remedy}"
        raise LockServersError(place.location, message) from None
    quiet = logging.getLogger("reconciler.zookeeper")  # the errors below say what matters
    quiet.setLevel(logging.CRITICAL + 1)
    try:
        client = KazooClient(hosts=place.servers, timeout=place.session_s, logger=quiet)
        is_connected = client.start_async().wait(_CONNECT_S)
    except (KazooException, OSError, ValueError) as error:
        problem = f"the client did not start ({_explain(error)}); check concurrency.lock.servers"
        raise LockServersError(place.location, problem) from None
    if not is_connected:
        # a server that never answers would hold up the end of the client for a whole session
        threading.Thread(target=_end, args=(client,), daemon=True).start()
        problem = f"no server answered within {_CONNECT_S} seconds; check concurrency.lock.servers"
        raise LockServersError(place.location, problem)
    return ZookeeperNodes(place, client)


def _end(client: Any) -> None:
    with contextlib.suppress(Exception):
        client.stop()
        client.close()


class ZookeeperNodes:
    """The nodes of one lock, through a session of ZooKeeper."""

    def __init__(self, place: ZookeeperPlace, client: Any) -> None:
        self._place, self._client = place, client

    def enter(self, identifier: str, data: bytes) -> str:
        from kazoo.exceptions import KazooException  # noqa: PLC0415 (an extra)

        prefix = make_node_prefix(identifier)
        self._ask(self._client.ensure_path_async, self._place.path)
        try:
            created: str = self._client.create_async(
                f"{self._place.path}/{prefix}", data, ephemeral=True, sequence=True
            ).get(timeout=_ANSWER_S)
            return created.rpartition("/")[2]
        except (KazooException, self._client.handler.timeout_exception) as error:
            for name in self.list():  # the answer may have been lost
                if name.startswith(prefix):
                    return name
            raise self._make_error(error) from None

    def list(self) -> Sequence[str]:
        found = self._ask(self._client.get_children_async, self._place.path)
        return sort_nodes(found or ())

    def read(self, name: str) -> LockNode | None:
        found = self._ask(self._client.get_async, f"{self._place.path}/{name}")
        return None if found is None else LockNode(name, found[0] or b"")

    def remove(self, name: str) -> None:
        self._ask(self._client.delete_async, f"{self._place.path}/{name}")

    def wait_for_removal(self, name: str, seconds: float) -> None:
        gone = threading.Event()
        path = f"{self._place.path}/{name}"
        found = self._ask(self._client.exists_async, path, lambda _event: gone.set())
        if found is not None:
            gone.wait(seconds)

    def close(self) -> None:
        """End the session; one whose servers do not answer ends by itself."""
        ending = threading.Thread(target=_end, args=(self._client,), daemon=True)
        ending.start()
        ending.join(_ANSWER_S)

    def _ask(self, send: Callable[..., Any], *arguments: Any) -> Any:
        """Send a request and return its answer; None if the node is not there."""
        from kazoo.exceptions import KazooException, NoNodeError  # noqa: PLC0415 (an extra)

        try:
            return send(*arguments).get(timeout=_ANSWER_S)
        except NoNodeError:
            return None
        except (KazooException, self._client.handler.timeout_exception) as error:
            raise self._make_error(error) from None

    def _make_error(self, error: Exception) -> LockServersError:
        problem = f"ZooKeeper failed: {_explain(error)}{_find_remedy(error)}"
        return LockServersError(self._place.location, problem)


def _find_remedy(error: Exception) -> str:
    match type(error).__name__:
        case "NoAuthError":
            return "; its access list must let everyone read, create and delete below the base path"
        case "NoChildrenForEphemeralsError":
            return "; that path is another program's node: write another basePath or key"
        case "NoNodeError":
            return "; create the path behind the servers' addresses (a chroot), as for the writers"
        case _:
            return ""


def _explain(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
