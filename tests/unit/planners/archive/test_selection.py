"""Which instants are archived, and what keeps the rest active."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.planners.archive.bounds import find_bounds, find_metadata_bounds
from reconciler.planners.archive.leftovers import find_leftovers
from reconciler.planners.archive.planner import choose_metadata_instants
from reconciler.planners.archive.selection import CommitLimits, select_instants
from reconciler.spec.active_timeline import ActiveTimeline
from reconciler.state.archival_facts import ArchivalFacts, MetadataArchival, NewestClean

DAY_MS = 24 * 3600 * 1000


def make_timeline(*words, layout=2):
    """Instants such as ``12 commit``, ``13 commit inflight``: time, action, state."""
    files = []
    for word in words:
        time, action, *state = word.split()
        reached = State(state[0].upper()) if state else State.COMPLETED
        for one in State:
            if one.rank <= reached.rank:
                kind = Action(action)
                kind = kind.completes_as if one is State.COMPLETED else kind
                done = f"{time}5" if one is State.COMPLETED and layout == 2 else None
                instant = Instant(time, kind, one, done)
                files.append(TimelineFile(instant, instant.file_name, 1, 0))
    return Timeline.from_files(files)


def commits(first, last, action="commit"):
    return [f"{time} {action}" for time in range(first, last + 1)]


def choose(timeline, facts=None, *, keep=(2, 3), layout=2, mor=False):
    """Return the archived instants, and the rule that holds others."""
    facts = facts or ArchivalFacts()
    found = select_instants(
        timeline,
        CommitLimits(least=keep[0], most=keep[1]),
        find_bounds(timeline, facts, layout=layout, is_merge_on_read=mor),
        layout=layout,
        is_merge_on_read=mor,
        archived=facts.archived,
    )
    held = found.bound and (found.bound.rule, found.held)
    return [f"{one.requested} {one.action}" for one in found.instants], held


def test_nothing_goes_until_there_are_more_commits_than_the_second_number():
    assert ([], None) == choose(make_timeline(*commits(10, 12)))
    assert (["10 commit", "11 commit"], None) == choose(make_timeline(*commits(10, 13)))


def test_deltacommits_count_only_in_tables_that_merge_on_read():
    words = [*commits(10, 12), *commits(20, 29, "deltacommit")]

    assert ([], None) == choose(make_timeline(*words))
    assert [*commits(10, 12), *commits(20, 24, "deltacommit")] == (
        choose(make_timeline(*words), mor=True)[0]
    )


@pytest.mark.parametrize(
    ("word", "rule"),
    [
        ("12 commit inflight", "pendingWrite"),
        ("12 compaction requested", "pendingWrite"),
        ("12 clustering inflight", "pendingWrite"),
        ("12 savepoint", "savepoint"),
        ("12 savepoint inflight", "savepoint"),
        ("12 replacecommit", "replacedFiles"),
    ],
)
def test_an_instant_holds_what_is_newer(word, rule):
    others = [one for one in commits(10, 19) if "savepoint" in word or not one.startswith("12")]
    found, held = choose(make_timeline(*others, word))

    assert (rule, 6) == held
    assert found == (commits(10, 10) if rule == "pendingWrite" else commits(10, 11))


def test_a_savepoint_that_the_same_plan_makes_holds_its_commit():
    timeline, facts = make_timeline(*commits(10, 19), "15 savepoint"), ArchivalFacts()
    bounds = find_bounds(timeline, facts, layout=2, is_merge_on_read=False, savepoints=["12"])

    assert [("savepoint", "12")] == [(bound.rule, bound.instant) for bound in bounds]
    assert () == find_bounds(timeline, facts, layout=2, is_merge_on_read=False, savepoints=[])


def test_a_pending_write_holds_the_commit_before_it_so_that_the_timeline_has_no_hole():
    found = choose(make_timeline(*commits(10, 13), "14 commit requested", *commits(15, 19)))

    assert (commits(10, 12), ("pendingWrite", 4)) == found


@pytest.mark.parametrize("layout", [1, 2])
def test_a_pending_write_holds_older_commits_that_completed_after_it_began(layout):
    words = [*commits(10, 13), "14 commit requested", *commits(15, 19)]
    timeline = make_timeline(*words, layout=layout)
    late = Instant("11", Action.COMMIT, State.COMPLETED, "145" if layout == 2 else None)
    files = [file for file in timeline.files if file.instant.requested != "11"]
    files.append(TimelineFile(late, late.file_name, 1, 1))

    assert (commits(10, 10), ("pendingWrite", 6)) == (
        choose(Timeline.from_files(files), layout=layout)
    )


def test_a_clean_lets_replacements_go_that_it_has_cleaned():
    words = [*commits(10, 11), "12 replacecommit", *commits(13, 19), "20 clean"]
    timeline = make_timeline(*words)
    facts = ArchivalFacts(clean=NewestClean(instant="20", earliest="15"))

    assert commits(10, 11) == choose(timeline)[0]
    assert ([*commits(10, 11), "12 replacecommit", *commits(13, 14)], ("newestClean", 3)) == (
        choose(timeline, facts)
    )


def test_a_savepoint_that_a_clean_found_holds_replacements_behind_it():
    words = [*commits(10, 12), "13 replacecommit", *commits(14, 19), "20 clean"]
    clean = NewestClean(instant="20", earliest="16", savepointed=("12",))

    assert (commits(10, 12), ("replacedFiles", 5)) == choose(
        make_timeline(*words), ArchivalFacts(clean=clean)
    )


@pytest.mark.parametrize("earliest", [None, "16"])
def test_replaced_files_that_a_clean_left_hold_their_replacement(earliest):
    words = [*commits(10, 12), "13 replacecommit", *commits(14, 19), "20 clean"]
    clean = NewestClean(instant="20", earliest=earliest)
    facts = ArchivalFacts(clean=clean, replacing_instant="13")

    assert (commits(10, 12), ("replacedFiles", 5)) == choose(make_timeline(*words), facts)


def test_an_unreadable_newest_clean_holds_everything():
    facts = ArchivalFacts(clean=NewestClean(instant="20", problem="it is empty"))

    assert ([], ("newestClean", 8)) == choose(make_timeline(*commits(10, 19), "20 clean"), facts)


def test_files_of_an_unknown_instant_hold_the_write_before_them():
    facts = ArchivalFacts(unknown_instant="145")

    assert (commits(10, 13), ("unknownFiles", 4)) == choose(make_timeline(*commits(10, 19)), facts)


def test_the_metadata_table_holds_what_it_has_not_compacted():
    def facts(*words):
        return ArchivalFacts(metadata=MetadataArchival(timeline=make_timeline(*words)))

    timeline = make_timeline(*commits(10, 19))

    assert ([], ("metadataTable", 8)) == choose(timeline, facts("10 deltacommit"))
    assert (commits(10, 13), ("metadataTable", 4)) == choose(timeline, facts("144 commit"))


def test_the_newest_schema_history_holds_its_commit():
    facts = ArchivalFacts(schema_files=("11.schemacommit", "13.schemacommit", "99.schemacommit"))

    assert (commits(10, 12), ("schemaHistory", 5)) == choose(make_timeline(*commits(10, 19)), facts)


def test_deltacommits_that_a_compaction_waits_for_stay():
    words = [*commits(10, 12, "deltacommit"), "13 commit", *commits(14, 16, "deltacommit")]

    assert commits(10, 12, "deltacommit") == choose(make_timeline(*words), mor=True)[0]


def test_layout_2_archives_cleans_and_rollbacks_between_commits_but_never_the_newest_clean():
    words = [*commits(10, 19), "105 clean", "115 rollback", "125 clean", "195 rollback"]

    assert [*commits(10, 10), "105 clean", "11 commit", "115 rollback", *commits(12, 17)] == (
        choose(make_timeline(*words))[0]
    )


def test_layout_1_counts_cleans_and_rollbacks_by_themselves():
    words = [*commits(10, 12), *commits(20, 23, "clean"), *commits(30, 32, "rollback")]

    assert (commits(20, 21, "clean"), None) == choose(make_timeline(*words, layout=1), layout=1)


def test_instants_that_are_archived_already_go_whatever_the_limits_say():
    timeline = make_timeline(*commits(10, 12), "105 clean", "125 clean")
    archived = frozenset({("10", Action.COMMIT), ("105", Action.CLEAN), ("12", Action.COMMIT)})

    assert (["10 commit", "105 clean"], None) == choose(
        timeline, ArchivalFacts(archived=archived), keep=(5, 9)
    )


def test_the_metadata_table_keeps_one_commit_more_and_what_the_table_has():
    own = make_timeline(*commits(10, 40, "deltacommit"), "405 commit")
    data = make_timeline(*commits(15, 40))
    facts = ArchivalFacts(metadata=MetadataArchival(timeline=own))
    found = choose_metadata_instants(ActiveTimeline(keep="2..3"), None, facts, data, layout=2)

    assert commits(10, 14, "deltacommit") == [
        f"{one.requested} {one.action}" for one in found.instants
    ]
    assert {"compaction", "dataTable"} == {
        bound.rule for bound in find_metadata_bounds(own, data, layout=2)
    }


def test_leftovers_are_a_day_old_and_of_no_pending_instant():
    timeline = make_timeline("10 commit", "11 commit inflight")
    facts = ArchivalFacts(
        heartbeats={"10": 0, "11": 0, "12": 0, "13": DAY_MS},
        marker_folders={"10": 0, "11": 0, "12": 2 * DAY_MS},
    )
    found = find_leftovers(timeline, facts, (), 2 * DAY_MS)

    assert [".hoodie/.heartbeat/10", ".hoodie/.heartbeat/12", ".hoodie/.temp/10"] == [
        one.path for one in found
    ]


def test_schema_files_go_that_are_older_than_the_newest_and_of_no_active_commit():
    timeline = make_timeline(*commits(10, 13), "14 commit inflight")
    names = ("09.schemacommit", "10.schemacommit", "11.schemacommit.inflight", "12.schemacommit")
    facts = ArchivalFacts(schema_files=(*names, "14.schemacommit", "notes.txt"))

    assert [".hoodie/.schema/09.schemacommit", ".hoodie/.schema/10.schemacommit"] == [
        one.path for one in find_leftovers(timeline, facts, {"10"}, 0)
    ]
    assert () == find_leftovers(timeline, replace(facts, schema_files=names[:1]), (), 0)
