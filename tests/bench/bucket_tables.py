"""Make large tables on a versitygw server: its buckets are folders, and its objects files."""

from __future__ import annotations

import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from os import environ
from pathlib import Path
from typing import Final

from tests.bench.make_table import Shape, make_table
from tests.flat_tables import (
    PROPERTIES,
    WITH_METADATA,
    build_metadata_table,
    build_past_clean,
)
from tests.oracle.faulty_runs import S3_ENVIRONMENT
from tests.servers.s3 import KEY, SECRET, S3Bucket, S3Server, find_versitygw

_ENVIRONMENT_NAME: Final = "bench"
_LOG_VARIABLE: Final = "VGW_ACCESS_LOG"
#: what the server's log calls requests, and what ``--stats`` calls them
_KINDS: Final = {
    "ListObjectsV2": "list",
    "GetObject": "read",
    "HeadObject": "look",
    "PutObject": "write",
    "DeleteObject": "delete",
    "DeleteObjects": "delete",
}


@dataclass(frozen=True, kw_only=True)
class BenchBucket:
    """A bucket, the folder of its objects, and the folder that commands run in."""

    bucket: S3Bucket
    objects: Path
    folder: Path

    @property
    def specs(self) -> Path:
        return self.folder / "specs"

    @property
    def log(self) -> Path:
        """The server's log of requests."""
        return self.folder / "log"

    def write_spec(self, name: str, blocks: str) -> Path:
        """Write the spec of a table that the environment locates by its name."""
        spec = self.specs / f"{name}.yaml"
        spec.write_text(
            "apiVersion: reconciler/v1\nkind: HudiTable\n"
            f"metadata: {{name: {name}}}\nspec:\n{blocks}"
        )
        return spec

    def count_requests(self) -> Counter[str]:
        """Return the requests that the server has logged, by what ``--stats`` calls them."""
        actions: Counter[str] = Counter()
        with self.log.open() as lines:
            for line in lines:
                if " s3:" in line or " s3_" in line:
                    actions[line.split()[7].removeprefix("s3_").removeprefix("s3:")] += 1
        kinds: Counter[str] = Counter()
        for action, number in actions.items():
            kinds[_KINDS.get(action, action)] += number
        return kinds


@contextmanager
def bench_bucket(folder: Path) -> Iterator[BenchBucket]:
    """Run a server whose bucket is a folder; everything goes in the end."""
    folder = folder.resolve()  # the server works in another folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    find_versitygw()  # moto's server has no folders
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the server ends and the files go
    environ.update({"LAKE_KEY": KEY, "LAKE_SECRET": SECRET, _LOG_VARIABLE: str(folder / "log")})
    server = S3Server(folder)
    try:
        bucket = server.make_bucket()
        environments = folder / "specs" / "environments"
        environments.mkdir(parents=True)
        (environments / f"{_ENVIRONMENT_NAME}.yaml").write_text(
            S3_ENVIRONMENT.format(name=_ENVIRONMENT_NAME, url=bucket.url, endpoint=bucket.endpoint)
        )
        yield BenchBucket(bucket=bucket, objects=folder / "data" / bucket.name, folder=folder)
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def make_bucket_table(
    root: Path, shape: Shape, *, with_metadata: bool, cleans: int = 0, pending: int = 0
) -> None:
    """Make a table in a folder of a bucket.

    ``cleans``: completed cleans, each of which removed one version of every file group.
    ``pending``: writes that are inflight, and wrote nothing.
    """
    make_table(root, shape)
    shutil.rmtree(root / ".hoodie" / ".temp")
    timeline = root / shape.timeline_folder
    for number in range(cleans):
        for path, data in build_past_clean(shape, number).items():
            (root / path).write_bytes(data)
    for number in range(pending):
        instant = shape.stamp(timedelta(days=1, seconds=number))
        (timeline / f"{instant}.commit.requested").touch()
        (timeline / f"{instant}.inflight").touch()
    if with_metadata:
        _add_metadata_table(root, shape)


def _add_metadata_table(root: Path, shape: Shape) -> None:
    size = next((root / shape.partition(0)).glob("*.parquet")).stat().st_size
    listed: dict[str, dict[str, int | None]] = {
        shape.partition(partition): dict.fromkeys(shape.list_names(partition), size)
        for partition in range(shape.partitions)
    }
    for path, data in build_metadata_table(shape, listed).items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    with (root / PROPERTIES).open("ab") as properties:
        properties.write(WITH_METADATA)
