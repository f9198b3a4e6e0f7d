"""The demo as a newcomer runs it, and what pages show of it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.command import run

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]
#: what differs from run to run, and what it becomes here
CHANGES = (
    (r"\s+", " "),
    (r",? in [\d.]+ (seconds?|minutes?)", ""),
    # of a quick run both spans are as many seconds
    (r"\((shrinks from [\d.]+ \w+ to|stays about) [\d.]+ \w+\)", "(SPAN)"),
    (r"(?<![\w.])/[\w./-]+", "PATH"),
    (r"\b[0-9a-f]{8}-[0-9a-f-]{27}-0|\b[0-9a-f]{8} ", "ID "),
    (r"sha256:[0-9a-f]+", "DIGEST"),
    (r"[█▏▎▍▌▋▊▉░]+", "BAR"),
    (r"\d+(?:[ .:-]\d+)*(?: (?:bytes|KiB|MiB|seconds?|minutes?)\b)?", "N"),
)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What the demo says on its two channels, and its folder."""
    folder = tmp_path_factory.mktemp("newcomer") / "demo"
    done = subprocess.run(
        [sys.executable, "-m", "reconciler", "demo", "--dir", folder],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, done.stderr, folder


def lasting(text):
    """A text without what another run says otherwise."""
    for pattern, instead in CHANGES:
        text = re.sub(pattern, instead, text)
    return text.strip()


def test_small_files_are_filled_clustered_indexed_pruned_and_cleaned(shown):
    out = " ".join(shown[0].split())

    assert "9 small files filled, no new files." in out
    assert "query one customer reads 3 of 9 files" in out
    assert "rewrote 9 files" in out
    assert "indexed 2 columns of 9 files" in out
    assert "removed 9 files" in out
    assert "after the index: 3 base files" in out
    assert "orders are there as last written" in out


def test_it_ends_with_nothing_to_do(shown):
    out, _, folder = shown

    assert "1 table: 1 unchanged" in out
    assert run("plan", folder / "orders.yaml", "--detailed-exitcode") == 0


def test_it_says_how_far_it_is_and_warns_of_nothing(shown):
    _, err, _ = shown

    assert "starting Spark" not in err
    assert "in this process: " in err
    assert "WARN" not in err
    assert "warning" not in err


def test_a_pipe_gets_no_colour(shown):
    assert "\x1b" not in shown[0]


def assert_printed(pieces, printed):
    """Assert that the demo printed these pieces of text, in this order."""
    printed, at = lasting(printed), 0
    for piece in pieces:
        found = printed.find(lasting(piece), at)
        assert found >= 0, piece
        at = found


def test_its_page_shows_what_it_prints(shown):
    page = (ROOT / "docs/demo.md").read_text()
    blocks = re.findall(r"^```\w*\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    [walk] = [block for block in blocks if "$ reconciler apply plan.json" in block]

    assert_printed(re.split(r"…|\n(?=\$ )", walk), shown[0])


def test_the_picture_shows_what_it_prints(shown):
    """``ci/site/demo_picture.py`` draws it anew."""
    picture = ET.parse(ROOT / "docs/pictures/demo.svg").getroot()
    described = picture.findtext("{*}desc")
    drawn = " ".join(text.text for text in picture.iterfind("{*}text"))

    assert drawn.split() == re.sub("[█▏▎▍▌▋▊▉]", "", described).split()
    assert_printed(re.split(r"…|\n(?=\$ )", described), shown[0])
