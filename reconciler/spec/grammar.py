"""The fields of everything people can declare; DESIGN's word for word.

Defaults are the model's, repeated for the reader of the schema; a test holds them together.
"""

from __future__ import annotations

from typing import Final

from reconciler.spec.fields import (
    Anything,
    Block,
    Choice,
    Duration,
    Field,
    Flag,
    ListOf,
    Number,
    Options,
    Percent,
    Size,
    Text,
    TextMap,
    Whole,
    WholeOf,
    WordOr,
)
from reconciler.spec.text_rules import (
    NAME_PATTERN,
    find_filter_problem,
    find_folder_problem,
    find_location_problem,
    find_zone_problem,
)

API_VERSION: Final = "reconciler/v1"
COUNTS: Final = ("commits", "hours", "fileVersions")
"""The fields of which a retention has exactly one."""

_NOTHING_LEFT: Final = "less would leave nothing to read"
_MOST_HOURS: Final = 1000 * 365 * 24
NAMED: Final = Text(
    pattern=NAME_PATTERN,
    says="a name of letters, digits, '.', '_' and '-', such as sales.orders",
)
_COLUMNS: Final = ListOf(item=Text(), unique="items")
_FILTERS: Final = ListOf(item=Text(check=find_filter_problem))

METADATA: Final = Block(
    fields=(
        Field("name", NAMED, "The name in plans and on the CLI.", required=True),
        Field("labels", TextMap(), "What selectors select by; text by name."),
        Field("owner", Text(), "Who is asked about it."),
    )
)

RETENTION: Final = Block(
    exclusive=frozenset(("policy", *COUNTS)),
    fields=(
        Field(
            "policy",
            Choice(("KEEP_LATEST_COMMITS", "KEEP_LATEST_BY_HOURS", "KEEP_LATEST_FILE_VERSIONS")),
            "Hudi's cleaning policy; follows from the count that is given.",
        ),
        Field(
            "commits",
            Whole(least=1, why=_NOTHING_LEFT),
            "Keep what reads as of the latest so many commits need.",
        ),
        Field(
            "hours",
            Whole(least=1, most=_MOST_HOURS, why=_NOTHING_LEFT, unit="h"),
            "Keep what reads as of any moment of the last so many hours need.",
        ),
        Field(
            "fileVersions",
            Whole(least=1, why=_NOTHING_LEFT),
            "Keep so many file slices of every file group.",
        ),
        Field(
            "scan",
            Choice(("full", "incremental")),
            "Look at every partition, or at those written since the last clean as Hudi does.",
            default="full",
        ),
        Field(
            "afterCommits",
            Whole(least=1, why="leave the field out for no gate"),
            "Plan a clean only after so many commits since the last completed one.",
        ),
        Field(
            "maxCommitsPerRun",
            Whole(least=1, why="less would never clean anything"),
            "Walk a backlog down in steps of so many commits.",
        ),
        Field(
            "failedWrites",
            Choice(("EAGER", "LAZY", "NEVER")),
            "What Hudi's writers do about failed writes.",
        ),
    ),
)

FILES: Final = Block(
    fields=(
        Field("target", Size(), "The size new base files are filled to.", default="120MiB"),
        Field(
            "small",
            Size(least=0),
            "Base files below this size are small and take further inserts.",
            default="100MiB",
        ),
        Field(
            "assign",
            Choice(("steady", "hudi")),
            "How inserts are spread over small files.",
            default="steady",
        ),
        Field(
            "recordSize",
            Size(),
            "Bytes of a record, until the table's history tells.",
            default=1024,
        ),
    )
)

PARTITIONS: Final = Block(
    fields=(
        Field("include", _FILTERS, "Only these partitions: globs or /regular expressions/."),
        Field("exclude", _FILTERS, "Not these partitions."),
        Field("from", Text(), "The first partition, compared as text."),
        Field("to", Text(), "The last partition, compared as text."),
        Field("skipLatest", Whole(), "Leave out so many of the latest partitions."),
        Field(
            "latest",
            Whole(least=1, why="less would take no partition"),
            "Then take so many of the latest partitions.",
        ),
    )
)

WHEN: Final = WordOr(
    word="always",
    block=Block(
        fields=(
            Field(
                "smallFileShareAbove",
                Number(least=0, most=1),
                "Cluster a partition whose share of small base files is above this.",
            ),
            Field(
                "overlapAbove",
                Number(least=1),
                "Cluster a partition where more files than this cover a row on average.",
            ),
        )
    ),
)

BUDGET: Final = Block(
    fields=(
        Field("rewrite", Size(), "The most that one run rewrites."),
        Field("perGroup", Size(), "The most that one clustering group holds.", default="2GiB"),
        Field(
            "groups",
            Whole(least=1, why="less would cluster nothing"),
            "The most clustering groups of one run.",
            default=30,
        ),
    )
)

CLUSTERING: Final = Block(
    fields=(
        Field(
            "columns",
            _COLUMNS,
            "What rows are ordered by; an empty list only packs small files.",
            required=True,
        ),
        Field(
            "curve",
            Choice(("linear", "z-order", "hilbert", "kd-tree")),
            "How several columns become one order; kd-tree where columns are given alone.",
        ),
        Field(
            "mapping",
            Choice(("rank", "direct")),
            "Values to curve coordinates: by sampled quantiles, or Hudi's byte mapping.",
            default="rank",
        ),
        Field(
            "afterCommits",
            Whole(least=1, why="at least one commit lies between two clusterings"),
            "Plan a clustering only after so many commits since the last one.",
            default=1,
        ),
        Field("partitions", PARTITIONS, "Which partitions are looked at."),
        Field("when", WHEN, "What makes a partition worth rewriting; any of them. Or `always`."),
        Field("singleFile", Flag(), "Whether a group of one file may be rewritten.", default=True),
        Field("budget", BUDGET, "Limits of one run."),
    )
)

INDEX: Final = Block(
    fields=(
        Field(
            "columns",
            ListOf(item=Text(), least=1, unique="items"),
            "The columns whose statistics are kept for data skipping.",
            required=True,
        ),
        Field(
            "hudi",
            Choice(("keep", "build")),
            "Maintain Hudi's own column_stats where live, or build it for these columns too.",
            default="keep",
        ),
    )
)

QUERIES: Final = ListOf(
    unique="name",
    item=Block(
        fields=(
            Field("name", Text(), "What plans call it.", required=True),
            Field("where", Text(), "The query's SQL predicate.", required=True),
            Field("maxScan", Percent(), "The most of the table's bytes it may read, such as 5%."),
        )
    ),
)

READERS: Final = Block(
    fields=(
        Field("longestQuery", Duration(), "Slices superseded more recently than this stay."),
        Field(
            "incrementalConsumers",
            ListOf(
                unique="name",
                item=Block(
                    fields=(
                        Field("name", Text(), "Who reads.", required=True),
                        Field("maxLag", Duration(), "How far behind it may be.", required=True),
                    )
                ),
            ),
            "Incremental readers; what the slowest still needs stays.",
        ),
    )
)

LOCK: Final = Block(
    fields=(
        Field(
            "provider",
            Choice(
                ("filesystem", "none"),
                refused=("zookeeper", "dynamodb", "hivemetastore", "storage", "inprocess"),
            ),
            "Hudi's lock file, or none: this table has a single writer.",
            required=True,
        ),
        Field(
            "path",
            Text(check=find_folder_problem),
            "The lock file's folder; relative to the table if relative.",
            default=".hoodie",
        ),
        Field(
            "expire",
            Whole(unit="m"),
            "Minutes after which writers take a lock for abandoned; 0 is never.",
            default=0,
        ),
    )
)

CONCURRENCY: Final = Block(
    fields=(
        Field("lock", LOCK, "How writers keep out of each other's way."),
        Field(
            "staleAfter",
            Duration(),
            "When another's pending clean may be finished, and its silent write is dead.",
            default="1h",
        ),
    )
)

TABLE: Final = Block(
    fields=(
        Field(
            "type", Choice(("COPY_ON_WRITE", "MERGE_ON_READ")), "Hudi's table type.", required=True
        ),
        Field("version", WholeOf((6, 8, 9)), "Hudi's table version.", required=True),
        Field(
            "recordKey",
            ListOf(item=Text(), least=1, unique="items"),
            "The columns that make a record's key.",
            required=True,
        ),
        Field("partitionBy", _COLUMNS, "The columns that make a partition's path."),
        Field(
            "ordering", _COLUMNS, "The columns that decide which of two records of one key wins."
        ),
        Field(
            "hiveStyle", Flag(), "Whether partition folders are named column=value.", default=True
        ),
        Field("schema", Anything(), "The table's Avro schema."),
    )
)

PATH: Final = Field(
    "path",
    Text(check=find_location_problem),
    "Where the table is: relative to this file, absolute, or a URL. An environment may say it too.",
)

STORAGE_OPTIONS: Final = Field(
    "storageOptions",
    Options(),
    "What the store's client is told, by fsspec's names; secrets as {fromEnv: VARIABLE}.",
)

UNPLACED: Final = (
    Field(
        "timezone",
        Text(check=find_zone_problem),
        "The zone of the timeline's instants, as in the zone database.",
    ),
    Field("suspend", Flag(), "Show what would be done, and refuse to do it.", default=False),
    Field("retention", RETENTION, "How much history stays; absent is unmanaged."),
    Field("files", FILES, "Sizes of base files; absent is unmanaged."),
    Field("clustering", CLUSTERING, "How rows lie in files; absent is unmanaged."),
    Field("index", INDEX, "Column statistics; absent is unmanaged."),
    Field("queries", QUERIES, "What the layout is for."),
    Field("readers", READERS, "Who reads, and how long: what they may still need stays."),
    Field("concurrency", CONCURRENCY, "What apply needs to know of writers."),
    Field("table", TABLE, "How `write` creates the table."),
)

TABLE_SPEC: Final = Block(fields=(PATH, *UNPLACED))
DEFAULTS_SPEC: Final = Block(fields=UNPLACED)
DOCUMENT: Final = Block(fields=(*METADATA.fields[1:], *UNPLACED, STORAGE_OPTIONS))
"""The effective spec in a plan, without the path: a table's spec with its labels and owner."""
