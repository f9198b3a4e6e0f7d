"""Shared fixtures have to be named at the root."""

from __future__ import annotations

# selection comes first, because the others import it, and pytest compiles plugins by itself
pytest_plugins = ["tests.selection", "tests.oracle.plugin", "tests.quick", "tests.servers.plugin"]
