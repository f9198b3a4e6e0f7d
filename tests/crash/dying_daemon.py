"""A daemon of Spark's Python workers that dies over its deletes, as ordered in a folder.

Executors run it instead of ``pyspark.daemon`` when ``spark.python.daemon.module`` names it. It is
copied to a folder of its own: nothing else of this repository can be imported there. The variable
``DEADLY`` names a folder with ``orders.json`` (see ``Orders`` in ``spark_cluster.py``); the file
``log`` gets a line for everything that happens: the process, what, and the file's name. The file
``started`` gets the number of every worker's process.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time

FOLDER = os.environ.get("DEADLY", "")
#: the process that started the daemon
JVM = os.getppid()
_unlink = os.unlink


def unlink(path, **more):
    """Delete a file; deletes of the table are counted and logged, and may be the last."""
    orders = _orders()
    name = os.path.basename(path)
    if orders is None or not str(path).startswith(orders["table"]) or name.endswith(".crc"):
        return _unlink(path, **more)
    seen = _counted()
    doomed = 0 < orders["at"] <= seen if orders["always"] else seen == orders["at"]
    doomed = doomed and name not in orders["slow"]
    while doomed and orders["slow"] and not os.path.exists(f"{FOLDER}/slow"):
        time.sleep(0.1)
    if doomed and orders["when"] == "before":
        _die(orders["how"], name)
    if name in orders["slow"] and _is_first("slow"):
        _log("sleeps", name)
        time.sleep(orders["slow_s"])
    what = "missed"
    try:
        _unlink(path, **more)
        what = "deleted"
    finally:
        _log(what, name)
        if doomed:
            _die(orders["how"], name)


def _orders():
    try:
        with open(f"{FOLDER}/orders.json") as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def _counted():
    """Return how many deletes have begun in all processes, including this one."""
    with open(f"{FOLDER}/begun", "a") as begun:
        fcntl.flock(begun, fcntl.LOCK_EX)
        begun.write(".")
        begun.flush()
        return os.path.getsize(begun.name)


def _is_first(what):
    try:
        os.close(os.open(f"{FOLDER}/{what}", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def _log(what, name):
    with open(f"{FOLDER}/log", "a") as log:
        log.write(f"{os.getpid()} {what} {name}\n")


def _log_start():
    with open(f"{FOLDER}/started", "a") as started:
        started.write(f"{os.getpid()}\n")


def _die(how, name):
    _log("died", name)
    if how == "executor":
        os.kill(JVM, signal.SIGKILL)
    if how == "exit":
        os._exit(3)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    from pyspark.daemon import manager

    os.unlink = unlink
    os.register_at_fork(after_in_child=_log_start)
    manager()
