"""Laws write small files by the thousand; whether a disk keeps them is not what they ask."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="session")
def _quickly(without_syncing):
    pass
