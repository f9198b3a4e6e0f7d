"""Cleaner plans, clean metadata and properties round-trip."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.hudi.table.properties import format_java_properties, parse_java_properties
from reconciler.hudi.timeline.clean import CleanedPartition, CleanerPlan, CleanMetadata

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
NAMES = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="/\\\0"), min_size=1)
FILES = NAMES.filter(lambda name: name not in (".", "..")).map(lambda name: name[:12])
PARTITIONS = st.lists(
    FILES.filter(lambda name: name not in (".", "..", ".hoodie")), max_size=3
).map("/".join)
TIMES = st.text("0123456789", min_size=1, max_size=17)
SOURCES = st.tuples(TEXT)
MAPS = st.dictionaries(TEXT, TEXT, max_size=3)


@st.composite
def plans(draw):
    outside = draw(st.dictionaries(PARTITIONS, SOURCES, max_size=2))
    files = draw(st.dictionaries(PARTITIONS, st.lists(FILES, max_size=3).map(tuple), max_size=3))
    earliest = draw(st.none() | TIMES)
    return CleanerPlan(
        policy=draw(TEXT),
        earliest_instant=earliest,
        earliest_action="commit" if earliest is None else draw(TEXT),
        last_completed_commit=draw(TEXT),
        files={**dict.fromkeys(outside, ()), **files},
        bootstrap_files=outside,
        delete_partitions=tuple(draw(st.lists(PARTITIONS, max_size=2))),
        extra=draw(MAPS),
    )


CLEANED = st.builds(
    CleanedPartition,
    policy=TEXT,
    planned=st.lists(FILES, max_size=3).map(tuple),
    deleted=st.lists(FILES, max_size=3).map(tuple),
    failed=st.lists(FILES, max_size=3).map(tuple),
    is_folder_deleted=st.booleans(),
)
METADATA = st.builds(
    CleanMetadata,
    started=TIMES,
    duration_ms=st.integers(0, 2**62),
    earliest_instant=TIMES | st.just(""),
    last_completed_commit=TEXT,
    partitions=st.dictionaries(PARTITIONS, CLEANED, max_size=3),
    extra=MAPS,
)


@given(plans(), st.sampled_from(["/tables/t", "s3://bucket/t", "hdfs://n:8020/t"]))
def test_cleaner_plan_round_trips(plan, location):

    assert plan == CleanerPlan.parse(plan.encode(location), "x")


@given(METADATA)
def test_clean_metadata_round_trips(metadata):

    assert metadata == CleanMetadata.parse(metadata.encode(), "x")


@given(st.dictionaries(TEXT, TEXT, max_size=5))
def test_properties_round_trip(properties):

    assert properties == parse_java_properties(format_java_properties(properties), "x")


@given(st.dictionaries(TEXT, TEXT, max_size=5))
def test_encoded_properties_are_ascii_with_one_line_each(properties):
    lines = format_java_properties(properties).decode("ascii").splitlines()

    assert len(properties) == len(lines)
