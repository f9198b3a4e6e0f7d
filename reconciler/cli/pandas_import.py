"""Do without pandas as long as there is no Spark.

pyarrow imports pandas when it converts its first Python value, to know pandas' own types. That
takes a fifth of a second, a quarter of a small read, and no value here is of such a type.
"""

from __future__ import annotations

import sys
from typing import Final

from reconciler.lazy_dataclass import dataclass

_PANDAS: Final = "pandas"


@dataclass(slots=True)
class _WithoutPandas:
    """A finder of modules that lets imports of pandas fail; others go on to the next finder."""

    is_active: bool = False

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        if self.is_active and name == _PANDAS:
            raise ModuleNotFoundError("pandas is not imported before Spark is", name=_PANDAS)


_FINDER: Final = _WithoutPandas()


def leave_pandas_out() -> None:
    """Make imports of pandas fail in this process."""
    _FINDER.is_active = True
    sys.meta_path.insert(0, _FINDER)


def allow_pandas() -> None:
    """Let PySpark import pandas. pyarrow goes on without: it knows no value of pandas any more.

    The finder stays, because another thread may be looking through the list of finders.
    """
    _FINDER.is_active = False
