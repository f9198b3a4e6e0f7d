"""What a run that died after its work was done may leave: its lock and its heartbeats."""

from __future__ import annotations

from reconciler.apply.table import Tools, lock_of
from reconciler.errors import NotFoundError
from reconciler.hudi.heartbeat import HEARTBEAT_FOLDER
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.owner import Owner
from reconciler.spec.model import TableSpec
from reconciler.storage.api import Storage
from reconciler.transaction.process import is_dead


def tidy(storage: Storage, spec: TableSpec, tools: Tools) -> None:
    """Release a stale lock of ours and remove the heartbeats of dead runs whose instant is done.

    Nothing is written to a table on which nothing was left. Other tools' files are not looked into.
    """
    lock_of(spec, storage, tools.process.owner(tools.new_token()), tools).release_stale()
    try:
        entries = storage.list(HEARTBEAT_FOLDER)
    except NotFoundError:
        return
    if not entries:
        return
    timeline = load_timeline(storage, load_properties(storage))
    pending = {i.requested for i in timeline.instants if not i.is_completed}
    for entry in entries:
        path = f"{HEARTBEAT_FOLDER}/{entry.name}"
        if entry.is_folder or not entry.size or entry.name in pending:
            continue
        owner = Owner.parse(storage.read(path))
        now_ms = tools.clock.now_ms()
        if owner and is_dead(owner, entry.modified_ms, process=tools.process, now_ms=now_ms):
            storage.delete(path)
