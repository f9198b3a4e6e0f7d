"""Reading audit records of ``apply --audit``: what they say of one table; pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from datetime import MAXYEAR, datetime
from typing import Any, Final

from reconciler.lazy_dataclass import dataclass
from reconciler.status.history_model import AuditedRun, AuditedSavepoint

_FORMAT: Final = 1
_FIRST_YEAR: Final = 1970


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedTable:
    """One run on a table, with what its plan and its instants were."""

    run: AuditedRun
    moment: datetime
    plan_digest: str
    spec_digest: str | None
    spec_commit: str | None
    actor: str | None
    tool: str | None
    instants: frozenset[str] = field(default=frozenset())


def read_audit_lines(lines: Iterable[bytes], name: str, path: str) -> tuple[AuditedTable, ...]:
    """Return the runs on a table by its name and path, in the order of their beginnings.

    Lines that are no JSON are fragments of crashes, and those of other formats of later versions;
    both are skipped. A run without an end has died.
    """
    runs: dict[str, dict[str, Any]] = {}
    for line in _parse_lines(lines):
        if line.get("table") == name and line.get("path") == path:
            runs.setdefault(str(line.get("run")), {}).update(line)
    return tuple(found for line in runs.values() if (found := _build_run(line)) is not None)


def _parse_lines(lines: Iterable[bytes]) -> Iterator[Mapping[str, Any]]:
    for line in lines:
        try:
            document = json.loads(line)
        except ValueError:
            continue
        if isinstance(document, dict) and document.get("format") == _FORMAT:
            yield document


def _build_run(line: Mapping[str, Any]) -> AuditedTable | None:
    """Return a run of its lines together; None if they are not as the schema says."""
    try:
        is_ended = line["event"] == "finished"
        run = AuditedRun(
            run=str(line["run"]),
            at=str(line["at"]),
            status=str(line["status"]) if is_ended else "died",
            exit_code=_check_count(line.get("exitCode")),
            host=_check_text(line.get("host")),
            environment=_check_text(line.get("environment")),
            planned={key: _check_count(value) or 0 for key, value in dict(line["planned"]).items()},
            files_removed=_check_count(line.get("filesRemoved")) or 0,
            bytes_removed=_check_count(line.get("bytesRemoved")) or 0,
            seconds=_check_seconds(line.get("seconds")),
            error=_check_text(line.get("error")),
            savepoints=tuple(_read_savepoints(line.get("steps") or ())),
        )
        return AuditedTable(
            run=run,
            moment=_parse_moment(run.at),
            plan_digest=str(line["planDigest"]),
            spec_digest=_check_text(line.get("specDigest")),
            spec_commit=_check_text(line.get("specCommit")),
            actor=_check_text(line.get("actor")),
            tool=_check_text(line.get("tool")),
            instants=frozenset(map(str, line.get("instants") or ())),
        )
    except (LookupError, TypeError, ValueError):
        return None


def _read_savepoints(steps: Any) -> Iterator[AuditedSavepoint]:
    """Yield the savepoints that a run made or removed."""
    for step in steps:
        if not isinstance(step, dict):
            raise TypeError
        outcome = step.get("savepoint")
        if outcome is not None and step["how"] == "completed":
            yield AuditedSavepoint(
                change=str(outcome["change"]),
                name=str(outcome["name"]),
                instant=str(step["instant"]),
                files=_check_count(outcome["files"]) or 0,
                bytes=_check_count(outcome["bytes"]) or 0,
            )


def _parse_moment(text: str) -> datetime:
    """Return a time with a zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None or not _FIRST_YEAR <= moment.year < MAXYEAR:
        raise ValueError
    return moment


def _check_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise TypeError


def _check_count(value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise TypeError


def _check_seconds(value: Any) -> float | None:
    if value is None or (type(value) in (int, float) and 0 <= value < math.inf):
        return value if value is None else float(value)
    raise TypeError
