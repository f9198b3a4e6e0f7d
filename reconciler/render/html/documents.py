"""Render documents: each is one file that needs no server, no network and no other file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from reconciler.render import words
from reconciler.render.html.model import Fleet, PageHead, TablePage

if TYPE_CHECKING:
    from jinja2 import Environment


def render_document(
    head: PageHead, *, fleet: Fleet | None = None, tables: Sequence[TablePage] = ()
) -> bytes:
    """Return a document with the table of tables, pages of tables, or both.

    Text of others is escaped. Scripts and styles run only if they are those of this package: the
    document forbids all others.
    """
    style, script = _read_asset("report.css"), _read_asset("report.js")
    policy = (
        f"default-src 'none'; style-src {_hash_source(style)}; "
        f"script-src {_hash_source(script)}; base-uri 'none'; form-action 'none'"
    )
    text = _open_environment().get_template("document.html").render(
        head=head,
        fleet=fleet,
        tables=tables,
        policy=policy,
        style=Markup(style),  # noqa: S704 (a file of this package)
        script=Markup(script),  # noqa: S704 (a file of this package)
    )  # fmt: skip
    return text.encode(errors="backslashreplace")


def _hash_source(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


@cache
def _read_asset(name: str) -> str:
    return files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _open_environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 (slow)

    environment = Environment(
        loader=PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_show_text,
    )
    environment.filters["number"] = format_place
    return environment


def _show_text(value: Any) -> Any:
    """Make invisible signs in text of others visible, before it is escaped."""
    is_plain = isinstance(value, str) and not isinstance(value, Markup)
    return words.escape_text(value) if is_plain else value


def format_place(value: float) -> str:
    """Return a place in a drawing with at most two decimal places.

    >>> format_place(12.0), format_place(0.126), format_place(-0.001)
    ('12', '0.13', '0')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
