"""Draw docs/pictures/demo.svg from a real run of ``reconciler demo``.

    ./ci/demo                                     # once, for .venv and Java
    .venv/bin/python ci/site/demo_picture.py

The picture is a terminal with the lines of ``EXCERPT``. It is dark on purpose, so that it looks the
same on light and dark pages. Its description has the same words, for who does not see it.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator, Sequence
from html import escape
from itertools import accumulate
from pathlib import Path

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "demo.svg"
TITLE = "reconciler plans a small table and applies the plan"
#: first words of lines to show, and how many lines; "" is an empty line, "…" what is left out
EXCERPT = (
    ("$ reconciler plan orders.yaml -o", 5),
    ("", 0),
    ("orders  COW", 1),
    ("…", 0),
    ("  ~ cluster  ", 2),
    ("…", 0),
    ("  ~ index  ", 1),
    ("…", 0),
    ("  - clean  ", 1),
    ("…", 0),
    ("  = layout  ", 3),
    ("…", 0),
    ("  = queries  ", 2),
    ("…", 0),
    ("Digest: ", 1),
    ("", 0),
    ("$ reconciler apply plan.json", 6),
    ("…", 0),
    ("  clean ", 1),
    ("…", 0),
    ("Result: ", 2),
)
WIDTH, HEIGHT = 80, 40
#: of a character, in pixels
COLUMN, LINE = 8.4, 20
#: height of a line that stands for others
GAP = 12
MARGIN, TOP = 20, 44
COLOURS = {"": "#d6dde6", "1": "#ffffff", "31": "#ff8a80", "32": "#7ee2a8", "33": "#f2c55c"}
FAINT = "#8b9bb0"
BARS = " ▏▎▍▌▋▊▉█"

#: a text, and the number of its colour
Run = tuple[str, str]


def run_demo(folder: Path) -> str:
    """Return what the demo prints to a terminal."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    command = [sys.executable, "-m", "reconciler", "demo", "--dir", str(folder / "warehouse")]
    with subprocess.Popen(command, stdout=its) as program:  # noqa: S603
        os.close(its)
        printed = b"".join(iter(lambda: _read(ours), b""))
    if program.returncode:
        sys.exit(f"the demo failed with exit code {program.returncode}")
    return printed.decode().replace("\r\n", "\n").replace(str(folder), "")


def _read(channel: int) -> bytes:
    try:
        return os.read(channel, 65_536)
    except OSError:  # the other end is closed
        return b""


def choose_lines(printed: str) -> list[str]:
    """Return the lines of the excerpt, in order; exit if one of them is not there."""
    lines = iter(printed.splitlines())
    chosen = []
    for start, count in EXCERPT:
        if not count:
            chosen.append(start)
            continue
        for line in lines:
            if without_colour(line).startswith(start):
                chosen += [line, *(next(lines) for _ in range(count - 1))]
                break
        else:
            sys.exit(f"the demo printed no line with {start!r} in its place")
    return [re.sub(r"(sha256:[0-9a-f]{12})[0-9a-f]+", r"\1…", line) for line in chosen]


def without_colour(line: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", line)


def split_runs(line: str) -> list[Run]:
    r"""Return the runs of one colour of a line.

    >>> split_runs("  \x1b[33m~ index\x1b[0m  of a")
    [('  ', ''), ('~ index', '33'), ('  of a', '')]
    """
    runs, colour = [], ""
    for piece in re.split(r"(\x1b\[[\d;]*m)", line):
        code = re.fullmatch(r"\x1b\[([\d;]*)m", piece)
        if code:
            colour = code[1] if code[1] in COLOURS else ""
        elif piece:
            runs.append((piece, colour))
    return runs


def draw(lines: Sequence[str]) -> str:
    """Return the picture of a terminal with these lines."""
    tops = list(accumulate((GAP if line == "…" else LINE for line in lines), initial=TOP))
    width, height = 2 * MARGIN + WIDTH * COLUMN, tops[-1] + MARGIN
    text = escape("\n".join(without_colour(line) for line in lines))
    drawn = "\n".join(
        part for line, top in zip(lines, tops, strict=False) for part in draw_line(line, top)
    )
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" \
aria-labelledby="title" aria-describedby="text">
<title id="title">{TITLE}</title>
<desc id="text">{text}</desc>
<style>text {{ font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", \
monospace; white-space: pre }}</style>
<rect x=".5" y=".5" width="{width - 1:g}" height="{height - 1:g}" rx="8" fill="#16202c" \
stroke="#5a6b7f"/>
<circle cx="20" cy="18" r="5" fill="#5a6b7f"/>
<circle cx="38" cy="18" r="5" fill="#5a6b7f"/>
<circle cx="56" cy="18" r="5" fill="#5a6b7f"/>
{drawn}
</svg>
"""


def draw_line(line: str, top: int) -> Iterator[str]:
    """Return the elements of a line. Texts have a width, so that columns hold in every font."""
    if line == "…":
        yield f'<text x="{MARGIN + 6 * COLUMN:.1f}" y="{top + 8}" fill="{FAINT}">…</text>'
        return
    column = 0
    for text, colour in split_runs(line):
        for piece in re.findall(r" +|[█-▏]+|[^ █-▏]+(?: [^ █-▏]+)*", text):
            x = MARGIN + column * COLUMN
            column += len(piece)
            if piece.isspace():
                continue
            if piece[0] in BARS:
                cells = sum(BARS.index(sign) for sign in piece) / 8
                yield (
                    f'<rect x="{x:.1f}" y="{top + 4}" width="{cells * COLUMN:.1f}" '
                    f'height="{LINE - 8}" fill="#6fa8dc"/>'
                )
            else:
                yield (
                    f'<text x="{x:.1f}" y="{top + 15}" textLength="{len(piece) * COLUMN:.1f}" '
                    f'fill="{COLOURS[colour]}">{escape(piece)}</text>'
                )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_text(draw(choose_lines(run_demo(Path(place)))), encoding="utf-8")
