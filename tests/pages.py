"""Commands that pages of the documentation show, and what they print.

A page shows a command as ``$ COMMAND`` in a code block, and below it what it prints, with ``…`` for
what is left out.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
#: where a repository has a document of a kind
FOLDERS = {
    "HudiTable": "specs",
    "TableDefaults": "specs",
    "Policy": "policies",
    "Environment": "environments",
}
#: what differs from run to run, and what it becomes here; counts of files and rows do not
CHANGES = (
    (r"\s+", " "),
    (r"\+00:00 on [\w.-]+", "+00:00 on HOST"),
    (r",? in [\d.]+ (seconds?|minutes?)", ""),
    (r"\((shrinks from [\d.]+ \w+ to|stays about) [\d.]+ \w+\)", "(SPAN)"),
    (r"(?<![\w.])/[\w./-]+", "PATH"),
    (r"\b[0-9a-f]{8}-[0-9a-f-]{27}-0\S*", "FILE"),
    (r"sha256:[0-9a-f]+…?", "DIGEST"),
    (r"[█▏▎▍▌▋▊▉░]+", "BAR"),
    (r"\b\d{17}\b", "INSTANT"),
    (r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d\.\d+\+00:00)?", "MOMENT"),
    (r"by \S+, hudi-reconciler \S+", "BY"),
    (r"\d+(?:[ .]\d+)* (?:bytes|[KMG]iB)\b", "SIZE"),
    (r"\d+ %", "SHARE"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCommand:
    """A command of a page, and the output below it."""

    line: str
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFile:
    """A document of YAML that a page shows, and where a repository has it."""

    path: str
    text: str


def code_blocks(page: str, language: str = "") -> list[str]:
    """Return the code blocks of a page in this language."""
    return [text for name, text in _blocks(page) if name == language]


def shown_commands(page: str) -> list[ShownCommand]:
    """Return the commands that a page shows after ``$``, in order."""
    return [one for one in read_story(page) if isinstance(one, ShownCommand)]


def read_story(page: str) -> list[ShownCommand | ShownFile]:
    """Return what a reader of a page does, in order: files to write, and commands to run."""
    found: list[ShownCommand | ShownFile] = []
    for language, text in _blocks(page):
        if language == "yaml":
            kind, name = (re.search(rule, text)[1] for rule in (r"kind: (\w+)", r"name: ([\w.-]+)"))
            found.append(ShownFile(path=f"{FOLDERS[kind]}/{name}.yaml", text=text))
        if not language:
            for piece in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                line, _, output = piece.partition("\n")
                found.append(ShownCommand(line=line, output=output.strip("\n")))
    return found


def _blocks(page: str) -> list[tuple[str, str]]:
    text = (DOCS / page).read_text()
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def steady(text: str) -> str:
    """Return a text without what another run says otherwise."""
    for pattern, instead in CHANGES:
        text = re.sub(pattern, instead, text)
    return text.strip()


def assert_shown(shown: ShownCommand, printed: str) -> None:
    """Assert that a command printed what its page shows."""
    pieces = [
        re.escape(steady(piece)) for piece in re.split(r"(?<![0-9a-f])…", f"\n{shown.output}\n")
    ]
    pattern = r"(?s:\s*.*?\s*)".join(pieces)

    assert re.fullmatch(pattern, steady(printed)), f"$ {shown.line}\n{printed}"


def fill_in(line: str, digest: str) -> Sequence[str]:
    """Return the words of a command, with a digest for the one that the page shortens."""
    return [re.sub(r"^sha256:.*…$", digest, word) for word in shlex.split(line)]
