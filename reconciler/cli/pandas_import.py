"""Do without pandas as long as there is no Spark.

pyarrow imports pandas when it converts its first Python value, to know pandas' own types. That
takes a quarter of a second, a third of a small command, and no value here is of such a type.
"""

from __future__ import annotations

import sys
from typing import Final

_PANDAS: Final = "pandas"


class _WithoutPandas:
    """A finder of modules that finds no pandas, whatever is installed."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        if name == _PANDAS:
            raise ModuleNotFoundError("pandas is not imported before Spark is", name=_PANDAS)


def leave_pandas_out() -> None:
    """Make imports of pandas fail in this process, as if it was not installed."""
    sys.meta_path.insert(0, _WithoutPandas())


def allow_pandas() -> None:
    """Undo ``leave_pandas_out``; pyarrow goes on without, but PySpark may import it."""
    sys.meta_path[:] = [one for one in sys.meta_path if not isinstance(one, _WithoutPandas)]
