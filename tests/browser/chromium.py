"""A headless Chromium of this machine, and pages in it whose errors are kept."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import pytest

#: names of the program; CHROMIUM names another
_PROGRAMS: Final = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
)


@contextmanager
def running_browser() -> Iterator[Any]:
    """Start the browser of this machine.

    Where there is none the test is skipped with the reason; with CI=true it fails.
    """
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        problem = "no Chromium on this machine; on Debian: apt-get install chromium-headless-shell"
        if os.environ.get("CI") == "true":
            pytest.fail(problem)
        pytest.skip(problem)
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 (only with a browser)

    with sync_playwright() as driver:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        browser = driver.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()


class BrowserPage:
    """A page of a file at a width, light or dark; ``problems``: what the console complains of."""

    def __init__(self, browser: Any, file: Path, *, width: int = 1280, scheme: str = "light"):
        viewport = {"width": width, "height": 900}
        self.context = browser.new_context(viewport=viewport, color_scheme=scheme)
        self.page = self.context.new_page()
        self.problems: list[str] = []
        self.page.on("console", lambda message: self._keep(message.type, message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self._keep_request(request.url))
        self.page.goto(file.as_uri())

    def _keep(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.problems.append(text)

    def _keep_request(self, url: str) -> None:
        if not url.startswith("file:"):
            self.problems.append(f"asks for {url}")

    def find_barriers(self) -> list[str]:
        """Return what axe finds: rule and element of each violation."""
        self.page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text())
        found = self.page.evaluate("axe.run({resultTypes: ['violations']})")
        return [
            f"{violation['id']}: {node['html'][:200]}"
            for violation in found["violations"]
            for node in violation["nodes"]
        ]

    def is_too_wide(self) -> bool:
        """Return whether the page must be scrolled sideways."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth > innerWidth"))

    def list_clipped(self) -> list[str]:
        """Return the parts of the page that must be scrolled sideways."""
        wide = """[...document.querySelectorAll(".scroll-x")]
            .filter((part) => part.scrollWidth > part.clientWidth + 1)
            .map((part) => part.getAttribute("aria-label"))"""
        found: list[str] = self.page.evaluate(wide)
        return found

    def close(self) -> None:
        self.context.close()
