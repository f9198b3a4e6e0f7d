"""Make the event logs of this folder: ``python -m tests.event_logs.make_logs``.

Real Hudi reads a table of each type by its path and by its name. Of the logs only the events of
queries of the tables stay, without stack traces and without anything of the machine.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.event_logs.asked import ASKED, COLUMNS, ROWS
from tests.oracle.hudi import RealHudi

HERE = Path(__file__).parent
VERSIONS = ("0.15.0", "1.0.2", "1.2.0")
_LAST = '"errorMessage":""}'
_WHEN = 1_795_000_000_000
_A_MINUTE = 60_000


def log_settings(folder: Path, codec: str | None = None, *, rolling: bool = False) -> dict:
    """Settings of Spark that write event logs to a folder."""
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.sql.adaptive.enabled": "true",
    }
    if codec is not None:
        settings |= {"spark.eventLog.compress": "true", "spark.eventLog.compression.codec": codec}
    if rolling:
        settings |= {"spark.eventLog.rolling.enabled": "true"}
        settings |= {"spark.eventLog.rolling.maxFileSize": "10m"}
    return settings


def create_table(hudi: RealHudi, folder: Path, kind: str) -> None:
    hudi.sql("create database if not exists sales")
    hudi.sql(
        f"create table sales.{kind} ({COLUMNS}) using hudi partitioned by (region) "
        f"location '{folder / kind}' "
        f"tblproperties (type = '{kind}', primaryKey = 'id', preCombineField = 'ts')"
    )
    hudi.sql(f"create or replace temporary view src as {ROWS}")
    hudi.sql(f"insert into sales.{kind} select * from src")
    if kind == "mor":
        hudi.sql("update sales.mor set amount = 1 where id = 5")
    hudi.sql(
        f"create or replace temporary view by_path_{kind} using hudi "
        f"options (path '{folder / kind}')"
    )


def ask(hudi: RealHudi, table: str, asked=ASKED) -> None:
    for where, _ in asked:
        hudi.sql(f"select id, name from {table} where {where.format(table=table)}")


def wait_for(is_written: Callable[[], bool]) -> None:
    """Wait until a log has what was asked: Spark writes it a little later, on its own thread."""
    until = time.monotonic() + 120
    while not is_written() and time.monotonic() < until:
        time.sleep(0.2)


def reduce_log(log: Path, folder: Path) -> Iterator[str]:
    """Yield the lines of a log that say what was asked of tables."""
    kept: set[int] = set()
    for line in log.read_text().splitlines():
        event = json.loads(line)
        name = event["Event"].rpartition(".")[2]
        if name == "SparkListenerLogStart":
            yield line
        elif name == "SparkListenerEnvironmentUpdate":
            zone = event["Spark Properties"]["spark.sql.session.timeZone"]
            settings = {"spark.sql.session.timeZone": zone}
            yield _to_line({"Event": name, "Spark Properties": settings})
        elif not name.startswith(("SparkListenerSQL", "SparkListenerDriver")):
            continue
        elif str(folder) in line or event["executionId"] in kept:
            kept.add(event["executionId"])
            for key in ("details", "description", "modifiedConfigs", "jobTags"):
                if key in event:
                    event[key] = {} if key == "modifiedConfigs" else ""
            if "time" in event:
                event["time"] = _WHEN + _A_MINUTE * event["executionId"]
            text = _to_line(event).replace(str(folder), "/lake")
            yield re.sub(r"@[0-9a-f]{6,8}\b", "@1", text)


def _to_line(event: dict) -> str:
    return json.dumps(event, separators=(",", ":"))


def make_log(version: str, folder: Path) -> Path:
    logs = folder / "logs"
    logs.mkdir()
    settings = log_settings(logs) | {"spark.sql.codegen.wholeStage": "true"}
    hudi = RealHudi(version, settings=settings)
    try:
        for kind in ("cow", "mor"):
            create_table(hudi, folder, kind)
            ask(hudi, f"by_path_{kind}")
            ask(hudi, f"sales.{kind}")
        (log,) = logs.iterdir()
        # of the last query its end too
        wait_for(lambda: log.read_text().rstrip().endswith(_LAST))
    finally:
        hudi.close()
    (log,) = logs.iterdir()
    return log


def main() -> None:
    for version in sys.argv[1:] or VERSIONS:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place).resolve()
            text = "".join(f"{line}\n" for line in reduce_log(make_log(version, folder), folder))
        made = zipfile.ZipInfo(f"local-{version}", (2026, 1, 1, 0, 0, 0))
        with zipfile.ZipFile(HERE / f"{version}.zip", "w", zipfile.ZIP_LZMA) as archive:
            archive.writestr(made, text, zipfile.ZIP_LZMA)


if __name__ == "__main__":
    main()
