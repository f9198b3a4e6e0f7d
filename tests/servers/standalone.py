"""Start a Spark standalone cluster on this machine: its master and workers are processes.

with StandaloneCluster(folder, workers=2) as cluster:
    run(["spark-submit", "--master", cluster.master, ...])
    cluster.kill_executor()
"""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Self

import psutil
import pyspark

from tests.oracle.bundles import java
from tests.servers.programs import find_free_port

SPARK_HOME: Final = Path(pyspark.__file__).parent
_WAIT_S: Final = 240
_EXECUTOR: Final = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


_SET_HOST_NAME: Final = 'echo "$0" > /proc/sys/kernel/hostname && exec "$@"'


class StandaloneCluster:
    """A master and workers of one core each; every worker has a home and a folder of its own.

    ``environment``: variables of the workers, in place of this process's own. ``bare``: each worker
    has a ``python3`` without any package, temporary files of its own and, where the system allows
    it, a host name, ``worker-0`` and so on (``has_host_names``). ``master``: its URL.
    """

    def __init__(
        self,
        folder: Path,
        *,
        workers: int = 2,
        memory: str = "1g",
        environment: Mapping[str, str] | None = None,
        bare: bool = False,
    ) -> None:
        self.folder, self._workers, self._memory = folder, workers, memory
        self._environment, self._bare = environment, bare
        self.has_host_names = bare and can_set_host_names()
        self._started: list[subprocess.Popen[bytes]] = []
        self.master = f"spark://127.0.0.1:{find_free_port()}"

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        port = self.master.rpartition(":")[2]
        self._start("Master", ["--host", "127.0.0.1", "--port", port], self.folder / "master")
        wait_until(lambda: "elected leader" in self._log("master"))
        for number in range(self._workers):
            self.start_worker(number)
        wait_until(lambda: self._log("master").count("Registering worker") == self._workers)
        return self

    def kill_master(self) -> None:
        self._started[0].kill()
        self._started[0].wait(30)

    def start_worker(self, number: int) -> None:
        """Start a worker; its home is ``worker-NUMBER`` of the cluster's folder."""
        # Spark never runs two attempts at a task on one host at a time
        arguments = ["--host", f"127.0.0.{number + 1}", "--cores", "1", "--memory", self._memory]
        self._start("Worker", [*arguments, self.master], self.folder / f"worker-{number}")

    def __exit__(self, *_: object) -> None:
        for executor in self.executors():
            executor.kill()
        for process in reversed(self._started):
            process.kill()
            process.wait(30)

    def executors(self) -> list[psutil.Process]:
        """Return the Java processes of the executors, by worker."""
        found = []
        for process in self._started:
            if process.poll() is None:
                children = psutil.Process(process.pid).children(recursive=True)
                found += [child for child in children if _is_executor(child)]
        return found

    def kill_executor(self) -> None:
        """Kill the executor of one worker, and the Python of its tasks with it."""
        executor = self.executors()[0]
        family = [executor, *executor.children(recursive=True)]
        for process in family:
            process.send_signal(signal.SIGKILL)

    def kill_worker(self) -> None:
        """Kill the last worker, its executor and the Python of its tasks; it does not return."""
        process = self._started.pop()
        worker = psutil.Process(process.pid)
        family = [worker, *worker.children(recursive=True)]
        for one in family:
            one.send_signal(signal.SIGKILL)
        psutil.wait_procs(family, timeout=30)
        process.wait(30)

    def _start(self, name: str, arguments: list[str], home: Path) -> None:
        home.mkdir()
        command = [java(), "-XX:TieredStopAtLevel=1", "-cp", f"{SPARK_HOME / 'jars'}/*"]
        command += [f"org.apache.spark.deploy.{name.lower()}.{name}", "--webui-port", "0"]
        given = {**os.environ} if self._environment is None else {**self._environment}
        host = arguments[arguments.index("--host") + 1]
        own = {"HOME": str(home), "SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": host}
        # else a worker looks for folders of a build
        own["SPARK_SCALA_VERSION"] = find_scala_version()
        if self._bare and name == "Worker":
            own |= make_bare_host(home)
            given = {"PATH": given["PATH"], "JAVA_HOME": given.get("JAVA_HOME", "")}
            own["PATH"] = f"{home}/python/bin{os.pathsep}{given['PATH']}"
            if self.has_host_names:
                shell = ["unshare", "--map-root-user", "--uts", "sh", "-c", _SET_HOST_NAME]
                command = [*shell, home.name, *command]
        with (home / "log").open("wb") as log:
            self._started.append(
                subprocess.Popen(
                    [*command, *arguments],
                    cwd=home,
                    env={**given, **own, "SPARK_WORKER_DIR": str(home / "work")},
                    stdout=log,
                    stderr=log,
                )
            )

    def _log(self, name: str) -> str:
        return (self.folder / name / "log").read_text()


def make_bare_host(home: Path) -> dict[str, str]:
    """Make a Python without packages and folders for temporary files; return their variables."""
    command = [sys.executable, "-m", "venv", "--without-pip", str(home / "python")]
    subprocess.run(command, check=True)
    variables = {"TMPDIR": home / "tmp", "SPARK_LOCAL_DIRS": home / "local"}
    for folder in variables.values():
        folder.mkdir()
    return {name: str(folder) for name, folder in variables.items()}


@functools.cache
def can_set_host_names() -> bool:
    """Return whether a process of this user can get a host name of its own."""
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "--map-root-user", "--uts", "sh", "-c", _SET_HOST_NAME, "x", "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def find_scala_version() -> str:
    """Return the version of Scala that Spark's jars are built for, such as 2.12."""
    core = next((SPARK_HOME / "jars").glob("spark-core_*.jar"))
    return core.name.removeprefix("spark-core_").partition("-")[0]


def _is_executor(process: psutil.Process) -> bool:
    try:
        return _EXECUTOR in process.cmdline()
    except psutil.Error:
        return False


def wait_until(is_so: Callable[[], object], seconds: float = _WAIT_S) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
