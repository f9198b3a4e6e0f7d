"""Reduce Spark's message about a failure to one sentence; pure.

Spark repeats a Python worker's traceback, whose last line is reconciler's error. It repeats the
trace of Java exceptions, where the innermost cause says most.
"""

from __future__ import annotations

import re
from typing import Any, Final

_RECONCILER_ERROR: Final = re.compile(r"^reconciler\.errors\.[A-Za-z]+: (.*)$", re.MULTILINE)
_WORKER: Final = re.compile(
    r"Traceback \(most recent call last\):\n(?: .*\n|\s*\n)*(\S.*)", re.MULTILINE
)
_MISSING_FILE: Final = re.compile(r"FileNotFoundException: (?:File )?(.+?) does not exist")
#: what follows a file's name, in Spark 3.5 and in Spark 4
_READING: Final = re.compile(
    r"while reading file (.+?)\.?\s+(?:Details:|SQLSTATE:|Could not read|Data type mismatches|"
    r"The file system)"
)
#: a condition of Spark 4, whose causes PySpark leaves out of the message
_FAILED_READ: Final = "[FAILED_READ_FILE."
_MAX_CAUSES: Final = 20
_NOT_THERE: Final = re.compile(r"while reading file (.+?)\.?\s+File does not exist\.")
_CAUSE: Final = re.compile(r"^Caused by: (?:[\w$]+\.)+[\w$]+: (.*)$", re.MULTILINE)
_AWAIT_RESULT: Final = re.compile(r"Exception thrown in awaitResult:\s*$", re.MULTILINE)
_ABORTED: Final = re.compile(r"Job aborted due to stage failure: (.*)")
_TASK_PREFIX: Final = re.compile(r"^Task .*? most recent failure: Lost task .*?\): ")
_DIED: Final = "Python worker exited unexpectedly"
_MALFORMED: Final = re.compile(
    r"Malformed records are detected in record parsing: (.*?)\.?\s*$", re.MULTILINE
)
_HEADER: Final = re.compile(
    r"CSV header does not conform to the schema\.\s+Header: (.*)\s+Schema: (.*)\s+"
    r"(?:Expected: .*\s+)?CSV file: (.*)"
)
#: an error when the driver's JVM has ended
JVM_ENDED: Final = "the Java process of Spark's driver has ended"
#: an error when the driver's session was stopped
SESSION_ENDED: Final = "the Spark session has ended; start one, and run this again"
#: what Java says when Spark has stopped a session while it started
_STOPPED: Final = "on a stopped SparkContext"
#: what happened to a file that was there when a read began
FILE_REMOVED: Final = "was removed by a clean or a rollback after the read began; read again"
#: how an error about a line of a source file begins if Spark does not name the file
LINE: Final = "a line cannot be read"
_CLASS: Final = re.compile(r"^(?:[\w$]+\.)+[\w$]+: ")
_CALLED: Final = re.compile(r"^An error occurred while calling [\w.]+\s*:?\s*")


def is_spark_error(error: BaseException) -> bool:
    """True if the error comes from Java, directly or through PySpark."""
    return any(kind.__name__ in ("PySparkException", "Py4JError") for kind in type(error).__mro__)


def read_condition_message(error: Exception) -> str | None:
    """Return Spark's message about an expression, without its trace; None for other errors."""
    if type(error).__name__ not in ("AnalysisException", "ParseException"):
        return None
    lines = str(error).strip().splitlines()
    return next((line.strip() for line in lines if line.strip()), "is no condition")


def explain_error(error: BaseException) -> str:
    """Return one sentence that says what an error of Spark is about."""
    has_ended = any(kind.__name__ == "Py4JNetworkError" for kind in type(error).__mro__)
    return JVM_ENDED if has_ended else explain_failure(read_message(error))


def explain_failed_start(error: BaseException, master: str | None) -> str:
    """Return one sentence that says why a session did not start; ``master``: its, if it is known.

    A session that its master refuses, or that waits for a master in vain, is stopped by Spark while
    it starts, and that is all that the error tells.
    """
    reason = explain_error(error) if is_spark_error(error) else str(error).strip()
    if _STOPPED in reason and master is not None and "://" in master:
        return (
            f"the master {master} does not answer, or has ended the session; see that it runs at "
            "this address"
        )
    return reason.partition("\n")[0]


def read_message(error: BaseException) -> str:
    """Return the message of an error of Spark, with the causes that it is not clear without."""
    message, trace = str(error), str(getattr(error, "_stackTrace", ""))
    if _FAILED_READ not in message or "Caused by: " in message:
        return message
    causes = [line for line in trace.splitlines() if line.startswith("Caused by: ")]
    return "\n".join([message, *causes])


def read_java_message(java: Any) -> str:
    """Return the message of Java's exception, with the causes that it is not clear without."""
    message = str(java.getMessage())
    if _FAILED_READ not in message or "Caused by: " in message:
        return message
    lines = [message]
    while (java := java.getCause()) is not None and len(lines) <= _MAX_CAUSES:
        lines.append(f"Caused by: {java.toString()}")
    return "\n".join(lines)


def explain_failure(message: str) -> str:
    r"""Return one sentence that says what went wrong, from a message of Spark.

    >>> explain_failure("Traceback (most recent call last):\n \nreconciler.errors.FormatError: x")
    'x'
    >>> explain_failure("E\nTraceback (most recent call last):\n  f\n    g\nMemoryError: of g\n")
    'MemoryError: of g'
    >>> explain_failure("Lost: x.Y: Traceback (most recent call last):\n  f\nE: of g\n\n\tat z")
    'E: of g'
    >>> explain_failure("E: x.SparkFileNotFoundException: File file:/t/f does not exist\nSo")
    'file:/t/f: was removed by a clean or a rollback after the read began; read again'
    >>> explain_failure("Exception thrown in awaitResult: \n at f\nCaused by: y.Z: f is no file")
    'f is no file'
    """
    if own_errors := _RECONCILER_ERROR.findall(message):
        return str(own_errors[-1])
    if worker := _WORKER.search(message):
        return worker[1]
    if missing := _explain_missing(message):
        return missing
    if source := _explain_source(message):
        return source
    aborted = _ABORTED.search(message)
    if _AWAIT_RESULT.search(aborted[0] if aborted else message) and (
        causes := _find_causes(message)
    ):
        return causes[-1]
    text = _TASK_PREFIX.sub("", aborted[1]) if aborted else _CALLED.sub("", message.strip())
    return _CLASS.sub("", text.strip()).partition("\n")[0]


def _explain_missing(message: str) -> str | None:
    """Return which file is missing, or that a Python worker died; None for anything else."""
    if file := _MISSING_FILE.search(message) or _NOT_THERE.search(message):
        return f"{file[1]}: {FILE_REMOVED}"
    if _DIED in message:
        return (
            "a Python worker of Spark was killed or crashed, often because memory ran out; run "
            "again with more memory or fewer tasks at a time (spark.executor.cores, --master)"
        )
    return None


def _explain_source(message: str) -> str | None:
    """Return what is wrong with a source file that Spark reads; None for anything else."""
    if header := _HEADER.search(message):
        return (
            f"{header[3]}: its columns are {header[1]}, but earlier files have {header[2]}; files "
            "that are read together must have the same columns in the same order"
        )
    file, line = _READING.search(message), _MALFORMED.search(message)
    if not file and not line:
        return None
    causes = _find_causes(message)
    because = f": {causes[-1]}" if causes else ""
    prefix = f"{file[1]}: " if file else ""
    if line:
        return f"{prefix}{LINE}{because}; its readable part is {line[1]}"
    as_parquet = " as parquet" if prefix.endswith(".parquet: ") else ""
    return f"{prefix}cannot be read{as_parquet}{because}"


def _find_causes(message: str) -> list[str]:
    causes: list[str] = _CAUSE.findall(message.partition("Driver stacktrace:")[0])
    return causes
