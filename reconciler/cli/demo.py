"""``reconciler demo``: the main job on a small real table."""

from __future__ import annotations

import shlex
import shutil
import tempfile
import zipfile
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from reconciler.cli.options import Format
from reconciler.cli.terminal import emit
from reconciler.errors import AlreadyExistsError

if TYPE_CHECKING:
    from reconciler.plan.model import Plan

#: a clock that is behind the table's newest instant would rightly be refused
_TABLE_MADE: Final = datetime(2026, 11, 21, 22, tzinfo=UTC)
_SPEC: Final = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: orders}
spec:
  path: orders
  retention:
    commits: 3                  # a read as of any of the last 3 commits stays possible
  files: {target: 1MiB, small: 512KiB}     # little, as the table is
  clustering:
    columns: [customer_id, amount]         # rows with like values into the same files
  index: {columns: [customer_id, amount]}  # what each file holds, so that reads skip files
  concurrency:
    lock: {provider: filesystem}
"""


def demo(
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the folder to look around.")] = False,
    directory: Annotated[
        Path | None, typer.Option("--dir", help="Work in this new folder, and keep it.")
    ] = None,
) -> int:
    """Walk from a spec to a clustered, indexed and cleaned table, a small one of real Hudi."""
    if directory is not None and directory.exists():
        raise AlreadyExistsError(str(directory), "exists already; name a new folder")
    folder = directory or Path(tempfile.mkdtemp(prefix="reconciler-demo-"))
    kept = keep or directory is not None
    try:
        code = _walk(folder)
    finally:
        if not kept:
            shutil.rmtree(folder)
    emit(f"\nThe table is yours to look at: {folder}\n" if kept else
         "\nThe folder is gone again; `reconciler demo --keep` leaves it.\n")  # fmt: skip
    return code


def _walk(folder: Path) -> int:
    from reconciler import api, world  # noqa: PLC0415
    from reconciler.cli.execution import carry_out, rendered_result  # noqa: PLC0415
    from reconciler.cli.plan import make_plan, save  # noqa: PLC0415

    spec, document = folder / "orders.yaml", folder / "plan.json"
    now = max(world.now(), _TABLE_MADE)
    _unpack(folder)
    spec.write_text(_SPEC, encoding="utf-8")
    _tell(f"""\
        {folder}/orders is a table of orders by day that Apache Hudi 1.2.0 wrote in 8 commits.
        Every commit left new small files, and a new version of the files it touched: it has
        {_files(folder)} by now, of which 24 hold the newest rows. What people declare about it
        is in {spec.name}:""")
    emit("\n" + "".join(f"    {line}\n" for line in _SPEC.splitlines()))

    _command("reconciler", "plan", spec, "-o", document)
    specs = api.load_specs(spec)
    plan = make_plan(specs, now)
    save(plan, document)
    _show(plan)
    _tell("""\
        Nothing is written to the table yet: a plan needs neither Spark nor Java, and reading is
        enough. plan.json is what a person reviews, and the most that apply does:""")

    _command("reconciler", "apply", document)
    result = carry_out(plan, now=now)
    emit(rendered_result(result, Format.TEXT))
    if result.exit_code:
        _tell("The plan could not be finished here; what stopped it stands above.")
        return result.exit_code
    _tell(f"""\
        Spark put the newest rows into 3 files, wrote down what each of them holds, and deleted
        what nobody can read any more. A clustering and a clean on the table's timeline say so in
        Hudi's own words: any Hudi reader or writer goes on from here. {_files(folder)} are left;
        those that were replaced can be read as of earlier commits, and go with a later clean.
        Once more:""")

    _command("reconciler", "plan", spec)
    _show(make_plan(specs, now))
    _tell("The table is as declared, so there is nothing to do until somebody writes to it.")
    return 0


def _unpack(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    packed = files("reconciler") / "demo" / "orders.zip"
    with packed.open("rb") as file, zipfile.ZipFile(file) as archive:
        archive.extractall(folder / "orders")


def _files(folder: Path) -> str:
    return f"{len(list(folder.glob('orders/*/*.parquet')))} data files"


def _show(plan: Plan) -> None:
    from reconciler.cli.plan import rendered  # noqa: PLC0415

    emit(rendered(plan, Format.TEXT, full=False))


def _command(*words: object) -> None:
    emit(f"\n$ {shlex.join(str(word) for word in words)}\n\n")


def _tell(text: str) -> None:
    emit("\n" + "\n".join(line.strip() for line in text.splitlines()) + "\n")
