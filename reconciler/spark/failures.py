"""Why a read failed, in one sentence, from what Spark says of it; pure.

Spark repeats a Python worker's traceback, of which the last line is ours. Of Java's exceptions it
repeats the trace, of which the innermost cause says most.
"""

from __future__ import annotations

import re
from typing import Final

_OURS: Final = re.compile(r"^reconciler\.errors\.[A-Za-z]+: (.*)$", re.MULTILINE)
_WORKER: Final = re.compile(
    r"^Traceback \(most recent call last\):\n(?: .*\n|\s*\n)*(\S.*)", re.MULTILINE
)
_GONE: Final = re.compile(r"FileNotFoundException: (?:File )?(.+?) does not exist")
_READING: Final = re.compile(r"while reading file (.+?)\.? +Details:")
_CAUSE: Final = re.compile(r"^Caused by: (?:[\w$]+\.)+[\w$]+: (.*)$", re.MULTILINE)
_AWAITED: Final = re.compile(r"Exception thrown in awaitResult:\s*$", re.MULTILINE)
_ABORTED: Final = re.compile(r"Job aborted due to stage failure: (.*)")
_TASK: Final = re.compile(r"^Task .*? most recent failure: Lost task .*?\): ")
_DIED: Final = "Python worker exited unexpectedly"
_MALFORMED: Final = re.compile(
    r"Malformed records are detected in record parsing: (.*?)\.?\s*$", re.MULTILINE
)
_HEADER: Final = re.compile(
    r"CSV header does not conform to the schema\.\s+Header: (.*)\s+Schema: (.*)\s+"
    r"(?:Expected: .*\s+)?CSV file: (.*)"
)
#: an error when the driver's JVM is gone
JVM_ENDED: Final = "the Java process of Spark's driver has ended"
#: what happened to a file that was there when a read began
FILE_REMOVED: Final = "was removed by a clean or a rollback after the read began; read again"
#: what an error about a line of a source begins with where Spark does not say of which file
LINE: Final = "a line cannot be read"
_CLASS: Final = re.compile(r"^(?:[\w$]+\.)+[\w$]+: ")
_CALLED: Final = re.compile(r"^An error occurred while calling [\w.]+\s*:?\s*")


def explain_failure(message: str) -> str:
    r"""What went wrong, where Spark says it.

    >>> explain_failure("Traceback (most recent call last):\n f\nreconciler.errors.FormatError: f: bad")
    'f: bad'
    >>> explain_failure("E\nTraceback (most recent call last):\n  f\n    g\nMemoryError: of g\n")
    'MemoryError: of g'
    >>> explain_failure("E: x.SparkFileNotFoundException: File file:/t/f does not exist\nIt is possible")
    'file:/t/f: was removed by a clean or a rollback after the read began; read again'
    >>> explain_failure("Exception thrown in awaitResult: \n at f\nCaused by: y.Z: f is no file\n at g")
    'f is no file'
    """
    if ours := _OURS.findall(message):
        return str(ours[-1])
    if worker := _WORKER.search(message):
        return worker[1]
    if gone := _explain_missing(message):
        return gone
    if source := _explain_source(message):
        return source
    aborted = _ABORTED.search(message)
    if _AWAITED.search(aborted[0] if aborted else message) and (causes := _find_causes(message)):
        return causes[-1]
    said = _TASK.sub("", aborted[1]) if aborted else _CALLED.sub("", message.strip())
    return _CLASS.sub("", said.strip()).partition("\n")[0]


def _explain_missing(message: str) -> str | None:
    """What was there when it began: a file, or a worker."""
    if file := _GONE.search(message):
        return f"{file[1]}: {FILE_REMOVED}"
    if _DIED in message:
        return (
            "a Python worker of Spark was killed or has crashed, often for want of memory; run it "
            "again, with more memory or fewer tasks at a time (spark.executor.cores, --master)"
        )
    return None


def _explain_source(message: str) -> str | None:
    """What is wrong with a file that Spark itself reads, and with which."""
    if header := _HEADER.search(message):
        return (
            f"{header[3]}: its columns are {header[1]}, and those of the files before it "
            f"{header[2]}; files that are read together have the same ones in the same order"
        )
    file, line = _READING.search(message), _MALFORMED.search(message)
    if not file and not line:
        return None
    causes = _find_causes(message)
    because = f": {causes[-1]}" if causes else ""
    named = f"{file[1]}: " if file else ""
    if line:
        return f"{named}{LINE}{because}; as far as it can be read it is {line[1]}"
    kind = " as parquet" if named.endswith(".parquet: ") else ""
    return f"{named}cannot be read{kind}{because}"


def _find_causes(message: str) -> list[str]:
    found: list[str] = _CAUSE.findall(message.partition("Driver stacktrace:")[0])
    return found
