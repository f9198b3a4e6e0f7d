"""Share the client of a store among the tables that are reached in the same way.

A client of S3 takes a sixth of a second of a core to start, and a run opens each table a few times.
"""

from __future__ import annotations

import gc
import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Final

#: ways to reach stores that are remembered
_MOST: Final = 4
#: so often one client is given: the next reads credentials that were renewed in a file
_MOST_USES: Final = 64


class SharedClients:
    """The clients that were asked for last; a process that forks has none of its parent's."""

    def __init__(self) -> None:
        self._clients: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._guard = Lock()
        os.register_at_fork(after_in_child=self._forget)

    def get(self, key: Hashable, start: Callable[[], Any]) -> Any:
        """Return the client of a key, started if there is none; raises what ``start`` raises."""
        with self._guard:
            client, uses = self._clients.pop(key, (None, 0))
            if not uses:
                if client is not None:
                    del client
                    gc.collect()  # clients hold themselves: some of 14 MB each would wait for it
                client, uses = start(), _MOST_USES
            self._clients[key] = client, uses - 1
            while len(self._clients) > _MOST:
                self._clients.popitem(last=False)
            return client

    def drop(self, client: Any) -> None:
        """Give a client to nobody any more, as one whose credentials a store refuses."""
        with self._guard:
            for key, (known, _) in list(self._clients.items()):
                if known is client:
                    del self._clients[key]

    def _forget(self) -> None:
        self._clients, self._guard = OrderedDict(), Lock()
