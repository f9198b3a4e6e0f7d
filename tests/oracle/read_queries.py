"""All ways to read a table in which our reader is compared with real Hudi."""

from __future__ import annotations

import json
import os
import re
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reconciler.reader.model import ReadRequest
from tests.oracle.answers import Answer
from tests.oracle.hudi import RealHudi
from tests.trees import unpack

_FILE = re.compile(r"(\d{14}|\d{17})(?:_\d+)?\.([a-z]+)(?:\.([a-z]+))?")
#: words of Hudi's refusals to travel in time
_GUARDS = ("Cleaner cleaned up the timestamp", "earlier than the first incomplete commit")
FIRST_WITH_COMPLETION_TIMES = 8
_MILLIS = 17
_PENDING = ("inflight", "requested")
_WRITES = ("commit", "deltacommit", "replacecommit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One read: for Hudi and for our reader."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)
    request: ReadRequest = field(default_factory=ReadRequest)


def table_folder(archive: Path, folder: Path) -> Path:
    """Unpack a table with its times: Hudi takes completion times from them."""
    with zipfile.ZipFile(archive) as opened:
        inside = properties_file(opened)
    return unpack(archive, folder) / inside.removesuffix(".hoodie/hoodie.properties")


def properties_file(archive: zipfile.ZipFile) -> str:
    """Return the name of the data table's properties in a zip, not the metadata table's."""
    names = (n for n in archive.namelist() if n.endswith(".hoodie/hoodie.properties"))
    return min(names, key=len)


def archived_version(archive: Path) -> int:
    """Return the table version of a zipped table."""
    with zipfile.ZipFile(archive) as opened:
        return _version(opened.read(properties_file(opened)).decode())


def table_version(table: Path) -> int:
    return _version((table / ".hoodie" / "hoodie.properties").read_text())


def _version(text: str) -> int:
    found = re.search(r"^hoodie\.table\.version=(\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else 0


def set_times_from_names(table: Path) -> Path:
    """Let every completed instant of a version 6 table look completed when it was requested.

    Hudi 1.x takes for a log file's slice the newest one that began before the modification time of
    the instant in the log's name. A zip has whole seconds, cut off, and some tables were made with
    a clock of their own: the log files of a compacted slice are then given to an older one.
    """
    for file in _timeline_files(table):
        instant, _, state = _parsed(file.name)
        if not state and len(instant) == _MILLIS:
            begun = datetime.strptime(instant, "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
            os.utime(
                file, ns=(file.stat().st_atime_ns, round(begun.timestamp() * 1000 + 1) * 10**6)
            )
    return table


def list_judging_versions(version: int) -> tuple[str, ...]:
    """Return the Hudi releases that judge a table version: its own last, and the newest."""
    is_old = version < FIRST_WITH_COMPLETION_TIMES
    return ("0.15.0", "1.2.0") if is_old else ("1.2.0",)


def list_completed_instants(table: Path) -> list[str]:
    """Return requested times of all completed instants of the active timeline."""
    return sorted({i for i, _, state in _timeline(table) if state not in _PENDING})


def list_completed_writes(table: Path) -> list[str]:
    """Return requested times of completed writes of the active timeline."""
    return sorted({instant for instant, _ in list_completed_files(table)})


def list_completed_files(table: Path) -> list[tuple[str, Path]]:
    """Return (requested time, timeline file) of every completed write of the active timeline."""
    parsed = [(*_parsed(file.name), file) for file in _timeline_files(table)]
    writes = ((i, file) for i, action, state, file in parsed if action in _WRITES and not state)
    return sorted(writes)


def list_queries(table: Path) -> list[Query]:
    """Return snapshots with and without metadata table, read-optimized, and as of every instant."""
    off = {"hoodie.metadata.enable": "false"}
    optimized = {"hoodie.datasource.query.type": "read_optimized"}
    return [
        Query(name="snapshot"),
        Query(name="snapshot by listing", options=off),
        Query(
            name="read optimized",
            options=optimized,
            request=ReadRequest(kind="readOptimized"),
        ),
        *(
            Query(name=at, options={"as.of.instant": at}, request=ReadRequest(as_of=at))
            for at in list_completed_instants(table)
        ),
    ]


def read_hudi_answers(
    hudi: RealHudi, table: Path, asked: list[Query], folder: Path
) -> dict[str, Answer]:
    """What real Hudi answers, by the query's name; kept in ``folder`` and not asked twice.

    Sets the times of a version 6 table right for Hudi 1.x (`set_times_from_names`). Where Hudi
    refuses to travel, it is asked of a copy without what it minds (`copy_unguarded`).
    """
    kept = folder / "answers.json"
    if not kept.is_file():
        if table_version(table) < FIRST_WITH_COMPLETION_TIMES and not hudi.version.startswith("0."):
            set_times_from_names(table)
        said = dict(zip(list_names(asked), _ask(hudi, table, asked, folder / "rows"), strict=True))
        again = [query for query in asked if _is_guarded(said[query.name])]
        if again:
            copy = copy_unguarded(table, folder / "copy")
            found = _ask(hudi, copy, again, folder / "again")
            said |= dict(zip(list_names(again), found, strict=True))
            shutil.rmtree(copy)
        kept.write_text(json.dumps(said))
    said = json.loads(kept.read_text())
    return {query.name: Answer.from_record(said[query.name]) for query in asked}


def list_names(asked: list[Query]) -> list[str]:
    return [query.name for query in asked]


def _ask(hudi: RealHudi, table: Path, asked: list[Query], folder: Path) -> list[Any]:
    return hudi.read_all(table, [query.options for query in asked], folder)


def _is_guarded(said: dict[str, Any]) -> bool:
    return any(guard in line for guard in _GUARDS for line in said.get("error", ()))


def copy_unguarded(table: Path, copy: Path) -> Path:
    """A copy whose timeline has no clean and no incomplete write; all data files are still there.

    Hudi refuses to travel behind an incomplete write, and to before the earliest commit that a
    clean retained, though nobody reads what such a write left and all files of the older instant
    may be there. The copy shows what they hold, as long as an older instant begins its timeline.
    """
    shutil.copytree(table, copy)  # with its times
    done = {instant for instant, _, state in _timeline(table) if state not in _PENDING}
    for file in _timeline_files(copy):
        instant, action, state = _parsed(file.name)
        if action == "clean" or (state in _PENDING and action in _WRITES and instant not in done):
            file.unlink()
    return copy


def _timeline(table: Path) -> list[tuple[str, str, str]]:
    return [_parsed(file.name) for file in _timeline_files(table)]


def _timeline_files(table: Path) -> list[Path]:
    folder = table / ".hoodie" / "timeline"
    files = (folder if folder.is_dir() else table / ".hoodie").iterdir()
    return [file for file in files if _FILE.fullmatch(file.name)]


def _parsed(name: str) -> tuple[str, str, str]:
    """Return (requested time, action, state of an incomplete instant or "")."""
    found = _FILE.fullmatch(name)
    assert found
    instant, action, state = found.groups("")
    return (instant, "commit", action) if action == "inflight" else (instant, action, state)
