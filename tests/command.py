"""The command line in the tests' own process."""

from __future__ import annotations

from reconciler.cli import app


def run(*arguments: object) -> int:
    """``reconciler ARGUMENTS``; its exit code."""
    return app.run([str(argument) for argument in arguments])
