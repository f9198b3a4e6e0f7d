"""Settings of Spark in a file that only this user can read, and what Spark hides of them.

PySpark would put every setting on Java's command line, which everybody on the host can read.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from reconciler.spec.options import is_credential_name

REDACTION: Final = "spark.redaction.regex"
#: Spark's own default
DEFAULT_REDACTION: Final = "(?i)secret|password|token|access[.]?key"
_HADOOP: Final = "spark.hadoop."
PROPERTIES_FILE: Final = "--properties-file"
#: what Spark itself puts on the command line of its Java, whatever file it is in
_JAVA_OPTIONS: Final = ("spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions")
#: settings that only spark-submit itself can heed
_OF_SUBMIT: Final = frozenset(
    {
        *_JAVA_OPTIONS,
        "spark.driver.extraClassPath",
        "spark.driver.extraLibraryPath",
        "spark.driver.memory",
        "spark.jars",
        "spark.jars.excludes",
        "spark.jars.ivy",
        "spark.jars.ivySettings",
        "spark.jars.packages",
        "spark.jars.repositories",
        "spark.submit.deployMode",
        "spark.submit.pyFiles",
    }
)


def extend_redaction(known: str, private: Iterable[str]) -> str:
    r"""Return a regular expression of names that also matches these names, whole.

    Spark's event log has Hadoop's settings without ``spark.hadoop.`` too.

    >>> extend_redaction("(?i)token", ["spark.a", "spark.hadoop.b"])
    '(?i)token|^(?:b|spark\\.a|spark\\.hadoop\\.b)$'
    """
    whole = set(private)
    whole |= {name.removeprefix(_HADOOP) for name in whole}
    names = "|".join(re.escape(name) for name in sorted(whole))
    return f"{known}|^(?:{names})$" if names else known


def find_private_settings(settings: Iterable[str], from_variables: Iterable[str]) -> set[str]:
    """Return the settings that are secrets: by their name, or because a variable holds them.

    >>> sorted(find_private_settings(["spark.x.token", "spark.y"], ["spark.z"]))
    ['spark.x.token', 'spark.z']
    """
    return {name for name in settings if is_credential_name(name)} | set(from_variables)


def find_exposed_settings(from_variables: Iterable[str]) -> list[str]:
    """Return those of the settings that Spark itself shows on the command line of its Java."""
    return sorted(set(from_variables) & set(_JAVA_OPTIONS))


def split_submit_arguments(text: str) -> tuple[list[str], str | None]:
    """Return the arguments of spark-submit without their file of settings, and that file.

    >>> split_submit_arguments("--packages a:b:1 --properties-file p.conf pyspark-shell")
    (['--packages', 'a:b:1', 'pyspark-shell'], 'p.conf')
    >>> split_submit_arguments("--properties-file=p.conf pyspark-shell")
    (['pyspark-shell'], 'p.conf')
    """
    rest: list[str] = []
    file = None
    arguments = iter(shlex.split(text))
    for argument in arguments:
        if argument == PROPERTIES_FILE:
            file = next(arguments, None)
        elif argument.startswith(f"{PROPERTIES_FILE}="):
            file = argument.partition("=")[2]
        else:
            rest.append(argument)
    return rest, file


def format_properties(settings: Mapping[str, str]) -> str:
    r"""Return settings as the lines of a Java properties file.

    >>> format_properties({"spark.a": " b=\\c\n", "spark.d:e": "é"})
    'spark.a=\\u0020b=\\\\c\\n\nspark.d\\:e=\\u00e9\n'
    """
    lines = []
    for key, value in settings.items():
        name = re.sub("([:=#! ])", r"\\\1", _escape(key))
        lines.append(f"{name}={_escape(value)}\n")
    return "".join(lines)


def _escape(text: str) -> str:
    """Return text with the escapes of a properties file; spaces at its start would be dropped."""
    units = text.encode("utf-16-be")
    return "".join(
        _escape_unit(int.from_bytes(units[at : at + 2]), is_first=at == 0)
        for at in range(0, len(units), 2)
    )


def _escape_unit(unit: int, *, is_first: bool) -> str:
    known = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    text = chr(unit)
    if text in known:
        return known[text]
    is_plain = text.isascii() and text.isprintable() and not (is_first and text == " ")
    return text if is_plain else f"\\u{unit:04x}"


def read_defaults(file: Path) -> str:
    """Return the text of a file of settings; "" if there is none."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def find_default_setting(defaults: str, name: str) -> str | None:
    r"""Return a setting of the text of Spark's file of settings; None if it is not there.

    >>> find_default_setting("spark.a  1\n#spark.b 2\nspark.c=x y\n", "spark.c")
    'x y'
    """
    line = rf"^[ \t]*{re.escape(name)}[ \t]*[ \t=:][ \t]*(\S.*?)[ \t]*$"
    found = re.findall(line, defaults, re.MULTILINE)
    return str(found[-1]) if found else None


def adapt_to_submit(
    settings: Mapping[str, str], submitted: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Return which of the settings a session that spark-submit starts can take, and warnings.

    ``submitted``: what spark-submit has set, which wins. Warnings name no value, as it may be a
    secret.

    >>> given = {"spark.master": "yarn", "spark.a": "1", "spark.driver.memory": "2g"}
    >>> taken, warnings = adapt_to_submit(given, {"spark.master": "local[*]"})
    >>> taken
    {'spark.a': '1'}
    >>> warnings
    ['spark-submit has set spark.master otherwise, and its value is used', \
'spark.driver.memory: give it to spark-submit; Java runs already']
    """
    differing = [name for name in settings if submitted.get(name, settings[name]) != settings[name]]
    absent = {name: value for name, value in settings.items() if name not in submitted}
    late = [name for name in absent if name in _OF_SUBMIT]
    warnings = []
    if differing:
        value = "its value is" if len(differing) == 1 else "its values are"
        listed = ", ".join(differing)
        warnings.append(f"spark-submit has set {listed} otherwise, and {value} used")
    if late:
        what = "it" if len(late) == 1 else "them"
        warnings.append(f"{', '.join(late)}: give {what} to spark-submit; Java runs already")
    return {name: value for name, value in absent.items() if name not in late}, warnings


@contextmanager
def open_private_file(text: str, folder: Path) -> Iterator[str]:
    """Hold a file that only this user can read, during the block.

    Where the system has files in memory, nothing is left even if this process is killed.
    """
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir():
        number, file = os.memfd_create("spark-settings"), None
        path = f"/proc/{os.getpid()}/fd/{number}"
        os.fchmod(number, 0o600)
    else:
        file = folder / "spark-settings.conf"
        path = str(file)
        number = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            yield path
    finally:
        if file is not None:
            file.unlink()
