from __future__ import annotations

import os

import pytest

from reconciler.storage.folder_states import ClockReading, is_reliable

SECOND = 1_000_000_000
CHANGED = 100 * SECOND + 7


def clock(now_ns: int = 0, offset_ns: int = 0, boot: str = "b") -> ClockReading:
    return ClockReading(boot=boot, now_ns=now_ns, offset_ns=offset_ns)


@pytest.mark.parametrize(
    ("modified", "changed", "now", "expected"),
    [
        (CHANGED, CHANGED, CHANGED + 2 * SECOND, True),
        (CHANGED, CHANGED, CHANGED + 2 * SECOND - 1, False),
        (CHANGED, CHANGED, CHANGED - 1, False),  # the clock was set back
        (CHANGED + SECOND, CHANGED, CHANGED + 2 * SECOND, False),  # a time that a program set
        (CHANGED, 100 * SECOND, CHANGED + 60 * SECOND, False),  # whole seconds: a coarse clock
    ],
)
def test_a_folder_settles_after_two_seconds(modified, changed, now, expected):
    actual = clock(now).is_settled((1, 2, modified, changed, 3, 4096))

    assert expected == actual


@pytest.mark.parametrize(
    ("boot", "offset_ns", "expected"),
    [("b", 0, True), ("b", SECOND - 1, True), ("b", -SECOND, False), ("c", 0, False)],
)
def test_a_clock_that_was_set_or_started_again_has_not_run_on(boot, offset_ns, expected):
    actual = clock(offset_ns=offset_ns).has_run_on(boot, 0)

    assert expected == actual


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["ext4"], True),
        (["xfs"], True),
        (["nfs4"], False),
        (["ext4", "overlay"], False),
        ([], False),
    ],
)
def test_only_file_systems_of_the_kernel_are_reliable(tmp_path, kinds, expected):
    device = tmp_path.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    mounts = "".join(f"9 1 {number} / /m rw shared:1 - {kind} /dev/x rw\n" for kind in kinds)

    assert expected == is_reliable(str(tmp_path), f"8 1 0:0 / /n rw - ext4 y rw\n{mounts}")


def test_a_missing_folder_is_not_reliable(tmp_path):
    assert not is_reliable(str(tmp_path / "none"), "")
