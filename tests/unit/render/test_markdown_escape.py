"""Escaped text of others, checked in the rendered HTML as code hosts do."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from reconciler.render.markdown_escape import code_block, code_span, escape_markdown
from tests.selection import examples

#: what GitHub or GitLab makes a link or a picture of, outside code
REFERENCES = {
    "a mention": r"@[\w-]",
    "an issue": r"#\w|\bgh-\d",
    "a merge request, snippet, label, milestone, epic, alert": r"[!$~%&^](?=[\w\"'])",
    "a commit": r"(?<![A-Za-z0-9])[0-9A-Fa-f]{7,}(?![A-Za-z0-9])",
    "an emoji": r":[a-z0-9_+-]*[a-z_+-][a-z0-9_+-]*:|:100:|:1234:",
    "a link": r"[a-z][a-z0-9+.-]*://|\bwww\.",
    "a difference": r"[\[{][+-]",
}
#: what Markdown itself makes a link of, in code elements too
LINKS = re.compile(r"(?:https?|ftp)://|www\.|[\w.+-]@[\w-]", re.IGNORECASE)


class Eye(HTMLParser):
    """The text outside code, and every tag."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.depth, self.said, self.tags = 0, "", []
        self.feed(MarkdownIt("commonmark", {"html": True}).render(markdown))

    def handle_starttag(self, tag, _attrs):
        self.tags.append(tag)
        self.depth += tag in ("code", "pre")

    def handle_endtag(self, tag):
        self.depth -= tag in ("code", "pre")

    def handle_data(self, data):
        self.said += "\0" if self.depth else data


def seen(markdown: str) -> list[str]:
    """Every kind of reference that a forge would find."""
    text = Eye(markdown).said
    return [what for what, form in REFERENCES.items() if re.search(form, text, re.IGNORECASE)]


BAITS = [
    *("@team", "a@b.example", "@org/team", "#123", "org/repo#1", "GH-12", "gh-12", "JIRA-7"),
    *("!12", "~bug", '~"a bug"', "%1.0", "&5", "$9", "^alert#1", "{+ a +}", "[- b -]"),
    *("deadbeef", "DEADBEEF1", "(abcdef0)", "_abcdef0_", "org@abcdef0", "20261121041500123"),
    *(":smile:", ":+1:", ":-1:", ":100:", "a:b_c:d", "http://evil.example", "ftp://x", "irc://x"),
    *("www.evil.example", "WWW.evil.example", "mailto:a@b.example", "HTTPS://EVIL.example", "//x"),
    *("<img src=x>", "<!-- -->", "</details>", "**b**", "`x`", "|", "\\", "[x](http://x)", "$x$"),
]


@pytest.mark.parametrize("bait", BAITS)
def test_a_code_host_finds_no_reference_in_a_sentence(bait):
    for text in (bait, f"see {bait} and {bait}.", f"({bait})", f"x{bait}x"):
        assert [] == seen(f"- {escape_markdown(text)}\n")
        assert {"ul", "li", "code"} >= set(Eye(f"- {escape_markdown(text)}\n").tags)


@settings(max_examples=examples(60, many=300), deadline=None)
@given(st.lists(st.sampled_from(BAITS) | st.text(max_size=3), max_size=6))
def test_a_code_host_finds_no_reference_in_any_mixture(pieces):
    text = "".join(pieces).encode("utf-8", "replace").decode()

    assert [] == seen(f"- {escape_markdown(text)} end\n")


@pytest.mark.parametrize("bait", BAITS)
def test_markdown_makes_no_link_in_code_either(bait):
    assert not LINKS.search(code_span(f"see {bait}"))
    assert not LINKS.search(escape_markdown(f"see {bait}"))


def test_escaped_text_is_copied_whole():
    assert "<code>s3:&#47;/lake/a</code>" == escape_markdown("s3://lake/a")
    assert "at <code>20261121041500123</code>." == escape_markdown("at 20261121041500123.")
    assert "2026-11-14 04:10 → 7 days, 10 %" == escape_markdown("2026-11-14 04:10 → 7 days, 10 %")


@pytest.mark.parametrize("command", ["/close", "/merge\n/approve", "x\n/label ~a"])
def test_no_line_is_a_command_of_gitlab(command):
    assert not re.search(r"(?m)^\s*/", escape_markdown(command))
    assert not re.search(r"(?m)^/", code_block(command.splitlines(), ""))
