"""Keep what jobs measured as JSON, one file a job, so that a stopped run can go on."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.bench.figures import Figure, decode_figures
from tests.bench.machine import Machine
from tests.bench.run_log import RunLog


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """The figures of one job, or the text of its failure; ``date`` is ISO 8601 in UTC.

    ``load``: load averages of a minute before and after the job.
    """

    job: str
    date: str
    seconds: float
    turns: int
    load: tuple[float, float]
    machine: Machine
    log: RunLog
    figures: tuple[Figure, ...]
    failure: str | None = None


def save_result(folder: Path, result: JobResult) -> Path:
    """Write a result's file completely, or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{result.job}.json"
    half = file.with_suffix(".half")
    half.write_text(json.dumps(asdict(result), indent=1) + "\n")
    half.replace(file)
    return file


def load_result(folder: Path, job: str) -> JobResult | None:
    """Return the saved result of a job, or None; SystemExit for a file that is none."""
    file = folder / f"{job}.json"
    if not file.is_file():
        return None
    try:
        return _decode(json.loads(file.read_bytes()))
    except (ValueError, KeyError, TypeError) as error:
        raise SystemExit(
            f"{file} is not a job's result ({error}): remove it, or use --fresh"
        ) from None


def _decode(found: dict[str, Any]) -> JobResult:
    return JobResult(
        **found
        | {
            "load": tuple(found["load"]),
            "machine": Machine(**found["machine"]),
            "log": RunLog(**found["log"]),
            "figures": decode_figures(found["figures"]),
        }
    )
