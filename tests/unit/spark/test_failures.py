"""Messages of Spark 3.5 and 4, shortened to the lines that matter."""

from __future__ import annotations

import pytest

from reconciler.spark.failures import explain_error, explain_failure, read_java_message

WORKER = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/x/reconciler/reader/worker.py", line 76, in __call__
    yield from self._task(packs[number], storage)
{error}

"""
TASK = (
    "An error occurred while calling o76.collectToPython.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 "
    "failed 1 times, most recent failure: Lost task 0.0 in stage 0.0 (TID 0) (10.0.0.1 executor "
    "driver): {error}\n\tat x.y.Z.f(Z.java:1)\n\nDriver stacktrace:\n\tat x"
)
LOCAL_ITERATOR = (
    "An error occurred while calling o82.getResult.\n"
    ": org.apache.spark.SparkException: Exception thrown in awaitResult: \n\tat x\n"
    "Caused by: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage "
    "2.0 failed 1 times, most recent failure: Lost task 0.0 in stage 2.0 (TID 2) (h executor 1): "
    "java.lang.RuntimeException: file:/t/f.parquet is not a Parquet file. Expected magic number\n"
)
READING = (
    "org.apache.spark.SparkException: Encountered error while reading file file:///t/a b.parquet. "
    "Details:\n\tat x\nCaused by: org.apache.parquet.io.ParquetDecodingException: Can not read "
    "value at 0\n\tat y\nCaused by: java.io.IOException: could not read page\n\tat z"
)
MALFORMED = (
    "org.apache.spark.SparkException: [MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed "
    "records are detected in record parsing: [null,a,1,x].\nParse Mode: FAILFAST. To process "
    "malformed records as null result, try setting the option 'mode' as 'PERMISSIVE'. \n\tat x\n"
    "Caused by: org.apache.spark.sql.catalyst.util.BadRecordException: java.lang.NumberFormat"
    'Exception: For input string: "three"\n\tat y\n'
    'Caused by: java.lang.NumberFormatException: For input string: "three"\n\tat z'
)
OF_A_FILE = (
    "org.apache.spark.SparkException: Encountered error while reading file file:///t/day.csv. "
    "Details:\n\tat x\nCaused by: " + MALFORMED
)
HEADER = (
    "java.lang.IllegalArgumentException: CSV header does not conform to the schema.\n Header: id, "
    "ts, p\n Schema: id, p, ts\nExpected: p but found: ts\nCSV file: file:///t/b.csv\n\tat x"
)
FOOTER = (
    "org.apache.spark.SparkException: Exception thrown in awaitResult: \n\tat x\n"
    "Caused by: java.io.IOException: Could not read footer for file: FileStatus{path=x}\n\tat y\n"
    "Caused by: java.lang.RuntimeException: file:/t/cut.parquet is not a Parquet file. Expected\n"
)
GONE = "file:/t/a b.parquet: was removed by a clean or a rollback after the read began; read again"


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            WORKER.format(error="reconciler.errors.FormatError: p=1/.f.log.1_0: no log block"),
            "p=1/.f.log.1_0: no log block",
        ),
        (WORKER.format(error="ValueError: what nobody foresaw"), "ValueError: what nobody foresaw"),
        (
            TASK.format(
                error="org.apache.spark.SparkFileNotFoundException: File file:/t/a b.parquet "
                "does not exist\nIt is possible the underlying files have been updated."
            ),
            GONE,
        ),
        (
            TASK.format(error="x.fs.ChecksumException: Checksum error: file:/t/f.parquet at 4608"),
            "Checksum error: file:/t/f.parquet at 4608",
        ),
        (
            LOCAL_ITERATOR,
            "file:/t/f.parquet is not a Parquet file. Expected magic number",
        ),
        (
            TASK.format(error=READING),
            "file:///t/a b.parquet: cannot be read as parquet: could not read page",
        ),
        (
            TASK.format(error=OF_A_FILE),
            (
                'file:///t/day.csv: a line cannot be read: For input string: "three"; its '
                "readable part is [null,a,1,x]"
            ),
        ),
        (
            TASK.format(error=MALFORMED),
            ('a line cannot be read: For input string: "three"; its readable part is [null,a,1,x]'),
        ),
        (
            TASK.format(error=HEADER),
            (
                "file:///t/b.csv: its columns are id, ts, p, but earlier files have id, "
                "p, ts; files that are read together must have the same columns in the same order"
            ),
        ),
        (TASK.format(error=FOOTER), "file:/t/cut.parquet is not a Parquet file. Expected"),
        (
            TASK.format(error=READING.replace("a b.parquet", "a.csv.gz")),
            "file:///t/a.csv.gz: cannot be read: could not read page",
        ),
        ("[CAST] The value 'x' is none.\n== SQL ==", "[CAST] The value 'x' is none."),
    ],
)
def test_the_sentence_that_matters_is_found(message, said):

    assert said == explain_failure(message)


def test_a_worker_that_was_killed_is_told_of_with_what_it_may_have_lacked():
    died = "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"

    assert explain_failure(TASK.format(error=died)) == (
        "a Python worker of Spark was killed or crashed, often because memory ran out; run "
        "again with more memory or fewer tasks at a time (spark.executor.cores, --master)"
    )


def of_spark_4(condition: str, text: str) -> str:
    return (
        f"org.apache.spark.SparkException: [FAILED_READ_FILE.{condition}] Encountered error while "
        f"reading file file:///t/a b.parquet. {text} SQLSTATE: KD001\n\tat x\n"
    )


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (of_spark_4("NO_HINT", "") + "Caused by: java.io.IOException: could not read page\n",
         "file:///t/a b.parquet: cannot be read as parquet: could not read page"),
        (of_spark_4("CANNOT_READ_FILE_FOOTER", "Could not read footer. Please ensure.")
         + "Caused by: java.lang.RuntimeException: file:/t/a b.parquet is not a Parquet file\n",
         ("file:///t/a b.parquet: cannot be read as parquet: file:/t/a b.parquet is not a Parquet "
         "file")),
        (of_spark_4("PARQUET_COLUMN_DATA_TYPE_MISMATCH", "Data type mismatches when reading."),
         "file:///t/a b.parquet: cannot be read as parquet"),
        (of_spark_4("FILE_NOT_EXIST", "File does not exist. It is possible that it was updated."),
         f"{GONE.replace('file:', 'file://', 1)}"),
        (of_spark_4("NO_HINT", "").replace("a b.parquet", "day.csv") + "Caused by: " + MALFORMED,
         ('file:///t/day.csv: a line cannot be read: For input string: "three"; its readable part '
         "is [null,a,1,x]")),
    ],
)  # fmt: skip
def test_spark_4_names_a_file_in_other_sentences(message, said):
    assert said == explain_failure(message)


class CapturedException(Exception):  # noqa: N818 (PySpark's)
    """An error of PySpark 4: its message has no causes, its trace has."""

    def __init__(self, message, trace):
        super().__init__(message)
        self._stackTrace = trace


def test_the_causes_that_pyspark_4_keeps_apart_are_read():
    message = of_spark_4("NO_HINT", "").replace("a b.parquet", "day.csv").partition("\n")[0]
    error = CapturedException(message, f"{message}\n\tat x\nCaused by: {MALFORMED}")

    assert explain_error(error) == (
        'file:///t/day.csv: a line cannot be read: For input string: "three"; its readable part '
        "is [null,a,1,x]"
    )
    assert explain_error(CapturedException("[OTHER] no", "Caused by: x.Y: z")) == "[OTHER] no"


class JavaError:
    """An exception of Java with its causes."""

    def __init__(self, text, cause=None):
        self.getMessage = lambda: text.partition(": ")[2]
        self.toString = lambda: text
        self.getCause = lambda: cause


def test_the_causes_of_an_exception_of_java_are_read():
    number = JavaError('java.lang.NumberFormatException: For input string: "three"')
    record = JavaError("org.apache.spark.sql.catalyst.util.BadRecordException: x", number)
    malformed = JavaError(MALFORMED.partition("\n\tat")[0], record)
    message = of_spark_4("NO_HINT", "").replace("a b.parquet", "day.csv").partition("\n")[0]

    assert explain_failure(read_java_message(JavaError(message, malformed))) == (
        'file:///t/day.csv: a line cannot be read: For input string: "three"; its readable part '
        "is [null,a,1,x]"
    )
    assert "no" == read_java_message(JavaError("x.Y: no", number))
