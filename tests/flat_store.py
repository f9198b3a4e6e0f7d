"""A store of objects in memory with S3's requests, which it counts: no server is needed.

Objects lie flat; a listing has pages of 1 000 objects, and a deletion takes 1 000 keys at most.
Each method makes the requests that the client of S3 makes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from reconciler.storage.api import Storage, StorageRef
from reconciler.storage.remote import RemoteStorage
from reconciler.storage.requests import CountedClient

PAGE: Final = 1000
ROOT: Final = "bucket/t"
LOCATION: Final = f"s3://{ROOT}"


class _TakenError(Exception):
    """What the client says of a condition that did not hold."""

    response: Final = {"Error": {"Code": "PreconditionFailed"}}


@dataclass(eq=False)
class FlatStore:
    """Objects by their full name. ``requests``: kind and path below the table of each."""

    objects: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    _listed: dict[str, list[str]] = field(default_factory=dict)

    async_impl = False

    @property
    def counts(self) -> Counter[str]:
        return Counter(kind for kind, _path in self.requests)

    def open(self, _ref: object = None, _options: object = None) -> Storage:
        """Open the table in the store, as ``open_storage`` does."""
        return RemoteStorage(StorageRef(LOCATION), CountedClient(self, "s3"), ROOT, self.open)

    def load(self, folder: Path) -> None:
        """Put every file of a local folder into the table."""
        for path in folder.rglob("*"):
            if path.is_file():
                self.objects[f"{ROOT}/{path.relative_to(folder)}"] = path.read_bytes()

    def create_all(self, files: Mapping[str, bytes]) -> None:
        self.objects.update({f"{ROOT}/{path}": data for path, data in files.items()})

    def invalidate_cache(self, _path: str | None = None) -> None:
        pass

    def ls(self, path: str, *, detail: bool, **_more: Any) -> list[dict[str, Any]]:
        assert detail
        prefix = path.rstrip("/") + "/"
        children: dict[str, dict[str, Any]] = {}
        for name, data in self.objects.items():
            if name.startswith(prefix):
                child, slash, _ = name[len(prefix) :].partition("/")
                full = prefix + child
                children[full] = (
                    {"name": full, "type": "directory", "size": 0} if slash else _info(name, data)
                )
        self._count("LIST", path, max(1, -(-len(children) // PAGE)))
        if not children:
            self._count("LIST", path)  # the client looks into the folder above
            raise FileNotFoundError(path)
        return [children[name] for name in sorted(children)]

    def info(self, path: str, **_more: Any) -> dict[str, Any]:
        self._count("HEAD", path)
        if path in self.objects:
            return _info(path, self.objects[path])
        self._count("LIST", path)
        if any(name.startswith(f"{path}/") for name in self.objects):
            return {"name": path, "type": "directory", "size": 0}
        raise FileNotFoundError(path)

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_more: Any
    ) -> bytes:
        if start is not None and start < 0:
            self._count("HEAD", path)
        self._count("GET", path)
        if path not in self.objects:
            raise FileNotFoundError(path)
        return self.objects[path][start:end]

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_more: Any) -> None:
        self._count("PUT", path)
        if mode == "create" and path in self.objects:
            raise OSError("PreconditionFailed") from _TakenError()
        self.objects[path] = bytes(value)

    def rm_file(self, path: str) -> None:
        self._count("DELETE", path)
        self.objects.pop(path, None)

    def split_path(self, path: str) -> tuple[str, str, None]:
        bucket, _, key = path.partition("/")
        return bucket, key, None

    def call_s3(self, method: str, **arguments: Any) -> dict[str, Any]:
        if method == "list_objects_v2":
            return self._list_page(**arguments)
        assert method == "delete_objects"
        keys = [one["Key"] for one in arguments["Delete"]["Objects"]]
        assert 0 < len(keys) <= PAGE
        self._count("POST", f"{arguments['Bucket']}/{keys[0]}")
        for key in keys:
            self.objects.pop(f"{arguments['Bucket']}/{key}", None)
        return {}

    def _list_page(self, Bucket: str, Prefix: str, ContinuationToken: str = "") -> dict[str, Any]:  # noqa: N803 (S3's names)
        self._count("LIST", f"{Bucket}/{Prefix}")
        if not ContinuationToken:  # a listing shows the store of its first page
            found = sorted(n for n in self.objects if n.startswith(f"{Bucket}/{Prefix}"))
            self._listed[Prefix] = found
        start = int(ContinuationToken or 0)
        found, end = self._listed[Prefix], start + PAGE
        return {
            "Contents": [
                {"Key": name.removeprefix(f"{Bucket}/"), "Size": len(self.objects[name])}
                for name in found[start:end]
            ],
            "IsTruncated": end < len(found),
            "NextContinuationToken": str(end),
        }

    def _count(self, kind: str, path: str, times: int = 1) -> None:
        self.requests += [(kind, path.removeprefix(ROOT).lstrip("/"))] * times


def _info(name: str, data: bytes) -> dict[str, Any]:
    return {"name": name, "type": "file", "size": len(data), "LastModified": 1_767_225_600}
