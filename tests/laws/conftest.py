"""Disable fsync for the laws, which write thousands of small files."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="session")
def _quickly(without_syncing):
    pass
