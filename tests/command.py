"""Run the command line in the process of the tests."""

from __future__ import annotations

from reconciler.cli import app


def run(*arguments: object) -> int:
    """Run ``reconciler ARGUMENTS`` and return its exit code."""
    return app.run([str(argument) for argument in arguments])
