"""Start a real ZooKeeper on the loopback address, of PySpark's own jars."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from tests.oracle.bundles import java
from tests.servers.programs import find_free_port, start_server

_SERVER = "org.apache.zookeeper.server.ZooKeeperServerMain"
#: milliseconds; a session has between two and twenty ticks
_TICK_MS = 500


class ZookeeperServer:
    """A server that can be paused and stopped; ``servers``: its address, as writers name it."""

    def __init__(self, folder: Path) -> None:
        """Start it with its data in a folder; raises ServerUnavailableError."""
        port = find_free_port()
        self.servers = f"127.0.0.1:{port}"
        settings = folder / "zoo.cfg"
        settings.write_text(
            f"tickTime={_TICK_MS}\ndataDir={folder}/data\nclientPort={port}\n"
            "clientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
        )
        jars = Path(pyspark.__file__).parent / "jars"
        command = [java(), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
        self.process = start_server([*command, _SERVER, str(settings)], port, folder / "server.log")

    @classmethod
    @contextmanager
    def run(cls, folder: Path) -> Iterator[ZookeeperServer]:
        """Run a server until the block ends."""
        server = cls(folder)
        try:
            yield server
        finally:
            server.process.kill()
            server.process.wait(10)
