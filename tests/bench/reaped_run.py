"""Run a command, wait for everything that it leaves behind, and say what all of it used.

``python reaped_run.py REPORT COMMAND...`` writes a JSON object to the file REPORT: exit ``code``,
``wall`` seconds until the command ended, and ``cpu`` seconds and ``megabytes`` of its processes.
PySpark does not wait for its JVM, whose CPU seconds would be lost; here orphans become children
of this process (Linux), which waits for them. It imports little, because a child's peak of memory
is at least its parent's.
"""

import ctypes
import json
import os
import resource
import subprocess
import sys
import time

_BECOME_PARENT_OF_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h

if __name__ == "__main__":
    report, *command = sys.argv[1:]
    if ctypes.CDLL(None).prctl(_BECOME_PARENT_OF_ORPHANS, 1, 0, 0, 0) != 0:
        sys.exit("the kernel does not hand over orphans")
    begun = time.perf_counter()
    code = subprocess.Popen(command).wait()
    wall = time.perf_counter() - begun
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(report, "w") as file:
        json.dump(
            {
                "code": code,
                "wall": wall,
                "cpu": usage.ru_utime + usage.ru_stime,
                "megabytes": usage.ru_maxrss / 1024,
            },
            file,
        )
