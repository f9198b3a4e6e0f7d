"""A clustering of ours that dies at any call that changes something, and real Hudi comes first.

``./ci/test --all`` takes every call, not each eighth or less: up to half an hour a version.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler import runtime
from tests.applying import ImpatientClock
from tests.crash.test_hudi_after_a_kill import Dying, KilledError
from tests.oracle.clustered_tables import (
    BY_LISTING,
    CLUSTERING_GIVES_WAY,
    SKIPPING,
    Shape,
    make_small_subject,
    unpack_or_make_subject,
)
from tests.oracle.hudi import keep_commits
from tests.oracle.our_clustering import apply_here, assert_done, make_plan
from tests.selection import EVERY_CASE
from tests.storage_wrappers import StorageFault

pytestmark = pytest.mark.oracle
#: what Hudi does first, call after call in turn
FIRST = ("write", "execute", "clean", "insert")
SHAPES = {
    "0.15.0": Shape(version="0.15.0", metadata="all", partitions="plain"),
    "1.0.2": Shape(version="1.0.2", partitions="plain"),
    "1.1.1": Shape(version="1.1.1", metadata="all", partitions="plain"),
    "1.2.0": Shape(version="1.2.0", merge_on_read=True, metadata="all", partitions="plain"),
}
#: calls from one kill to the next
STEPS = {"1.2.0": 8, "0.15.0": 11, "1.0.2": 13} if not EVERY_CASE else dict.fromkeys(SHAPES, 1)
#: whose turn it is in FIRST at the first kill of a version
TURNS = {"0.15.0": 2}


def killed(subject, at):
    """Apply until the call ``at`` that changes something; whether it got that far.

    Files are created whole or not, but data files, of which there may be a half.
    """
    someone = replace(runtime.current_process(), pid=2**22 - 1, started="a process that is gone")
    fault = StorageFault(at=at, mode="torn")
    try:
        apply_here(
            make_plan(subject),
            around=lambda store: Dying(store, fault, KilledError()),
            process=someone,
        )
    except KilledError:
        return True
    return False


def pending_clusterings(subject):
    """Instants that were requested and are not completed."""
    names = subject.table.instants()
    ours = [n for n in names if ".clustering." in n or ".replacecommit." in n]
    done = {n.split("_")[0].split(".")[0] for n in subject.table.instants(".replacecommit")}
    return sorted({n.split(".")[0] for n in ours} - done)


def hudi_does(subject, what, number):
    """The first thing that real Hudi does after the kill."""
    if what == "write":
        said = {**CLUSTERING_GIVES_WAY, "hoodie.clean.automatic": "true"}
        subject.write({"a01": 100 + number, "b01": 100 + number}, options=said)
    elif what == "insert":
        subject.write({f"a{number}": 100, "d01": 100}, "insert")
    elif what == "clean":
        subject.hudi.clean(subject.with_services(), keep_commits(1))
    else:
        for instant in pending_clusterings(subject):
            subject.hudi.cluster(subject.with_services(), instant)


def goes_on(subject, what, at, folder):
    """Hudi reads the rows, goes first, and our next apply leaves nothing to do."""
    assert_reads(subject, folder / "killed", f"killed at {at}")
    hudi_does(subject, what, at)
    assert_reads(subject, folder / "hudi", f"killed at {at}, then {what} by Hudi")
    assert_done(apply_here(make_plan(subject), clock=ImpatientClock()))
    subject.assert_right(folder / "ours", f"killed at {at}, then {what} by Hudi and our apply")
    assert [] == pending_clusterings(subject)
    assert () == make_plan(subject).tables[0].steps


def assert_reads(subject, folder, what):
    """The model, both ways; what is listed may have more while something is pending."""
    asked = {"listing": {"options": BY_LISTING}, "skipping": {"options": SKIPPING}}
    for name, answer in subject.read(asked, folder).items():
        assert () == answer.refusal, (what, name)
        rows = answer.rows.select(["id", "v"]).to_pylist()
        assert sorted(subject.model.items()) == sorted((r["id"], r["v"]) for r in rows), (
            what,
            name,
        )


@pytest.fixture(scope="module")
def made(real_hudi, tmp_path_factory):
    """``made(version)``: a small table, to be copied."""
    tables = {}

    def of(version):
        if version not in tables:
            folder = tmp_path_factory.mktemp("killed")
            hudi, shape = real_hudi(version), SHAPES[version]
            tables[version] = unpack_or_make_subject(
                make_small_subject, hudi, folder / "t", shape, folder / "answers"
            )
        return tables[version]

    return of


@pytest.mark.parametrize(("version", "step"), STEPS.items())
def test_hudi_goes_first_after_a_clustering_that_died(made, tmp_path, version, step):
    before, at, died, turn = made(version), 1, True, TURNS.get(version, 0)
    while died:
        # never copied after the kill: a requested clustering holds absolute paths
        subject = before.copy(tmp_path / f"{at}" / "t")
        died = killed(subject, at)
        goes_on(subject, FIRST[turn % len(FIRST)], at, tmp_path / f"{at}")
        at, turn = at + step, turn + 1

    assert at > 15
