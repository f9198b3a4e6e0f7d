"""The tables that `./ci/test` reads have everything that any table here has."""

from __future__ import annotations

import re
import zipfile

from tests.oracle.read_queries import properties_file
from tests.oracle.stored_tables import CLEANED, READ, READ_FROM_CLEANED, TABLES

_FILE = re.compile(r"(?:timeline/)?(\d{14}|\d{17})(?:_\d+)?\.([a-z]+)(?:\.([a-z]+))?")
_OPERATION = re.compile(
    rb"\b(INSERT_OVERWRITE_TABLE|INSERT_OVERWRITE|DELETE_PARTITION|BULK_INSERT|UPSERT|INSERT|DELETE"
    rb"|CLUSTER|LOG_COMPACT|COMPACT|BOOTSTRAP)\b"
)
_WRITES = ("commit", "deltacommit", "replacecommit")


def facts(name: str) -> set[tuple[str, str, str]]:
    """(table version, table type, fact) of what a reader may treat in a way of its own."""
    with zipfile.ZipFile(TABLES[name]) as archive:
        files = archive.namelist()
        properties = properties_file(archive)
        said = dict(re.findall(r"^([^#=]+)=(.*)$", archive.read(properties).decode(), re.MULTILINE))
        home = properties.removesuffix("hoodie.properties")
        found: set[str] = set()
        states: dict[str, set[tuple[str, str]]] = {}
        for file in (f for f in files if f.startswith(home)):
            if not (parsed := _FILE.fullmatch(file.removeprefix(home))):
                continue
            instant, action, state = parsed.groups("")
            if action == "inflight":
                action, state = "commit", "inflight"
            states.setdefault(instant, set()).add((action, state))
            if action in _WRITES and not state:
                found |= {op.decode() for op in _OPERATION.findall(archive.read(file))}
    for each in states.values():
        done = {action for action, state in each if not state}
        found |= done or {f"pending {action} {state}" for action, state in each}
    found |= {"partitioned"} if said.get("hoodie.table.partition.fields") else {"not partitioned"}
    found |= {"logs"} if any(".log." in f and not f.startswith(home) for f in files) else set()
    found |= (
        {"hive"} if "true" == said.get("hoodie.datasource.write.hive_style_partitioning") else set()
    )
    found |= {
        f"indexed by {part}" for part in said.get("hoodie.table.metadata.partitions", "").split(",")
    }
    return {(said["hoodie.table.version"], said["hoodie.table.type"], fact) for fact in found}


def test_no_version_type_operation_or_pending_action_is_read_by_nobody():
    every = set().union(*map(facts, TABLES))
    read = set().union(*map(facts, READ))

    assert set() == every - read


def test_no_table_is_read_in_vain():
    others = set().union(*(facts(name) for name in READ if name not in CLEANED))
    needed = [name for name in READ_FROM_CLEANED if facts(name) - others]

    assert READ_FROM_CLEANED == set(needed)
