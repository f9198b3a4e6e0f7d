"""``reconciler demo``: write a small table, then plan, apply and read it."""

from __future__ import annotations

import shlex
import shutil
import tempfile
import textwrap
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from reconciler.cli.terminal import find_terminal, print_result
from reconciler.errors import AlreadyExistsError, ReconcilerError
from reconciler.lazy_dataclass import dataclass
from reconciler.render import words
from reconciler.render.terminal import Terminal

if TYPE_CHECKING:
    from reconciler.cli.demo.orders import OrderBatch
    from reconciler.cli.demo.table import FileSizesById
    from reconciler.spec.model import TableSpec
    from reconciler.storage.api import Storage

_SPEC: Final = "orders.yaml"
_TABLE: Final = "orders"
_ROWS: Final = "rows"
_PLAN: Final = "plan.json"
_QUERY: Final = ("--where", "customer_id = 42", "--columns", "amount")
_WIDTH: Final = 80


def demo(
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the folder of the demo.")] = False,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--dir", metavar="DIR", help="Create the demo in this new folder, and keep it."
        ),
    ] = None,
) -> int:
    """Create a small table and bring it from first rows to clustered, indexed and clean files."""
    if directory is not None and directory.exists():
        raise AlreadyExistsError(str(directory), "already exists; name a new folder")
    folder = directory or Path(tempfile.mkdtemp(prefix="reconciler-demo-"))
    kept = keep or directory is not None
    try:
        code = _run_story(folder.absolute())
    finally:
        if not kept:
            shutil.rmtree(folder)
    print_result(f"\nThe table is kept in {folder}\n" if kept else
         "\nThe folder was removed; `reconciler demo --keep` keeps it.\n")  # fmt: skip
    return code


def _run_story(folder: Path) -> int:
    from reconciler import api, runtime  # noqa: PLC0415
    from reconciler.cli.demo.orders import make_batches  # noqa: PLC0415 (Arrow)

    batches = make_batches()
    _write_inputs(folder, batches)
    (spec,) = api.load_specs(folder / _SPEC)
    table = _DemoTable(
        folder=folder,
        spec=spec,
        storage=runtime.open_storage(spec.path),
        batches=batches,
        terminal=find_terminal(),
    )
    table.write_batches()
    table.plan_table()
    code = table.apply_plan()
    if code:
        return code
    table.read_rows()
    table.plan_again()
    return 0


def _write_inputs(folder: Path, batches: Sequence[OrderBatch]) -> None:
    """Write the spec and the files with rows to the folder."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    (folder / _ROWS).mkdir(parents=True)
    for batch in batches:
        pq.write_table(batch.rows, _rows_file(folder, batch))
    spec = (files("reconciler") / "cli" / "demo" / _SPEC).read_text(encoding="utf-8")
    (folder / _SPEC).write_text(spec, encoding="utf-8")
    _print_paragraph("A shop has files of orders and no table yet. The spec of the table:")
    print_result("\n" + "".join(f"    {line}\n" for line in spec.splitlines()))


def _rows_file(folder: Path, batch: OrderBatch) -> Path:
    return folder / _ROWS / f"{batch.name}.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class _DemoTable:
    """The folder of the demo: a spec, batches of rows, and a table."""

    folder: Path
    spec: TableSpec
    storage: Storage
    batches: Sequence[OrderBatch]
    terminal: Terminal

    def write_batches(self) -> None:
        """Write the batches, and show which files the insert fills."""
        *loads, insert, upsert, delete = self.batches
        self._print_heading("Write rows")
        _print_paragraph("""\
            The counter sends three bulk loads. The first one creates the table. Bulk loads fill no
            files, so each leaves one small file per day. (Work as small as this needs no
            Spark.)""")
        self._print_command("cd", str(self.folder))
        for batch in loads:
            self._write_batch(batch)
        _print_paragraph(
            "The web shop sends its orders as an insert, which fills small files first:"
        )
        before = self._read_sizes()
        self._write_batch(insert)
        self._print_filled_files(before)
        _print_paragraph("""\
            Some orders are shipped, and a customer asks for deletion. A file with such a row is
            rewritten, and the old file stays for readers:""")
        self._write_batch(upsert)
        self._write_batch(delete)

    def plan_table(self) -> None:
        """Show what must change in the table."""
        self._check_rows()
        self._print_heading("Plan")
        _print_paragraph(f"""\
            There are {self._count_data_files()} now; {len(self._read_sizes())} of them have the
            newest rows. Each has orders of all customers, so a query for one reads all of them.""")
        self._run_command("plan", self.folder / _SPEC, "-o", self.folder / _PLAN)
        _print_paragraph("""\
            Nothing is written to the table yet. A plan needs no Spark, no Java and no write
            permission. A person reviews plan.json, and apply does nothing beyond it.""")

    def apply_plan(self) -> int:
        """Apply the plan and return the exit code."""
        self._print_heading("Apply the reviewed plan")
        code = self._run_command("apply", self.folder / _PLAN)
        if code:
            _print_paragraph("The plan could not be finished; see the error above.")
        return code

    def read_rows(self) -> None:
        """Show which files a query reads."""
        self._print_heading("Read with the index")
        _print_paragraph(
            "A read looks up in the index which files may hold its rows, and skips the others:"
        )
        self._run_command("read", self.folder / _TABLE, *_QUERY, "--explain")

    def plan_again(self) -> None:
        """Show that nothing is left to do, and that the rows are unchanged."""
        self._print_heading("Plan again")
        orders = self._check_rows()
        self._run_command("plan", self.folder / _SPEC)
        _print_paragraph(f"""\
            All {words.format_number(orders)} orders are there as last written, in
            {len(self._read_sizes())} of {self._count_data_files()}. The other files serve reads as
            of earlier commits, until a later clean removes them. The timeline is Hudi's own, so any
            reader or writer of Hudi can continue from here.""")

    def _write_batch(self, batch: OrderBatch) -> None:
        from reconciler.cli.demo.table import write_batch  # noqa: PLC0415 (Arrow)
        from reconciler.render.write_result import write_text  # noqa: PLC0415

        rows = _rows_file(self.folder, batch)
        self._print_command("reconciler", "write", *self._shorten_paths(self.folder / _SPEC, rows),
                   "--operation", batch.operation)  # fmt: skip
        print_result(write_text(self.spec.name, batch.operation, write_batch(self.spec, batch)))

    def _run_command(self, command: str, *arguments: str | Path) -> int:
        """Print a command as typed in the folder, run it, and return its exit code."""
        from reconciler.cli.app import build_program  # noqa: PLC0415 (it imports this module)

        self._print_command("reconciler", command, *self._shorten_paths(*arguments))
        code: int = build_program([command])(
            [command, *map(str, arguments)], standalone_mode=False, prog_name="reconciler"
        )
        return code

    def _shorten_paths(self, *arguments: str | Path) -> list[str]:
        return [
            str(argument.relative_to(self.folder)) if isinstance(argument, Path) else argument
            for argument in arguments
        ]

    def _print_command(self, *command: str) -> None:
        print_result(f"\n{self.terminal.strong(f'$ {shlex.join(command)}')}\n")

    def _print_filled_files(self, before: FileSizesById) -> None:
        from reconciler.cli.demo.table import count_new_groups, format_changes  # noqa: PLC0415

        assert self.spec.files is not None, "the demo's spec declares files"
        after = self._read_sizes()
        lines = format_changes(before, after, self.spec.files.target, self.terminal)
        print_result("\n" + "".join(f"{line}\n" for line in lines))
        new = words.format_count(count_new_groups(before, after), "new file")
        _print_paragraph(f"{words.format_count(len(before), 'small file')} filled, {new}.")

    def _read_sizes(self) -> FileSizesById:
        from reconciler.cli.demo.table import read_file_sizes  # noqa: PLC0415 (Arrow)

        return read_file_sizes(self.storage)

    def _check_rows(self) -> int:
        """Return the number of orders; raise ReconcilerError unless they are those written."""
        from reconciler.cli.demo.orders import SCHEMA, remaining_orders  # noqa: PLC0415
        from reconciler.cli.demo.table import read_rows  # noqa: PLC0415 (Arrow)

        rows = read_rows(self.storage, SCHEMA).sort_by("order_id")
        if not rows.equals(remaining_orders(self.batches)):
            raise ReconcilerError(
                f"{self.storage.location}: the rows differ from those written; this is a bug in "
                "reconciler, please report it"
            )
        return len(rows)

    def _count_data_files(self) -> str:
        return words.format_count(len(list(self.folder.glob(f"{_TABLE}/*/*.parquet"))), "data file")

    def _print_heading(self, title: str) -> None:
        line = "─" * (_WIDTH - len(title) - 4)
        print_result(f"\n{self.terminal.strong(f'── {title} {line}')}\n")


def _print_paragraph(text: str) -> None:
    """Print a paragraph, wrapped."""
    line = " ".join(line.strip() for line in text.splitlines())
    print_result("\n" + textwrap.fill(line, _WIDTH) + "\n")
