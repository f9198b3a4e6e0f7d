"""Answer a bench's requests in a process with a warm Spark session: the loop of every peer.

A line on stdin is a JSON object: ``do`` names a handler, the rest is what it needs. The answer is a
JSON line. The process is started by ``peers.Peer`` as ``python -m MODULE SYSTEM HEAP FOLDER``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import SparkSession

from reconciler.cli.java import use_java
from tests.bench.sessions import open_session

Request = dict[str, Any]
Handlers = Mapping[str, Callable[[Request], object]]


def serve(open_handlers: Callable[[str, SparkSession], Handlers]) -> None:
    """Open the session of the system named on the command line, and answer until stdin ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Java and Ivy talk there
    use_java()
    system, heap, folder = sys.argv[1:]
    spark = open_session(system, heap, folder)
    handlers = open_handlers(system, spark)
    print("{}", file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        answer = handlers[request["do"]](request)
        print(json.dumps({"answer": answer}), file=answers, flush=True)
    spark.stop()
