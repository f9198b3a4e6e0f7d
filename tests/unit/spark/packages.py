"""Installed packages for tests of what is sent to workers: folders as pip leaves them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path


def install(
    site: Path,
    name: str,
    files: Mapping[str, str],
    *,
    requires: Sequence[str] = (),
    installer: str = "pip",
    record: bool = True,
) -> None:
    """Install a distribution of these files into a folder that Python imports from."""
    information = site / f"{name.replace('-', '_')}-1.0.dist-info"
    information.mkdir(parents=True)
    for path, text in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)
    required = "".join(f"Requires-Dist: {each}\n" for each in requires)
    (information / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{required}"
    )
    (information / "INSTALLER").write_text(f"{installer}\n")
    if record:
        listed = [*files, f"{information.name}/METADATA", f"{information.name}/RECORD"]
        (information / "RECORD").write_text("".join(f"{path},,\n" for path in listed))
