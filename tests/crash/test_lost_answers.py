"""An apply in a store that loses the answer to any one of its writes, or all from one on.

The store is one of flat objects with S3's requests and tokens; its client repeats like s3fs.
"""

from __future__ import annotations

from typing import Any

import pytest

import reconciler
from reconciler.executor.deletion import LocalDeleter
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.spec.load import load_specs
from reconciler.storage.api import StorageRef
from reconciler.storage.remote import RemoteStorage
from reconciler.storage.request_budget import RequestsFailedError
from tests.applying import admit_and_apply
from tests.bench.make_table import Shape
from tests.crash.drill import NOW, TestClock, process
from tests.flat_store import LOCATION, ROOT, FlatStore
from tests.flat_tables import put_table
from tests.selection import take_turn

SHAPE = Shape(partitions=3, groups=1, versions=4)
SPEC = f"""\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {LOCATION}
  timezone: UTC
  retention: {{commits: 2}}
  concurrency: {{lock: {{provider: filesystem, singleWriter: true}}, staleAfter: 1h}}
"""
#: the write is done and repeated by the client, which is refused if it was a creation; or it is
#: done, or not done, and the client gives up; or so are all writes from this one on
KINDS = ("repeated", "done", "undone", "outage")


class LosingStore(FlatStore):
    """Loses the answer to the write with number ``at``, from 1; ``writes`` are all so far."""

    def begin(self, objects: dict[str, bytes], kind: str = "", at: int = 0) -> None:
        self.objects, self.kind, self.at = dict(objects), kind, at
        self.requests, self.writes = [], []
        self.tokens: dict[str, dict[str, str]] = {}

    def open(self, ref: Any = None, _options: object = None) -> RemoteStorage:
        ref = ref if isinstance(ref, StorageRef) else StorageRef(LOCATION, writer="run")
        return RemoteStorage(ref, self, ROOT, self.open)

    def pipe_file(self, path, value, mode="overwrite", Metadata=None, **more):  # noqa: N803
        def write():
            super(LosingStore, self).pipe_file(path, value, mode, **more)
            self.tokens[path] = Metadata or {}

        self._write(path, write)

    def rm_file(self, path):
        self._write(path, lambda: super(LosingStore, self).rm_file(path))

    def call_s3(self, method, **arguments):
        if method == "head_object":
            path = f"{arguments['Bucket']}/{arguments['Key']}"
            if path not in self.objects:
                raise FileNotFoundError(path)
            return {"Metadata": self.tokens.get(path, {}), "ETag": "e"}
        if method == "list_objects_v2":
            return super().call_s3(method, **arguments)
        delete = super().call_s3
        self._write("bulk delete", lambda: delete(method, **arguments))
        return {}

    def _write(self, path, write):
        self.writes.append(path)
        number = len(self.writes)
        is_hit = number == self.at or (self.kind == "outage" and 0 < self.at < number)
        if not is_hit or self.kind in ("repeated", "done"):
            write()
        if is_hit and self.kind == "repeated":
            write()
        elif is_hit:
            raise RequestsFailedError("the store did not answer; gave up after 3 tries")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A store, its objects, its spec and those objects that an undisturbed apply leaves."""
    folder = tmp_path_factory.mktemp("lost")
    objects = put_table(folder / "t", SHAPE).objects
    (folder / "spec.yaml").write_text(SPEC)
    (spec,) = load_specs(folder / "spec.yaml")
    store = LosingStore()
    store.begin(objects)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reconciler.runtime.open_storage", store.open)
        result = apply(store, spec, TestClock(), 1)
        assert (None, 3, ()) == (result.error, result.removed, result.outcomes[0].warnings)
        yield store, objects, spec, list_files(store), len(store.writes)


def apply(store, spec, clock, run):
    """Plan and apply as a new process; return the outcome of the table."""
    return admit_and_apply(
        reconciler.plan([spec], now=NOW),
        now=NOW,
        clock=clock,
        open_storage=store.open,
        deleter=LocalDeleter(store.open),
        process=process(run),
        new_token=lambda: f"run{run}",
        lock_wait_s=0,
    ).tables[0]


def list_files(store):
    """Return the names of all objects but probes, and how many our instants have."""
    shown = [name for name in store.objects if not name.startswith(f"{ROOT}/probe.")]
    ours = [name for name in shown if "/timeline/20261201" in name]
    return sorted(name for name in shown if "20261201" not in name), len(ours)


@pytest.mark.parametrize("kind", KINDS)
def test_a_clean_completes_or_is_one_error_and_the_next_completes(table, kind):
    store, objects, spec, after, writes = table
    assert writes >= 12
    failed = []
    for at in take_turn(range(1, writes + 1), of=3, turn=KINDS.index(kind)):
        clock = TestClock()
        store.begin(objects, kind, at)
        first = apply(store, spec, clock, 1)
        lost = store.writes[at - 1]
        failed += [lost] if first.error else []
        if kind == "repeated":
            assert (None, "completed") == (first.error, first.outcomes[0].how), (at, lost)
        elif first.error is not None:
            assert "did not answer" in first.error, (at, lost)
            assert "\n" not in first.error
        assert_timeline_is_whole(store)

        store.at = 0
        second = apply(store, spec, clock, 2)
        assert (None, 0) == (second.error, second.code), (at, lost)
        assert after == list_files(store), (at, lost)
        assert_timeline_is_whole(store, is_finished=True)
    assert bool(failed) == (kind != "repeated")


def assert_timeline_is_whole(store, *, is_finished=False):
    """The timeline can be read; at most one instant is pending, and none when all is done."""
    storage = store.open()
    timeline = load_timeline(storage, load_properties(storage))
    pending = {one.requested for one in timeline.instants if not one.is_completed}
    assert len(pending) <= (not is_finished)
