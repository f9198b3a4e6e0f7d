"""Shared fixtures have to be named at the root."""

from __future__ import annotations

pytest_plugins = ["tests.oracle.plugin", "tests.quick", "tests.selection", "tests.servers.plugin"]
