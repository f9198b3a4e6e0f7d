"""``python -m reconciler`` is ``reconciler``."""

from __future__ import annotations

from reconciler.cli.app import main

if __name__ == "__main__":
    main()
