"""The documents people write: tables, defaults for them, policies over them, environments."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from reconciler.spec.fields import (
    Anything,
    Block,
    Choice,
    Field,
    Flag,
    ListOf,
    MapOf,
    Options,
    Size,
    Text,
    TextMap,
    TextOr,
    Whole,
)
from reconciler.spec.grammar import (
    API_VERSION,
    COUNTS,
    DEFAULTS_SPEC,
    METADATA,
    NAMED,
    RETENTION,
    STORAGE_OPTIONS,
    TABLE_SPEC,
)
from reconciler.spec.text_rules import (
    find_day_problem,
    find_location_problem,
    find_pattern_problem,
    find_zone_problem,
)

SELECTOR: Final = Field(
    "selector",
    Block(
        fields=(
            Field("labels", TextMap(), "Tables that have all of these labels."),
            Field(
                "paths",
                ListOf(item=Text(check=find_location_problem), least=1),
                "Tables at one of these places; * stops at /, ** does not.",
            ),
        )
    ),
    "Which tables; every table when absent.",
)

POLICY_SPEC: Final = Block(
    fields=(
        Field(
            "minRetention",
            Block(fields=tuple(field for field in RETENTION.fields if field.name in COUNTS)),
            "The least a retention may keep, by kind of count; one of another kind is refused.",
        ),
        Field("maxFilesRemoved", Whole(), "The most files one plan may remove."),
        Field("maxBytesRemoved", Size(least=0), "The most bytes it may remove."),
        Field("maxRewrite", Size(least=0), "The most bytes it may rewrite."),
        Field(
            "protected",
            ListOf(item=Text()),
            "Names (globs) of those tables that no plan may touch.",
        ),
        Field(
            "requireLock",
            Flag(),
            "Refuse tables without concurrency.lock, or with provider none.",
            default=False,
        ),
        Field(
            "severity", Choice(("error", "warn")), "Refuse the plan, or only warn.", default="error"
        ),
        Field(
            "waivers",
            ListOf(
                item=Block(
                    fields=(
                        Field(
                            "rule",
                            Choice(
                                (
                                    "minRetention",
                                    "maxFilesRemoved",
                                    "maxBytesRemoved",
                                    "maxRewrite",
                                    "protected",
                                    "requireLock",
                                )
                            ),
                            "The rule that is waived.",
                            required=True,
                        ),
                        Field("table", Text(), "For which table: its whole name.", required=True),
                        Field(
                            "until",
                            Text(
                                pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
                                says="a date such as 2026-12-31",
                                check=find_day_problem,
                            ),
                            "The last day of UTC on which it holds.",
                            required=True,
                        ),
                        Field("reason", Text(), "Why it is waived.", required=True),
                    )
                )
            ),
            "Exceptions; each for one table, with a reason and an end.",
        ),
    )
)

_OF_TABLES: Final = (
    "an environment only says where tables are and how they are reached; "
    "write it in the table's spec or in a policy"
)
_TIMEZONE: Final = Text(check=find_zone_problem)

ENVIRONMENT_SPEC: Final = Block(
    instead=_OF_TABLES,
    fields=(
        Field(
            "tables",
            MapOf(
                name=NAMED,
                item=TextOr(
                    text=Text(check=find_location_problem),
                    block=Block(
                        instead=_OF_TABLES,
                        fields=(
                            Field("path", Text(check=find_location_problem), "Where the table is."),
                            Field("timezone", _TIMEZONE, "The zone of its timeline's instants."),
                        ),
                    ),
                ),
            ),
            "Where tables are, by name: relative to this file, absolute, or a URL.",
        ),
        Field(
            "pattern",
            Text(check=find_pattern_problem),
            "Where tables are that are not listed, as s3://lake/{name} or s3://{schema}/{table}.",
        ),
        Field("timezone", _TIMEZONE, "The zone of tables whose spec names none."),
        STORAGE_OPTIONS,
        Field(
            "spark",
            Block(
                instead=_OF_TABLES,
                fields=(
                    Field(
                        "master",
                        Text(
                            pattern=r"^(local|yarn|spark://|k8s://|mesos://)\S*$",
                            says="a master of Spark such as local[*], yarn or spark://host:7077",
                        ),
                        "Where Spark runs.",
                    ),
                    Field("conf", Options(prefix="spark."), "Settings of Spark."),
                ),
            ),
            "How `apply` starts Spark; the command line wins.",
        ),
    ),
)

_API: Final = Field("apiVersion", Choice((API_VERSION,)), "The format's version.", required=True)
_META: Final = Field(
    "metadata", METADATA, "Who this is: a name, and labels and an owner if you like.", required=True
)


def _document(word: str, spec: Block, *more: Field) -> Block:
    kind = Field("kind", Choice((word,)), "What this declares.", required=True)
    declared = Field(
        "spec", spec, "What is declared: fields indented below this one.", required=True
    )
    return Block(fields=(_API, kind, _META, *more, declared))


def envelope(kind: str) -> Block:
    """The document of that kind with a spec that is not looked into."""
    *around, spec = KINDS[kind].fields
    return Block(fields=(*around, replace(spec, kind=Anything())))


KINDS: Final = {
    "HudiTable": _document("HudiTable", TABLE_SPEC),
    "TableDefaults": _document("TableDefaults", DEFAULTS_SPEC, SELECTOR),
    "Policy": _document("Policy", POLICY_SPEC, SELECTOR),
    "Environment": _document("Environment", ENVIRONMENT_SPEC),
}
