"""The completed instants of a timeline folder, as the writers of an archive take them."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from reconciler.hudi.timeline.archivable_instant import ARCHIVABLE, ArchivableInstant
from reconciler.hudi.timeline.instant import Instant, State


def load_archivable(folder: Path) -> list[ArchivableInstant]:
    """Return the completed instants that an archive can hold, by requested time."""
    found: dict[tuple[str, str], dict[State, tuple[Instant, Path]]] = defaultdict(dict)
    for path in folder.iterdir():
        instant = Instant.parse(path.name) if path.is_file() else None
        if instant is not None:
            key = (instant.requested, instant.action.completes_as)
            found[key][instant.state] = (instant, path)
    return [
        _load(files)
        for _key, files in sorted(found.items())
        if State.COMPLETED in files and files[State.COMPLETED][0].action in ARCHIVABLE
    ]


def _load(files: dict[State, tuple[Instant, Path]]) -> ArchivableInstant:
    completed, path = files[State.COMPLETED]
    modified = {state: file.stat().st_mtime_ns // 10**6 for state, (_i, file) in files.items()}
    contents = {state: file.read_bytes() for state, (_instant, file) in files.items()}
    pending = files.get(State.REQUESTED) or files.get(State.INFLIGHT)
    return ArchivableInstant(
        requested=completed.requested,
        completion=completed.completed or "",
        action=completed.action,
        requested_bytes=contents.get(State.REQUESTED),
        inflight_bytes=contents.get(State.INFLIGHT),
        completed_bytes=contents[State.COMPLETED],
        requested_ms=modified.get(State.REQUESTED, 0),
        inflight_ms=modified.get(State.INFLIGHT, 0),
        completed_ms=modified[State.COMPLETED],
        began_as=pending[0].action if pending else None,
        folder=str(path.parent),
    )
