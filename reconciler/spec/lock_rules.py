"""Rules of a declared lock: whether the writers of the table can take it where the table is."""

from __future__ import annotations

from typing import Final

from reconciler.spec.model import Lock
from reconciler.spec.rules import Block

#: object stores, where Hudi's file-system lock cannot create its file atomically
_OBJECT_STORES: Final = frozenset(
    {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "wasb", "wasbs"}
)
#: stores for which Hudi and reconciler both have conditional writes
_LOCKING_STORES: Final = frozenset({"s3", "s3a"})
#: places for which only reconciler has them; Hudi's writers refuse to start there
_LOCKING_PLACES: Final = _LOCKING_STORES | {"", "memory"}
_MIN_VALIDITY_S: Final = 10
#: fields of the other providers, which have no effect
_UNUSED_FIELDS: Final = {
    "filesystem": ("validity",),
    "storage": ("path", "expire", "singleWriter"),
    "none": ("validity", "singleWriter"),
}


def check_lock(spec: Block, path: str) -> None:
    """Check the lock of a table's spec; ``path``: the table's location, empty if unknown."""
    concurrency = spec.find_block("concurrency")
    block = concurrency.find_block("lock") if concurrency else None
    provider = block.data.get("provider") if block else None
    if block is None or provider not in _UNUSED_FIELDS:
        return
    for field in _UNUSED_FIELDS[provider]:
        if field in block.data and field in block.node.entries:
            block.warn(field, f"has no effect with provider: {provider}", "remove it")
    if block.data.get("validity", _MIN_VALIDITY_S) < _MIN_VALIDITY_S:
        block.error("validity", "Hudi takes no lock for less than 10 seconds", "write 10s or more")
    lock = Lock(
        provider=provider,
        path=block.data.get("path", ""),
        single_writer=block.data.get("singleWriter", False),
    )
    if problem := path and find_lock_problem(lock, path):
        message, hint = problem
        block.error("provider", message, hint)


def find_lock_problem(lock: Lock, path: str) -> tuple[str, str] | None:
    """Return why writers cannot take a lock of the table at ``path``, and what to do; else None.

    >>> find_lock_problem(Lock(provider="storage"), "s3://lake/t")
    >>> find_lock_problem(Lock(provider="filesystem"), "/lake/t")
    >>> find_lock_problem(Lock(provider="filesystem"), "s3://lake/t")[0]
    "Hudi's writers cannot take a filesystem lock on s3://"
    >>> find_lock_problem(Lock(provider="filesystem", single_writer=True), "s3://lake/t")
    """
    is_absolute = lock.path.startswith("/") or "://" in lock.path
    store = _get_scheme(path)
    if lock.provider == "storage" and store not in _LOCKING_PLACES:
        hint = "write filesystem, or none if nothing else ever writes the table"
        if store in _OBJECT_STORES:
            hint = "write {provider: filesystem, singleWriter: true} if only reconciler writes"
        return f"there is no storage lock on {store}://, only on s3:// and s3a://", hint
    store = _get_scheme(lock.path) if is_absolute else store
    if lock.provider == "filesystem" and store in _OBJECT_STORES and not lock.single_writer:
        remedy = "write provider: storage, or " if store in _LOCKING_STORES else ""
        hint = f"{remedy}add singleWriter: true if only reconciler writes"
        return f"Hudi's writers cannot take a filesystem lock on {store}://", hint
    return None


def propose_provider(path: str) -> str:
    """Return the provider of a lock that most writers of the table at ``path`` can take.

    >>> propose_provider("s3://lake/t"), propose_provider("/lake/t")
    ('storage', 'filesystem')
    """
    return "storage" if _get_scheme(path) in _LOCKING_STORES else "filesystem"


def _get_scheme(location: str) -> str:
    return location.partition("://")[0].lower() if "://" in location else ""
